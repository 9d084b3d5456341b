//! Pages that are part of a site's machinery and no text: found by their names.

/// Names of such pages, without their ending.
const NAMES: &[&str] = &[
    "search",
    "settings",
    "help",
    "print",
    "toc",
    "404",
    "not_found",
    "genindex",
    "all",
    "sitemap",
];

/// Whether a web page's path names it a part of the machinery.
pub(crate) fn is_interface_page(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    name.contains(".htm") && NAMES.contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_names() {
        let check =
            |path: &str, expected: bool| assert_eq!(is_interface_page(path), expected, "{path}");
        check("book/print.html", true);
        check("std/all.html.gz", true);
        check("book/printing.html", false);
        check("std/macro.print.html", false);
        check("search", false);
    }
}
