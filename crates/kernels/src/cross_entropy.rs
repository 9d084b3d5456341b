//! The head and the log-probabilities of targets, in chunks: the logits are never whole.

use crate::check::{ids_below, length};
use crate::cpu::gemm::{Right, gemm};
use crate::cpu::level::Level;
use crate::cpu::pack::Strided;
use crate::cpu::share::Shared;
use crate::cpu::softmax::{RowGradient, Softmax};
use crate::matmul::{Dims, Write};
use crate::pool::Pool;
use std::ops::Range;

/// Logits that exist at a time (8 MiB).
const LOGITS: usize = 1 << 21;
/// Fewest rows of a chunk: the head is packed once a chunk, which fewer rows would not repay.
const MIN_ROWS: usize = 128;
/// Rows of a piece of work on logits.
const PIECE_ROWS: usize = 4;

/// Extents of the head: logits are `hidden[rows, d_model] · head[vocab_size, d_model]ᵀ`. The number
/// of rows is that of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossEntropyShape {
    /// Width of the hidden rows.
    pub d_model: usize,
    /// Number of logits of a row.
    pub vocab_size: usize,
}

/// What the forward pass writes for each row.
pub struct Scores<'a> {
    /// Log-probability of the target (nats).
    pub log_prob: &'a mut [f32],
    /// Log of the sum of the exponentials of the logits.
    pub log_sum_exp: &'a mut [f32],
    /// Entropy of the predicted distribution (nats).
    pub entropy: &'a mut [f32],
}

/// The three gradients of each row that the backward pass starts from.
#[derive(Clone, Copy)]
pub struct ScoreGradients<'a> {
    /// By the log-probability of the target.
    pub d_log_prob: &'a [f32],
    /// By the log-sum-exp.
    pub d_log_sum_exp: &'a [f32],
    /// By the entropy.
    pub d_entropy: &'a [f32],
}

/// Scores of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Log-probability of the target (nats).
    pub log_prob: f32,
    /// Log of the sum of the exponentials of the logits.
    pub log_sum_exp: f32,
    /// Entropy of the predicted distribution (nats).
    pub entropy: f32,
}

/// Log-probability of each row's target, log-sum-exp and entropy.
///
/// # Panics
/// If lengths do not fit or a target is beyond the vocabulary.
pub fn cross_entropy_forward(
    pool: &Pool,
    shape: CrossEntropyShape,
    hidden: &[f32],
    head: &[f32],
    targets: &[u32],
    scores: Scores<'_>,
) {
    let operation = "cross_entropy_forward";
    shape.check(operation, hidden, head, targets);
    length(operation, "log_prob", scores.log_prob, targets.len());
    length(operation, "log_sum_exp", scores.log_sum_exp, targets.len());
    length(operation, "entropy", scores.entropy, targets.len());
    let [log_prob, log_sum_exp, entropy] =
        [scores.log_prob, scores.log_sum_exp, scores.entropy].map(Shared::new);
    let head = Head { pool, shape, hidden, head };
    let mut logits = pool.buffers().take(shape.chunk_rows(targets.len()) * shape.vocab_size);
    for rows in shape.chunks(targets.len()) {
        head.logits(rows.clone(), &mut logits);
        for_rows(
            pool,
            shape,
            rows,
            &mut logits,
            #[inline(always)]
            |row, logits| {
                let score = Softmax::of(logits).score(logits[targets[row] as usize]);
                // SAFETY: each row is in one piece.
                unsafe {
                    log_prob.part(row..row + 1)[0] = score.log_prob;
                    log_sum_exp.part(row..row + 1)[0] = score.log_sum_exp;
                    entropy.part(row..row + 1)[0] = score.entropy;
                }
            },
        );
    }
}

/// Gradients by the hidden rows (overwritten) and by the head (added), from those by the scores. The
/// logits are computed again; `log_sum_exp` and `entropy` are those of the forward pass.
///
/// # Panics
/// If lengths do not fit or a target is beyond the vocabulary.
#[allow(clippy::too_many_arguments)]
pub fn cross_entropy_backward(
    pool: &Pool,
    shape: CrossEntropyShape,
    hidden: &[f32],
    head: &[f32],
    targets: &[u32],
    log_sum_exp: &[f32],
    entropy: &[f32],
    gradients: ScoreGradients<'_>,
    d_hidden: &mut [f32],
    d_head: &mut [f32],
) {
    let operation = "cross_entropy_backward";
    shape.check(operation, hidden, head, targets);
    length(operation, "log_sum_exp", log_sum_exp, targets.len());
    length(operation, "entropy", entropy, targets.len());
    length(operation, "d_log_prob", gradients.d_log_prob, targets.len());
    length(operation, "d_log_sum_exp", gradients.d_log_sum_exp, targets.len());
    length(operation, "d_entropy", gradients.d_entropy, targets.len());
    length(operation, "d_hidden", d_hidden, hidden.len());
    length(operation, "d_head", d_head, head.len());
    let head = Head { pool, shape, hidden, head };
    head.backward(
        targets.len(),
        d_hidden,
        d_head,
        #[inline(always)]
        |row, logits| {
            let known = RowGradient {
                target: targets[row] as usize,
                log_sum_exp: log_sum_exp[row],
                entropy: entropy[row],
                d_log_prob: gradients.d_log_prob[row],
                d_log_sum_exp: gradients.d_log_sum_exp[row],
                d_entropy: gradients.d_entropy[row],
            };
            known.replace(logits);
        },
    );
}

/// Forward and backward at once, for objectives whose gradient by each log-probability is known
/// beforehand: logits are computed once. Writes `log_prob` and `d_hidden`, adds to `d_head`.
///
/// # Panics
/// If lengths do not fit or a target is beyond the vocabulary.
#[allow(clippy::too_many_arguments)]
pub fn cross_entropy_fused(
    pool: &Pool,
    shape: CrossEntropyShape,
    hidden: &[f32],
    head: &[f32],
    targets: &[u32],
    d_log_prob: &[f32],
    log_prob: &mut [f32],
    d_hidden: &mut [f32],
    d_head: &mut [f32],
) {
    let operation = "cross_entropy_fused";
    shape.check(operation, hidden, head, targets);
    length(operation, "d_log_prob", d_log_prob, targets.len());
    length(operation, "log_prob", log_prob, targets.len());
    length(operation, "d_hidden", d_hidden, hidden.len());
    length(operation, "d_head", d_head, head.len());
    let log_prob = Shared::new(log_prob);
    let head = Head { pool, shape, hidden, head };
    head.backward(
        targets.len(),
        d_hidden,
        d_head,
        #[inline(always)]
        |row, logits| {
            let target = targets[row] as usize;
            let score = Softmax::of(logits).score(logits[target]);
            // SAFETY: each row is in one piece.
            unsafe { log_prob.part(row..row + 1)[0] = score.log_prob };
            let known = RowGradient {
                target,
                log_sum_exp: score.log_sum_exp,
                entropy: score.entropy,
                d_log_prob: d_log_prob[row],
                d_log_sum_exp: 0.0,
                d_entropy: 0.0,
            };
            known.replace(logits);
        },
    );
}

/// Scores of one row of logits, with the same bits as [`cross_entropy_forward`] gives.
///
/// # Panics
/// If `target` is beyond the logits.
pub fn score_logits(logits: &[f32], target: u32) -> Score {
    ids_below("score_logits", "target", &[target], logits.len());
    Level::best().run(
        #[inline(always)]
        || Softmax::of(logits).score(logits[target as usize]),
    )
}

impl CrossEntropyShape {
    fn check(&self, operation: &str, hidden: &[f32], head: &[f32], targets: &[u32]) {
        length(operation, "hidden", hidden, targets.len() * self.d_model);
        length(operation, "head", head, self.vocab_size * self.d_model);
        ids_below(operation, "targets", targets, self.vocab_size);
    }
    /// Most rows whose logits exist at a time.
    fn chunk_rows(&self, rows: usize) -> usize {
        (LOGITS / self.vocab_size.max(1)).max(MIN_ROWS).min(rows)
    }

    fn chunks(&self, rows: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let step = self.chunk_rows(rows).max(1);
        (0..rows).step_by(step).map(move |start| start..(start + step).min(rows))
    }
}

/// Calls `body(row, logits of the row)` for all rows of a chunk.
fn for_rows(
    pool: &Pool,
    shape: CrossEntropyShape,
    rows: Range<usize>,
    logits: &mut [f32],
    body: impl Fn(usize, &mut [f32]) + Sync,
) {
    let width = shape.vocab_size;
    let logits = Shared::new(&mut logits[..rows.len() * width]);
    pool.run_ranges(rows.len(), PIECE_ROWS, |piece| {
        for row in piece {
            // SAFETY: each row is in one piece.
            let logits = unsafe { logits.part(row * width..(row + 1) * width) };
            pool.level().run(
                #[inline(always)]
                || body(rows.start + row, logits),
            );
        }
    });
}

/// The head and what it is applied to.
struct Head<'a> {
    pool: &'a Pool,
    shape: CrossEntropyShape,
    hidden: &'a [f32],
    head: &'a [f32],
}

impl Head<'_> {
    fn dims(&self, rows: usize) -> Dims {
        Dims { m: rows, n: self.shape.vocab_size, k: self.shape.d_model }
    }

    /// Writes the logits of `rows` to the front of `logits`.
    fn logits(&self, rows: Range<usize>, logits: &mut [f32]) {
        let d = self.shape.d_model;
        let hidden = Strided::rows(&self.hidden[rows.start * d..rows.end * d], d);
        let head = Right::Strided(Strided::rows(self.head, d));
        let logits = &mut logits[..rows.len() * self.shape.vocab_size];
        let dims = self.dims(rows.len());
        gemm(self.pool, self.pool.level(), dims, hidden, head, Write::Overwrite, logits);
    }

    /// Chunk by chunk: logits, their gradients in the same place by `replace`, and from these the
    /// gradients of the hidden rows and of the head. The head's sums run over ascending rows.
    fn backward(
        &self,
        rows: usize,
        d_hidden: &mut [f32],
        d_head: &mut [f32],
        replace: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        let CrossEntropyShape { d_model: d, vocab_size } = self.shape;
        let (pool, level) = (self.pool, self.pool.level());
        let mut logits = pool.buffers().take(self.shape.chunk_rows(rows) * vocab_size);
        for rows in self.shape.chunks(rows) {
            self.logits(rows.clone(), &mut logits);
            for_rows(
                pool,
                self.shape,
                rows.clone(),
                &mut logits,
                #[inline(always)]
                |row, logits| replace(row, logits),
            );
            let d_logits = &logits[..rows.len() * vocab_size];
            let at = rows.start * d..rows.end * d;
            gemm(
                pool,
                level,
                Dims { m: rows.len(), n: d, k: vocab_size },
                Strided::rows(d_logits, vocab_size),
                Right::Strided(Strided::transposed(self.head, d)),
                Write::Overwrite,
                &mut d_hidden[at.clone()],
            );
            gemm(
                pool,
                level,
                Dims { m: vocab_size, n: d, k: rows.len() },
                Strided::transposed(d_logits, vocab_size),
                Right::Strided(Strided::transposed(&self.hidden[at], d)),
                Write::Accumulate,
                d_head,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matmul_nt;
    use crate::reference;
    use crate::testing::{assert_close, assert_gradient, bits, pools, values};

    struct Case {
        shape: CrossEntropyShape,
        hidden: Vec<f32>,
        head: Vec<f32>,
        targets: Vec<u32>,
    }

    fn case(rows: usize, d_model: usize, vocab_size: usize) -> Case {
        let targets = (0..rows).map(|row| (row * 7919 % vocab_size) as u32).collect();
        Case {
            shape: CrossEntropyShape { d_model, vocab_size },
            hidden: values(1, rows * d_model).iter().map(|x| 2.0 * x).collect(),
            head: values(2, vocab_size * d_model),
            targets,
        }
    }

    fn cases() -> Vec<Case> {
        vec![case(1, 8, 5), case(37, 16, 1030), case(300, 24, 17), case(130, 5, 20_000)]
    }

    fn forward(pool: &Pool, case: &Case) -> [Vec<f32>; 3] {
        let nan = || vec![f32::NAN; case.targets.len()];
        let (mut log_prob, mut log_sum_exp, mut entropy) = (nan(), nan(), nan());
        let scores = Scores {
            log_prob: &mut log_prob,
            log_sum_exp: &mut log_sum_exp,
            entropy: &mut entropy,
        };
        cross_entropy_forward(pool, case.shape, &case.hidden, &case.head, &case.targets, scores);
        [log_prob, log_sum_exp, entropy]
    }

    fn backward(pool: &Pool, case: &Case, gradients: &[Vec<f32>; 3]) -> [Vec<f32>; 2] {
        let [_, log_sum_exp, entropy] = forward(pool, case);
        let mut d_hidden = vec![f32::NAN; case.hidden.len()];
        let mut d_head = values(9, case.head.len());
        cross_entropy_backward(
            pool,
            case.shape,
            &case.hidden,
            &case.head,
            &case.targets,
            &log_sum_exp,
            &entropy,
            ScoreGradients {
                d_log_prob: &gradients[0],
                d_log_sum_exp: &gradients[1],
                d_entropy: &gradients[2],
            },
            &mut d_hidden,
            &mut d_head,
        );
        [d_hidden, d_head]
    }

    fn gradients(case: &Case) -> [Vec<f32>; 3] {
        [4, 5, 6].map(|seed| values(seed, case.targets.len()))
    }

    #[test]
    fn forward_agrees_with_its_twin_and_is_the_same_everywhere() {
        for case in cases() {
            let nan = || vec![f32::NAN; case.targets.len()];
            let (mut log_prob, mut log_sum_exp, mut entropy) = (nan(), nan(), nan());
            reference::cross_entropy_forward(
                case.shape,
                &case.hidden,
                &case.head,
                &case.targets,
                Scores {
                    log_prob: &mut log_prob,
                    log_sum_exp: &mut log_sum_exp,
                    entropy: &mut entropy,
                },
            );
            let first = forward(&Pool::new(1), &case);
            assert_close("log_prob", &first[0], &log_prob, 1e-5);
            assert_close("log_sum_exp", &first[1], &log_sum_exp, 1e-5);
            assert_close("entropy", &first[2], &entropy, 1e-5);
            for pool in pools() {
                let found = forward(&pool, &case);
                assert_eq!(found.map(|x| bits(&x)), first.each_ref().map(|x| bits(x)), "{pool:?}");
            }
        }
    }

    #[test]
    fn backward_agrees_with_its_twin_and_is_the_same_everywhere() {
        for case in cases() {
            let gradients = gradients(&case);
            let [_, log_sum_exp, entropy] = forward(&Pool::new(1), &case);
            let mut d_hidden = vec![f32::NAN; case.hidden.len()];
            let mut d_head = values(9, case.head.len());
            reference::cross_entropy_backward(
                case.shape,
                &case.hidden,
                &case.head,
                &case.targets,
                &log_sum_exp,
                &entropy,
                ScoreGradients {
                    d_log_prob: &gradients[0],
                    d_log_sum_exp: &gradients[1],
                    d_entropy: &gradients[2],
                },
                &mut d_hidden,
                &mut d_head,
            );
            let first = backward(&Pool::new(1), &case, &gradients);
            assert_close("d_hidden", &first[0], &d_hidden, 2e-5);
            assert_close("d_head", &first[1], &d_head, 2e-5);
            for pool in pools() {
                let found = backward(&pool, &case, &gradients);
                assert_eq!(found.map(|x| bits(&x)), first.each_ref().map(|x| bits(x)), "{pool:?}");
            }
        }
    }

    #[test]
    fn gradients_are_slopes() {
        let case = case(5, 8, 11);
        let pool = Pool::new(1);
        let gradients = gradients(&case);
        let [d_hidden, mut d_head] = backward(&pool, &case, &gradients);
        d_head.iter_mut().zip(values(9, case.head.len())).for_each(|(x, old)| *x -= old);
        let loss = |hidden: &[f32], head: &[f32]| {
            let moved = Case {
                hidden: hidden.to_vec(),
                head: head.to_vec(),
                targets: case.targets.clone(),
                ..case
            };
            let scores = forward(&pool, &moved);
            scores.iter().zip(&gradients).map(|(x, g)| crate::testing::weighted_sum(x, g)).sum()
        };
        assert_gradient("d_hidden", &case.hidden, &d_hidden, |x| loss(x, &case.head));
        assert_gradient("d_head", &case.head, &d_head, |x| loss(&case.hidden, x));
    }

    #[test]
    fn fused_has_the_bits_of_forward_and_backward() {
        for case in cases() {
            let pool = Pool::new(2);
            let zeros = vec![0.0; case.targets.len()];
            let gradients = [values(4, case.targets.len()), zeros.clone(), zeros];
            let [d_hidden, d_head] = backward(&pool, &case, &gradients);
            let mut found = [vec![f32::NAN; case.targets.len()], vec![f32::NAN; case.hidden.len()]];
            let mut found_head = values(9, case.head.len());
            let [log_prob, found_hidden] = &mut found;
            cross_entropy_fused(
                &pool,
                case.shape,
                &case.hidden,
                &case.head,
                &case.targets,
                &gradients[0],
                log_prob,
                found_hidden,
                &mut found_head,
            );
            assert_eq!(bits(log_prob), bits(&forward(&pool, &case)[0]));
            assert_eq!(bits(found_hidden), bits(&d_hidden));
            assert_eq!(bits(&found_head), bits(&d_head));
        }
    }

    #[test]
    fn logits_computed_elsewhere_give_the_same_scores() {
        for case in cases() {
            let pool = Pool::new(1);
            let CrossEntropyShape { d_model: k, vocab_size: n } = case.shape;
            let [log_prob, log_sum_exp, entropy] = forward(&pool, &case);
            for (row, &target) in case.targets.iter().enumerate() {
                let mut logits = vec![0.0; n];
                let x = &case.hidden[row * k..][..k];
                matmul_nt(&pool, Dims { m: 1, n, k }, x, &case.head, Write::Overwrite, &mut logits);
                let score = score_logits(&logits, target);
                let expected = [log_prob[row], log_sum_exp[row], entropy[row]];
                let found = [score.log_prob, score.log_sum_exp, score.entropy];
                assert_eq!(bits(&found), bits(&expected), "row {row}");
            }
        }
    }

    #[test]
    fn what_is_not_finite_comes_out() {
        let mut case = case(3, 8, 40);
        case.hidden[8] = f32::NAN;
        case.hidden[16] = f32::INFINITY;
        let [log_prob, ..] = forward(&Pool::new(1), &case);
        assert!(log_prob[0].is_finite() && log_prob[1].is_nan() && log_prob[2].is_nan());
    }

    #[test]
    #[should_panic(expected = "cross_entropy_forward: targets[1] is 5, expected below 5")]
    fn a_target_beyond_the_vocabulary_is_named() {
        let mut case = case(2, 8, 5);
        case.targets[1] = 5;
        forward(&Pool::new(1), &case);
    }
}
