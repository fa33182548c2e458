//! Several opinions made one: weighed by how right each was before.

use crate::logistic::probability_of;
use crate::range_coder::PROBABILITY_BITS;

/// Opinions, as odds.
pub const N_OPINIONS: usize = 8;
pub type Opinions = [i32; N_OPINIONS];

/// Situations that have weights of their own.
pub const N_SETS: usize = 128;

/// Weights are multiples of 2^-16.
const FIRST: i32 = 5 << 12;
const MOST: i32 = 1 << 20;

pub struct Mixer {
    weights: [Opinions; N_SETS],
}

impl Default for Mixer {
    fn default() -> Mixer {
        Mixer { weights: [[FIRST; N_OPINIONS]; N_SETS] }
    }
}

impl Mixer {
    /// The probability of 1 in 2^-22.
    #[inline]
    pub fn mix(&self, opinions: &Opinions, set: usize) -> u32 {
        let weights = &self.weights[set % N_SETS];
        let sum: i64 = opinions.iter().zip(weights).map(|(odds, weight)| i64::from(*odds) * i64::from(*weight)).sum();
        // At most 8 * 2^12 * 2^20 / 2^16.
        probability_of((sum >> 16) as i32)
    }

    /// What was thought to have `probability` turned out.
    #[inline]
    pub fn learn(&mut self, opinions: &Opinions, set: usize, probability: u32, bit: bool) {
        let right = i32::from(bit) << PROBABILITY_BITS;
        let error = (right - probability as i32) >> (PROBABILITY_BITS - 16);
        for (weight, odds) in self.weights[set % N_SETS].iter_mut().zip(opinions) {
            // At most 2^12 * 2^16.
            *weight = (*weight + ((odds * error + (1 << 16)) >> 17)).clamp(-MOST, MOST);
        }
    }
}
