//! Running text: white space collapsed, code in backticks, boilerplate left out.

use super::boilerplate::Drop;
use scraper::{ElementRef, Node};

/// Deeper elements are taken as plain text, so that hostile nesting cannot exhaust the stack.
pub(super) const MAX_DEPTH: usize = 200;

/// Running text while it is collected.
#[derive(Default)]
pub(super) struct Inline {
    text: String,
    space: bool,
}

impl Inline {
    /// Adds text; a run of white space becomes one space.
    pub(super) fn push(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                // Zero-width space, soft hyphen, word joiner, byte-order mark.
                '\u{200b}' | '\u{ad}' | '\u{2060}' | '\u{feff}' => {}
                c if c.is_whitespace() => self.space = true,
                c => {
                    if self.space && !self.text.is_empty() && !self.text.ends_with('\n') {
                        self.text.push(' ');
                    }
                    self.space = false;
                    self.text.push(c);
                }
            }
        }
    }

    fn line_break(&mut self) {
        self.space = false;
        self.text.push('\n');
    }

    /// Adds text between backticks, more of them where the text has some itself.
    fn code(&mut self, code: &str) {
        if code.is_empty() {
            return;
        }
        let ticks = if code.contains('`') { "``" } else { "`" };
        let pad = if code.starts_with('`') || code.ends_with('`') { " " } else { "" };
        self.push(&format!("{ticks}{pad}{code}{pad}{ticks}"));
    }

    /// Adds an element and what is in it.
    pub(super) fn element(&mut self, element: ElementRef<'_>, drop: &Drop, depth: usize) {
        if drop.drops(element) {
            return;
        }
        if depth > MAX_DEPTH {
            element.text().for_each(|text| self.push(text));
            return;
        }
        match element.value().name() {
            "br" => self.line_break(),
            "code" | "samp" | "kbd" | "tt" => {
                let mut inner = Inline::default();
                inner.children(element, drop, depth + 1);
                self.code(&inner.finish().replace('`', ""));
            }
            "sup" => {
                let mut inner = Inline::default();
                inner.children(element, drop, depth + 1);
                // rustdoc marks unsafe functions so; it is no part of their names.
                let power = inner.finish().replace('⚠', "");
                let number = power.chars().all(|c| c.is_alphanumeric() || c == '-');
                let raised =
                    number && !power.is_empty() && self.text.ends_with(char::is_alphanumeric);
                self.push(&if raised && !self.space { format!("^{power}") } else { power });
            }
            "sub" => {
                let mut inner = Inline::default();
                inner.children(element, drop, depth + 1);
                let low = inner.finish();
                self.space |= low.contains(' ');
                self.push(&low);
            }
            "q" => {
                self.push("“");
                self.children(element, drop, depth + 1);
                self.push("”");
            }
            "div" | "p" | "li" | "td" | "th" | "dd" | "dt" | "tr" => {
                self.space = true;
                self.children(element, drop, depth + 1);
                self.space = true;
            }
            _ => self.children(element, drop, depth + 1),
        }
    }

    pub(super) fn children(&mut self, element: ElementRef<'_>, drop: &Drop, depth: usize) {
        for child in element.children() {
            match child.value() {
                Node::Text(text) => self.push(text),
                Node::Element(_) => {
                    ElementRef::wrap(child).into_iter().for_each(|e| self.element(e, drop, depth));
                }
                _ => {}
            }
        }
    }

    /// The text without white space at the ends of its lines.
    pub(super) fn finish(self) -> String {
        let lines: Vec<&str> = self.text.split('\n').map(str::trim).collect();
        lines.join("\n").trim().to_owned()
    }

    /// Takes the text collected so far.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(self).finish()
    }
}

/// The running text of an element.
pub(super) fn text(element: ElementRef<'_>, drop: &Drop) -> String {
    let mut inline = Inline::default();
    inline.children(element, drop, 0);
    inline.finish()
}
