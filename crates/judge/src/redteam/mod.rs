//! A red-team campaign in the four steps of the external red-teaming whitepaper (arXiv 2503.16431):
//! who attacks ([`Attacker`]), which model with what access ([`Access`]), how findings are recorded
//! ([`Attempt`], [`Finding`]), and which automated evaluations come of them ([`TestRecord`]).
//!
//! ```text
//! seed -> canaries -> planted documents (read in pretraining)
//!             |
//! settings -> probes -> trials -> attempts -> findings -> tests that the next model must pass
//!             |                      |
//!             +------ report: every probe, with or without hits
//! ```
//!
//! A *probe* is a goal with prompts; a *detector* says whether an answer is a hit; an *attempt* is one
//! prompt with its answer. A campaign that was stopped goes on where it was: attempts are kept probe by
//! probe.

mod attempt;
mod campaign;
mod canary;
mod detector;
mod finding;
mod probe;
mod prompts;
mod refusal;
mod report;
mod settings;
mod words;

pub use attempt::{Attempt, Exposure, read_attempts};
pub use campaign::campaign;
pub use canary::{Canary, CanarySettings, canaries, documents};
pub use detector::Detector;
pub use finding::{Finding, TestRecord, TestReport, TestResult, read_tests, run_tests};
pub use probe::{Policy, ProbeKind, ProbeName, Severity};
pub use refusal::is_refusal;
pub use report::{CampaignReport, CanaryResult, ProbeResult};
pub use settings::{Access, Attacker, Settings};
pub use words::Words;
