//! One spelling for an address.

/// Parameters that say where a visitor came from and not what the page is.
const TRACKING: &[&str] =
    &["fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "igshid", "ref_src", "yclid"];

/// Scheme and host in lower case, `http` as `https`, no user name, default port, fragment, tracking
/// parameters, closing slash or `index.html`; parameters sorted. A text without a scheme keeps its case
/// and loses only fragment, closing slash and `index.html`.
pub(crate) fn normalise_url(url: &str) -> String {
    let url = url.trim();
    let url = url.split('#').next().unwrap_or_default();
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let Some((scheme, rest)) = address.split_once("://") else {
        return format!("{}{}", path(address), sorted(query));
    };
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => "https".to_owned(),
        other => other.to_owned(),
    };
    let (authority, tail) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let host = host.strip_suffix(":80").or_else(|| host.strip_suffix(":443")).unwrap_or(&host);
    let host = host.trim_end_matches('.');
    match path(tail) {
        "" => format!("{scheme}://{host}{}", sorted(query)),
        tail => format!("{scheme}://{host}/{tail}{}", sorted(query)),
    }
}

fn path(path: &str) -> &str {
    let path = path.trim_matches('/');
    let shortened =
        ["index.html", "index.htm", "index.php"].iter().find_map(|name| path.strip_suffix(name));
    match shortened {
        Some(shortened) if shortened.is_empty() || shortened.ends_with('/') => {
            shortened.trim_end_matches('/')
        }
        _ => path,
    }
}

fn sorted(query: &str) -> String {
    let tracking = |name: &str| name.starts_with("utm_") || TRACKING.contains(&name);
    let mut parts: Vec<&str> = query
        .split('&')
        .filter(|part| !part.is_empty() && !tracking(part.split('=').next().unwrap_or_default()))
        .collect();
    parts.sort_unstable();
    if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_address_are_one() {
        let check = |url: &str, expected: &str| assert_eq!(normalise_url(url), expected, "{url}");
        check("HTTP://User@Example.ORG:80/A/b/?utm_source=x#y", "https://example.org/A/b");
        check("https://example.org", "https://example.org");
        check("https://example.org/?b=2&a=1&fbclid=3", "https://example.org?a=1&b=2");
        check("https://example.org/x/index.html", "https://example.org/x");
        check("https://example.org/myindex.html", "https://example.org/myindex.html");
        check("book/ch01.html#part", "book/ch01.html");
        check("std/Vec/index.html", "std/Vec");
        check("", "");
    }
}
