//! What a page says about itself.

use crate::source::seconds;
use scraper::{ElementRef, Html};

#[derive(Default)]
pub(super) struct Head {
    pub(super) title: String,
    pub(super) modified: i64,
    pub(super) canonical: Option<String>,
    pub(super) language: Option<String>,
    pub(super) redirect: bool,
    pub(super) no_index: bool,
}

pub(super) fn read(document: &Html) -> Head {
    let mut head = Head::default();
    let root = document.root_element();
    head.language =
        root.attr("lang").and_then(|lang| lang.split('-').next()).map(str::to_lowercase);
    head.language = head.language.take().filter(|lang| !lang.is_empty());
    for element in root.descendants().filter_map(ElementRef::wrap) {
        match element.value().name() {
            "title" if head.title.is_empty() => {
                head.title = element
                    .text()
                    .collect::<String>()
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ");
            }
            "meta" => meta(element, &mut head),
            "link" if element.attr("rel") == Some("canonical") => {
                head.canonical =
                    element.attr("href").filter(|href| href.contains("://")).map(str::to_owned);
            }
            "body" => break,
            _ => {}
        }
    }
    head
}

fn meta(element: ElementRef<'_>, head: &mut Head) {
    let content = element.attr("content").unwrap_or_default();
    if let Some(kind) = element.attr("http-equiv") {
        head.redirect |=
            kind.eq_ignore_ascii_case("refresh") && content.to_ascii_lowercase().contains("url=");
        return;
    }
    let Some(name) = element.attr("name").or_else(|| element.attr("property")) else { return };
    match name.to_ascii_lowercase().as_str() {
        "robots" => head.no_index |= content.to_ascii_lowercase().contains("noindex"),
        "article:modified_time"
        | "article:published_time"
        | "og:updated_time"
        | "last-modified"
        | "date"
        | "dcterms.modified"
        | "dc.date" => {
            head.modified = head.modified.max(seconds(content).unwrap_or(0));
        }
        _ => {}
    }
}
