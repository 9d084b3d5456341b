//! A map over a slice on a given number of threads, with its results in the slice's order.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `f` to every item. Each thread works with one of `states`, so that what it learned (a cache)
/// outlives the call; results must not depend on the state.
pub(crate) fn map<T: Sync, S: Send, R: Send>(
    items: &[T],
    states: &mut [S],
    f: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = |state: &mut S| {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return results };
            results.push((index, f(state, item)));
        }
    };
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = states.iter_mut().map(|state| scope.spawn(|| work(state))).collect();
        threads
            .into_iter()
            .flat_map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    results.sort_unstable_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_for_any_number_of_threads() {
        let items: Vec<u32> = (0..1000).collect();
        for threads in 1..5 {
            // Slow enough at the start that every thread gets some of the items.
            let doubled = map(&items, &mut vec![(); threads], |(), x| {
                if *x < 20 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                x * 2
            });
            assert_eq!(doubled, (0..1000).map(|x| x * 2).collect::<Vec<_>>());
        }
    }
}
