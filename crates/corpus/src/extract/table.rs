//! Tables: rows as `| a | b |`, with a line of dashes under the header.

use super::inline;
use super::render::Renderer;
use scraper::ElementRef;

/// Renders a table of cells, or, where a table only lays out blocks, what is in it.
pub(super) fn render(renderer: &mut Renderer<'_>, table: ElementRef<'_>, depth: usize) {
    let inner = || table.descendants().skip(1).filter_map(ElementRef::wrap);
    if inner().any(|element| matches!(element.value().name(), "pre" | "table" | "h1" | "h2" | "h3"))
    {
        for cell in inner().filter(|e| matches!(e.value().name(), "td" | "th" | "caption")) {
            let nested = cell.ancestors().take_while(|a| a.id() != table.id());
            let outermost = nested.filter_map(ElementRef::wrap).all(|a| a.value().name() != "td");
            if outermost && !renderer.drop.drops(cell) {
                renderer.children(cell, depth + 1);
            }
        }
        return;
    }
    let mut lines = Vec::new();
    for row in
        inner().filter(|element| element.value().name() == "tr" && !renderer.drop.drops(*element))
    {
        let cells: Vec<ElementRef<'_>> = row
            .children()
            .filter_map(ElementRef::wrap)
            .filter(|cell| {
                matches!(cell.value().name(), "td" | "th") && !renderer.drop.drops(*cell)
            })
            .collect();
        let texts: Vec<String> = cells
            .iter()
            .map(|cell| inline::text(*cell, renderer.drop).replace('\n', " "))
            .collect();
        if texts.iter().all(String::is_empty) {
            continue;
        }
        lines.push(format!("| {} |", texts.join(" | ")));
        if lines.len() == 1 && cells.iter().all(|cell| cell.value().name() == "th") {
            lines.push(format!("|{}", "---|".repeat(cells.len())));
        }
    }
    renderer.writer.block(&lines.join("\n"));
}
