//! From elements to blocks of text.

use super::boilerplate::Drop;
use super::inline::{self, Inline, MAX_DEPTH};
use super::writer::Writer;
use super::{rustdoc, table};
use scraper::{ElementRef, Node};

/// Renders an element's content.
pub(super) fn render(element: ElementRef<'_>, drop: &Drop) -> String {
    let mut renderer = Renderer { writer: Writer::default(), drop };
    renderer.children(element, 0);
    renderer.writer.finish()
}

pub(super) struct Renderer<'a> {
    pub(super) writer: Writer,
    pub(super) drop: &'a Drop,
}

impl Renderer<'_> {
    /// Renders what is in an element: runs of text and inline elements as paragraphs, blocks as blocks.
    pub(super) fn children(&mut self, element: ElementRef<'_>, depth: usize) {
        let mut run = Inline::default();
        for child in element.children() {
            match child.value() {
                Node::Text(text) => run.push(text),
                Node::Element(_) => {
                    let Some(child) = ElementRef::wrap(child) else { continue };
                    if self.drop.drops(child) {
                        continue;
                    }
                    if depth <= MAX_DEPTH && is_block(child) {
                        self.writer.block(&run.take());
                        self.block(child, depth + 1);
                    } else {
                        run.element(child, self.drop, depth + 1);
                    }
                }
                _ => {}
            }
        }
        self.writer.block(&run.take());
    }

    fn block(&mut self, element: ElementRef<'_>, depth: usize) {
        if rustdoc::render(self, element) {
            return;
        }
        match element.value().name() {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.heading(element),
            "pre" => self.writer.block(&code_block(element, self.drop)),
            "ul" | "menu" => self.list(element, None, depth),
            "ol" => {
                let start = element.attr("start").and_then(|s| s.parse().ok()).unwrap_or(1);
                self.list(element, Some(start), depth);
            }
            "dl" => self.definitions(element, depth),
            "table" => table::render(self, element, depth),
            "blockquote" => {
                let before = self.writer.set_tight(false);
                let drop = self.drop;
                let mut inner = Renderer { writer: Writer::default(), drop };
                inner.children(element, depth);
                self.writer.set_tight(before);
                let text = inner.writer.finish();
                self.writer.indented(Some("> "), "> ", |writer| writer.block(&text));
            }
            "hr" => {}
            _ => self.children(element, depth),
        }
    }

    fn heading(&mut self, element: ElementRef<'_>) {
        let text = inline::text(element, self.drop).replace('\n', " ");
        let level = element.value().name()[1..].parse().unwrap_or(1);
        self.heading_line(level, &text);
    }

    /// Writes a heading.
    pub(super) fn heading_line(&mut self, level: usize, text: &str) {
        if !text.is_empty() {
            self.writer.block(&format!("{} {text}", "#".repeat(level)));
        }
    }

    fn list(&mut self, element: ElementRef<'_>, start: Option<u64>, depth: usize) {
        let items =
            element.children().filter_map(ElementRef::wrap).filter(|item| !self.drop.drops(*item));
        let before = self.writer.set_tight(false);
        for (i, item) in items.enumerate() {
            let bullet = match start {
                Some(start) => format!("{}. ", start.saturating_add(i as u64)),
                None => "- ".to_owned(),
            };
            // The first item stands apart from the paragraph before the list, unless that is itself an item.
            self.writer.set_tight(before || i > 0);
            let mut inner = Renderer { writer: Writer::default(), drop: self.drop };
            inner.writer.set_tight(true);
            if item.value().name() == "li" {
                inner.children(item, depth + 1);
            } else {
                inner.block(item, depth + 1);
            }
            let text = inner.writer.finish();
            let indent = " ".repeat(bullet.len());
            self.writer.indented(Some(&bullet), &indent, |writer| writer.block(&text));
        }
        self.writer.set_tight(before);
    }

    /// Terms and their descriptions as `- term: description`.
    fn definitions(&mut self, element: ElementRef<'_>, depth: usize) {
        let before = self.writer.set_tight(false);
        let mut term = String::new();
        let mut first = true;
        let parts = element.descendants().filter_map(ElementRef::wrap);
        for part in parts.filter(|part| matches!(part.value().name(), "dt" | "dd")) {
            if self.drop.drops(part) {
                continue;
            }
            if part.value().name() == "dt" {
                let text = inline::text(part, self.drop);
                term = if term.is_empty() { text } else { format!("{term}, {text}") };
                continue;
            }
            let mut inner = Renderer { writer: Writer::default(), drop: self.drop };
            inner.writer.set_tight(true);
            inner.children(part, depth + 1);
            let description = inner.writer.finish();
            let term = std::mem::take(&mut term);
            let text = match (term.is_empty(), description.is_empty()) {
                (false, false) => format!("{term}: {description}"),
                _ => term + &description,
            };
            self.writer.set_tight(before || !first);
            first = false;
            self.writer.indented(Some("- "), "  ", |writer| writer.block(&text));
        }
        if !term.is_empty() {
            self.writer.set_tight(before || !first);
            self.writer.indented(Some("- "), "  ", |writer| writer.block(&term));
        }
        self.writer.set_tight(before);
    }
}

/// Whether an element begins a block of its own, by its tag or because it holds one.
fn is_block(element: ElementRef<'_>) -> bool {
    let block = |name: &str| {
        matches!(
            name,
            "address"
                | "article"
                | "blockquote"
                | "body"
                | "center"
                | "dd"
                | "details"
                | "div"
                | "dl"
                | "dt"
                | "fieldset"
                | "figcaption"
                | "figure"
                | "form"
                | "h1"
                | "h2"
                | "h3"
                | "h4"
                | "h5"
                | "h6"
                | "header"
                | "hgroup"
                | "hr"
                | "li"
                | "main"
                | "menu"
                | "ol"
                | "p"
                | "pre"
                | "section"
                | "summary"
                | "table"
                | "tbody"
                | "td"
                | "tfoot"
                | "th"
                | "thead"
                | "tr"
                | "ul"
        )
    };
    let inline_only = matches!(
        element.value().name(),
        "a" | "b" | "br" | "code" | "em" | "i" | "kbd" | "span" | "strong" | "sub" | "sup" | "wbr"
    );
    if block(element.value().name()) || rustdoc::is_block(element) {
        return true;
    }
    // An inline element, or one of a custom name, around blocks.
    let holds = |tag: &str| {
        if inline_only { matches!(tag, "p" | "pre" | "ul" | "ol" | "table") } else { block(tag) }
    };
    element
        .descendants()
        .skip(1)
        .take(200)
        .filter_map(ElementRef::wrap)
        .any(|e| holds(e.value().name()))
}

/// A code block between fences, with its language; its line breaks are kept, indentation common to all
/// lines and blank lines at its ends are not.
pub(super) fn code_block(pre: ElementRef<'_>, drop: &Drop) -> String {
    let mut code = String::new();
    collect_code(pre, drop, 0, &mut code);
    let code = dedent(&code.replace("\r\n", "\n").replace('\u{a0}', " "));
    if code.is_empty() {
        return String::new();
    }
    let longest =
        code.lines().map(|line| line.trim_start().bytes().take_while(|&b| b == b'`').count()).max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{fence}{}\n{code}\n{fence}", language(pre))
}

fn collect_code(element: ElementRef<'_>, drop: &Drop, depth: usize, code: &mut String) {
    if depth > MAX_DEPTH {
        element.text().for_each(|text| code.push_str(text));
        return;
    }
    for child in element.children() {
        match child.value() {
            Node::Text(text) => code.push_str(text),
            Node::Element(_) => {
                let Some(child) = ElementRef::wrap(child) else { continue };
                if drop.drops(child) {
                    continue;
                }
                let own_line = matches!(child.value().name(), "div" | "p" | "tr" | "li");
                if own_line && !code.is_empty() && !code.ends_with('\n') {
                    code.push('\n');
                }
                if child.value().name() == "br" {
                    code.push('\n');
                }
                collect_code(child, drop, depth + 1, code);
                if own_line && !code.ends_with('\n') {
                    code.push('\n');
                }
            }
            _ => {}
        }
    }
}

fn dedent(code: &str) -> String {
    let lines: Vec<&str> = code.split('\n').map(str::trim_end).collect();
    let indent = |line: &&&str| line.bytes().take_while(|&b| b == b' ').count();
    let common =
        lines.iter().filter(|line| !line.is_empty()).map(|line| indent(&line)).min().unwrap_or(0);
    let cut: Vec<&str> = lines.iter().map(|line| line.get(common..).unwrap_or("")).collect();
    cut.join("\n").trim_matches('\n').to_owned()
}

/// The language of a code block, from the classes of its elements: `language-rust`, `lang-rust`,
/// `highlight-source-rust`, or the bare `rust`.
fn language(pre: ElementRef<'_>) -> String {
    let inner =
        pre.children().filter_map(ElementRef::wrap).filter(|child| child.value().name() == "code");
    let around = pre.parent().and_then(ElementRef::wrap);
    let candidates = inner.chain([pre]).chain(around);
    for element in candidates {
        for class in element.value().classes() {
            let prefixes = ["language-", "lang-", "highlight-source-"];
            let named = prefixes.iter().find_map(|prefix| class.strip_prefix(prefix));
            let bare = matches!(
                class,
                "rust" | "python" | "bash" | "shell" | "json" | "toml" | "c" | "cpp"
            )
            .then_some(class);
            if let Some(name) = named.or(bare) {
                let name = name.split(',').next().unwrap_or_default();
                let known = !matches!(name, "none" | "plaintext" | "nohighlight");
                return if known { name.to_lowercase() } else { String::new() };
            }
        }
    }
    String::new()
}
