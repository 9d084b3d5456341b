//! Shares of a budget, each capped by what a category has.

use base::Category;
use std::collections::BTreeMap;

/// Divides `budget` by `shares`; what a category cannot give, the others give in the ratio of their
/// shares, until all is given or all are exhausted. Categories without a share get nothing.
pub(crate) fn apportion(
    budget: u64,
    shares: &BTreeMap<Category, f64>,
    available: &BTreeMap<Category, u64>,
) -> BTreeMap<Category, u64> {
    let has = |category: &Category| available.get(category).copied().unwrap_or(0);
    let mut given = BTreeMap::new();
    let mut open: Vec<(Category, f64)> = shares.iter().map(|(&c, &s)| (c, s)).collect();
    let mut rest = budget;
    while !open.is_empty() {
        let sum: f64 = open.iter().map(|(_, share)| share).sum();
        let part = |share: f64| (rest as f64 * (share / sum)).round() as u64;
        let (full, still): (Vec<_>, Vec<_>) = open.iter().partition(|(c, s)| has(c) <= part(*s));
        if full.is_empty() {
            given.extend(still.into_iter().map(|(category, share)| (category, part(share))));
            break;
        }
        for (category, _) in full {
            given.insert(category, has(&category));
            rest = rest.saturating_sub(has(&category));
        }
        open = still;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(budget: u64, rows: &[(Category, f64, u64)], expected: &[u64]) {
        let shares = rows.iter().map(|&(c, s, _)| (c, s)).collect();
        let available = rows.iter().map(|&(c, _, a)| (c, a)).collect();
        let given = apportion(budget, &shares, &available);
        assert_eq!(given.into_values().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_one_lacks_the_others_give() {
        use Category::{Code, General, Math};
        check(
            1000,
            &[(General, 0.5, 9999), (Math, 0.3, 9999), (Code, 0.2, 9999)],
            &[500, 300, 200],
        );
        check(1000, &[(General, 0.5, 9999), (Math, 0.3, 0), (Code, 0.2, 9999)], &[714, 0, 286]);
        check(1000, &[(General, 0.5, 9999), (Math, 0.3, 100), (Code, 0.2, 250)], &[650, 100, 250]);
        check(1000, &[(General, 0.5, 10), (Math, 0.3, 20), (Code, 0.2, 30)], &[10, 20, 30]);
        check(1000, &[(General, 1.0, 1000)], &[1000]);
    }
}
