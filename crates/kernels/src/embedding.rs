//! Rows of a table by token.

use crate::check::{ids_below, length};
use crate::cpu::share::Shared;
use crate::pool::Pool;

/// Elements of a piece of work.
const PIECE: usize = 1 << 15;
/// Columns of a piece of the backward pass, which goes over all rows.
const COLUMNS: usize = 64;

/// `out[t, d] = table[token_ids[t], d]`.
///
/// # Panics
/// If lengths do not fit or a token is beyond the table.
pub fn embedding_forward(
    pool: &Pool,
    d_model: usize,
    token_ids: &[u32],
    table: &[f32],
    out: &mut [f32],
) {
    check("embedding_forward", d_model, token_ids, table, out);
    let out = Shared::new(out);
    pool.run_ranges(token_ids.len(), PIECE / d_model, |range| {
        // SAFETY: pieces' rows do not overlap.
        let out = unsafe { out.part(range.start * d_model..range.end * d_model) };
        for (out, &id) in out.chunks_exact_mut(d_model).zip(&token_ids[range]) {
            out.copy_from_slice(&table[id as usize * d_model..][..d_model]);
        }
    });
}

/// `d_table[token_ids[t], d] += d_out[t, d]`, in the order of rows.
///
/// # Panics
/// If lengths do not fit or a token is beyond the table.
pub fn embedding_backward(
    pool: &Pool,
    d_model: usize,
    token_ids: &[u32],
    d_out: &[f32],
    d_table: &mut [f32],
) {
    check("embedding_backward", d_model, token_ids, d_table, d_out);
    let d_table = Shared::new(d_table);
    pool.run_ranges(d_model, COLUMNS, |columns| {
        for (row, &id) in token_ids.iter().enumerate() {
            let at = |row: usize| row * d_model + columns.start..row * d_model + columns.end;
            // SAFETY: pieces' columns do not overlap, and no other part of this piece is alive.
            let sums = unsafe { d_table.part(at(id as usize)) };
            sums.iter_mut().zip(&d_out[at(row)]).for_each(|(sum, d_out)| *sum += d_out);
        }
    });
}

fn check(operation: &str, d_model: usize, token_ids: &[u32], table: &[f32], rows: &[f32]) {
    assert!(d_model > 0, "{operation}: d_model is 0");
    length(operation, "rows", rows, token_ids.len() * d_model);
    length(operation, "table", table, table.len() / d_model * d_model);
    ids_below(operation, "token_ids", token_ids, table.len() / d_model);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use crate::testing::{bits, pools, values};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn agrees_with_its_twin_to_the_bit(
            d in 1usize..150,
            token_ids in proptest::collection::vec(0u32..7, 0..600),
        ) {
            let (table, d_out) = (values(1, 7 * d), values(2, token_ids.len() * d));
            let mut expected = table.clone();
            reference::embedding_backward(d, &token_ids, &d_out, &mut expected);
            for pool in pools() {
                let mut out = vec![f32::NAN; token_ids.len() * d];
                embedding_forward(&pool, d, &token_ids, &table, &mut out);
                for (&id, out) in token_ids.iter().zip(out.chunks_exact(d)) {
                    assert_eq!(out, &table[id as usize * d..][..d]);
                }
                let mut found = table.clone();
                embedding_backward(&pool, d, &token_ids, &d_out, &mut found);
                assert_eq!(bits(&found), bits(&expected), "{pool:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "embedding_forward: token_ids[1] is 3, expected below 3")]
    fn a_token_beyond_the_table_is_named() {
        embedding_forward(&Pool::new(1), 2, &[0, 3], &[0.0; 6], &mut [0.0; 4]);
    }
}
