//! A probability that learns from the bits it was asked about.

use crate::range_coder::PROBABILITY_BITS;

const COUNT_BITS: u32 = 32 - PROBABILITY_BITS;
const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;

/// With n bits seen, a probability moves by 1 / (n + 1.5) of the way to the next one; here as multiples of 2^-16.
pub const RATES: [u16; 1 << COUNT_BITS] = {
    let mut rates = [0; 1 << COUNT_BITS];
    let mut n = 0;
    while n < rates.len() {
        rates[n] = ((1 << 17) / (2 * n + 3)) as u16;
        n += 1;
    }
    rates
};

/// The probability of 1 in the upper bits, the number of bits seen in the lower ones.
#[derive(Clone, Copy)]
pub struct Counter(pub u32);

impl Counter {
    /// Expects 1 once in so many bits, and is ready to think otherwise.
    pub const fn once_in(n: u32) -> Counter {
        Counter(((1 << PROBABILITY_BITS) / n) << COUNT_BITS)
    }

    /// In 2^-22.
    #[inline]
    pub fn probability(self) -> u32 {
        self.0 >> COUNT_BITS
    }

    #[inline]
    pub fn learn(&mut self, bit: bool) {
        let (n, now) = (self.0 & MAX_COUNT, self.probability() as i32);
        let aim = if bit { (1 << PROBABILITY_BITS) - 1 } else { 0 };
        let way = (i64::from(aim - now) * i64::from(RATES[n as usize])) >> 16;
        self.0 = ((now + way as i32) as u32) << COUNT_BITS | (n + 1).min(MAX_COUNT);
    }
}
