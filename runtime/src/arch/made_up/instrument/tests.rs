//! Programs of the made-up processor, followed by the engine: each instruction is counted as often as the machine alone executes it.

extern crate std;
use super::machine::{Machine, Stop};
use crate::buffer::{fixture, RingWriter};
use crate::cache::exit::ExitType;
use crate::cache::fragment::{Fragment, COUNTED_AT_EXITS};
use crate::context::addresses::AppPc;
use crate::context::numbers::{CounterId, ExitId};
use crate::cpu::features::Features;
use crate::cpu::translate::Mangler;
use crate::cpu::{code, WORD};
use crate::instrument::{BuildError, Engine};
use crate::protocol::{exit_kind, piece_kind, piece_place};
use crate::sys::kernel::{PROT_EXEC, PROT_READ, PROT_WRITE};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

const MOST_STEPS: u64 = 1 << 20;

/// A program's code, and how the engine follows it.
struct Followed {
    code: &'static mut [u32],
    engine: MutexGuard<'static, Engine>,
    writer: RingWriter,
    machine: Machine,
    n_left: u64,
}

/// The engine of all tests, one after the other: what it keeps takes much address space.
fn engine() -> MutexGuard<'static, Engine> {
    static ENGINE: Mutex<Engine> = Mutex::new(Engine::new());
    let mut engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    if engine.mangler.is_none() {
        engine.shared = fixture::shared();
        engine.prepare_mode();
        engine.mangler = Some(Mangler);
        engine.features = Features::NONE;
    }
    engine
}

/// An instruction.
fn word(code: u8, operand: i64) -> u32 {
    (operand as u32) << 8 | u32::from(code)
}

/// How often the machine alone executes the instruction at each address; the system calls that it makes.
fn executed_alone(program: &[u32]) -> (BTreeMap<AppPc, u64>, Vec<u64>) {
    let mut machine = Machine { pc: program.as_ptr() as u64, ..Machine::default() };
    let mut executed = BTreeMap::new();
    for _ in 0..MOST_STEPS {
        *executed.entry(AppPc::from_raw(machine.pc)).or_default() += 1;
        if machine.step().is_some() {
            return (executed, machine.calls);
        }
    }
    panic!("the program does not end");
}

impl Followed {
    /// The engine may have followed other programs: their code stays where it is.
    fn new(code: &[u32], protection: u64) -> Followed {
        let mut engine = engine();
        let code = code.to_vec().leak();
        let start = AppPc::from_raw(code.as_ptr() as u64);
        engine.ranges.insert(start, start + code.len() as u64 * WORD, protection, true);
        engine.cache.slabs.initialize(start.raw(), u64::MAX);
        Followed { code, engine, writer: fixture::writer(), machine: Machine::default(), n_left: 0 }
    }

    fn start(&self) -> AppPc {
        AppPc::from_raw(self.code.as_ptr() as u64)
    }

    /// Runs it from its start to a fault, as the dispatcher does.
    fn run(&mut self) {
        let mut pc = self.start();
        let mut link = ExitId::NONE;
        loop {
            let id = self.engine.fragment_at(&self.writer, pc).expect("a fragment");
            if link != ExitId::NONE {
                assert!(self.engine.cache.link(link, id));
            }
            self.machine.pc = self.engine.cache.fragment(id).plain_entry.raw();
            (pc, link) = match self.machine.run(MOST_STEPS) {
                Stop::Exit(exit) => {
                    self.n_left += 1;
                    let left = *self.engine.cache.exit(exit);
                    if left.kind == ExitType::Stale {
                        let end = left.target + WORD;
                        self.engine.invalidate(&self.writer, left.target, end);
                    }
                    (left.target, if left.kind == ExitType::Stale { ExitId::NONE } else { exit })
                }
                Stop::There(target) => (AppPc::from_raw(target), ExitId::NONE),
                Stop::Fault(_) => return,
                Stop::Limit => panic!("it does not end"),
            };
        }
    }

    fn counted(&self, counter: CounterId) -> u64 {
        self.machine.counters.get(&counter.raw()).copied().unwrap_or(0)
    }

    /// How often a fragment ran, by its counters.
    fn executions(&self, fragment: &Fragment) -> u64 {
        if fragment.count_before != COUNTED_AT_EXITS {
            return self.counted(fragment.counter);
        }
        let exits = fragment.exits();
        exits
            .map(|id| self.engine.cache.exit(id).counter)
            .filter(|one| *one != CounterId::NONE)
            .map(|one| self.counted(one))
            .sum()
    }

    /// What was translated of this program.
    fn fragments(&self) -> impl Iterator<Item = &Fragment> {
        let code = self.start()..self.start() + self.code.len() as u64 * WORD;
        self.engine.cache.fragments.as_slice().iter().filter(move |one| code.contains(&one.app_pc))
    }

    /// How often each instruction was executed, by the counters of what was translated.
    fn executed(&self) -> BTreeMap<AppPc, u64> {
        let mut executed = BTreeMap::new();
        for fragment in self.fragments() {
            for index in 0..u64::from(fragment.n_instructions) {
                *executed.entry(fragment.app_pc + index * WORD).or_default() += self.executions(fragment);
            }
        }
        executed.retain(|_, times| *times != 0);
        executed
    }
}

fn check(program: &[u32]) -> Followed {
    let mut followed = Followed::new(program, PROT_READ | PROT_EXEC);
    followed.run();
    let (mut executed, calls) = executed_alone(followed.code);
    let mut counted = followed.executed();
    // Blocks that end with a fault are counted by who delivers that: not here.
    for fragment in followed.fragments().filter(|one| one.exit_kind == exit_kind::NONE) {
        executed.retain(|pc, _| !(fragment.app_pc..fragment.end()).contains(pc));
        counted.retain(|pc, _| !(fragment.app_pc..fragment.end()).contains(pc));
    }
    assert_eq!(counted, executed);
    assert_eq!(followed.machine.calls, calls);
    followed
}

#[test]
fn a_loop_is_counted_as_often_as_it_runs() {
    let program = [
        word(code::ADD, 1),
        word(code::LESS, 1000),
        word(code::JUMP_IF, -2),
        word(code::SYSTEM_CALL, 0),
        word(code::FAULT, 0),
    ];
    let followed = check(&program);
    assert!(followed.n_left < 8, "what is linked does not come back: {}", followed.n_left);
    let first = *followed.fragments().next().expect("one");
    assert_eq!((first.exit_kind, followed.executions(&first)), (exit_kind::CONDITIONAL, 1000));
}

#[test]
fn calls_return_to_where_they_came_from() {
    let program = [
        word(code::CALL, 4),
        word(code::LESS, 30),
        word(code::JUMP_IF, -2),
        word(code::FAULT, 0),
        word(code::ADD, 1),
        word(code::RETURN, 0),
    ];
    let followed = check(&program);
    assert_eq!(followed.machine.accumulator, 30);
}

/// A number below `n`, and the next state.
fn choose(state: &mut u64, n: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % n
}

/// Functions that call later ones, branch forward, and go back while the accumulator, which only grows, is small.
fn random_program(seed: u64) -> Vec<u32> {
    const FUNCTIONS: u64 = 4;
    const WORDS: u64 = 12;
    let mut state = seed;
    let mut program = Vec::new();
    for function in 0..FUNCTIONS {
        for index in 0..WORDS - 2 {
            let here = function * WORDS + index;
            let left = (WORDS - 2 - index) as i64;
            program.push(match choose(&mut state, 8) {
                0 if function + 1 < FUNCTIONS => {
                    let callee = function + 1 + choose(&mut state, FUNCTIONS - function - 1);
                    word(code::CALL, (callee * WORDS) as i64 - here as i64)
                }
                1 => word(code::JUMP_IF, 1 + choose(&mut state, left as u64) as i64),
                2 => word(code::JUMP, 1 + choose(&mut state, left.min(2) as u64) as i64),
                3 if index > 2 => word(code::JUMP_IF, -(choose(&mut state, 2) as i64)),
                4 => word(code::SYSTEM_CALL, 0),
                5 => word(code::NOTHING, 0),
                6 => word(code::LESS, choose(&mut state, 200) as i64),
                _ => word(code::ADD, 1 + choose(&mut state, 3) as i64),
            });
        }
        // What goes back passes these first, so that it ends.
        program.push(word(code::LESS, 0));
        program.push(if function == 0 { word(code::FAULT, 0) } else { word(code::RETURN, 0) });
    }
    // Straight back without a change of the flag would never end.
    for index in 1..program.len() {
        let (code, operand) = (program[index] as u8, program[index] as i32 >> 8);
        if code == code::JUMP_IF && operand <= 0 {
            program[index] = word(code::JUMP_IF, -2);
            program[index - 1] = word(code::LESS, 150);
            program[index - 2] = word(code::ADD, 1);
        }
    }
    program
}

#[test]
fn random_programs_are_counted_as_they_run() {
    let long = (0..400).filter(|seed| check(&random_program(*seed)).machine.accumulator > 20).count();
    assert!(long > 100, "{long} of them do more than a little");
}

#[test]
fn code_that_changes_is_found_out() {
    let program = [word(code::ADD, 1), word(code::FAULT, 0)];
    let mut followed = Followed::new(&program, PROT_READ | PROT_WRITE | PROT_EXEC);
    followed.run();
    followed.code[0] = word(code::ADD, 5);
    followed.run();
    assert_eq!(followed.machine.accumulator, 1 + 5);
    let versions = followed.fragments().filter(|one| one.app_pc == followed.start());
    assert_eq!(versions.count(), 2, "one of each code");
}

/// What a transformer says of one instruction: to leave it out, and what is to stand in front of it.
fn change(offset: u64, is_dropped: bool, before: &[u32]) -> Vec<u8> {
    let mut bytes = std::vec![offset as u8, (offset >> 8) as u8, u8::from(is_dropped), 1];
    bytes.extend([piece_place::BEFORE, piece_kind::CODE, (before.len() * WORD as usize) as u8, 0]);
    bytes.extend(before.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

#[test]
fn what_is_changed_in_a_block_is_executed_and_counted_as_it_was() {
    let program =
        [word(code::ADD, 1), word(code::ADD, 100), word(code::LESS, 30), word(code::JUMP_IF, -3), word(code::FAULT, 0)];
    let mut followed = Followed::new(&program, PROT_READ | PROT_EXEC);
    let start = followed.start();
    followed.engine.ranges.rewritten = std::vec![(start, start + 4 * WORD)];
    let asked = followed.engine.fragment_at(&followed.writer, start);
    assert_eq!(asked, Err(BuildError::Untransformed(4 * WORD as u16)), "it is asked about first");
    let changes =
        [change(WORD, true, &[word(code::ADD, 2)]), change(3 * WORD, false, &[word(code::NOTHING, 0)])].concat();
    followed.engine.learn_changes(&followed.writer, start, 4 * WORD as u16, Some(&changes));
    followed.run();
    assert_eq!(followed.machine.accumulator, 30, "1 + 2 a turn");
    let first = *followed.fragments().next().expect("one");
    assert_eq!(followed.executions(&first), 10);
    followed.engine.ranges.rewritten.clear();
}
