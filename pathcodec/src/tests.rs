//! Folding and unfolding random paths through random code is the identity.

use crate::code::Code;
use crate::protocol::{action, ending, Block, Event, Limit, Position, Progress};
use crate::shadow::{depth_after, ShadowStack};
use crate::source::{Path, Stop};
use crate::surprises::{read_surprise, write_surprise};
use crate::walk::Walker;

mod flow;
mod random_paths;
mod recode;

use random_paths::{seeds, walk_all, Folded, Random};

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
