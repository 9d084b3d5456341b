//! The main text of a web page.
//!
//! `main_element` finds where the text is, `boilerplate` says which elements are no text, `render`
//! writes the rest in a Markdown-like form: headings with `#`, lists with `-`, tables with `|`, code in
//! backticks and fences, line breaks of code kept, one line a paragraph.

mod boilerplate;
mod head;
mod inline;
mod main_element;
mod render;
mod rustdoc;
mod table;
mod writer;

pub(crate) use boilerplate::Drop;

use scraper::Html;

/// The text of a page and what its head says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The first heading, or what the head says.
    pub title: String,
    /// The main text.
    pub text: String,
    /// When the page says that it was last changed: seconds since 1970, 0 where it does not.
    pub modified: i64,
    /// The address that the page gives as its own, where it is absolute.
    pub canonical: Option<String>,
    /// The language that the page states, without its region.
    pub language: Option<String>,
}

/// What a page turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extracted {
    /// A page with text.
    Page(Page),
    /// A stub that sends the reader elsewhere.
    Redirect,
    /// A page that asks not to be indexed.
    NoIndex,
    /// A page without text.
    Empty,
}

/// Extracts a page's main text, leaving out the built-in boilerplate alone.
pub fn extract(html: &str) -> Extracted {
    extract_without(html, &Drop::default())
}

/// Extracts a page's main text, leaving out `drop` too.
pub(crate) fn extract_without(html: &str, drop: &Drop) -> Extracted {
    let document = Html::parse_document(html);
    let head = head::read(&document);
    if head.redirect {
        return Extracted::Redirect;
    }
    if head.no_index {
        return Extracted::NoIndex;
    }
    let main = main_element::find(&document, drop);
    let text = render::render(main, drop);
    if text.is_empty() {
        return Extracted::Empty;
    }
    let title = first_heading(&text).unwrap_or(head.title);
    let page = Page {
        title,
        text,
        modified: head.modified,
        canonical: head.canonical,
        language: head.language,
    };
    Extracted::Page(page)
}

/// A heading in the first lines of the text.
fn first_heading(text: &str) -> Option<String> {
    let line = text.lines().take(5).find(|line| line.starts_with("# "))?;
    Some(line.trim_start_matches('#').trim().replace('`', ""))
}
