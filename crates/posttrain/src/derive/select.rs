//! From many candidates to balanced, split and deduplicated items. Which candidates stay depends on
//! their digests under the seed, never on the order in which they came.

use super::questions::{Candidate, Placement};
use super::{Settings, Summary, Task, TaskCounts};
use base::{Hasher, Item, Seed, Split};
use std::collections::{BTreeMap, BTreeSet};

/// How many candidates per wanted item are kept in memory, for the caps to choose from.
const POOL_PER_ITEM: usize = 6;

/// Candidates of one task and side, by priority; the smallest priorities are kept. Equal prompts have
/// equal priorities, so that a prompt is there once.
#[derive(Default)]
struct Pool(BTreeMap<u64, Candidate>);

/// Gathers candidates and chooses items among them.
pub(super) struct Selection<'a> {
    settings: &'a Settings,
    seed: Seed,
    pools: BTreeMap<(Split, Task), Pool>,
    summary: Summary,
}

impl<'a> Selection<'a> {
    pub fn new(settings: &'a Settings, seed: Seed) -> Self {
        let (pools, summary) = (BTreeMap::new(), Summary::default());
        Self { settings, seed, pools, summary }
    }

    /// Takes a candidate into its pool, or counts why not.
    pub fn add(&mut self, candidate: Candidate) {
        self.summary.candidates += 1;
        let Some(split) = self.side(&candidate) else {
            self.summary.dropped_across_split += 1;
            return;
        };
        let wanted = self.wanted(split);
        let pool = &mut self.pools.entry((split, candidate.task)).or_default().0;
        let priority = priority(self.seed, &candidate);
        if pool.insert(priority, candidate).is_some() {
            self.summary.dropped_duplicates += 1;
        }
        if pool.len() > wanted.saturating_mul(POOL_PER_ITEM) {
            pool.pop_last();
            self.summary.dropped_over_quota += 1;
        }
    }

    /// Whether a side has the equal share of a task.
    pub fn enough_of(&self, task: Task, split: Split) -> bool {
        let share = self.wanted(split).div_ceil(self.settings.tasks.len().max(1));
        self.pools.get(&(split, task)).is_some_and(|pool| pool.0.len() >= share)
    }

    fn wanted(&self, split: Split) -> usize {
        match split {
            Split::Train => self.settings.train_items,
            Split::HeldOut => self.settings.held_out_items,
        }
    }

    /// The side of a question; nothing where it would put one thing on both sides.
    fn side(&self, candidate: &Candidate) -> Option<Split> {
        let drawn = self.draw(&candidate.subject);
        let split = match (candidate.placement, candidate.split) {
            (Placement::Given, split) => split,
            (Placement::Document, Split::HeldOut) => Split::HeldOut,
            (Placement::Document | Placement::Subject, Split::Train) => drawn,
            (Placement::Subject, Split::HeldOut) if drawn == Split::HeldOut => drawn,
            (Placement::Subject, Split::HeldOut) => return None,
        };
        let companion = candidate.companion.as_ref();
        companion.is_none_or(|companion| self.draw(companion) == split).then_some(split)
    }

    fn draw(&self, subject: &str) -> Split {
        corpus::split::side(self.seed, self.settings.held_out_share, subject)
    }

    /// The chosen items, train and held-out, each in an order that mixes the tasks.
    pub fn finish(mut self) -> (Vec<Item>, Vec<Item>, Summary) {
        let held_out = self.choose(Split::HeldOut, &BTreeSet::new());
        let passages = held_out.iter().map(|(_, candidate)| candidate.passage.clone()).collect();
        let train = self.choose(Split::Train, &passages);
        let items = |chosen: Vec<(u64, Candidate)>, split| {
            chosen.into_iter().map(|(priority, c)| item(priority, c, split)).collect()
        };
        (items(train, Split::Train), items(held_out, Split::HeldOut), self.summary)
    }

    fn choose(&mut self, split: Split, forbidden: &BTreeSet<String>) -> Vec<(u64, Candidate)> {
        let wanted = self.wanted(split);
        let mut admitted: BTreeMap<Task, Vec<(u64, Candidate)>> = BTreeMap::new();
        for &task in &self.settings.tasks {
            let pool = self.pools.remove(&(split, task)).unwrap_or_default();
            admitted.insert(task, self.admit(pool, forbidden));
        }
        let available: Vec<usize> = admitted.values().map(Vec::len).collect();
        let weight = |task: &Task| match (split, task.is_drill()) {
            (Split::HeldOut, true) => 0.0,
            _ => self.settings.task_weights.get(task).copied().unwrap_or(1.0),
        };
        let weights: Vec<f64> = admitted.keys().map(weight).collect();
        let mut chosen = Vec::new();
        for ((task, mut candidates), quota) in
            admitted.into_iter().zip(quotas(&available, &weights, wanted))
        {
            let counts = self.summary.tasks.entry(task.name().to_owned()).or_default();
            counts.set(split, candidates.len(), quota);
            candidates.truncate(quota);
            chosen.extend(candidates);
        }
        chosen.sort_by_key(|(priority, _)| *priority);
        chosen
    }

    /// Applies the caps per subject and per answer, in order of priority.
    fn admit(&mut self, pool: Pool, forbidden: &BTreeSet<String>) -> Vec<(u64, Candidate)> {
        let mut subjects: BTreeMap<String, usize> = BTreeMap::new();
        let mut admitted = Vec::new();
        for (priority, candidate) in pool.0 {
            let of_subject = subjects.entry(candidate.subject.clone()).or_default();
            if !candidate.passage.is_empty() && forbidden.contains(&candidate.passage) {
                self.summary.dropped_across_split += 1;
            } else if *of_subject >= self.settings.max_per_subject {
                self.summary.dropped_over_cap += 1;
            } else {
                *of_subject += 1;
                admitted.push((priority, candidate));
            }
        }
        let before = admitted.len();
        let admitted = cap_answers(admitted, self.settings.max_answer_share);
        self.summary.dropped_over_cap += (before - admitted.len()) as u64;
        admitted
    }
}

/// Drops the last candidates of every answer that more than `share` of what is left would have.
fn cap_answers(candidates: Vec<(u64, Candidate)>, share: f64) -> Vec<(u64, Candidate)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, candidate) in &candidates {
        *counts.entry(candidate.answer.clone()).or_default() += 1;
    }
    // With the frequent answers capped there are fewer in all, so the share of a capped answer is of the
    // capped total. It grows with the cap: the largest cap that keeps the share is searched by halving.
    let total = |cap: usize| counts.values().map(|&count| count.min(cap)).sum::<usize>();
    let fits = |cap: usize| cap as f64 <= share * total(cap) as f64;
    let most = counts.values().copied().max().unwrap_or_default();
    let (mut cap, mut above) = (1, most + 1);
    while above - cap.min(above) > 1 {
        let middle = cap + (above - cap) / 2;
        if fits(middle) { cap = middle } else { above = middle }
    }
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    candidates
        .into_iter()
        .filter(|(_, candidate)| {
            let of_answer = taken.entry(candidate.answer.clone()).or_default();
            *of_answer += 1;
            *of_answer <= cap
        })
        .collect()
}

impl TaskCounts {
    fn set(&mut self, split: Split, available: usize, chosen: usize) {
        match split {
            Split::Train => (self.train_available, self.train) = (available as u64, chosen as u64),
            Split::HeldOut => {
                (self.held_out_available, self.held_out) = (available as u64, chosen as u64);
            }
        }
    }
}

fn priority(seed: Seed, candidate: &Candidate) -> u64 {
    Hasher::new()
        .field(&seed.0.to_le_bytes())
        .field(candidate.passage.as_bytes())
        .field(candidate.question.as_bytes())
        .finish()
        .prefix()
}

/// Shares of a total in the ratio of the weights; what a task cannot fill goes to the others, in the same
/// ratio.
fn quotas(available: &[usize], weights: &[f64], total: usize) -> Vec<usize> {
    let mut quotas = vec![0; available.len()];
    let mut left = total;
    loop {
        let open: Vec<usize> = (0..available.len())
            .filter(|&i| quotas[i] < available[i] && weights[i] > 0.0)
            .collect();
        if open.is_empty() || left == 0 {
            return quotas;
        }
        let sum: f64 = open.iter().map(|&i| weights[i]).sum();
        let shared = left as f64;
        for i in open {
            let share = ((shared * weights[i] / sum) as usize).max(1);
            let take = share.min(available[i] - quotas[i]).min(left);
            quotas[i] += take;
            left -= take;
        }
    }
}

fn item(priority: u64, candidate: Candidate, split: Split) -> Item {
    let Candidate { task, subject, passage, question, answer, .. } = candidate;
    let prompt = if passage.is_empty() { question } else { format!("{passage}\n\n{question}") };
    let id = format!("{}/{subject}/{priority:016x}", task.name());
    Item { id, task: task.name().to_owned(), subject, split, prompt, answer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(task: Task, subject: &str, answer: &str) -> Candidate {
        Candidate {
            task,
            subject: subject.into(),
            companion: None,
            passage: format!("{subject} is {answer}"),
            question: "What?".into(),
            answer: answer.into(),
            split: Split::Train,
            placement: Placement::Subject,
        }
    }

    #[test]
    fn shares_are_equal_where_they_can_be() {
        let check = |available: &[usize], total, expected: &[usize]| {
            assert_eq!(quotas(available, &vec![1.0; available.len()], total), expected);
        };
        check(&[100, 100], 10, &[5, 5]);
        check(&[2, 100, 100], 20, &[2, 9, 9]);
        check(&[1, 1], 10, &[1, 1]);
        check(&[0, 5, 5], 3, &[0, 2, 1]);
        check(&[], 3, &[]);
        assert_eq!(quotas(&[90, 90, 90], &[2.0, 1.0, 0.0], 30), [20, 10, 0]);
        assert_eq!(quotas(&[9, 90, 90], &[2.0, 1.0, 1.0], 40), [9, 16, 15]);
    }

    fn select(candidates: &[Candidate], settings: &Settings) -> (Vec<Item>, Vec<Item>, Summary) {
        let mut selection = Selection::new(settings, Seed(5));
        candidates.iter().for_each(|c| selection.add(c.clone()));
        selection.finish()
    }

    fn many() -> Vec<Candidate> {
        (0..400)
            .flat_map(|i| {
                let subject = format!("thing{}", i % 100);
                let two = [Task::Returns, Task::Purpose];
                two.map(|task| candidate(task, &subject, &format!("answer {i}")))
            })
            .collect()
    }

    #[test]
    fn no_subject_is_on_both_sides_and_order_does_not_matter() {
        let settings = Settings { train_items: 120, held_out_items: 20, ..Settings::default() };
        let (train, held_out, summary) = select(&many(), &settings);
        let subjects = |items: &[Item]| -> BTreeSet<String> {
            items.iter().map(|item| item.subject.clone()).collect()
        };
        assert!(subjects(&train).is_disjoint(&subjects(&held_out)));
        assert!(!train.is_empty() && !held_out.is_empty(), "{summary:?}");
        let reversed: Vec<Candidate> = many().into_iter().rev().collect();
        let (again, again_held_out, _) = select(&reversed, &settings);
        assert_eq!((train, held_out), (again, again_held_out));
    }

    #[test]
    fn subjects_are_capped() {
        let settings = Settings { max_per_subject: 3, held_out_share: 0.0, ..Settings::default() };
        let rows: Vec<Candidate> =
            (0..50).map(|i| candidate(Task::Purpose, "one", &format!("a{i}"))).collect();
        let (train, _, summary) = select(&rows, &settings);
        assert_eq!((train.len(), summary.dropped_over_cap), (3, 47));
    }

    #[test]
    fn no_answer_has_more_than_its_share() {
        let check = |counts: &[usize], share, expected: &[usize]| {
            let rows = counts.iter().enumerate().flat_map(|(answer, &count)| {
                (0..count).map(move |i| {
                    let subject = format!("{answer} {i}");
                    (i as u64, candidate(Task::Fence, &subject, &answer.to_string()))
                })
            });
            let left = cap_answers(rows.collect(), share);
            let left_of =
                |answer: usize| left.iter().filter(|(_, c)| c.answer == answer.to_string()).count();
            let found: Vec<usize> = (0..counts.len()).map(left_of).collect();
            assert_eq!(found, expected, "{counts:?}");
        };
        check(&[100, 10, 10], 0.5, &[20, 10, 10]);
        check(&[100, 90, 10], 0.4, &[20, 20, 10]);
        check(&[5, 5, 5], 0.4, &[5, 5, 5]);
        check(&[9], 0.4, &[1]);
        check(&[], 0.4, &[]);
    }

    #[test]
    fn questions_without_a_passage_do_not_exclude_each_other() {
        let of = |split, subject: &str| Candidate {
            passage: String::new(),
            question: format!("What is {subject}?"),
            split,
            placement: Placement::Given,
            ..candidate(Task::Arithmetic, subject, subject)
        };
        let rows = [of(Split::Train, "1 + 1"), of(Split::HeldOut, "2 + 2")];
        let (train, held_out, _) = select(&rows, &Settings::default());
        assert_eq!((train.len(), held_out.len()), (1, 1));
    }

    #[test]
    fn drills_are_never_measured_with() {
        let settings = Settings { held_out_share: 0.5, ..Settings::default() };
        let rows: Vec<Candidate> = (0..40)
            .flat_map(|i| {
                let subject = format!("s{i}");
                [Task::Repeat, Task::Purpose]
                    .map(|task| candidate(task, &subject, &format!("a{i}")))
            })
            .map(|c| Candidate { passage: format!("{} {:?}", c.passage, c.task), ..c })
            .collect();
        let (train, held_out, _) = select(&rows, &settings);
        assert!(train.iter().any(|item| item.task == "repeat"));
        assert!(!held_out.is_empty() && held_out.iter().all(|item| item.task == "purpose"));
    }

    #[test]
    fn equal_prompts_and_passages_across_the_split_are_dropped() {
        let settings = Settings { held_out_share: 0.0, ..Settings::default() };
        let one = candidate(Task::Purpose, "a", "b");
        let mut held_out = one.clone();
        (held_out.split, held_out.placement) = (Split::HeldOut, Placement::Document);
        held_out.question = "Else?".into();
        let (train, tested, summary) = select(&[one.clone(), one, held_out], &settings);
        assert_eq!((train.len(), tested.len()), (0, 1));
        assert_eq!((summary.dropped_duplicates, summary.dropped_across_split), (1, 1));
    }

    #[test]
    fn a_thing_of_many_documents_is_never_on_both_sides() {
        let settings = Settings { held_out_share: 0.3, ..Settings::default() };
        let rows: Vec<Candidate> = (0..100)
            .flat_map(|i| {
                let train = candidate(Task::Purpose, &format!("s{i}"), &format!("a{i}"));
                let held_out = Candidate {
                    split: Split::HeldOut,
                    passage: format!("elsewhere {i}"),
                    ..train.clone()
                };
                [train, held_out]
            })
            .collect();
        let (train, held_out, summary) = select(&rows, &settings);
        assert_eq!(train.len() + held_out.len() / 2, 100);
        assert_eq!(summary.dropped_across_split, train.len() as u64);
    }

    #[test]
    fn a_companion_on_the_other_side_drops_the_question() {
        let settings = Settings { held_out_share: 0.5, ..Settings::default() };
        let rows: Vec<Candidate> = (0..200)
            .map(|i| Candidate {
                companion: Some(format!("other{i}")),
                ..candidate(Task::WhichItem, &format!("s{i}"), &format!("a{i}"))
            })
            .collect();
        let (_, _, summary) = select(&rows, &settings);
        assert!((60..140).contains(&summary.dropped_across_split), "{summary:?}");
    }
}
