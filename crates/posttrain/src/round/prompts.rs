//! What the round asks: items that the fine-tuning leaves out. On questions whose answers a model has
//! learned by heart its samples are all alike, and there is nothing to prefer.

use base::{Item, Seed};

/// Items for the fine-tuning, and items for the round: `share` of the subjects, 0 to 1, is the round's. The
/// sides follow from the seed and the subject alone.
pub fn divide(items: Vec<Item>, share: f64, seed: Seed) -> (Vec<Item>, Vec<Item>) {
    let seed = seed.derive("round-prompts");
    let is_tuned = |item: &Item| seed.derive(&item.subject).0 as f64 / u64::MAX as f64 >= share;
    items.into_iter().partition(is_tuned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Split;

    fn item(subject: usize, number: usize) -> Item {
        Item {
            id: format!("{subject}/{number}"),
            task: "t".into(),
            subject: subject.to_string(),
            split: Split::Train,
            prompt: String::new(),
            answer: String::new(),
        }
    }

    #[test]
    fn a_subject_is_on_one_side() {
        let items: Vec<Item> = (0..900).map(|i| item(i % 300, i / 300)).collect();
        let (tuned, asked) = divide(items.clone(), 0.25, Seed(1));
        assert_eq!(tuned.len() + asked.len(), items.len());
        assert!((150..300).contains(&asked.len()), "{}", asked.len());
        assert!(asked.iter().all(|a| tuned.iter().all(|t| t.subject != a.subject)));
    }

    #[test]
    fn shares_of_nothing_and_all() {
        let items: Vec<Item> = (0..50).map(|i| item(i, 0)).collect();
        assert_eq!(divide(items.clone(), 0.0, Seed(1)).1.len(), 0);
        assert_eq!(divide(items, 1.1, Seed(1)).0.len(), 0);
    }
}
