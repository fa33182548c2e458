//! What is read of a path as events is what the thread did, however little of it is known at a time.

use super::*;
use crate::accesses::Accesses;
use crate::flow::{read_flow, Details, Progress, Question};
use crate::protocol::{action, flow_kind, gate, BegunBlock, BlockDetail, FlowEvent, ToldEvent};

const ROW: FlowEvent = FlowEvent {
    sequence: 0,
    address: 0,
    target: 0,
    time: 0,
    thread: 0,
    depth: 0,
    size: 0,
    n_instructions: 0,
    kind: 0,
    access: 0,
};
const NOT_BEGUN: BegunBlock = BegunBlock { address: 0, end: 0, n_instructions: 0, depth: 0 };

/// Blocks of four instructions at 0, 3, 4 and 9 of their 16 bytes; some go on, some are not wanted, some have gates.
fn describe(random: &mut Random, blocks: &[Block]) -> Vec<BlockDetail> {
    let has_gates = random.below(2) != 0;
    let mut describe = |block: &Block| BlockDetail {
        branch_pc: block.pc + 9,
        first_start: 0,
        is_wanted: u8::from(random.below(8) != 0),
        goes_on: u8::from(block.ending == ending::FALL_THROUGH && random.below(2) == 0),
        // The other numbers are no gates: half of all programs have none.
        gate: if has_gates { random.below(40) as u8 } else { gate::NONE },
        reserved: [0; 1],
    };
    blocks.iter().map(&mut describe).collect()
}

const STARTS: [u16; 4] = [0, 3, 4, 9];

/// Kind, address, target, size and instructions of each event of a path, and calls open then as a plain count has it.
type Told = (u8, u64, u64, u32, u16);

fn expect(folded: &Folded, details: &[BlockDetail], kinds: u32) -> Vec<Told> {
    let mut told = Vec::new();
    let mut begun: Option<(u64, u64, u16)> = None;
    let mut is_open = true;
    for (at, number) in folded.path.iter().enumerate() {
        let (block, detail) = (folded.blocks[*number as usize], details[*number as usize]);
        is_open = (is_open && detail.gate != gate::CLOSES) || detail.gate == gate::OPENS;
        let is_wanted = is_open && detail.is_wanted != 0;
        let next = folded.path.get(at + 1).map_or(0, |next| folded.blocks[*next as usize].pc);
        let end = |begun: (u64, u64, u16), next| (flow_kind::BLOCK, begun.0, next, (begun.1 - begun.0) as u32, begun.2);
        if let Some(left) = begun.take_if(|begun| begun.1 != block.pc || !is_wanted) {
            told.push(end(left, left.1));
        }
        if !is_wanted {
            continue;
        }
        for (index, start) in STARTS.iter().enumerate() {
            let behind = STARTS.get(index + 1).map_or(16, |start| u32::from(*start));
            let target = if index == 3 { next } else { block.pc + u64::from(behind) };
            told.push((flow_kind::EXEC, block.pc + u64::from(*start), target, behind - u32::from(*start), 1));
        }
        let (first, _, n) = begun.take().unwrap_or((block.pc, 0, 0));
        begun = Some((first, block.end_pc, n + 4));
        if detail.goes_on != 0 {
            continue;
        }
        told.push(end(begun.take().unwrap(), next));
        match block.ending {
            ending::CALL | ending::INDIRECT_CALL => told.push((flow_kind::CALL, block.pc + 9, next, 7, 1)),
            ending::RETURN => told.push((flow_kind::RET, block.pc + 9, next, 7, 1)),
            _ => {}
        }
    }
    if let Some(left) = begun {
        told.push((flow_kind::BLOCK, left.0, left.1, (left.1 - left.0) as u32, left.2));
    }
    told.retain(|one| kinds >> one.0 & 1 != 0);
    told
}

/// Reads all events, as much at a time as there is room for, or is known; and how often there was no more to know.
fn read_all(folded: &Folded, random: &mut Random, details: &[BlockDetail], kinds: u32) -> (Vec<Told>, Stop, usize) {
    let mut progress =
        Progress { begun: NOT_BEGUN, sequence: 0, time: 0, is_open: true, accesses: Accesses::default() };
    let mut rows = vec![ROW; 7 + random.below(30) as usize];
    let times = vec![0; folded.events.len()];
    let (mut found, mut n_stops) = (Vec::new(), 0);
    let all = (folded.surprises.len() as u64, folded.decisions);
    let stop = folded.with_walker(|walker| loop {
        let known = match random.below(3) {
            0 => (random.below(all.0 + 1), random.below(50)).min(all),
            _ => all,
        };
        let details = Details { blocks: details, starts: &STARTS, times: &times, told: &[] };
        let (n, stop) =
            read_flow::<_, false>(walker, details, Question { thread: 7, kinds, known }, &mut progress, &mut rows);
        assert!(rows[..n].iter().zip(found.len()..).all(|(row, at)| (row.thread, row.sequence) == (7, at as u64)));
        found.extend(rows[..n].iter().map(|row| (row.kind, row.address, row.target, row.size, row.n_instructions)));
        match stop {
            None => {}
            Some(Stop::Cut) if known < all => n_stops += 1,
            Some(stop) => break stop,
        }
    });
    (found, stop, n_stops)
}

/// Where a thread went elsewhere than a block leads, its rows tell where that would have led.
fn assert_like(found: &[Told], expected: &[Told], seed: u64) -> usize {
    for (found, expected) in found.iter().zip(expected) {
        let without_target = |told: &Told| (told.0, told.1, told.3, told.4);
        assert_eq!(without_target(found), without_target(expected), "seed {seed}");
    }
    found.iter().zip(expected).filter(|(found, expected)| found != expected).count()
}

#[test]
fn events_are_what_the_thread_did() {
    let (mut n_rows, mut n_elsewhere) = (0, 0);
    for seed in seeds(3000) {
        let mut random = Random(seed * 0x9e37_79b9 + 21);
        let mut folded = Folded::new(&mut random, 400);
        folded.blocks.iter_mut().for_each(|block| block.n_instructions = 4);
        let details = describe(&mut random, &folded.blocks);
        let kinds = random.below(16) as u32;
        let expected = expect(&folded, &details, kinds);
        let (found, stop, _) = read_all(&folded, &mut random, &details, kinds);
        assert_eq!((stop, found.len()), (Stop::End, expected.len()), "seed {seed}");
        n_elsewhere += assert_like(&found, &expected, seed);
        n_rows += found.len();
    }
    assert!(n_rows > 100_000 && n_elsewhere * 10 < n_rows, "{n_rows} {n_elsewhere}");
}

#[test]
fn what_the_path_itself_says_is_told_in_between() {
    let mut n_told = 0;
    for seed in seeds(500) {
        let mut random = Random(seed * 0x9e37_79b9 + 24);
        let mut folded = Folded::new(&mut random, 400);
        folded.blocks.iter_mut().for_each(|block| block.n_instructions = 4);
        let mut details = describe(&mut random, &folded.blocks);
        details.iter_mut().for_each(|detail| detail.gate = gate::NONE);
        let (plain, stop, _) = read_all(&folded, &mut random, &details, 15);
        let mut told: Vec<ToldEvent> = (0..folded.events.len() as u64)
            .map(|at| ToldEvent { address: at, target: !at, is_told: 1, kind: flow_kind::SYSCALL, reserved: [0; 6] })
            .collect();
        // What a branch does that leads elsewhere is passed with its block.
        for (one, event) in told.iter_mut().zip(&folded.events) {
            one.is_told = u8::from(event.action != action::ELSEWHERE);
        }
        let mut rows = vec![ROW; 4096];
        let mut progress =
            Progress { begun: NOT_BEGUN, sequence: 0, time: 0, is_open: true, accesses: Accesses::default() };
        let mut found: Vec<FlowEvent> = Vec::new();
        let question = Question { thread: 7, kinds: 15 | 1 << flow_kind::SYSCALL, known: (u64::MAX, 0) };
        let again = folded.with_walker(|walker| loop {
            let details = Details { blocks: &details, starts: &STARTS, times: &[], told: &told };
            let (n, stop) = read_flow::<_, false>(walker, details, question, &mut progress, &mut rows);
            found.extend(&rows[..n]);
            if let Some(stop) = stop {
                break stop;
            }
        });
        let numbers: Vec<u64> =
            found.iter().filter(|row| row.kind == flow_kind::SYSCALL).map(|row| row.address).collect();
        let expected: Vec<u64> = told.iter().filter(|one| one.is_told != 0).map(|one| one.address).collect();
        let others = found.iter().filter(|row| row.kind != flow_kind::SYSCALL);
        let others: Vec<Told> =
            others.map(|row| (row.kind, row.address, row.target, row.size, row.n_instructions)).collect();
        assert_eq!((again, others), (stop, plain), "seed {seed}");
        assert_eq!(numbers, expected, "seed {seed}");
        n_told += numbers.len();
    }
    assert!(n_told > 1000, "{n_told}");
}

#[test]
fn no_more_is_told_than_is_known() {
    let (mut n_told, mut n_stops) = (0, 0);
    for seed in seeds(1000) {
        let mut random = Random(seed * 0x9e37_79b9 + 22);
        let mut folded = Folded::new(&mut random, 400);
        folded.blocks.iter_mut().for_each(|block| block.n_instructions = 4);
        let details = describe(&mut random, &folded.blocks);
        let expected = expect(&folded, &details, 15);
        // What the thread did before its last event, and of what it did later all in front of its last decision.
        if seed % 2 == 0 {
            folded.events.pop();
        } else if let Some(last) = folded.events.last_mut() {
            // As a checkpoint: that it came there is no more than that.
            last.action = action::NOTE;
        }
        let (found, stop, n) = read_all(&folded, &mut random, &details, 15);
        n_stops += n;
        assert_eq!(stop, Stop::Cut, "seed {seed}");
        assert!(found.len() <= expected.len(), "seed {seed}");
        assert_like(&found, &expected, seed);
        n_told += found.len();
    }
    assert!(n_told > 100_000 && n_stops > 100, "{n_told} {n_stops}");
}

#[test]
fn no_tables_are_read_past_their_end() {
    for seed in seeds(300) {
        let mut random = Random(seed * 0x9e37_79b9 + 23);
        let mut folded = Folded::new(&mut random, 100);
        for block in &mut folded.blocks {
            block.n_instructions = random.below(9) as u32;
        }
        let mut details = describe(&mut random, &folded.blocks);
        details.truncate(random.below(details.len() as u64 + 1) as usize);
        details.iter_mut().for_each(|detail| detail.first_start = (random.below(6) as u32).wrapping_mul(0x3fff_ffff));
        let mut progress = Progress {
            begun: NOT_BEGUN,
            sequence: u64::MAX / 2,
            time: 0,
            is_open: true,
            accesses: Accesses::default(),
        };
        let mut rows = [ROW; 64];
        folded.with_walker(|walker| {
            let details = Details { blocks: &details, starts: &STARTS, times: &[], told: &[] };
            read_flow::<_, false>(
                walker,
                details,
                Question { thread: 7, kinds: 15, known: (u64::MAX, 0) },
                &mut progress,
                &mut rows,
            )
        });
    }
}
