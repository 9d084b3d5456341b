//! The lineage as a list of stages with an arc from each stage to each that reads from it.

use crate::facts::{Input, Link};
use serde::Serialize;

/// Height of a stage's row.
const ROW: f64 = 52.0;
/// Where the stages' dots stand; arcs bend to the left of it.
const DOTS: f64 = 84.0;

/// All arcs.
#[derive(Debug, Serialize)]
pub struct Arcs {
    width: f64,
    height: f64,
    row: f64,
    dots_at: f64,
    dots: Vec<Dot>,
    paths: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Dot {
    at: f64,
    finished: bool,
}

/// Lays out the chain.
pub fn arcs(links: &[Link]) -> Arcs {
    let middle = |row: usize| ROW * (row as f64 + 0.5);
    let dot =
        |(row, link): (usize, &Link)| Dot { at: middle(row), finished: link.digest.is_some() };
    let mut paths = Vec::new();
    for (to, link) in links.iter().enumerate() {
        let mut rows: Vec<usize> = link.inputs.iter().filter_map(|i| origin(i, links)).collect();
        rows.sort_unstable();
        rows.dedup();
        for from in rows.into_iter().filter(|&from| from != to) {
            let reach = DOTS - (12.0 + 13.0 * from.abs_diff(to) as f64).min(DOTS - 6.0);
            let (a, b) = (middle(from), middle(to));
            paths.push(format!("M{DOTS} {a}C{reach} {a} {reach} {b} {DOTS} {b}"));
        }
    }
    Arcs {
        width: DOTS + 8.0,
        height: ROW * links.len() as f64,
        row: ROW,
        dots_at: DOTS,
        dots: links.iter().enumerate().map(dot).collect(),
        paths,
    }
}

/// Which stage of the chain wrote an input: the one that it names, else the one whose manifest has
/// its digest, else the one of its name.
pub fn origin(input: &Input, links: &[Link]) -> Option<usize> {
    let named = |name: &str| links.iter().position(|l| l.stage == name);
    if let Some(from) = &input.from {
        return named(from);
    }
    let by_digest = || links.iter().position(|l| l.digest.is_some() && l.digest == input.digest);
    by_digest().or_else(|| named(&input.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Digest;

    fn link(stage: &str, inputs: &[(&str, &str)]) -> Link {
        let input = |(name, content): &(&str, &str)| Input {
            name: (*name).into(),
            digest: Some(Digest::of_bytes(content.as_bytes())),
            from: None,
        };
        Link {
            stage: stage.into(),
            digest: Some(Digest::of_bytes(stage.as_bytes())),
            inputs: inputs.iter().map(input).collect(),
        }
    }

    #[test]
    fn inputs_find_their_stage_by_digest_and_by_name() {
        let links = [
            link("corpus", &[("books", "outside")]),
            link("tokenizer", &[("documents", "corpus")]),
            link("mixture", &[("corpus", "changed"), ("tokenizer", "tokenizer")]),
        ];
        let rows = |i: usize| -> Vec<Option<usize>> {
            links[i].inputs.iter().map(|input| origin(input, &links)).collect()
        };
        assert_eq!(rows(0), [None]);
        assert_eq!(rows(1), [Some(0)]);
        assert_eq!(rows(2), [Some(0), Some(1)]);
        assert_eq!(arcs(&links).paths.len(), 3);
    }
}
