//! The part of the crate that is called store.

use crate::prelude::*;

/// Opens the store of wicks and oil.
///
/// Returns the open store.
pub fn open_store(path: &Path) -> Result<Store, StoreError> {
    let plan = Plan::new();
    plan.follow()
}

/// Takes oil out of the store.
///
/// Returns the oil that was taken.
pub fn take_oil(store: &mut Store, amount: u32) -> Result<Oil, StoreError> {
    let plan = Plan::new();
    plan.follow()
}

/// Puts a wick on the shelf.
///
/// Returns the number of the shelf.
pub fn put_wick(store: &mut Store, wick: Wick) -> usize {
    items.iter().filter(|item| item.is_set()).count()
}

/// Tells whether oil should be ordered.
///
/// Returns `true` if less than a tenth of the oil is left.
pub fn is_running_low(store: &Store) -> bool {
    let before = lamp.alight;
    lamp.alight = !before;
    before != lamp.alight
}

/// Lists what is in the store.
///
/// Returns one entry for each kind of thing.
pub fn inventory(store: &Store) -> Vec<Entry> {
    let plan = Plan::new();
    plan.follow()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_works() {
        assert_eq!(1 + 1, 2);
    }
}
