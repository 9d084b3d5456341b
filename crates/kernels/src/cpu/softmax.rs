//! Sums over a row of logits, and the gradients that follow from them.

use crate::cpu::lanes::{LANES, larger, tree_max, tree_sum};
use crate::cpu::math::exp;
use crate::cross_entropy::Score;

/// Logits that are summed against one maximum. Part of the order of the sum.
const BLOCK: usize = 1024;

/// Sums over a row of logits z, relative to their maximum m.
pub(crate) struct Softmax {
    max: f32,
    /// Sum of exp(z - m).
    sum: f32,
    /// Sum of exp(z - m) (z - m).
    weighted: f32,
}

impl Softmax {
    /// Block by block, each against its own maximum, and rescaled (Milakov and Gimelshein 2018).
    #[inline(always)]
    pub(crate) fn of(logits: &[f32]) -> Softmax {
        let mut blocks = logits.chunks(BLOCK);
        let mut softmax = Softmax::of_block(blocks.next().unwrap_or(&[]));
        for block in blocks {
            softmax = softmax.join(&Softmax::of_block(block));
        }
        softmax
    }

    #[inline(always)]
    fn of_block(block: &[f32]) -> Softmax {
        let (whole, rest) = block.as_chunks::<LANES>();
        let mut maxima = [f32::NEG_INFINITY; LANES];
        for z in whole {
            for i in 0..LANES {
                maxima[i] = larger(maxima[i], z[i]);
            }
        }
        for (max, &z) in maxima.iter_mut().zip(rest) {
            *max = larger(*max, z);
        }
        let max = tree_max(maxima);
        let (mut sums, mut weighted) = ([0.0f32; LANES], [0.0f32; LANES]);
        for z in whole {
            for i in 0..LANES {
                let power = exp(z[i] - max);
                sums[i] += power;
                weighted[i] = power.mul_add(z[i] - max, weighted[i]);
            }
        }
        for ((sum, weighted), &z) in sums.iter_mut().zip(&mut weighted).zip(rest) {
            let power = exp(z - max);
            *sum += power;
            *weighted = power.mul_add(z - max, *weighted);
        }
        Softmax { max, sum: tree_sum(sums), weighted: tree_sum(weighted) }
    }

    /// The sums over both.
    #[inline(always)]
    fn join(&self, other: &Softmax) -> Softmax {
        let max = larger(self.max, other.max);
        let (a, b) = (self.max - max, other.max - max);
        let (scale_a, scale_b) = (exp(a), exp(b));
        Softmax {
            max,
            sum: self.sum * scale_a + other.sum * scale_b,
            weighted: (self.weighted + a * self.sum) * scale_a
                + (other.weighted + b * other.sum) * scale_b,
        }
    }

    /// The scores of a row whose target has this logit.
    #[inline(always)]
    pub(crate) fn score(&self, target_logit: f32) -> Score {
        let log_sum = self.sum.ln();
        let log_sum_exp = self.max + log_sum;
        Score {
            log_prob: target_logit - log_sum_exp,
            log_sum_exp,
            entropy: log_sum - self.weighted / self.sum,
        }
    }
}

/// What is known of a row when its logits' gradients are computed.
pub(crate) struct RowGradient {
    pub(crate) target: usize,
    pub(crate) log_sum_exp: f32,
    pub(crate) entropy: f32,
    pub(crate) d_log_prob: f32,
    pub(crate) d_log_sum_exp: f32,
    pub(crate) d_entropy: f32,
}

impl RowGradient {
    /// Replaces logits by their gradients. With p = exp(z - lse) and H the entropy, that of logit j is
    /// p_j (d_lse - d_lp - d_H (ln p_j + H)), and d_lp more at the target.
    #[inline(always)]
    pub(crate) fn replace(&self, logits: &mut [f32]) {
        let shared = self.d_log_sum_exp - self.d_log_prob;
        if self.d_entropy == 0.0 {
            for z in logits.iter_mut() {
                *z = exp(*z - self.log_sum_exp) * shared;
            }
        } else {
            for z in logits.iter_mut() {
                let log_p = *z - self.log_sum_exp;
                *z = exp(log_p) * (shared - self.d_entropy * (log_p + self.entropy));
            }
        }
        logits[self.target] += self.d_log_prob;
    }
}
