//! Shapes that rustdoc alone has: the heading of an item with its path apart, signatures as headings,
//! fields as spans.

use super::inline;
use super::render::Renderer;
use scraper::ElementRef;

fn has_class(element: ElementRef<'_>, class: &str) -> bool {
    element.value().classes().any(|found| found == class)
}

/// Whether an inline element is one of rustdoc's blocks.
pub(super) fn is_block(element: ElementRef<'_>) -> bool {
    has_class(element, "structfield")
}

/// Renders one of rustdoc's own shapes; false for all other elements.
pub(super) fn render(renderer: &mut Renderer<'_>, element: ElementRef<'_>) -> bool {
    if has_class(element, "main-heading") {
        item_heading(renderer, element)
    } else if has_class(element, "code-header") {
        let signature = inline::text(element, renderer.drop).replace(['\n', '`'], " ");
        let name = element.value().name();
        let level = name.strip_prefix('h').and_then(|n| n.parse().ok()).unwrap_or(4);
        renderer.heading_line(level, &format!("`{}`", tidy(&signature)));
        true
    } else if has_class(element, "structfield") {
        let field = inline::text(element, renderer.drop).replace('\n', " ");
        renderer.heading_line(4, &field);
        true
    } else {
        false
    }
}

/// `std::vec` above `Struct Vec` becomes `# Struct std::vec::Vec`.
fn item_heading(renderer: &mut Renderer<'_>, element: ElementRef<'_>) -> bool {
    let inside = || element.descendants().filter_map(ElementRef::wrap);
    let Some(heading) = inside().find(|e| e.value().name() == "h1") else { return false };
    let text = inline::text(heading, renderer.drop).replace('\n', " ");
    let path = inside().find(|e| has_class(*e, "rustdoc-breadcrumbs"));
    let path =
        path.map(|path| inline::text(path, renderer.drop).replace(' ', "")).unwrap_or_default();
    let has_path =
        !matches!(text.split(' ').next(), Some("Crate" | "Keyword" | "Primitive" | "Attribute"));
    let line = match text.rsplit_once(' ') {
        Some((kind, name)) if has_path && !path.is_empty() => format!("{kind} {path}::{name}"),
        _ => text,
    };
    renderer.heading_line(1, &line);
    true
}

/// A signature on one line, without the traces of having been on several.
fn tidy(signature: &str) -> String {
    let words: Vec<&str> = signature.split_whitespace().collect();
    words.join(" ").replace("( ", "(").replace(", )", ")").trim_end_matches(',').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_put_on_one_line() {
        assert_eq!(
            tidy("pub fn a(\n    x: u8,\n    y: u8,\n) -> u8 where\n    T: A,"),
            "pub fn a(x: u8, y: u8) -> u8 where T: A"
        );
    }
}
