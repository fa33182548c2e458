//! Probabilities as their logarithmic odds and back, in whole numbers: the same on every machine.

use crate::range_coder::PROBABILITY_BITS;

/// Odds are in 2^-8 of a natural logarithm, from -LIMIT to LIMIT.
pub const LIMIT: i32 = 3072;

/// Probabilities are kept of every fourth only, so that they stay in the processor's nearest cache.
const STEP_BITS: u32 = 2;
const HALF: usize = LIMIT as usize >> STEP_BITS;
const N_STEPS: usize = 2 * HALF + 1;
/// Probabilities that `odds_of` tells apart, a power of two.
const FINE_BITS: u32 = 12;

/// exp(-2^-6) as a multiple of 2^-62.
const STEP: u64 = 4_540_188_453_729_421_604;

/// The probabilities of all odds, the lowest first.
static PROBABILITIES: [u32; N_STEPS] = make_probabilities();
static ODDS: [i16; 1 << FINE_BITS] = make_odds();

const fn make_probabilities() -> [u32; N_STEPS] {
    let mut table = [0; N_STEPS];
    let one = 1u128 << 62;
    let mut power = one; // exp(-odds)
    let mut odds = 0;
    while odds <= HALF {
        let p = ((one << PROBABILITY_BITS) / (one + power)) as u32;
        table[HALF + odds] = p;
        table[HALF - odds] = (1 << PROBABILITY_BITS) - p;
        power = (power * STEP as u128) >> 62;
        odds += 1;
    }
    table
}

const fn make_odds() -> [i16; 1 << FINE_BITS] {
    let mut table = [0; 1 << FINE_BITS];
    let (mut index, mut step) = (0, 0);
    while index < table.len() {
        // The middle of the interval.
        let p = ((2 * index + 1) as u32) << (PROBABILITY_BITS - FINE_BITS - 1);
        while step + 2 < N_STEPS && PROBABILITIES[step + 1] < p {
            step += 1;
        }
        // In between, as if it were a straight line.
        let (low, high) = (PROBABILITIES[step], PROBABILITIES[step + 1]);
        let part = if p > low { ((p - low) << STEP_BITS) / (high - low) } else { 0 };
        table[index] = ((step << STEP_BITS) as i32 + part as i32 - LIMIT) as i16;
        index += 1;
    }
    table
}

/// The odds of a probability (in 2^-22).
#[inline]
pub fn odds_of(probability: u32) -> i32 {
    let index = (probability >> (PROBABILITY_BITS - FINE_BITS)) as usize;
    i32::from(ODDS[index & (ODDS.len() - 1)])
}

/// The probability (in 2^-22) of these odds.
#[inline]
pub fn probability_of(odds: i32) -> u32 {
    let index = (odds.clamp(-LIMIT, LIMIT) + LIMIT + (1 << STEP_BITS >> 1)) as usize >> STEP_BITS;
    PROBABILITIES.get(index).copied().unwrap_or(0)
}
