//! Curves that fall as losses do.

use base::Seed;
use yard::facts::*;

/// All panels.
pub fn curves() -> Curves {
    let ln_2 = std::f64::consts::LN_2;
    Curves {
        pretraining: vec![
            panel(
                "loss",
                "nats per token",
                Over::TokensSeen,
                vec![
                    falling("train", 1000, 8192.0, (9.0, 3.1), 0.12),
                    falling("held-out", 20, 409_600.0, (6.4, 3.2), 0.0),
                ],
                &[],
            ),
            panel(
                "held-out bits per byte",
                "bits per byte",
                Over::TokensSeen,
                vec![falling("model", 20, 409_600.0, (2.4, 1.16), 0.0)],
                &[("zstd -19", 1.42), ("3-gram", 1.61)],
            ),
        ],
        sft: vec![panel(
            "loss on the assistant's tokens",
            "nats per token",
            Over::Step,
            vec![
                falling("train", 120, 1.0, (2.9, 0.62), 0.05),
                falling("held-out", 12, 10.0, (2.3, 0.71), 0.0),
            ],
            &[],
        )],
        reward: vec![
            panel(
                "loss on pairs",
                "nats per pair",
                Over::Step,
                vec![falling("train", 60, 1.0, (0.72, 0.41), 0.03)],
                &[("guessing", ln_2)],
            ),
            panel(
                "pairs ordered rightly",
                "share",
                Over::Step,
                vec![falling("held-out", 12, 5.0, (0.5, 0.74), 0.01)],
                &[("guessing", 0.5)],
            ),
        ],
        dpo: vec![panel(
            "margin between chosen and rejected",
            "nats",
            Over::Step,
            vec![
                falling("margin", 60, 1.0, (0.0, 1.9), 0.1),
                falling("chosen", 60, 1.0, (0.0, 0.3), 0.05),
                falling("rejected", 60, 1.0, (0.0, -1.6), 0.08),
            ],
            &[],
        )],
    }
}

fn panel(title: &str, unit: &str, over: Over, curves: Vec<Curve>, levels: &[(&str, f64)]) -> Panel {
    Panel {
        title: title.into(),
        unit: unit.into(),
        over,
        curves,
        references: levels
            .iter()
            .map(|&(name, value)| Reference { name: name.into(), value })
            .collect(),
    }
}

/// Goes from the first level to the second as an exponential does, with noise.
fn falling(name: &str, points: usize, each: f64, levels: (f64, f64), noise: f64) -> Curve {
    let mut rng = Seed(7).derive(name).rng();
    let point = |i: usize| {
        let part = (i + 1) as f64 / points as f64;
        let clean = levels.1 + (levels.0 - levels.1) * (-6.0 * part).exp();
        ((i + 1) as f64 * each, clean + noise * rng.normal())
    };
    Curve { name: name.into(), points: (0..points).map(point).collect() }
}
