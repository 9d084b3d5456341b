//! A run that never took place: realistic numbers made by code, labelled as test data.

mod curves;
mod outcome;

use base::Digest;
use yard::facts::*;

/// All parts filled.
pub fn facts() -> Facts {
    Facts {
        notice: "Test data: no model was trained for this page.".into(),
        run: run(),
        model: Some(model()),
        machine: vec![
            Labelled::new("processor", "2 cores, AVX2 and FMA"),
            Labelled::new("threads", 2),
            Labelled::new("memory", "8.0 GB, at most 1.31 GB used"),
            Labelled::new("system", "Linux"),
        ],
        stages: stages(),
        decisions: decisions(),
        funnel: Some(funnel()),
        mixture: Some(mixture()),
        curves: curves::curves(),
        samples: outcome::samples(),
        judgements: Some(outcome::judgements()),
        red_team: Some(outcome::red_team()),
        gate: Some(outcome::gate()),
        release: Release {
            verdict: Verdict::Released,
            digest: Some(Digest::of_bytes(b"weights")),
            directory: "runs/rust-docs/09-release".into(),
            files: ["config.json", "model.safetensors", "tokenizer.json"].map(String::from).into(),
        },
        interruptions: vec![
            Interruption {
                when: Some(1_767_263_000),
                cause: "killed".into(),
                stage: "pretrain".into(),
                resumed_from: "checkpoint step-00000400".into(),
                lost_seconds: Some(11.2),
            },
            Interruption {
                when: Some(1_767_263_220),
                cause: "Ctrl-C".into(),
                stage: "sft".into(),
                resumed_from: "checkpoint step-00000031".into(),
                lost_seconds: Some(0.0),
            },
        ],
        lineage: lineage(),
    }
}

/// The same run while it pretrains.
pub fn half_done() -> Facts {
    let whole = facts();
    let stages = whole.stages.iter().enumerate().map(|(i, stage)| Stage {
        state: [State::Done, State::Done, State::Done, State::Unfinished]
            .get(i)
            .copied()
            .unwrap_or_default(),
        seconds: stage.seconds.filter(|_| i < 4),
        came_in: if i < 4 { stage.came_in.clone() } else { vec![] },
        went_out: if i < 3 { stage.went_out.clone() } else { vec![] },
        ..stage.clone()
    });
    Facts {
        stages: stages.collect(),
        run: Run { ended: None, weights_digest: None, chat_command: String::new(), ..whole.run },
        curves: Curves { pretraining: begun(whole.curves.pretraining), ..Curves::default() },
        decisions: whole.decisions.into_iter().take(2).collect(),
        lineage: whole.lineage.into_iter().take(3).collect(),
        model: whole.model.map(|model| Model { tokens_seen: 3_276_800, ..model }),
        machine: whole.machine,
        funnel: whole.funnel,
        mixture: whole.mixture,
        notice: whole.notice,
        ..Facts::default()
    }
}

/// The first two fifths of each curve.
fn begun(mut panels: Vec<Panel>) -> Vec<Panel> {
    for curve in panels.iter_mut().flat_map(|p| &mut p.curves) {
        curve.points.truncate(curve.points.len() * 2 / 5);
    }
    panels
}

fn run() -> Run {
    Run {
        name: "rust-docs".into(),
        purpose: "An assistant that answers questions about Rust's standard library from its \
                  documentation."
            .into(),
        started: Some(1_767_262_500),
        ended: Some(1_767_263_204),
        seconds: Some(691.0),
        seed: Some(42),
        program: "trainyard 0.1.0".into(),
        recipe: "recipes/rust-docs.toml".into(),
        recipe_text:
            "# An assistant for Rust's documentation.\nname = \"rust-docs\"\nseed = 42\n\n\
                      [model]\ndepth = 4\n"
                .into(),
        weights_digest: Some(Digest::of_bytes(b"weights")),
        chat_command: "trainyard chat rust-docs".into(),
    }
}

fn model() -> Model {
    Model {
        parameters: 5_312_768,
        tokens_seen: 8_192_000,
        form: vec![
            Labelled::new("layers", 4),
            Labelled::new("width", 256),
            Labelled::new("heads", "4, sharing 2 for keys and values"),
            Labelled::new("feed-forward width", 704),
            Labelled::new("vocabulary", "8,192 tokens"),
            Labelled::new("longest sequence", "512 tokens"),
        ],
    }
}

fn stage(name: &str, seconds: f64, came_in: &[(u64, &str)], went_out: &[(u64, &str)]) -> Stage {
    let counts = |list: &[(u64, &str)]| list.iter().map(|&(n, of)| Count::new(n, of)).collect();
    Stage {
        name: name.into(),
        state: State::Done,
        seconds: Some(seconds),
        came_in: counts(came_in),
        went_out: counts(went_out),
        note: String::new(),
    }
}

fn stages() -> Vec<Stage> {
    let mut stages = vec![
        stage(
            "corpus",
            38.2,
            &[(14_204, "documents"), (212_400_000, "bytes")],
            &[(8_911, "documents"), (41_270_000, "bytes")],
        ),
        stage("tokenizer", 12.7, &[(16_000_000, "bytes")], &[(8_192, "tokens in the vocabulary")]),
        stage("mixture", 9.4, &[(8_911, "documents")], &[(8_192_000, "tokens")]),
        stage("pretrain", 402.0, &[(8_192_000, "tokens")], &[(1_000, "steps")]),
        stage("sft", 71.5, &[(5_200, "conversations")], &[(120, "steps")]),
        stage("round 1", 92.1, &[(600, "prompts")], &[(2_400, "answers"), (431, "preferences")]),
        stage("red team", 14.8, &[(240, "attempts")], &[(3, "findings")]),
        stage("judge", 48.9, &[(400, "questions"), (3, "models")], &[(1_200, "predictions")]),
        stage("release", 1.4, &[(21_300_000, "bytes")], &[(6, "files")]),
    ];
    stages[3].note = "Interrupted once and resumed from step 400.".into();
    stages
}

fn decisions() -> Vec<Decision> {
    let decision = |when, who, name: &str, what: &str, options: &[&str], reason: &str| Decision {
        when: Some(when),
        who,
        name: name.into(),
        what: what.into(),
        options: options.iter().map(ToString::to_string).collect(),
        chosen: options[0].into(),
        reason: reason.into(),
    };
    vec![
        decision(
            1_767_262_500,
            Who::Person,
            "recipe author",
            "Which shares does the model read?",
            &["60 / 15 / 25 (general, math, code)", "Llama 3’s 50 / 25 / 17 / 8"],
            "The books are mostly prose, and there is no multilingual source.",
        ),
        decision(
            1_767_263_010,
            Who::Rule,
            "newest good checkpoint",
            "Which checkpoint does pretraining go on from?",
            &["step 400", "step 300"],
            "All checksums of step 400 are right.",
        ),
        decision(
            1_767_263_100,
            Who::Rule,
            "best held-out reward",
            "Where does the round start from?",
            &["SFT step 120", "SFT step 90"],
            "",
        ),
        decision(
            1_767_263_204,
            Who::Gate,
            "release",
            "Are the weights released?",
            &["yes", "no"],
            "All 4 thresholds were met.",
        ),
    ]
}

fn funnel() -> Funnel {
    let steps: [(&str, &str, u64, u64, u64); 10] = [
        ("read", "domain or path on the blocklist", 612, 9_120_000, 0),
        ("read", "no text in it", 84, 0, 0),
        ("dedup", "same address, older copy", 0, 0, 0),
        ("dedup", "same document", 2_911, 51_300_000, 0),
        ("dedup", "line more than 6 times in a bucket", 47, 31_022_000, 412_066),
        ("quality", "too short", 1_204, 212_000, 0),
        ("quality", "too much repetition", 331, 4_110_000, 0),
        ("quality", "too many symbols", 104, 2_009_000, 0),
        ("mask", "e-mail addresses", 0, 18_400, 0),
        ("mask", "IP addresses and keys", 0, 0, 0),
    ];
    let mut documents = 14_204;
    let mut rules = Vec::new();
    for (stage, rule, dropped, bytes, lines) in steps {
        let examples = if dropped > 1_000 {
            vec![Example {
                document: "std/primitive.u8.html".into(),
                text: "Redirecting to ../std/primitive.u8.html...".into(),
            }]
        } else {
            vec![]
        };
        rules.push(Rule {
            stage: stage.into(),
            rule: rule.into(),
            documents_before: documents,
            documents_after: documents - dropped,
            dropped: Dropped { bytes, lines },
            examples,
        });
        documents -= dropped;
    }
    Funnel { rules, documents_kept: documents, bytes_kept: 41_270_000 }
}

fn mixture() -> Mixture {
    let share = |category: &str, wanted, reached, epochs, bytes_per_token| Share {
        category: category.into(),
        wanted,
        reached,
        tokens: (8_192_000.0 * reached) as u64,
        epochs,
        bytes_per_token,
    };
    Mixture {
        budget_tokens: 8_192_000,
        max_epochs: 4.0,
        shares: vec![
            share("general", 0.60, 0.604, 1.31, 4.02),
            share("math", 0.15, 0.117, 4.0, 3.11),
            share("code", 0.25, 0.279, 0.82, 3.48),
        ],
    }
}

fn lineage() -> Vec<Link> {
    let digest = |name: &str| Some(Digest::of_bytes(name.as_bytes()));
    let link = |stage: &str, inputs: &[&str]| Link {
        stage: stage.into(),
        digest: digest(stage),
        inputs: inputs
            .iter()
            .map(|name| Input { name: (*name).into(), digest: digest(name), from: None })
            .collect(),
    };
    vec![
        link("corpus", &["rust-docs", "cargo-registry", "arithmetic"]),
        link("tokenizer", &["corpus"]),
        link("mixture", &["corpus", "tokenizer"]),
        link("pretrain", &["mixture"]),
        link("sft", &["pretrain", "corpus", "tokenizer"]),
        link("round 1", &["sft", "tokenizer"]),
        link("red team", &["round 1"]),
        link("judge", &["pretrain", "sft", "round 1", "mixture"]),
        link("release", &["round 1", "judge", "red team"]),
    ]
}
