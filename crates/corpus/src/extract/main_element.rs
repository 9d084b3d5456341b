//! Where on a page the text is.

use super::boilerplate::Drop;
use scraper::{ElementRef, Html};
use std::collections::BTreeMap;

/// The element that holds the main text: `<main>`, `role="main"`, a lone `<article>`, or else the element
/// with most text that is not in links, or the body.
pub(super) fn find<'a>(document: &'a Html, drop: &Drop) -> ElementRef<'a> {
    let root = document.root_element();
    let elements = || root.descendants().filter_map(ElementRef::wrap);
    let first = |is: &dyn Fn(&ElementRef<'_>) -> bool| elements().find(|e| is(e));
    let articles: Vec<ElementRef<'_>> =
        elements().filter(|e| e.value().name() == "article").take(2).collect();
    let main = first(&|e| e.value().name() == "main");
    let marked = main.or_else(|| first(&|e| e.attr("role") == Some("main")));
    let alone = if articles.len() == 1 { articles.first().copied() } else { None };
    marked
        .or(alone)
        .or_else(|| densest(root, drop))
        .or_else(|| first(&|e| e.value().name() == "body"))
        .unwrap_or(root)
}

/// The container whose own paragraphs hold most text outside links. A paragraph counts for its parent
/// in full and for its grandparent by half, as in Readability's scoring.
fn densest<'a>(root: ElementRef<'a>, drop: &Drop) -> Option<ElementRef<'a>> {
    let mut scores: BTreeMap<usize, (f64, ElementRef<'a>)> = BTreeMap::new();
    let mut order = BTreeMap::new();
    let mut dropped = std::collections::BTreeSet::new();
    for (index, node) in root.descendants().enumerate() {
        order.insert(node.id(), index);
        let Some(element) = ElementRef::wrap(node) else { continue };
        let inside = element.parent().is_some_and(|parent| dropped.contains(&parent.id()));
        if inside || drop.drops(element) {
            dropped.insert(node.id());
            continue;
        }
        if !matches!(element.value().name(), "p" | "pre" | "blockquote" | "ul" | "ol" | "table") {
            continue;
        }
        let score = plain_length(element) as f64;
        for (ancestor, weight) in
            element.ancestors().filter_map(ElementRef::wrap).take(2).zip([1.0, 0.5])
        {
            let key = order.get(&ancestor.id()).copied().unwrap_or(0);
            scores.entry(key).or_insert((0.0, ancestor)).0 += weight * score;
        }
    }
    // The earliest of equals, so that the answer does not depend on anything else.
    let best =
        scores.into_values().fold(None, |best: Option<(f64, ElementRef<'a>)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        });
    best.filter(|(score, _)| *score > 0.0).map(|(_, element)| element)
}

/// Characters of text outside links.
fn plain_length(element: ElementRef<'_>) -> usize {
    let texts = element.descendants().filter_map(|node| {
        let text = node.value().as_text()?;
        let linked =
            node.ancestors().filter_map(ElementRef::wrap).take(4).any(|e| e.value().name() == "a");
        (!linked).then(|| text.trim().len())
    });
    texts.sum()
}
