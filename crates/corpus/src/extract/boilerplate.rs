//! Elements that hold no text of their own: navigation, controls, decoration, and what the two big
//! generators of Rust documentation (rustdoc and mdBook) put beside the text.

use scraper::ElementRef;
use scraper::node::Element;
use std::collections::BTreeSet;

/// Tags that are left out wherever they are.
const TAGS: &[&str] = &[
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "iframe",
    "nav",
    "footer",
    "aside",
    "button",
    "select",
    "input",
    "textarea",
    "option",
    "datalist",
    "dialog",
    "canvas",
    "object",
    "embed",
    "audio",
    "video",
    "map",
    "img",
    "picture",
    "link",
    "meta",
    "head",
    "title",
    "rustdoc-topbar",
    "rustdoc-toolbar",
    "rustdoc-search",
];

/// Classes that are left out wherever they are.
const CLASSES: &[&str] = &[
    // Common names across the web.
    "sidebar",
    "navbar",
    "nav",
    "navigation",
    "breadcrumb",
    "breadcrumbs",
    "menu",
    "menu-bar",
    "pagination",
    "toc",
    "table-of-contents",
    "site-header",
    "site-footer",
    "page-footer",
    "cookie",
    "cookie-banner",
    "advert",
    "advertisement",
    "ads",
    "social",
    "share",
    "share-buttons",
    "comments",
    "related",
    "newsletter",
    "popup",
    "hidden",
    "sr-only",
    "visually-hidden",
    "screen-reader-text",
    "skip-link",
    "skip-main-content",
    "edit-link",
    "headerlink",
    "linenos",
    "lineno",
    "line-numbers",
    "gutter",
    "copy-button",
    // rustdoc.
    "rightside",
    "src",
    "srclink",
    "anchor",
    "doc-anchor",
    "test-arrow",
    "hideme",
    "sub-heading",
    "out-of-band",
    "notable-traits",
    "tooltip",
    "stab",
    "scraped-example-list",
    "more-scraped-examples",
    // mdBook and the Reference.
    "nav-wrapper",
    "nav-chapters",
    "mobile-nav-chapters",
    "boring",
    "buttons",
    "footnote-reference",
    "grammar-railroad",
    "rule",
    "rule-link",
    "test-link",
    "ferris-explain",
];

/// Identifiers that are left out; one that ends in `*` stands for all that begin so.
const IDS: &[&str] = &[
    "sidebar",
    "navigation",
    "nav",
    "header-nav",
    "footer",
    "comments",
    "copy-path",
    "toc",
    // rustdoc: the same implementations stand on hundreds of pages.
    "trait-implementations",
    "trait-implementations-list",
    "synthetic-implementations",
    "synthetic-implementations-list",
    "blanket-implementations",
    "blanket-implementations-list",
    "implementors",
    "implementors-list",
    "synthetic-implementors",
    "synthetic-implementors-list",
    "foreign-impls",
    "deref-methods*",
    "reexports",
    "mdbook-help-container",
    "mdbook-menu-bar",
    "menu-bar",
];

const ROLES: &[&str] =
    &["navigation", "banner", "contentinfo", "search", "menu", "dialog", "alertdialog"];

/// Elements to leave out beyond the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drop {
    tags: BTreeSet<String>,
    classes: BTreeSet<String>,
    tagged_classes: BTreeSet<(String, String)>,
    ids: BTreeSet<String>,
    id_beginnings: Vec<String>,
}

impl Drop {
    /// Reads patterns of the forms `tag`, `.class`, `tag.class`, `#id` and `#id*`.
    pub(crate) fn new(patterns: &[String]) -> Result<Self, String> {
        let mut drop = Self::default();
        for pattern in patterns {
            let simple = |text: &str| {
                !text.is_empty()
                    && text.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
            };
            let ok = if let Some(id) = pattern.strip_prefix('#') {
                let (id, open) = id.strip_suffix('*').map_or((id, false), |id| (id, true));
                if open {
                    drop.id_beginnings.push(id.to_owned());
                } else {
                    drop.ids.insert(id.to_owned());
                }
                !id.is_empty()
            } else if let Some(class) = pattern.strip_prefix('.') {
                drop.classes.insert(class.to_owned()) && simple(class)
            } else if let Some((tag, class)) = pattern.split_once('.') {
                drop.tagged_classes.insert((tag.to_owned(), class.to_owned()));
                simple(tag) && simple(class)
            } else {
                drop.tags.insert(pattern.to_owned());
                simple(pattern)
            };
            if !ok {
                return Err(format!(
                    "{pattern:?} is not of the form tag, .class, tag.class, #id or #id*"
                ));
            }
        }
        Ok(drop)
    }

    /// Whether an element and all in it is left out.
    pub(super) fn drops(&self, element: ElementRef<'_>) -> bool {
        let value = element.value();
        let tag = value.name();
        TAGS.contains(&tag)
            || self.tags.contains(tag)
            || by_attributes(value)
            || self.asked_for(value)
    }

    fn asked_for(&self, element: &Element) -> bool {
        let tag = element.name();
        let class = |class: &str| {
            self.classes.contains(class)
                || (!self.tagged_classes.is_empty()
                    && self.tagged_classes.contains(&(tag.to_owned(), class.to_owned())))
        };
        let id = |id: &str| {
            self.ids.contains(id) || self.id_beginnings.iter().any(|b| id.starts_with(b.as_str()))
        };
        element.id().is_some_and(id) || element.classes().any(class)
    }
}

fn by_attributes(element: &Element) -> bool {
    let id = |id: &str| {
        IDS.iter().any(|known| {
            known.strip_suffix('*').map_or(*known == id, |begin| id.starts_with(begin))
        })
    };
    element.id().is_some_and(id)
        || element.classes().any(|class| CLASSES.contains(&class))
        || element.attr("hidden").is_some()
        || element.attr("aria-hidden") == Some("true")
        || element.attr("role").is_some_and(|role| ROLES.contains(&role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_other_forms_are_refused() {
        let check = |pattern: &str, fine: bool| {
            assert_eq!(Drop::new(&[pattern.to_owned()]).is_ok(), fine, "{pattern}")
        };
        for pattern in ["div", ".a-b", "div.a", "#x", "#x*"] {
            check(pattern, true);
        }
        for pattern in ["", ".", "#", "#*", "a b", "a > b", "a.b.c"] {
            check(pattern, false);
        }
    }
}
