//! Probabilities of what comes next in contexts that are hashed: too many for a place each, so a place changes hands.
//!
//! A slot is a word: the probability of 1 (20 bits), a check of the context it belongs to (7), how many bits it has seen (5).

use crate::counter::RATES;
use crate::range_coder::PROBABILITY_BITS;

pub const N_SLOTS: usize = 1 << 18;
/// Slots that lie together, so that they are fetched from memory together.
const GROUP: usize = 4;

const FINE_BITS: u32 = 20;
const CHECK_BITS: u32 = 7;
const COUNT_BITS: u32 = 5;
const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;
const CHECK: u32 = ((1 << CHECK_BITS) - 1) << COUNT_BITS;
/// One half, after no bits.
const UNKNOWN: u32 = 1 << 31;

const _: () = assert!(FINE_BITS + CHECK_BITS + COUNT_BITS == 32);

/// Which slot a context has.
#[derive(Clone, Copy, Default)]
pub struct Slot(usize);

pub struct Slots<'m>(&'m mut [u32; N_SLOTS]);

impl<'m> Slots<'m> {
    pub fn new(words: &'m mut [u32; N_SLOTS]) -> Slots<'m> {
        words.fill(UNKNOWN);
        Slots(words)
    }

    /// The slot of a context by itself.
    #[inline]
    pub fn find(&mut self, hash: u64) -> Slot {
        let place = Self::place_of(hash);
        self.claim([place, place ^ 1], hash)
    }

    /// The slots of a context and of one of its refinements, in one group.
    #[inline]
    pub fn find_both(&mut self, hash: u64, finer: u64) -> [Slot; 2] {
        let group = Self::place_of(hash) & !(GROUP - 1);
        [self.claim([group], hash), self.claim([group + 1, group + 2, group + 3], finer)]
    }

    fn place_of(hash: u64) -> usize {
        (hash >> (64 - N_SLOTS.trailing_zeros())) as usize
    }

    /// The one of these that belongs to the context, or else the one that has seen the least, which belongs to it from now on.
    #[inline]
    fn claim<const N: usize>(&mut self, places: [usize; N], hash: u64) -> Slot {
        let check = (hash >> 8) as u32 & CHECK;
        // The count of what belongs to another is behind all that belongs to this one; no branches, they would be guessed wrongly.
        let (mut best, mut rank) = (places[0], u32::MAX);
        for place in places {
            let word = self.0[place % N_SLOTS];
            let mine = if word & CHECK == check { 0 } else { 1 + (word & MAX_COUNT) };
            (best, rank) = if mine < rank { (place, mine) } else { (best, rank) };
        }
        let word = &mut self.0[best % N_SLOTS];
        *word = if rank == 0 { *word } else { UNKNOWN | check };
        Slot(best)
    }

    /// The probability of 1 in 2^-22, and how many bits it comes from.
    #[inline]
    pub fn look(&self, slot: Slot) -> (u32, u32) {
        let word = self.0[slot.0 % N_SLOTS];
        ((word >> (32 - FINE_BITS)) << (PROBABILITY_BITS - FINE_BITS), word & MAX_COUNT)
    }

    #[inline]
    pub fn learn(&mut self, slot: Slot, bit: bool) {
        let word = &mut self.0[slot.0 % N_SLOTS];
        let (now, n) = ((*word >> (32 - FINE_BITS)) as i32, *word & MAX_COUNT);
        let aim = if bit { (1 << FINE_BITS) - 1 } else { 0 };
        let way = (i64::from(aim - now) * i64::from(RATES[n as usize])) >> 16;
        *word = ((now + way as i32) as u32) << (32 - FINE_BITS) | *word & CHECK | (n + 1).min(MAX_COUNT);
    }
}
