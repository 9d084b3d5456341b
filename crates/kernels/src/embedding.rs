//! Rows of a table by token.

use crate::check::{ids_below, length};
use crate::pool::Pool;
use crate::reference;

/// `out[t, d] = table[token_ids[t], d]`.
///
/// # Panics
/// If lengths do not fit or a token is beyond the table.
pub fn embedding_forward(
    _pool: &Pool,
    d_model: usize,
    token_ids: &[u32],
    table: &[f32],
    out: &mut [f32],
) {
    check("embedding_forward", d_model, token_ids, table, out);
    for (out, &id) in out.chunks_exact_mut(d_model).zip(token_ids) {
        out.copy_from_slice(&table[id as usize * d_model..][..d_model]);
    }
}

/// `d_table[token_ids[t], d] += d_out[t, d]`, in the order of rows.
///
/// # Panics
/// If lengths do not fit or a token is beyond the table.
pub fn embedding_backward(
    _pool: &Pool,
    d_model: usize,
    token_ids: &[u32],
    d_out: &[f32],
    d_table: &mut [f32],
) {
    check("embedding_backward", d_model, token_ids, d_table, d_out);
    reference::embedding_backward(d_model, token_ids, d_out, d_table);
}

fn check(operation: &str, d_model: usize, token_ids: &[u32], table: &[f32], rows: &[f32]) {
    assert!(d_model > 0, "{operation}: d_model is 0");
    length(operation, "rows", rows, token_ids.len() * d_model);
    length(operation, "table", table, table.len() / d_model * d_model);
    ids_below(operation, "token_ids", token_ids, table.len() / d_model);
}
