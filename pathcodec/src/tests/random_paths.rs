//! Random paths through random code, folded.

use crate::code::Code;
use crate::fold::{Folder, Room, Used};
use crate::protocol::{action, ending, Block, Event, Position, NOWHERE};
use crate::shadow::ShadowStack;
use crate::source::{Path, Stop};
use crate::walk::Walker;

/// The numbers of `n` examples, or of many times as many from elsewhere: `make fuzz` says so by CLEW_FUZZ_FACTOR and
/// CLEW_FUZZ_SEED. A number that a test names is tried alone when that is the seed and the factor is 0.
pub(super) fn seeds(n: u64) -> impl Iterator<Item = u64> {
    let number_of = |name, default| std::env::var(name).map_or(default, |value| value.parse().unwrap());
    let first = number_of("CLEW_FUZZ_SEED", 1);
    first..first + (n * number_of("CLEW_FUZZ_FACTOR", 1)).max(1)
}

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }
}

/// Returns have fewer targets than `most_of_returns`.
fn make_code(random: &mut Random, most_of_returns: u64) -> (Vec<Block>, Vec<u32>) {
    let n = 1 + random.below(12) as u32;
    let mut targets = Vec::new();
    let blocks = (0..n)
        .map(|index| {
            let any = |random: &mut Random| random.below(u64::from(n)) as u32;
            let mut ending = random.below(9) as u8;
            if ending == ending::JUMP && index + 1 == n {
                ending = ending::STOP;
            }
            let target = match ending {
                ending::JUMP => index + 1 + random.below(u64::from(n - index - 1)) as u32,
                ending::BACK_JUMP => random.below(u64::from(index) + 1) as u32,
                _ => any(random),
            };
            let first_target = targets.len() as u32;
            let n_targets = match ending {
                ending::INDIRECT_CALL | ending::INDIRECT_JUMP => random.below(4),
                ending::RETURN if most_of_returns > 0 => random.below(most_of_returns),
                _ => 0,
            };
            for _ in 0..n_targets {
                targets.push(any(random));
            }
            Block {
                pc: 0x1000 + 16 * u64::from(index),
                end_pc: 0x1010 + 16 * u64::from(index),
                target,
                next: if index + 1 < n { index + 1 } else { NOWHERE },
                first_target,
                n_targets: n_targets as u32,
                n_instructions: 1,
                ending,
                is_taken: random.below(2) as u8,
                reserved: [0; 10],
            }
        })
        .collect();
    (blocks, targets)
}

/// Where a thread goes from `block`; now and then where the block does not lead.
fn choose_next(
    random: &mut Random,
    blocks: &[Block],
    targets: &[u32],
    stack: &mut Vec<u32>,
    block: u32,
    is_even: bool,
) -> u32 {
    let at = blocks[block as usize];
    let any = random.below(blocks.len() as u64) as u32;
    if random.below(if is_even { 500 } else { 20 }) == 0 {
        return any;
    }
    let next = match at.ending {
        ending::FALL_THROUGH => at.next,
        ending::JUMP | ending::BACK_JUMP => at.target,
        ending::CONDITIONAL if random.below(if is_even { 300 } else { 8 }) == 0 => {
            [at.target, at.next][random.below(2) as usize]
        }
        ending::CONDITIONAL => {
            if at.is_taken != 0 {
                at.target
            } else {
                at.next
            }
        }
        ending::CALL => {
            stack.push(at.next);
            at.target
        }
        ending::INDIRECT_CALL | ending::INDIRECT_JUMP => {
            if at.ending == ending::INDIRECT_CALL {
                stack.push(at.next);
            }
            match at.n_targets {
                0 => any,
                n => targets[(u64::from(at.first_target) + random.below(u64::from(n))) as usize],
            }
        }
        ending::RETURN => {
            let matching = stack.pop().unwrap_or(any);
            match at.n_targets {
                0 => matching,
                n if random.below(2) == 0 => {
                    targets[(u64::from(at.first_target) + random.below(u64::from(n))) as usize]
                }
                _ => matching,
            }
        }
        _ => any,
    };
    if next == NOWHERE {
        any
    } else {
        next
    }
}

const EMPTY: Event = Event {
    at: Position { surprise_bytes: 0, decisions: 0, symbol_bytes: 0, depth: 0 },
    block: 0,
    subject: 0,
    value: 0,
    action: action::NOTE,
    reserved: [0; 3],
};

/// A random path through random code, and its streams.
pub(super) struct Folded {
    pub(super) blocks: Vec<Block>,
    pub(super) targets: Vec<u32>,
    pub(super) path: Vec<u32>,
    pub(super) depth: usize,
    pub(super) surprises: Vec<u8>,
    pub(super) symbols: Vec<u8>,
    pub(super) events: Vec<Event>,
    pub(super) decisions: u64,
}

impl Folded {
    pub(super) fn new(random: &mut Random, most: u64) -> Folded {
        Folded::with_returns(random, most, 12)
    }

    /// Through code whose returns have fewer targets than `most_of_returns`.
    pub(super) fn with_returns(random: &mut Random, most: u64, most_of_returns: u64) -> Folded {
        let (blocks, targets) = make_code(random, most_of_returns);
        let mut calls = Vec::new();
        let mut path = vec![random.below(blocks.len() as u64) as u32];
        // Hardly anything goes elsewhere: long stretches repeat.
        let is_even = random.below(2) == 0;
        // Of some paths turn after turn makes the same choices, so that what is recorded of them repeats.
        let (turn, seed) = (1 + random.below(60), 1 + random.below(1000));
        let is_turning = random.below(3) == 0;
        let mut chooser = Random(seed);
        for step in 0..random.below(most) {
            let last = path[path.len() - 1];
            if step % turn == 0 {
                chooser = Random(seed);
            }
            let chooser = if is_turning { &mut chooser } else { &mut *random };
            path.push(choose_next(chooser, &blocks, &targets, &mut calls, last, is_even));
        }
        let (mut surprises, mut symbols) = (vec![0; 9 * path.len()], vec![0; 3 * path.len()]);
        let mut events = vec![EMPTY; 2 * path.len() + 2];
        let depth = 1 + random.below(20) as usize;
        let (mut changed, mut addresses, mut numbers) = (blocks.clone(), vec![0; depth], vec![0; depth]);
        let room = Room { surprises: &mut surprises, symbols: &mut symbols, events: &mut events };
        let code = Code::new(&mut changed, &targets).unwrap();
        let mut folder = Folder::new(code, room, ShadowStack::new(&mut addresses, &mut numbers), path[0]);
        for block in &path {
            if random.below(if is_even || is_turning { 1000 } else { 30 }) == 0 {
                let subject = random.below(blocks.len() as u64) as u32;
                folder.expect(*block, subject, random.below(2) == 0).unwrap();
            }
            folder.push(*block).unwrap();
        }
        let Used { surprise_bytes, symbol_bytes, events: n_events, decisions } = folder.end().unwrap();
        surprises.truncate(surprise_bytes);
        symbols.truncate(symbol_bytes);
        events.truncate(n_events);
        Folded { blocks, targets, path, depth, surprises, symbols, events, decisions }
    }

    /// Lets `walk` have a walker at the start.
    pub(super) fn with_walker<T>(&self, walk: impl FnOnce(&mut Walker) -> T) -> T {
        let (mut blocks, mut addresses, mut numbers) = (self.blocks.clone(), vec![0; self.depth], vec![0; self.depth]);
        let path = Path {
            start: Position::default(),
            surprises: &self.surprises,
            symbols: &self.symbols,
            events: &self.events,
            decisions: self.decisions,
        };
        let code = Code::new(&mut blocks, &self.targets).unwrap();
        walk(&mut Walker::new(code, path, ShadowStack::new(&mut addresses, &mut numbers), self.path[0]))
    }

    /// What a walker that has come to `from` finds if another one goes on in its place.
    pub(super) fn resumed(&self, from: &Walker, most: usize) -> (Vec<u32>, Option<Stop>) {
        let at = from.position();
        let (mut blocks, mut addresses, mut numbers) =
            (from.code().blocks().to_vec(), vec![0; self.depth], vec![0; self.depth]);
        let (open_addresses, open_numbers) = from.stack().open();
        addresses[..open_addresses.len()].copy_from_slice(open_addresses);
        numbers[..open_numbers.len()].copy_from_slice(open_numbers);
        let stack = ShadowStack::restore(&mut addresses, &mut numbers, open_numbers.len(), from.stack().forgotten());
        let path = Path {
            start: at,
            surprises: &self.surprises[at.surprise_bytes as usize..],
            symbols: &self.symbols[at.symbol_bytes as usize..],
            events: &self.events[from.next_event()..],
            decisions: self.decisions,
        };
        let code = Code::new(&mut blocks, &self.targets).unwrap();
        walk_all(&mut Walker::new(code, path, stack, from.block()), most)
    }
}

/// The blocks that follow, and why there are no more; at most so many.
pub(super) fn walk_all(walker: &mut Walker, most: usize) -> (Vec<u32>, Option<Stop>) {
    let mut found = Vec::new();
    while found.len() < most {
        match walker.step() {
            Ok(block) => found.push(block),
            Err(stop) => return (found, Some(stop)),
        }
    }
    (found, None)
}
