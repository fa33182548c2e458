use super::super::open_calls::OpenCall;
use super::super::ring::CQE_F_MORE;
use super::super::ring_layout::*;
use super::*;
use alloc::sync::Arc;
use core::cell::RefCell;

const RINGS: u64 = 0x1000;
const SQES: u64 = 0x8000;
const ENTRIES: u32 = 4;
const SQ_HEAD: u64 = RINGS;
const SQ_TAIL: u64 = RINGS + 4;
const CQ_TAIL: u64 = RINGS + 12;
const ARRAY: u64 = RINGS + 0x40;
const CQES: u64 = RINGS + 0x80;

/// Memory of a program, of which 64 KiB can be read.
struct Program(RefCell<Vec<u8>>);

impl Program {
    fn new() -> Program {
        Program(RefCell::new(alloc::vec![0; 1 << 16]))
    }

    fn read(&self, address: u64, target: &mut [u8]) -> usize {
        let memory = self.0.borrow();
        let there = memory.get(address as usize..).unwrap_or_default();
        let n = there.len().min(target.len());
        target[..n].copy_from_slice(&there[..n]);
        n
    }

    fn set(&self, address: u64, bytes: &[u8]) {
        self.0.borrow_mut()[address as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn submit(&self, place: u32, index: u32, user_data: u64) {
        self.set(ARRAY + 4 * u64::from(place % ENTRIES), &index.to_le_bytes());
        self.set(SQES + 64 * u64::from(index % ENTRIES) + 32, &user_data.to_le_bytes());
        self.set(SQ_TAIL, &place.wrapping_add(1).to_le_bytes());
    }

    fn complete(&self, place: u32, user_data: u64, result: i32, flags: u32) {
        let at = CQES + 16 * u64::from(place % (2 * ENTRIES));
        self.set(at, &user_data.to_le_bytes());
        self.set(at + 8, &result.to_le_bytes());
        self.set(at + 12, &flags.to_le_bytes());
        self.set(CQ_TAIL, &place.wrapping_add(1).to_le_bytes());
    }
}

fn params(flags: u32) -> [u8; PARAMS_BYTES] {
    let mut bytes = [0; PARAMS_BYTES];
    for (at, word) in [(0, ENTRIES), (4, 2 * ENTRIES), (8, flags), (44, 4), (64, 0x40), (84, 12), (100, 0x80)] {
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

const NAME: Name = Name::Descriptor(3);

fn made(flags: u32) -> Rings {
    let mut rings = Rings::new();
    rings.add(NAME, Layout::of(&params(flags)).unwrap());
    rings.map(3, OFFSET_SQ_RING, RINGS..RINGS + 0x1000);
    rings.map(3, OFFSET_SQES, SQES..SQES + 0x1000);
    rings
}

/// Has a thread submit `most`, of which the kernel takes all; how many were seen.
fn enter(rings: &mut Rings, program: &Program, most: u32, unseen: &mut Unseen) -> usize {
    let read = |address: u64, target: &mut [u8]| program.read(address, target);
    let found = rings.begin((NAME, Some(5)), 1, most, &read, unseen);
    for one in &found {
        let operation = OpenOperation { tid: 1, call: OpenCall::default(), texts: Arc::default() };
        assert!(rings.open(one, operation));
    }
    let mut tail = [0; 4];
    program.read(SQ_TAIL, &mut tail);
    program.set(SQ_HEAD, &tail);
    rings.end(NAME, 1, &read);
    found.len()
}

fn look(rings: &mut Rings, program: &Program, unseen: &mut Unseen) -> Vec<(u64, u64)> {
    let found = rings.completions(&|address, target| program.read(address, target), unseen);
    found.iter().map(|one| (one.words[word::RES].unwrap(), one.words[word::AMONG].unwrap())).collect()
}

#[test]
fn results_are_matched_over_many_rounds() {
    let (mut rings, program, mut unseen) = (made(0), Program::new(), Unseen::default());
    for place in 0..1000 {
        program.submit(place, ENTRIES - 1 - place % ENTRIES, 7 * u64::from(place));
        assert_eq!(enter(&mut rings, &program, 1, &mut unseen), 1);
        program.complete(place, 7 * u64::from(place), place.cast_signed(), 0);
        assert_eq!(look(&mut rings, &program, &mut unseen), [(u64::from(place), 0)]);
    }
    assert_eq!(unseen, Unseen::default());
}

#[test]
fn what_was_overwritten_is_counted() {
    let (mut rings, program, mut unseen) = (made(0), Program::new(), Unseen::default());
    for place in 0..20 {
        program.submit(place, place % ENTRIES, u64::from(place));
        enter(&mut rings, &program, 1, &mut unseen);
        program.complete(place, u64::from(place), 0, 0);
    }
    assert_eq!(look(&mut rings, &program, &mut unseen).len(), 8);
    assert_eq!(unseen, Unseen { submissions: 0, completions: 12 });
}

#[test]
fn one_submission_may_have_several_results() {
    let (mut rings, program, mut unseen) = (made(0), Program::new(), Unseen::default());
    program.submit(0, 0, 5);
    enter(&mut rings, &program, 1, &mut unseen);
    program.complete(0, 5, 1, CQE_F_MORE);
    program.complete(1, 5, 2, CQE_F_MORE);
    program.complete(2, 5, 3, 0);
    assert_eq!(look(&mut rings, &program, &mut unseen), [(1, 0), (2, 0), (3, 0)]);
    program.complete(3, 5, 4, 0);
    assert_eq!(look(&mut rings, &program, &mut unseen), []);
    assert_eq!(unseen.submissions, 1, "of the last one nothing was seen");
}

#[test]
fn equals_are_said_to_be_so() {
    let (mut rings, program, mut unseen) = (made(0), Program::new(), Unseen::default());
    for place in 0..3 {
        program.submit(place, place, 5);
    }
    assert_eq!(enter(&mut rings, &program, 3, &mut unseen), 3);
    for place in 0..3 {
        program.complete(place, 5, place.cast_signed(), 0);
    }
    assert_eq!(look(&mut rings, &program, &mut unseen), [(0, 3), (1, 2), (2, 0)]);
}

#[test]
fn what_the_kernel_did_not_take_is_read_again() {
    let (mut rings, program, mut unseen) = (made(0), Program::new(), Unseen::default());
    let read = |address: u64, target: &mut [u8]| program.read(address, target);
    program.submit(0, 0, 5);
    for one in rings.begin((NAME, Some(5)), 1, 1, &read, &mut unseen) {
        rings.open(&one, OpenOperation { tid: 1, call: OpenCall::default(), texts: Arc::default() });
    }
    rings.end(NAME, 1, &read);
    assert_eq!(enter(&mut rings, &program, 1, &mut unseen), 1);
    program.complete(0, 5, 0, 0);
    assert_eq!(look(&mut rings, &program, &mut unseen), [(0, 0)]);
}

#[test]
fn what_a_thread_of_the_kernels_takes_is_counted() {
    let (mut rings, program, mut unseen) = (made(SETUP_SQPOLL), Program::new(), Unseen::default());
    for place in 0..3 {
        program.submit(place, place, 5);
        program.complete(place, 5, 0, 0);
    }
    assert_eq!(look(&mut rings, &program, &mut unseen), []);
    assert_eq!(unseen, Unseen { submissions: 3, completions: 0 });
}

#[test]
fn operations_end_with_their_rings() {
    let (mut rings, program, mut unseen) = (made(0), Program::new(), Unseen::default());
    program.submit(0, 0, 5);
    enter(&mut rings, &program, 1, &mut unseen);
    assert_eq!(rings.unmap(&(SQES..SQES + 0x1000)).len(), 0, "results are still seen");
    assert_eq!(rings.unmap(&(RINGS + 0x800..RINGS + 0x900)).len(), 1);
    assert_eq!(look(&mut rings, &program, &mut unseen), []);
}

#[test]
fn any_memory_is_read_without_harm() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 20
    };
    for round in 0..3000 {
        let mut bytes = params(round & 0xf_ffff);
        for _ in 0..random() % 4 {
            bytes[(random() % PARAMS_BYTES as u64) as usize] = random() as u8;
        }
        let (mut rings, program, mut unseen) = (Rings::new(), Program::new(), Unseen::default());
        let Some(layout) = Layout::of(&bytes) else { continue };
        rings.add(NAME, layout);
        rings.map(3, OFFSET_CQ_RING, RINGS..RINGS + 0x1000);
        rings.map(3, OFFSET_SQES, if round & 1 == 0 { SQES..SQES + 0x1000 } else { u64::MAX - 9..u64::MAX });
        for _ in 0..20 {
            program.set(RINGS + random() % 0x200, &random().to_le_bytes());
            enter(&mut rings, &program, random() as u32, &mut unseen);
            look(&mut rings, &program, &mut unseen);
        }
        rings.begin_child(&|address, target| program.read(address, target));
        rings.give_up();
    }
}
