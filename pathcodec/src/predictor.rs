//! What comes next in a path, from what came before: a probability for every way to leave a conditional or indirect branch.
//!
//! Written once for both sides: what it asks a coder to code, an encoder writes and a decoder finds. All numbers are whole,
//! so both sides know the same on every machine.
//!
//! - **A conditional branch** is a bit: whether it was left as expected (0) or not (1). Mostly the earlier stretch that is
//!   like the latest one (`history`) says which, and if it was nearly always right so far for this branch and a stretch so
//!   much alike, its counter's probability is taken as it is; so is that of a branch which nearly never did anything else.
//!   Only what is left is mixed (`mixer`): from the branch's own statistics, those behind the last 6, 16 and 32 items,
//!   those behind its own last 16 ways, and what the earlier stretch says.
//! - **A symbol** takes nothing if its branch has one target. Otherwise a bit says whether it is the candidate (0): what the
//!   earlier stretch says, or the branch's last one. If it is not, its bits follow, the highest first, as many as the
//!   largest symbol has; their contexts hold the bits before them.

use crate::counter::Counter;
use crate::history::{History, Item, N_ITEMS, N_LIKENESSES, N_STRETCHES};
use crate::logistic::odds_of;
use crate::mixer::{Mixer, Opinions};
use crate::range_coder::{BitCoder, PROBABILITY_BITS};
use crate::slots::{Slot, Slots, N_SLOTS};
use crate::source::Place;

/// Branches with statistics of their own; more of them share.
const N_BRANCHES: usize = 1 << 14;
const BRANCH_WORDS: usize = 2;
/// How often the earlier stretch was wrong, by branch and likeness.
const N_TRUSTS: usize = 1 << 15;

/// Memory that a predictor takes.
pub const MEMORY_WORDS: usize = N_SLOTS + N_ITEMS + N_STRETCHES + N_BRANCHES * BRANCH_WORDS + N_TRUSTS;

/// What is this unlikely is not mixed.
const RARE_FOR_STRETCH: u32 = 1 << (PROBABILITY_BITS - 9);
const RARE_FOR_BRANCH: u32 = 1 << (PROBABILITY_BITS - 10);

/// Odds of 1, of e to 1, that are always there: for what is likely by itself.
const CONSTANT: i32 = 256;
/// How much of its odds a slot says after so many bits, in 2^-8.
const CONFIDENCE: [i32; 8] = [0, 160, 208, 232, 244, 256, 256, 256];

const SPREAD: u64 = 0xff51_afd7_ed55_8ccd;
const STIR: u64 = 0x9fb2_1c65_1e98_df25;

/// What the mixer is asked for.
#[derive(Clone, Copy)]
enum Kind {
    Conditional,
    Candidate,
    SymbolBit,
}

/// What is known about a bit before it is.
struct Question {
    kind: Kind,
    /// What of the context the history does not hold.
    context: u64,
    /// The branch's own latest ways.
    ways: u64,
    /// Odds of the branch's own statistics.
    odds: i32,
    /// What the earlier stretch says, and how often it was wrong (in 2^-22).
    foretold: Option<(bool, u32)>,
}

pub struct Predictor<'m> {
    slots: Slots<'m>,
    history: History<'m>,
    /// For each branch a counter of surprises, and its latest ways, one bit each, or its last symbol.
    branches: &'m mut [u32; N_BRANCHES * BRANCH_WORDS],
    trusts: &'m mut [u32; N_TRUSTS],
    /// How often the earlier stretch was wrong, by likeness.
    likenesses: [Counter; N_LIKENESSES],
    mixer: Mixer,
}

fn take<'m, const N: usize>(words: &mut &'m mut [u32]) -> Option<&'m mut [u32; N]> {
    let (taken, rest) = core::mem::take(words).split_first_chunk_mut()?;
    *words = rest;
    Some(taken)
}

fn stir(hash: u64) -> u64 {
    (hash ^ hash >> 29).wrapping_mul(STIR)
}

impl<'m> Predictor<'m> {
    /// That knows nothing yet. `None`: `words` are fewer than `MEMORY_WORDS`; what they are does not matter.
    pub fn new(mut words: &'m mut [u32]) -> Option<Predictor<'m>> {
        let slots = Slots::new(take(&mut words)?);
        let history = History::new(take(&mut words)?, take(&mut words)?);
        let branches: &mut [u32; N_BRANCHES * BRANCH_WORDS] = take(&mut words)?;
        let trusts: &mut [u32; N_TRUSTS] = take(&mut words)?;
        for branch in branches.chunks_exact_mut(BRANCH_WORDS) {
            branch.copy_from_slice(&[Counter::once_in(32).0, 0]);
        }
        trusts.fill(Counter::once_in(16).0);
        let likenesses = [Counter::once_in(16); N_LIKENESSES];
        Some(Predictor { slots, history, branches, trusts, likenesses, mixer: Mixer::default() })
    }

    /// Codes whether the conditional branch at `place` is left another way than expected.
    pub fn decide(&mut self, coder: &mut impl BitCoder, place: Place, is_surprise: bool) -> bool {
        let branch = place.index as usize % N_BRANCHES * BRANCH_WORDS;
        let (mut own, ways) = (Counter(self.branches[branch]), self.branches[branch + 1]);
        let is_expected_taken = place.block.is_taken != 0;
        let foretold = self.history.way_of(place.index).map(|way| (way != 0) != is_expected_taken);
        let trust = self.trust_in(place.index);
        let wrong = Counter(self.trusts[trust]).probability();
        let bit = match foretold {
            Some(foretold) if wrong < RARE_FOR_STRETCH => coder.code(is_surprise ^ foretold, wrong) ^ foretold,
            _ if own.probability() < RARE_FOR_BRANCH => coder.code(is_surprise, own.probability()),
            _ => {
                let question = Question {
                    kind: Kind::Conditional,
                    context: u64::from(place.index).wrapping_add(1).wrapping_mul(SPREAD),
                    ways: u64::from(ways & 0xffff),
                    odds: odds_of(own.probability()),
                    foretold: foretold.map(|foretold| (foretold, wrong)),
                };
                self.ask(coder, &question, is_surprise)
            }
        };
        if let Some(foretold) = foretold {
            self.judge(trust, bit != foretold);
        }
        own.learn(bit);
        let is_taken = bit != is_expected_taken;
        self.branches[branch] = own.0;
        self.branches[branch + 1] = ways << 1 | u32::from(is_taken);
        self.history.push(Item::new(place.index, u8::from(is_taken)));
        bit
    }

    /// Codes the symbol of the indirect branch at `place`.
    pub fn choose(&mut self, coder: &mut impl BitCoder, place: Place, symbol: u16) -> u16 {
        let chosen = match place.block.n_targets {
            0 | 1 => 0,
            n_targets => self.choose_of(coder, place.index, n_targets, symbol),
        };
        self.history.push(Item::new(place.index, chosen as u8));
        chosen
    }

    fn choose_of(&mut self, coder: &mut impl BitCoder, index: u32, n_targets: u32, symbol: u16) -> u16 {
        let branch = index as usize % N_BRANCHES * BRANCH_WORDS + 1;
        let last = self.branches[branch];
        let foretold = self.history.way_of(index);
        let candidate = foretold.map_or(last as u16, u16::from);
        let trust = self.trust_in(index);
        let wrong = Counter(self.trusts[trust]).probability();
        let context = u64::from(index).wrapping_add(1).wrapping_mul(SPREAD);
        let is_other = if foretold.is_some() && wrong < RARE_FOR_STRETCH {
            coder.code(symbol != candidate, wrong)
        } else {
            let question = Question {
                kind: Kind::Candidate,
                context: context ^ (u64::from(candidate) + 2).wrapping_mul(STIR),
                ways: u64::from(last),
                odds: 0,
                foretold: foretold.map(|_| (false, wrong)),
            };
            self.ask(coder, &question, symbol != candidate)
        };
        if foretold.is_some() {
            self.judge(trust, is_other);
        }
        let chosen = if is_other { self.spell(coder, context, last, n_targets, symbol) } else { candidate };
        self.branches[branch] = u32::from(chosen);
        chosen
    }

    /// Codes a symbol bit by bit.
    fn spell(&mut self, coder: &mut impl BitCoder, context: u64, last: u32, n_targets: u32, symbol: u16) -> u16 {
        let n_bits = (n_targets - 1).checked_ilog2().map_or(0, |log| log + 1).min(u16::BITS);
        let mut bits = 1u32;
        for place in (0..n_bits).rev() {
            let question = Question {
                kind: Kind::SymbolBit,
                context: context ^ (u64::from(bits) << 16).wrapping_mul(STIR),
                ways: u64::from(last),
                odds: 0,
                foretold: None,
            };
            bits = bits << 1 | u32::from(self.ask(coder, &question, symbol >> place & 1 != 0));
        }
        (bits ^ 1 << n_bits) as u16
    }

    /// Codes a bit by what all contexts together say.
    fn ask(&mut self, coder: &mut impl BitCoder, question: &Question, bit: bool) -> bool {
        let [few, more, most] = self.history.hashes().map(|hash| stir(hash ^ question.context));
        let own = stir(question.context ^ (question.ways + 1).wrapping_mul(SPREAD).rotate_left(32));
        let [more, most] = self.slots.find_both(more, most);
        let slots: [Slot; 4] = [self.slots.find(few), more, most, self.slots.find(own)];
        let mut opinions: Opinions = [0; 8];
        let mut n_known = 0;
        for (opinion, slot) in opinions.iter_mut().zip(slots) {
            let (probability, n) = self.slots.look(slot);
            *opinion = (odds_of(probability) * CONFIDENCE[n.min(7) as usize]) >> 8;
            n_known += usize::from(n > 0);
        }
        opinions[4] = question.odds;
        opinions[5] = CONSTANT;
        let mut likeness = 0;
        if let Some((foretold, wrong)) = question.foretold {
            likeness = self.history.likeness();
            let odds = [wrong, self.likenesses[likeness].probability()].map(odds_of);
            let sign = if foretold { -1 } else { 1 };
            (opinions[6], opinions[7]) = (sign * odds[0], sign * odds[1]);
        }
        // 4 is the least likeness of a stretch.
        let alike = (likeness.max(3) - 3).min(7);
        let set = match question.kind {
            Kind::Conditional => alike * 5 + n_known,
            Kind::Candidate => 40 + alike * 5 + n_known,
            Kind::SymbolBit => 80 + n_known,
        };
        let probability = self.mixer.mix(&opinions, set);
        let bit = coder.code(bit, probability);
        self.mixer.learn(&opinions, set, probability, bit);
        for slot in slots {
            self.slots.learn(slot, bit);
        }
        bit
    }

    fn trust_in(&self, branch: u32) -> usize {
        let hash = (branch as usize).wrapping_mul(0x9e37_79b1) >> 8;
        (hash ^ (self.history.likeness() * 0x1357)) % N_TRUSTS
    }

    /// What the earlier stretch said was wrong, or not.
    fn judge(&mut self, trust: usize, is_wrong: bool) {
        let mut counter = Counter(self.trusts[trust]);
        counter.learn(is_wrong);
        self.trusts[trust] = counter.0;
        self.likenesses[self.history.likeness()].learn(is_wrong);
    }
}
