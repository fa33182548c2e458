//! Folding and unfolding random paths through random code is the identity.

use crate::code::Code;
use crate::fold::{Folder, Room, Used};
use crate::protocol::{action, ending, Block, Event, Limit, Position, Progress, NOWHERE};
use crate::shadow::{depth_after, ShadowStack};
use crate::source::{Path, Stop};
use crate::surprises::{read_surprise, write_surprise};
use crate::walk::Walker;

mod flow;
mod recode;

/// The numbers of `n` examples, or of many times as many from elsewhere: `make fuzz` says so by CLEW_FUZZ_FACTOR and
/// CLEW_FUZZ_SEED. A number that a test names is tried alone when that is the seed and the factor is 0.
fn seeds(n: u64) -> impl Iterator<Item = u64> {
    let number_of = |name, default| std::env::var(name).map_or(default, |value| value.parse().unwrap());
    let first = number_of("CLEW_FUZZ_SEED", 1);
    first..first + (n * number_of("CLEW_FUZZ_FACTOR", 1)).max(1)
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
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
struct Folded {
    blocks: Vec<Block>,
    targets: Vec<u32>,
    path: Vec<u32>,
    depth: usize,
    surprises: Vec<u8>,
    symbols: Vec<u8>,
    events: Vec<Event>,
    decisions: u64,
}

impl Folded {
    fn new(random: &mut Random, most: u64) -> Folded {
        Folded::with_returns(random, most, 12)
    }

    /// Through code whose returns have fewer targets than `most_of_returns`.
    fn with_returns(random: &mut Random, most: u64, most_of_returns: u64) -> Folded {
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
    fn with_walker<T>(&self, walk: impl FnOnce(&mut Walker) -> T) -> T {
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
    fn resumed(&self, from: &Walker, most: usize) -> (Vec<u32>, Option<Stop>) {
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
fn walk_all(walker: &mut Walker, most: usize) -> (Vec<u32>, Option<Stop>) {
    let mut found = Vec::new();
    while found.len() < most {
        match walker.step() {
            Ok(block) => found.push(block),
            Err(stop) => return (found, Some(stop)),
        }
    }
    (found, None)
}

#[test]
fn unfolding_what_was_folded_is_the_identity() {
    for seed in seeds(3000) {
        let folded = Folded::new(&mut Random(seed * 0x9e37_79b9 + 1), 400);
        let found = folded.with_walker(|walker| walk_all(walker, folded.path.len() + 1));
        assert_eq!(found, (folded.path, Some(Stop::End)), "seed {seed}");
    }
}

#[test]
fn a_path_goes_on_from_any_place_in_it() {
    for seed in seeds(1000) {
        let mut random = Random(seed * 0x9e37_79b9 + 3);
        let folded = Folded::new(&mut random, 400);
        let before = random.below(folded.path.len() as u64 + 1) as usize;
        let found = folded.with_walker(|walker| {
            walk_all(walker, before);
            folded.resumed(walker, folded.path.len() + 1)
        });
        assert_eq!(found, (folded.path[before..].to_vec(), Some(Stop::End)), "seed {seed}");
    }
}

#[test]
fn what_a_kill_leaves_is_a_beginning() {
    for seed in seeds(1000) {
        let mut random = Random(seed * 0x9e37_79b9 + 5);
        let mut folded = Folded::new(&mut random, 400);
        let at = random.below(folded.surprises.len() as u64 + 1) as usize;
        folded.surprises.truncate(at);
        folded.decisions = 0;
        let (found, stop) = folded.with_walker(|walker| walk_all(walker, folded.path.len() + 1));
        // What was cut off in the middle of a number, or behind an event, may not fit; but then it says so.
        if stop == Some(Stop::Cut) {
            assert!(folded.path.starts_with(&found), "seed {seed}");
        }
    }
}

#[test]
fn a_kill_in_front_of_what_tells_the_last_way_is_no_contradiction() {
    let mut n_returns = 0;
    for seed in seeds(3000) {
        let mut folded = Folded::new(&mut Random(seed * 0x9e37_79b9 + 11), 400);
        let end = folded.events.pop().unwrap().at;
        let (found, stop) = folded.with_walker(|walker| walk_all(walker, usize::MAX));
        assert_eq!((found.starts_with(&folded.path), stop), (true, Some(Stop::Cut)), "seed {seed}");
        let is_last_way = |event: &Event| event.at == end && matches!(event.action, action::ELSEWHERE | action::RESUME);
        let Some(event) = folded.events.pop_if(|event| is_last_way(event)) else {
            continue;
        };
        let is_return = folded.blocks.get(event.block as usize).is_some_and(|block| block.ending == ending::RETURN);
        n_returns += u32::from(is_return && end.depth == 0);
        let (_, stop) = folded.with_walker(|walker| walk_all(walker, usize::MAX));
        assert_eq!(stop, Some(Stop::Cut), "seed {seed}");
    }
    assert!(n_returns > 3, "{n_returns}");
}

#[test]
fn no_streams_make_a_walk_panic() {
    for seed in seeds(3000) {
        let mut random = Random(seed * 0x9e37_79b9 + 9);
        let mut folded = Folded::new(&mut random, 100);
        for _ in 0..1 + random.below(8) {
            let place = random.below(1 << 20) as usize;
            match random.below(5) {
                0 if !folded.surprises.is_empty() => {
                    let place = place % folded.surprises.len();
                    folded.surprises[place] = random.below(256) as u8;
                }
                1 if !folded.symbols.is_empty() => {
                    let place = place % folded.symbols.len();
                    folded.symbols[place] = random.below(256) as u8;
                }
                2 => {
                    let place = place % folded.events.len();
                    folded.events[place].value = random.below(1 << 32) as u32;
                    folded.events[place].action = random.below(7) as u8;
                }
                3 => {
                    let place = place % folded.blocks.len();
                    folded.blocks[place].target = random.below(1 << 32) as u32;
                    folded.blocks[place].n_targets = random.below(1 << 32) as u32;
                    folded.blocks[place].first_target = random.below(1 << 32) as u32;
                }
                _ => folded.decisions = random.below(1 << 16),
            }
        }
        folded.with_walker(|walker| walk_all(walker, 1000));
        folded.with_walker(|walker| {
            let instructions = random.below(1 << 24);
            walker.advance(&Limit { most: Progress { instructions, ..Limit::NONE.most }, ..Limit::NONE })
        });
    }
}

#[test]
fn surprises_of_any_size_are_read_as_written() {
    for decisions in [1, 2, 255, 256, 1 << 20, u64::MAX] {
        let mut room = [0; 16];
        let size = write_surprise(&mut room, decisions).unwrap();
        assert_eq!(read_surprise(&room), Some((decisions, size)));
        assert_eq!(write_surprise(&mut room[..size - 1], decisions), None);
    }
}

#[test]
fn a_return_elsewhere_closes_the_calls_above_the_one_it_belongs_to() {
    assert_eq!(depth_after(&[1, 2, 3, 2, 4], 2), 3);
    assert_eq!(depth_after(&[1, 2, 3], 9), 3);
    assert_eq!(depth_after(&[], 9), 0);
    let deep: Vec<u64> = (0..2000).collect();
    assert_eq!(depth_after(&deep, 976), 976);
    assert_eq!(depth_after(&deep, 975), 2000);
}

#[test]
fn advancing_is_stepping() {
    let (mut n_paths, mut n_long) = (0, 0);
    for seed in seeds(3000) {
        let mut random = Random(seed * 0x9e37_79b9 + 7);
        let mut folded = Folded::new(&mut random, 3000);
        for block in &mut folded.blocks {
            block.n_instructions = 1 + random.below(9) as u32;
        }
        // Mostly one that the path goes through.
        let counted = folded.path[random.below(folded.path.len() as u64) as usize];
        let hits = if random.below(2) == 0 { random.below(500) } else { u64::MAX };
        let most = Progress { instructions: random.below(20_000), blocks: random.below(20_000), hits };
        let mut limit = Limit { most, counted, ..Limit::NONE };
        if random.below(2) == 0 {
            // Mostly within what is recorded.
            limit.surprise_bytes = random.below(folded.surprises.len() as u64 + 2);
            let far = if random.below(2) == 0 { 20 } else { 5_000 };
            limit.decisions = random.below(far);
        }
        let end = |walker: &Walker| (walker.position(), walker.block(), walker.next_event());
        let stepped = folded.with_walker(|walker| (step_by_step(walker, &limit), end(walker)));
        let (found, n_steps) = folded.with_walker(|walker| {
            let found = (walker.advance(&limit), end(walker));
            (found, walker.n_steps)
        });
        assert_eq!(found, stepped, "seed {seed}");
        n_paths += 1;
        n_long += u64::from(found.0 .0.blocks > 8 * n_steps);
    }
    assert!(n_long >= n_paths / 150, "{n_long} of {n_paths} paths were mostly repetition");
}

fn step_by_step(walker: &mut Walker, limit: &Limit) -> (Progress, Option<Stop>) {
    let most = limit.most;
    let mut done = Progress::default();
    loop {
        if let Err(stop) = walker.settle() {
            return (done, Some(stop));
        }
        let next = walker.code().block_at(walker.block());
        let size = next.map_or(0, |(_, block)| u64::from(block.n_instructions));
        let is_last_hit = next.is_some_and(|(index, _)| index == limit.counted) && done.hits == most.hits;
        let here = walker.position();
        let is_there = (here.surprise_bytes, here.decisions) >= (limit.surprise_bytes, limit.decisions);
        if done.instructions + size > most.instructions || done.blocks == most.blocks || is_last_hit || is_there {
            return (done, None);
        }
        match walker.step() {
            Ok(index) => {
                done.instructions += u64::from(walker.code().block(index).unwrap().n_instructions);
                done.hits += u64::from(index == limit.counted);
            }
            Err(stop) => return (done, Some(stop)),
        }
        done.blocks += 1;
    }
}
