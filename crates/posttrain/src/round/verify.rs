//! Judging sampled answers with a verifier that knows the right one: grades by token F1, and pairs of
//! answers rated by how far apart their grades are. The records are those that people would write.

use super::rollouts::Rollouts;
use base::{Item, Message, Preference, Rating, Role};
use judge::grade::token_f1;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name under which the verifier judges.
pub const JUDGE: &str = "verifier:token-f1";

/// Whether the verifier writes a better answer where the samples have none, as Llama 3's annotators may
/// (edited > chosen > rejected).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Edits {
    /// Only sampled answers are compared, so all that is learned from lies within the policy's reach.
    #[default]
    None,
    /// Where no sampled answer is right, the right one takes the place of the best. It may be one that the
    /// policy would hardly give, from which DPO learns little but to leave its own answers.
    WhenNoneIsRight,
}

/// How the verifier turns grades into preferences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Settings {
    /// Least difference of the grades, 0 to 1, to be rated significantly better.
    pub significantly_better: f64,
    /// Least difference of the grades to be rated better.
    pub better: f64,
    /// Least difference of the grades to be rated slightly better.
    pub slightly_better: f64,
    /// Least difference of the grades to make a pair at all.
    pub marginally_better: f64,
    /// Most pairs from one prompt. The best answer is paired with the worst, then the second worst…
    pub max_pairs_per_prompt: usize,
    /// Whether the right answer joins the sampled ones.
    pub edits: Edits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            significantly_better: 0.5,
            better: 0.2,
            slightly_better: 0.1,
            marginally_better: 0.02,
            max_pairs_per_prompt: 2,
            edits: Edits::default(),
        }
    }
}

impl Settings {
    /// The rating of a difference between two grades; nothing where it makes no pair.
    pub fn rating(&self, difference: f64) -> Option<Rating> {
        let steps = [
            (self.significantly_better, Rating::SignificantlyBetter),
            (self.better, Rating::Better),
            (self.slightly_better, Rating::SlightlyBetter),
            (self.marginally_better, Rating::MarginallyBetter),
        ];
        let reached = steps.into_iter().find(|(least, _)| difference >= *least);
        reached.filter(|_| difference > 0.0).map(|(_, rating)| rating)
    }
}

/// What the judging gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// Prompts judged.
    pub prompts: u64,
    /// Answers graded.
    pub answers: u64,
    /// Answers that another sample had given word for word; they are judged once.
    pub duplicates: u64,
    /// Prompts whose answers all have the same grade: no pair.
    pub tied_prompts: u64,
    /// Pairs whose grades were too close to tell apart, among those looked at.
    pub ties: u64,
    /// Prompts whose preferred answer was edited: the right one, where no sample was right.
    pub edited_prompts: u64,
    /// Pairs made.
    pub pairs: u64,
    /// Pairs by rating.
    pub ratings: BTreeMap<String, u64>,
    /// Mean grade of all answers.
    pub mean_grade: f64,
    /// Mean grade of the best answer to each prompt.
    pub best_grade: f64,
}

/// Grades the answers and makes preferences of them, in the order of the prompts.
pub fn judge(settings: &Settings, rollouts: &[Rollouts]) -> (Vec<Preference>, Summary) {
    let mut summary = Summary::default();
    let mut preferences = Vec::new();
    for of_prompt in rollouts {
        preferences.extend(judge_prompt(settings, of_prompt, &mut summary));
    }
    summary.pairs = preferences.len() as u64;
    summary.mean_grade /= (summary.answers as f64).max(1.0);
    summary.best_grade /= (summary.prompts as f64).max(1.0);
    (preferences, summary)
}

fn judge_prompt(
    settings: &Settings,
    rollouts: &Rollouts,
    summary: &mut Summary,
) -> Vec<Preference> {
    let item = &rollouts.item;
    let graded = graded(rollouts);
    summary.prompts += 1;
    summary.answers += rollouts.answers.len() as u64;
    summary.duplicates += (rollouts.answers.len() - graded.len()) as u64;
    summary.mean_grade +=
        rollouts.answers.iter().map(|a| grade(&a.text, &item.answer)).sum::<f64>();
    let Some(&(best, best_grade)) = graded.first() else { return Vec::new() };
    summary.best_grade += best_grade;
    if settings.edits == Edits::WhenNoneIsRight && best_grade < 1.0 {
        summary.edited_prompts += 1;
        let worse = graded.iter().rev().copied();
        return pairs(settings, item, (&item.answer, 1.0), worse, summary);
    }
    if graded.iter().all(|(_, grade)| *grade == best_grade) {
        summary.tied_prompts += 1;
        return Vec::new();
    }
    let worse = graded[1..].iter().rev().copied();
    pairs(settings, item, (best, best_grade), worse, summary)
}

/// Pairs of the best answer with the worse ones, the worst first.
fn pairs<'a>(
    settings: &Settings,
    item: &Item,
    (best, best_grade): (&str, f64),
    worst_first: impl Iterator<Item = (&'a str, f64)>,
    summary: &mut Summary,
) -> Vec<Preference> {
    let mut preferences = Vec::new();
    for (worse, worse_grade) in worst_first.take(settings.max_pairs_per_prompt) {
        let Some(rating) = settings.rating(best_grade - worse_grade) else {
            summary.ties += 1;
            continue;
        };
        *summary.ratings.entry(name(rating).to_owned()).or_default() += 1;
        preferences.push(Preference {
            id: format!("{}/{}", item.id, preferences.len()),
            item: item.id.clone(),
            prompt: vec![Message::new(Role::User, item.prompt.clone())],
            chosen: best.to_owned(),
            rejected: worse.to_owned(),
            rating,
            judge: JUDGE.to_owned(),
        });
    }
    preferences
}

/// The different answers with their grades, best first; ties in the order of their text.
pub fn graded(rollouts: &Rollouts) -> Vec<(&str, f64)> {
    let grades: BTreeMap<&str, f64> = rollouts
        .answers
        .iter()
        .map(|answer| (answer.text.as_str(), grade(&answer.text, &rollouts.item.answer)))
        .collect();
    let mut graded: Vec<(&str, f64)> = grades.into_iter().collect();
    graded.sort_by(|a, b| b.1.total_cmp(&a.1));
    graded
}

/// The verifier's grade of an answer, 0 to 1.
pub fn grade(answer: &str, right: &str) -> f64 {
    token_f1(answer, right)
}

/// The name of a rating in files.
pub fn name(rating: Rating) -> &'static str {
    match rating {
        Rating::SignificantlyBetter => "significantly-better",
        Rating::Better => "better",
        Rating::SlightlyBetter => "slightly-better",
        Rating::MarginallyBetter => "marginally-better",
    }
}

#[cfg(test)]
mod tests {
    use super::super::rollouts::tests::rollouts;
    use super::*;

    #[test]
    fn ratings_follow_the_margins() {
        let settings = Settings::default();
        let check = |difference, expected| assert_eq!(settings.rating(difference), expected);
        check(1.0, Some(Rating::SignificantlyBetter));
        check(0.5, Some(Rating::SignificantlyBetter));
        check(0.49, Some(Rating::Better));
        check(0.15, Some(Rating::SlightlyBetter));
        check(0.05, Some(Rating::MarginallyBetter));
        check(0.01, None);
        check(0.0, None);
        check(-1.0, None);
        check(f64::NAN, None);
        let everything = Settings { marginally_better: 0.0, ..settings };
        assert_eq!(everything.rating(0.0), None, "equal grades are no preference");
    }

    #[test]
    fn the_best_answer_is_preferred_to_the_worst_ones() {
        let all = rollouts(
            "one two three four",
            &["one two three four", "five", "one", "one two", "five"],
        );
        let (pairs, summary) = judge(&Settings::default(), &[all]);
        let rejected: Vec<&str> = pairs.iter().map(|p| p.rejected.as_str()).collect();
        assert!(pairs.iter().all(|p| p.chosen == "one two three four"));
        assert_eq!(rejected, ["five", "one"]);
        assert_eq!(pairs[0].rating, Rating::SignificantlyBetter);
        assert_eq!((summary.duplicates, summary.answers, summary.pairs), (1, 5, 2));
        assert!((summary.best_grade - 1.0).abs() < 1e-12);
    }

    #[test]
    fn where_no_sample_is_right_the_right_answer_is_preferred() {
        let wrong = rollouts("one two", &["three", "one", "three"]);
        let settings = Settings { edits: Edits::WhenNoneIsRight, ..Settings::default() };
        let (pairs, summary) = judge(&settings, &[wrong]);
        let found: Vec<(&str, &str)> =
            pairs.iter().map(|p| (p.chosen.as_str(), p.rejected.as_str())).collect();
        assert_eq!(found, [("one two", "three"), ("one two", "one")]);
        assert_eq!((summary.edited_prompts, summary.tied_prompts), (1, 0));
        assert!(summary.best_grade < 1.0, "the grades are of what was sampled");
    }

    #[test]
    fn ties_make_no_pair() {
        let same = rollouts("right", &["wrong", "bad", "no"]);
        let equal = rollouts("right", &["right", "right"]);
        let none = rollouts("right", &[]);
        let (pairs, summary) = judge(&Settings::default(), &[same, equal, none]);
        assert!(pairs.is_empty());
        assert_eq!((summary.tied_prompts, summary.duplicates, summary.prompts), (2, 1, 3));
    }
}
