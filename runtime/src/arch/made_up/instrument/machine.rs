//! Executes code of the made-up processor: the program's, or what was emitted of it.

extern crate alloc;
use crate::context::numbers::ExitId;
use crate::cpu::decode::block::parts;
use crate::cpu::{code, WORD};
use crate::instrument::kinds::hash;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Why it stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A fault, or an instruction that it does not know, at this address.
    Fault(u64),
    /// Code left by an exit.
    Exit(ExitId),
    /// Code left for wherever the target is.
    There(u64),
    /// It executed as many instructions as it was to.
    Limit,
}

/// A processor with its registers.
#[derive(Default)]
pub struct Machine {
    pub pc: u64,
    pub accumulator: u64,
    pub flag: bool,
    pub stack: Vec<u64>,
    pub target: u64,
    pub is_hot: bool,
    pub counters: BTreeMap<u32, u64>,
    /// How often each cell of heat was counted, and after how often a fragment is hot.
    pub heat: BTreeMap<i64, u64>,
    pub hot_after: u64,
    pub told: Vec<i64>,
    /// Accumulators at system calls.
    pub calls: Vec<u64>,
}

impl Machine {
    /// Executes one instruction of the program or of emitted code at `pc`, which is mapped.
    pub fn step(&mut self) -> Option<Stop> {
        let at = self.pc;
        // SAFETY: tests execute memory of their own, and what was emitted into slabs.
        let word = unsafe { (at as *const u32).read_unaligned() };
        let (code, operand) = parts(word);
        let there = at.wrapping_add_signed(operand * WORD as i64);
        self.pc = at + WORD;
        match code {
            code::NOTHING => {}
            code::ADD => self.accumulator = self.accumulator.wrapping_add_signed(operand),
            code::LESS => self.flag = (self.accumulator as i64) < operand,
            code::JUMP => self.pc = there,
            code::JUMP_IF => self.jump_where(self.flag, there),
            code::JUMP_UNLESS => self.jump_where(!self.flag, there),
            code::JUMP_HOT => self.jump_where(self.is_hot, there),
            code::CALL => {
                self.stack.push(self.pc);
                self.pc = there;
            }
            code::RETURN => self.pc = self.stack.pop()?,
            code::JUMP_THERE => self.pc = self.accumulator,
            code::CALL_THERE => {
                self.stack.push(self.pc);
                self.pc = self.accumulator;
            }
            code::SYSTEM_CALL => self.calls.push(self.accumulator),
            _ => return self.step_emitted(at, code, operand),
        }
        None
    }

    fn jump_where(&mut self, is_so: bool, there: u64) {
        if is_so {
            self.pc = there;
        }
    }

    /// The same of what only the runtime emits.
    fn step_emitted(&mut self, at: u64, code: u8, operand: i64) -> Option<Stop> {
        match code {
            code::COUNT => *self.counters.entry(operand as u32).or_default() += 1,
            code::LEAVE => return Some(Stop::Exit(ExitId::from_raw(operand as u32))),
            code::PUSH => {
                let address = self.literal();
                self.stack.push(address);
            }
            code::TAKE if operand == 1 => self.target = self.accumulator,
            code::TAKE => self.target = self.stack.pop()?,
            code::LEAVE_THERE => return Some(Stop::There(self.target)),
            code::IS_TARGET => {
                if self.literal() != self.target {
                    return Some(Stop::There(self.target));
                }
            }
            code::HEAT => {
                let heat = self.heat.entry(operand).or_default();
                *heat += 1;
                self.is_hot = *heat == self.hot_after;
            }
            code::COMPARE => {
                let [address, size, known] = [self.literal(), self.literal(), self.literal()];
                // SAFETY: the program's code, which tests keep.
                let now = unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) };
                if hash(now) != known {
                    return Some(Stop::Exit(ExitId::from_raw(operand as u32)));
                }
            }
            code::TELL => self.told.push(operand),
            _ => return Some(Stop::Fault(at)),
        }
        None
    }

    /// The eight bytes behind the instruction, which are passed.
    fn literal(&mut self) -> u64 {
        // SAFETY: as in `step`.
        let value = unsafe { (self.pc as *const u64).read_unaligned() };
        self.pc += 8;
        value
    }

    /// Executes until it stops, at most so many instructions.
    pub fn run(&mut self, limit: u64) -> Stop {
        (0..limit).find_map(|_| self.step()).unwrap_or(Stop::Limit)
    }
}
