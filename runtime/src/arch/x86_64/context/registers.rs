//! The application's registers while a thread is in the runtime.

use super::Gate;
use crate::context::addresses::AppPc;
use crate::cpu::sys::kernel::RESUME_FLAG;
use crate::cpu::sys::kernel::TRAP_FLAG;
use crate::protocol::{StartBlock, ThreadState};

/// By the processor's numbers.
const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;
const R8: usize = 8;
const R9: usize = 9;
const R10: usize = 10;
const R11: usize = 11;

/// How many registers a controller is told of a thread that is stopped: the general ones, pc and flags.
pub const N_HELD: usize = 18;

/// What a call pushes.
const RETURN_ADDRESS_BYTES: u64 = 8;

/// CF, PF, AF, ZF, SF, DF and OF.
const SETTABLE_FLAGS: u64 = 0xcd5;

/// The general registers and what belongs to them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Registers {
    /// In the processor's numbering.
    pub general: [u64; 16],
    /// Where the application goes on.
    pub pc: AppPc,
    pub flags: u64,
    pub gs_base: u64,
    /// Selectors of code and stack where the program goes on; 0: those that 64-bit programs have.
    pub code_selector: u16,
    pub stack_selector: u16,
}

/// What a system call's instruction overwrites beside its result: rcx and r11 (Intel SDM, SYSCALL).
#[derive(Clone, Copy)]
pub struct Overwritten([u64; 2]);

impl Registers {
    /// Those of a process's first thread.
    pub fn of_start(block: &StartBlock) -> Registers {
        Registers {
            general: block.registers,
            pc: AppPc::from_raw(block.rip),
            flags: block.rflags,
            gs_base: block.gs_base,
            code_selector: 0,
            stack_selector: 0,
        }
    }

    /// Those of a thread that ran before the runtime came.
    pub fn of_thread(state: &ThreadState) -> Registers {
        Registers {
            general: state.registers,
            pc: AppPc::from_raw(state.rip),
            flags: state.rflags,
            gs_base: state.gs_base,
            code_selector: state.code_selector,
            stack_selector: state.stack_selector,
        }
    }

    /// As the controller finds them: the state of a thread of which nothing else is said.
    pub fn state(&self) -> ThreadState {
        ThreadState {
            registers: self.general,
            rip: self.pc.raw(),
            rflags: self.flags,
            gs_base: self.gs_base,
            code_selector: self.code_selector,
            stack_selector: self.stack_selector,
            mask: 0,
            context: 0,
            stack_top: 0,
            tid: 0,
            call_code: 0,
            rseq_area: 0,
            rseq_signature: 0,
            is_captured: 0,
            has_calls: 0,
            reserved: [0; 48],
        }
    }

    /// Takes over what a task that shares the memory begins with.
    pub fn inherit(&mut self, parent: &Registers) {
        (self.general, self.pc, self.flags, self.gs_base) = (parent.general, parent.pc, parent.flags, parent.gs_base);
    }

    /// As a controller is told of them.
    pub fn held(&self) -> [u64; N_HELD] {
        let mut held = [0; N_HELD];
        held[..16].copy_from_slice(&self.general);
        (held[16], held[17]) = (self.pc.raw(), self.flags);
        held
    }

    /// One of these, by its number.
    pub fn held_register(&self, number: u64) -> Option<u64> {
        match number {
            16 => Some(self.pc.raw()),
            17 => Some(self.flags),
            _ => self.general.get(number as usize).copied(),
        }
    }

    /// Another value for one of the general ones, the stack pointer not.
    pub fn set_general(&mut self, number: u64, value: u64) {
        if number as usize != RSP {
            self.general.get_mut(number as usize).into_iter().for_each(|register| *register = value);
        }
    }

    /// Takes over what the controller wants instead: of the flags those of arithmetic and direction. The place stays, to which counts
    /// and order lead.
    pub fn set_held(&mut self, held: &[u64; N_HELD]) {
        self.general.copy_from_slice(&held[..16]);
        self.flags = self.flags & !SETTABLE_FLAGS | held[17] & SETTABLE_FLAGS;
    }

    /// As the controller wants them for a call: all but the stack pointer, which the frame has moved.
    pub fn set_for_call(&mut self, held: &[u64; N_HELD]) {
        let sp = self.general[RSP];
        self.general.copy_from_slice(&held[..16]);
        self.general[RSP] = sp;
    }

    pub fn sp(&self) -> u64 {
        self.general[RSP]
    }

    pub fn set_sp(&mut self, sp: u64) {
        self.general[RSP] = sp;
    }

    /// What a system call answered; in front of one its number, as the program left it.
    pub fn result(&self) -> u64 {
        self.general[RAX]
    }

    pub fn set_result(&mut self, result: u64) {
        self.general[RAX] = result;
    }

    /// As behind a function that has returned with a result, to an address; they are as in front of its first instruction.
    pub fn return_with(&mut self, result: u64, return_pc: AppPc) {
        self.general[RAX] = result;
        self.general[RSP] = self.general[RSP].wrapping_add(RETURN_ADDRESS_BYTES);
        self.pc = return_pc;
    }

    /// The number of the system call that the program is about to make: the kernel looks at eax alone.
    pub fn call_number(&self) -> u64 {
        self.general[RAX] & 0xffff_ffff
    }

    /// The arguments of a system call.
    pub fn call_arguments(&self) -> [u64; 6] {
        [RDI, RSI, RDX, R10, R8, R9].map(|number| self.general[number])
    }

    /// Has them as behind a system call's instruction, which leaves flags and next address in r11 and rcx.
    pub fn pass_call(&mut self, next: AppPc) {
        self.overwrite_next(next);
        self.general[R11] = self.flags;
        self.pc = next;
    }

    /// The same where the kernel was in between: it has left the flags already.
    pub fn return_from_call(&mut self, next: AppPc) {
        self.overwrite_next(next);
        self.pc = next;
    }

    fn overwrite_next(&mut self, next: AppPc) {
        self.general[RCX] = next.raw();
    }

    /// What a system call overwrites, to be put back.
    pub fn overwritten(&self) -> Overwritten {
        Overwritten([self.general[RCX], self.general[R11]])
    }

    pub fn put_back(&mut self, before: Overwritten) {
        [self.general[RCX], self.general[R11]] = before.0;
    }

    /// Whether the program steps through itself: the processor traps behind each instruction.
    pub fn are_stepped(&self) -> bool {
        self.flags & TRAP_FLAG != 0
    }

    /// Whether no breakpoint is met in front of the next instruction.
    pub fn passes_breakpoint(&self) -> bool {
        self.flags & RESUME_FLAG != 0
    }

    /// Has none be met there.
    pub fn pass_breakpoint(&mut self) {
        self.flags |= RESUME_FLAG;
    }
}

impl Gate {
    /// Keeps what the program has there in front of a system call that it did not come to by translated code.
    pub fn keep_overwritten(&mut self, before: Overwritten) {
        [self.spill_rcx, self.spill_r11] = before.0;
    }

    /// What the program had before the system call under way in what that overwrites.
    pub fn overwritten(&self) -> Overwritten {
        Overwritten([self.spill_rcx, self.spill_r11])
    }
}
