//! Causal grouped-query attention over the sequences of a flat batch, and for one new row against a
//! cache.

use crate::check::length;
use crate::cpu::attention;
use crate::pool::Pool;

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
    pool: &Pool,
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
    attention::forward(pool, shape, segments, q, k, v, out, log_sum_exp);
}

/// Gradients by queries, keys and values (overwritten) from the one by the output. Probabilities are
/// computed again from the saved log-sum-exp (Dao et al. 2022, algorithm 4).
///
/// # Panics
/// If lengths do not fit.
pub fn attention_backward(
    pool: &Pool,
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
    attention::backward(pool, shape, segments, saved, d_out, gradients);
}

/// Attention of single rows against the caches of their sequences. Each gives the same bits as its
/// row in [`attention_forward`].
///
/// # Panics
/// If lengths do not fit.
pub fn attention_decode(pool: &Pool, shape: AttentionShape, rows: &mut [DecodeRow<'_>]) {
    for row in rows.iter() {
        length("attention_decode", "q", row.q, shape.q_width());
        let length_of_cache = row.keys.len() / shape.kv_width();
        shape.check("attention_decode", &[0], length_of_cache, row.keys, row.values);
        length("attention_decode", "out", row.out, shape.q_width());
    }
    attention::decode(pool, shape, rows);
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

    /// Query heads that read one key/value head.
    pub(crate) fn group(&self) -> usize {
        self.num_heads / self.num_kv_heads
    }

    /// The key/value head that a query head reads.
    pub(crate) fn kv_head(&self, head: usize) -> usize {
        head / self.group()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;
    use crate::testing::{assert_close, assert_gradient, bits, pools, values, weighted_sum};

    const SEGMENTS: [&[u32]; 6] =
        [&[0], &[0, 1], &[0, 33, 34, 97], &[0, 64, 128], &[0, 0, 31, 70, 70], &[0, 130]];

    struct Case {
        shape: AttentionShape,
        segments: &'static [u32],
        q: Vec<f32>,
        k: Vec<f32>,
        v: Vec<f32>,
    }

    struct Forward {
        out: Vec<f32>,
        log_sum_exp: Vec<f32>,
    }

    fn case(num_heads: usize, num_kv_heads: usize, head_dim: usize, segments: usize) -> Case {
        let shape = AttentionShape { num_heads, num_kv_heads, head_dim };
        let rows = 150;
        let scaled = |seed, n| values(seed, n).iter().map(|x| 3.0 * x).collect::<Vec<f32>>();
        Case {
            shape,
            segments: SEGMENTS[segments],
            q: scaled(1, rows * shape.q_width()),
            k: scaled(2, rows * shape.kv_width()),
            v: values(3, rows * shape.kv_width()),
        }
    }

    fn cases() -> Vec<Case> {
        vec![
            case(1, 1, 32, 0),
            case(4, 2, 64, 1),
            case(4, 1, 48, 2),
            case(9, 1, 32, 5),
            case(2, 2, 128, 3),
            case(6, 3, 20, 4),
        ]
    }

    fn forward(pool: &Pool, case: &Case) -> Forward {
        let rows = case.q.len() / case.shape.q_width();
        let mut out = vec![f32::NAN; case.q.len()];
        let mut log_sum_exp = vec![f32::NAN; rows * case.shape.num_heads];
        attention_forward(
            pool,
            case.shape,
            case.segments,
            &case.q,
            &case.k,
            &case.v,
            &mut out,
            &mut log_sum_exp,
        );
        Forward { out, log_sum_exp }
    }

    fn saved<'a>(case: &'a Case, forward: &'a Forward) -> SavedAttention<'a> {
        SavedAttention {
            q: &case.q,
            k: &case.k,
            v: &case.v,
            out: &forward.out,
            log_sum_exp: &forward.log_sum_exp,
        }
    }

    fn backward(pool: &Pool, case: &Case, forward: &Forward, d_out: &[f32]) -> [Vec<f32>; 3] {
        let nan = |n| vec![f32::NAN; n];
        let (mut d_q, mut d_k, mut d_v) = (nan(case.q.len()), nan(case.k.len()), nan(case.v.len()));
        let gradients = AttentionGradients { d_q: &mut d_q, d_k: &mut d_k, d_v: &mut d_v };
        let saved = saved(case, forward);
        attention_backward(pool, case.shape, case.segments, saved, d_out, gradients);
        [d_q, d_k, d_v]
    }

    #[test]
    fn forward_agrees_with_its_twin_and_is_the_same_everywhere() {
        for case in cases() {
            let mut out = vec![0.0; case.q.len()];
            let mut log_sum_exp = vec![0.0; 150 * case.shape.num_heads];
            reference::attention_forward(
                case.shape,
                case.segments,
                &case.q,
                &case.k,
                &case.v,
                &mut out,
                &mut log_sum_exp,
            );
            let first = forward(&Pool::new(1), &case);
            assert_close("out", &first.out, &out, 1e-5);
            assert_close("log_sum_exp", &first.log_sum_exp, &log_sum_exp, 1e-5);
            for pool in pools() {
                let found = forward(&pool, &case);
                assert_eq!(bits(&found.out), bits(&first.out), "{pool:?} {:?}", case.shape);
                assert_eq!(bits(&found.log_sum_exp), bits(&first.log_sum_exp), "{pool:?}");
            }
        }
    }

    #[test]
    fn backward_agrees_with_its_twin_and_is_the_same_everywhere() {
        for case in cases() {
            let forward = forward(&Pool::new(1), &case);
            let d_out = values(4, case.q.len());
            let zeros = |n| vec![0.0; n];
            let (mut d_q, mut d_k, mut d_v) =
                (zeros(case.q.len()), zeros(case.k.len()), zeros(case.v.len()));
            reference::attention_backward(
                case.shape,
                case.segments,
                saved(&case, &forward),
                &d_out,
                AttentionGradients { d_q: &mut d_q, d_k: &mut d_k, d_v: &mut d_v },
            );
            let first = backward(&Pool::new(1), &case, &forward, &d_out);
            assert_close("d_q", &first[0], &d_q, 3e-5);
            assert_close("d_k", &first[1], &d_k, 3e-5);
            assert_close("d_v", &first[2], &d_v, 3e-5);
            for pool in pools() {
                let found = backward(&pool, &case, &forward, &d_out);
                for (found, first) in found.iter().zip(&first) {
                    assert_eq!(bits(found), bits(first), "{pool:?} {:?}", case.shape);
                }
            }
        }
    }

    #[test]
    fn gradients_are_slopes() {
        let mut case = case(2, 1, 32, 2);
        case.q.iter_mut().for_each(|q| *q *= 0.3);
        let pool = Pool::new(1);
        let d_out = values(4, case.q.len());
        let [d_q, d_k, d_v] = backward(&pool, &case, &forward(&pool, &case), &d_out);
        let loss = |change: &dyn Fn(&mut Case)| {
            let mut moved =
                Case { q: case.q.clone(), k: case.k.clone(), v: case.v.clone(), ..case };
            change(&mut moved);
            weighted_sum(&forward(&pool, &moved).out, &d_out)
        };
        assert_gradient("d_q", &case.q, &d_q, |q| loss(&|case| case.q = q.to_vec()));
        assert_gradient("d_k", &case.k, &d_k, |k| loss(&|case| case.k = k.to_vec()));
        assert_gradient("d_v", &case.v, &d_v, |v| loss(&|case| case.v = v.to_vec()));
    }

    #[test]
    fn one_row_against_its_cache_has_the_bits_of_its_row_in_the_batch() {
        for case in cases() {
            let (q_width, kv_width) = (case.shape.q_width(), case.shape.kv_width());
            let whole = forward(&Pool::new(1), &case);
            for pool in pools() {
                let mut out = vec![f32::NAN; case.q.len()];
                let mut rows: Vec<DecodeRow<'_>> = out
                    .chunks_exact_mut(q_width)
                    .enumerate()
                    .map(|(row, out)| {
                        let start = case.segments.iter().rfind(|&&s| s as usize <= row).unwrap();
                        let seen = *start as usize * kv_width..(row + 1) * kv_width;
                        DecodeRow {
                            q: &case.q[row * q_width..][..q_width],
                            keys: &case.k[seen.clone()],
                            values: &case.v[seen],
                            out,
                        }
                    })
                    .collect();
                attention_decode(&pool, case.shape, &mut rows);
                assert_eq!(bits(&out), bits(&whole.out), "{pool:?} {:?}", case.shape);
            }
        }
    }

    #[test]
    fn later_rows_and_other_sequences_are_not_seen() {
        let mut case = case(2, 1, 32, 2);
        let pool = Pool::new(1);
        let before = forward(&pool, &case);
        for row in [20, 33, 60] {
            let at = row * case.shape.kv_width();
            case.k[at] = f32::NAN;
            case.v[at + 1] = f32::INFINITY;
        }
        let after = forward(&pool, &case);
        let width = case.shape.q_width();
        for row in 0..150 {
            let seen = (20..33).contains(&row) || row == 33 || (60..97).contains(&row);
            let (a, b) = (&before.out[row * width..][..width], &after.out[row * width..][..width]);
            assert_eq!(seen, b.iter().all(|x| x.is_nan()), "row {row}");
            assert!(seen || bits(a) == bits(b), "row {row}");
        }
    }
}
