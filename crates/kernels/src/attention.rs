//! Causal grouped-query attention over the sequences of a flat batch, and for one new row against a
//! cache.

use crate::check::length;
use crate::pool::Pool;
use crate::reference;

/// Heads of an attention layer. Query head `h` reads key/value head `h / (num_heads / num_kv_heads)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionShape {
    /// Heads of the queries and of the output.
    pub num_heads: usize,
    /// Heads of the keys and values; divides `num_heads`.
    pub num_kv_heads: usize,
    /// Length of a head.
    pub head_dim: usize,
}

/// What the backward pass needs of the forward one.
#[derive(Clone, Copy)]
pub struct SavedAttention<'a> {
    /// Queries `[t, num_heads * head_dim]`.
    pub q: &'a [f32],
    /// Keys `[t, num_kv_heads * head_dim]`.
    pub k: &'a [f32],
    /// Values `[t, num_kv_heads * head_dim]`.
    pub v: &'a [f32],
    /// Output `[t, num_heads * head_dim]`.
    pub out: &'a [f32],
    /// Log-sum-exp of the scaled scores `[t, num_heads]`.
    pub log_sum_exp: &'a [f32],
}

/// Gradients that the backward pass overwrites; shapes as of their values.
pub struct AttentionGradients<'a> {
    /// By the queries.
    pub d_q: &'a mut [f32],
    /// By the keys.
    pub d_k: &'a mut [f32],
    /// By the values.
    pub d_v: &'a mut [f32],
}

/// One query row and the cache of its sequence.
pub struct DecodeRow<'a> {
    /// Query `[num_heads * head_dim]`.
    pub q: &'a [f32],
    /// Keys of the sequence so far, the row's own last: `[length, num_kv_heads * head_dim]`.
    pub keys: &'a [f32],
    /// Values, as the keys.
    pub values: &'a [f32],
    /// Output `[num_heads * head_dim]`.
    pub out: &'a mut [f32],
}

/// `out = softmax(q kᵀ / sqrt(head_dim)) v`, where a row sees itself and the rows before it in its own
/// sequence. `segments` are the starts of the sequences, ascending from 0.
///
/// Shapes: `q`, `out` `[t, num_heads * head_dim]`; `k`, `v` `[t, num_kv_heads * head_dim]`;
/// `log_sum_exp` `[t, num_heads]`.
///
/// # Panics
/// If lengths do not fit.
#[allow(clippy::too_many_arguments)]
pub fn attention_forward(
    _pool: &Pool,
    shape: AttentionShape,
    segments: &[u32],
    q: &[f32],
    k: &[f32],
    v: &[f32],
    out: &mut [f32],
    log_sum_exp: &mut [f32],
) {
    let rows = shape.rows("attention_forward", q);
    shape.check("attention_forward", segments, rows, k, v);
    length("attention_forward", "out", out, q.len());
    length("attention_forward", "log_sum_exp", log_sum_exp, rows * shape.num_heads);
    reference::attention_forward(shape, segments, q, k, v, out, log_sum_exp);
}

/// Gradients by queries, keys and values (overwritten) from the one by the output. Probabilities are
/// computed again from the saved log-sum-exp (Dao et al. 2022, algorithm 4).
///
/// # Panics
/// If lengths do not fit.
pub fn attention_backward(
    _pool: &Pool,
    shape: AttentionShape,
    segments: &[u32],
    saved: SavedAttention<'_>,
    d_out: &[f32],
    gradients: AttentionGradients<'_>,
) {
    let operation = "attention_backward";
    let rows = shape.rows(operation, saved.q);
    shape.check(operation, segments, rows, saved.k, saved.v);
    length(operation, "out", saved.out, saved.q.len());
    length(operation, "d_out", d_out, saved.q.len());
    length(operation, "log_sum_exp", saved.log_sum_exp, rows * shape.num_heads);
    length(operation, "d_q", gradients.d_q, saved.q.len());
    length(operation, "d_k", gradients.d_k, saved.k.len());
    length(operation, "d_v", gradients.d_v, saved.v.len());
    reference::attention_backward(shape, segments, saved, d_out, gradients);
}

/// Attention of single rows against the caches of their sequences. Each gives the same bits as its
/// row in [`attention_forward`].
///
/// # Panics
/// If lengths do not fit.
pub fn attention_decode(_pool: &Pool, shape: AttentionShape, rows: &mut [DecodeRow<'_>]) {
    for row in rows {
        length("attention_decode", "q", row.q, shape.q_width());
        let length_of_cache = row.keys.len() / shape.kv_width();
        shape.check("attention_decode", &[0], length_of_cache, row.keys, row.values);
        length("attention_decode", "out", row.out, shape.q_width());
        reference::attention_row(shape, row.q, row.keys, row.values, row.out);
    }
}

impl AttentionShape {
    /// Width of a row of queries.
    pub fn q_width(&self) -> usize {
        self.num_heads * self.head_dim
    }

    /// Width of a row of keys or values.
    pub fn kv_width(&self) -> usize {
        self.num_kv_heads * self.head_dim
    }

    fn rows(&self, operation: &str, q: &[f32]) -> usize {
        assert!(self.q_width() > 0, "{operation}: {self:?} has no heads");
        q.len() / self.q_width()
    }

    fn check(&self, operation: &str, segments: &[u32], rows: usize, k: &[f32], v: &[f32]) {
        assert!(
            self.num_kv_heads > 0 && self.num_heads.is_multiple_of(self.num_kv_heads),
            "{operation}: {} query heads, expected a multiple of {} key/value heads",
            self.num_heads,
            self.num_kv_heads
        );
        length(operation, "k", k, rows * self.kv_width());
        length(operation, "v", v, rows * self.kv_width());
        assert!(
            rows == 0 || segments.first() == Some(&0),
            "{operation}: segments start with {:?}, expected 0",
            segments.first()
        );
        assert!(
            segments.is_sorted() && segments.last().is_none_or(|&last| last as usize <= rows),
            "{operation}: segments must ascend and stay within {rows} rows"
        );
    }
}
