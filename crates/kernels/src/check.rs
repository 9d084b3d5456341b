//! Checks of shapes, with messages that say which operand is wrong and how.

/// Panics unless `slice` has `expected` elements.
#[track_caller]
pub(crate) fn length<T>(operation: &str, operand: &str, slice: &[T], expected: usize) {
    assert!(
        slice.len() == expected,
        "{operation}: {operand} has {} elements, expected {expected}",
        slice.len()
    );
}

/// Panics unless all `ids` are below `bound`.
#[track_caller]
pub(crate) fn ids_below(operation: &str, operand: &str, ids: &[u32], bound: usize) {
    for (row, &id) in ids.iter().enumerate() {
        assert!(
            (id as usize) < bound,
            "{operation}: {operand}[{row}] is {id}, expected below {bound}"
        );
    }
}
