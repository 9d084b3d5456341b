//! Curves over tokens or steps, each labelled at its right end, with levels to compare with.

use super::scale::{Scale, usable};
use crate::facts::{Curve, Over, Panel};
use crate::format;
use serde::Serialize;

const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = 304.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 208.0;
/// Least distance between two labels.
const LABEL_GAP: f64 = 14.0;
/// A label's name is cut after so many characters; the whole name is in the tooltip.
const LABEL_CHARS: usize = 13;
/// Curves of more points are drawn thin, under their running mean.
const MANY: usize = 100;
/// Each curve is drawn with at most twice so many points: a bucket's least and greatest.
const BUCKETS: usize = 240;

/// A chart, ready to be written.
#[derive(Debug, Serialize)]
pub struct Chart {
    title: String,
    unit: String,
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x_label: &'static str,
    x_ticks: Vec<Mark>,
    y_ticks: Vec<Mark>,
    lines: Vec<Line>,
    levels: Vec<Level>,
    notes: Vec<String>,
    /// Nothing in it can be drawn.
    empty: bool,
}

#[derive(Debug, Serialize)]
struct Mark {
    at: f64,
    label: String,
}

#[derive(Debug, Serialize)]
struct Line {
    color: usize,
    /// Path of the points.
    path: String,
    /// Path of the running mean; empty where the points stand for themselves.
    mean: String,
    /// A single point to be drawn as a dot.
    dot: Option<(f64, f64)>,
    label: Label,
}

#[derive(Debug, Serialize)]
struct Level {
    at: f64,
    label: Label,
}

/// A direct label at the right: the value first, so that values stand under each other.
#[derive(Debug, Serialize)]
struct Label {
    at: f64,
    value: String,
    name: String,
    whole: String,
}

/// Lays out one panel.
pub fn chart(panel: &Panel) -> Chart {
    let points = || panel.curves.iter().flat_map(|c| c.points.iter().filter(|p| shown(p)));
    let xs = Scale::around(points().map(|p| p.0), LEFT, RIGHT);
    let levels = panel.references.iter().map(|r| r.value);
    let ys = Scale::around(points().map(|p| p.1).chain(levels), BOTTOM, TOP);
    let mut chart = Chart {
        title: panel.title.clone(),
        unit: if panel.title.contains(&panel.unit) { String::new() } else { panel.unit.clone() },
        width: WIDTH,
        height: HEIGHT,
        left: LEFT,
        right: RIGHT,
        top: TOP,
        bottom: BOTTOM,
        x_label: match panel.over {
            Over::TokensSeen => "tokens read",
            Over::Step => "steps",
        },
        x_ticks: Vec::new(),
        y_ticks: Vec::new(),
        lines: Vec::new(),
        levels: Vec::new(),
        notes: panel.curves.iter().filter_map(|c| not_finite(c, panel.over)).collect(),
        empty: true,
    };
    let (Some(xs), Some(ys)) = (xs, ys) else { return chart };
    let ys = ys.widened((ys.high - ys.low) * 0.04);
    chart.empty = false;
    chart.x_ticks = marks(&xs, 4);
    chart.y_ticks = marks(&ys, 4);
    chart.lines =
        panel.curves.iter().enumerate().filter_map(|(i, c)| line(c, i, &xs, &ys)).collect();
    chart.levels = panel
        .references
        .iter()
        .filter(|r| usable(r.value))
        .map(|r| Level { at: ys.at(r.value), label: label(&r.name, r.value, ys.at(r.value)) })
        .collect();
    if chart.lines.iter().any(|l| !l.mean.is_empty()) {
        chart.notes.push("Thin: each point. Thick, and the number: running mean.".into());
    }
    let labels = chart.lines.iter_mut().map(|l| &mut l.label);
    spread(labels.chain(chart.levels.iter_mut().map(|l| &mut l.label)).collect());
    chart
}

fn shown(point: &(f64, f64)) -> bool {
    usable(point.0) && usable(point.1)
}

fn marks(scale: &Scale, wanted: usize) -> Vec<Mark> {
    let mark = |v| Mark { at: scale.at(v), label: format::tick(v) };
    scale.ticks(wanted).into_iter().map(mark).collect()
}

fn line(curve: &Curve, color: usize, xs: &Scale, ys: &Scale) -> Option<Line> {
    let last = curve.points.iter().rev().find(|p| shown(p))?;
    let place = |points: &[(f64, f64)]| path(&thinned(points), xs, ys);
    let mean = if curve.points.len() > MANY { running_mean(&curve.points) } else { Vec::new() };
    let end = mean.iter().rev().find(|p| shown(p)).unwrap_or(last).1;
    let alone = curve.points.iter().filter(|p| shown(p)).count() == 1;
    Some(Line {
        color: color % 6,
        path: place(&curve.points),
        mean: place(&mean),
        dot: alone.then(|| (xs.at(last.0), ys.at(last.1))),
        label: label(&curve.name, end, ys.at(end)),
    })
}

fn label(name: &str, value: f64, at: f64) -> Label {
    let value = if value.abs() >= 1000.0 {
        format::tick(value)
    } else {
        format::signed(&format!("{value:.3}"))
    };
    let mut short: String = name.chars().take(LABEL_CHARS).collect();
    if name.chars().nth(LABEL_CHARS).is_some() {
        short.pop();
        short.push('…');
    }
    Label { at, value, name: short, whole: name.to_owned() }
}

/// At most two points a bucket, its least and its greatest in their order, so that no spike is lost.
/// What cannot be shown is kept, as a gap.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= 2 * BUCKETS {
        return points.to_vec();
    }
    let mut kept = Vec::with_capacity(2 * BUCKETS);
    for bucket in points.chunks(points.len().div_ceil(BUCKETS)) {
        let order = |a: &usize, b: &usize| bucket[*a].1.total_cmp(&bucket[*b].1);
        let seen = || (0..bucket.len()).filter(|&i| shown(&bucket[i]));
        if let (Some(least), Some(greatest)) = (seen().min_by(order), seen().max_by(order)) {
            kept.push(bucket[least.min(greatest)]);
            if least != greatest {
                kept.push(bucket[least.max(greatest)]);
            }
        }
        kept.extend(bucket.iter().find(|p| !shown(p)));
    }
    kept
}

/// The mean of a fortieth of the points around each point, over those that can be shown.
fn running_mean(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let half = (points.len() / 80).max(1);
    let around = |i: usize| &points[i.saturating_sub(half)..(i + half + 1).min(points.len())];
    let mean = |i: usize| {
        let (sum, n) = around(i)
            .iter()
            .filter(|p| shown(p))
            .fold((0.0, 0.0), |(sum, n), p| (sum + p.1, n + 1.0));
        (points[i].0, if shown(&points[i]) { sum / n } else { f64::NAN })
    };
    (0..points.len()).map(mean).collect()
}

/// SVG path data; a gap wherever a point cannot be shown.
fn path(points: &[(f64, f64)], xs: &Scale, ys: &Scale) -> String {
    let mut out = String::new();
    let mut pen_down = false;
    for point in points {
        if shown(point) {
            let command = if pen_down { 'L' } else { 'M' };
            out.push_str(&format!("{command}{} {}", xs.at(point.0), ys.at(point.1)));
        }
        pen_down = shown(point);
    }
    out
}

/// Says in words what the drawing cannot show.
fn not_finite(curve: &Curve, over: Over) -> Option<String> {
    let first = curve.points.iter().find(|p| !shown(p))?;
    let count = curve.points.iter().filter(|p| !shown(p)).count();
    let over = match over {
        Over::TokensSeen => "tokens",
        Over::Step => "steps",
    };
    let points = if count == 1 { "1 value is" } else { &format!("{count} values are") };
    let place = format::tick(first.0);
    Some(format!("{}: {points} not finite, the first at {place} {over}.", curve.name))
}

/// Moves labels apart, downwards first, and all of them up again where they would leave the chart.
fn spread(mut labels: Vec<&mut Label>) {
    labels.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut lowest = TOP;
    for label in &mut labels {
        label.at = label.at.max(lowest);
        lowest = label.at + LABEL_GAP;
    }
    let mut highest = BOTTOM;
    for label in labels.iter_mut().rev() {
        label.at = label.at.min(highest);
        highest = label.at - LABEL_GAP;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Reference;

    fn panel(curves: &[(&str, &[(f64, f64)])]) -> Panel {
        let curve = |(name, points): &(&str, &[(f64, f64)])| Curve {
            name: (*name).into(),
            points: points.to_vec(),
        };
        Panel { curves: curves.iter().map(curve).collect(), ..Panel::default() }
    }

    #[test]
    fn what_is_not_finite_leaves_a_gap_and_is_told() {
        let points =
            [(0.0, 3.0), (1.0, f64::NAN), (2.0, 2.0), (3.0, 1.0), (4.0, f64::INFINITY), (5.0, 2.0)];
        let chart = chart(&panel(&[("train", &points)]));
        assert_eq!(chart.lines[0].path.matches('M').count(), 3);
        assert_eq!(
            chart.notes,
            ["train: 2 values are not finite, the first at 1 steps.".replace("steps", "tokens")]
        );
        assert!(!chart.lines[0].path.contains("NaN") && !chart.lines[0].path.contains("inf"));
    }

    #[test]
    fn nothing_to_draw_is_empty() {
        assert!(chart(&panel(&[])).empty);
        assert!(chart(&panel(&[("train", &[(0.0, f64::NAN)])])).empty);
        assert!(chart(&panel(&[("train", &[])])).empty);
    }

    #[test]
    fn a_single_point_is_a_dot() {
        let chart = chart(&panel(&[("held-out", &[(7.0, 1.5)])]));
        assert!(chart.lines[0].dot.is_some());
    }

    #[test]
    fn a_spike_survives_thinning() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), 1.0)).collect();
        points[5_003].1 = 90.0;
        let kept = thinned(&points);
        assert!(kept.len() <= 2 * BUCKETS);
        assert!(kept.contains(&(5_003.0, 90.0)));
    }

    #[test]
    fn a_constant_keeps_its_running_mean() {
        let points: Vec<(f64, f64)> = (0..500).map(|i| (f64::from(i), 2.5)).collect();
        assert!(running_mean(&points).iter().all(|p| p.1 == 2.5));
    }

    #[test]
    fn labels_keep_apart_inside_the_chart() {
        let mut panel =
            panel(&[("a", &[(0.0, 1.0)]), ("b", &[(0.0, 1.0)]), ("c", &[(0.0, 1.001)])]);
        let level = |value| Reference { name: "zstd".into(), value };
        panel.references = vec![level(3.0), level(2.99)];
        let chart = chart(&panel);
        let mut places: Vec<f64> = chart.lines.iter().map(|l| l.label.at).collect();
        places.extend(chart.levels.iter().map(|l| l.label.at));
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|w| w[1] - w[0] >= LABEL_GAP - 1e-6), "{places:?}");
        assert!(places[0] >= TOP && places[4] <= BOTTOM);
    }
}
