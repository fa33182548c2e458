//! Where the program does without the two registers that the runtime needs for indirect branches.
//!
//! Hot code *lends* them: they stay in their slots from one call, return or indirect branch to the next, instead of going there
//! and back at each. That pays where the program names neither of them on the way.

use crate::context::addresses::AppPc;
use crate::cpu::decode::ahead::look_along;
use crate::cpu::decode::block::{branch_target, pc_behind, Block};
use crate::cpu::{INDEX, TARGET};
use crate::decode::ranges::Ranges;
use core::ops::ControlFlow;
use iced_x86::{Code, FlowControl, Instruction, OpKind, Register};

/// Instructions looked at from one place, and straight runs that they are in, at most.
const MAX_INSTRUCTIONS: usize = 64;
const MAX_RUNS: usize = 8;

fn is_lent(register: Register) -> bool {
    let full = register.full_register();
    full.is_gpr64() && (full.number() == TARGET.0 as usize || full.number() == INDEX.0 as usize)
}

/// Whether an instruction names one of the two registers, or changes one without naming it.
pub fn names_lent_register(instruction: &Instruction) -> bool {
    if matches!(instruction.code(), Code::Syscall) {
        // It leaves the flags in r11 (Intel SDM, SYSCALL).
        return true;
    }
    (0..instruction.op_count()).any(|operand| match instruction.op_kind(operand) {
        OpKind::Register => is_lent(instruction.op_register(operand)),
        OpKind::Memory => is_lent(instruction.memory_base()) || is_lent(instruction.memory_index()),
        _ => false,
    })
}

/// Whether an instruction of a block does.
pub fn are_lent_named(block: &Block) -> bool {
    block.instructions.iter().any(names_lent_register)
}

/// What a straight run of code leads to.
enum Outlook {
    /// The registers are named, or nobody knows.
    Named,
    /// A call, a return or an indirect branch, which would put them into their slots.
    Needed,
    /// It was looked at already.
    Known,
}

/// The straight runs that are known or still to be looked at.
struct Runs {
    starts: [AppPc; MAX_RUNS],
    n: usize,
}

impl Runs {
    /// `false` if there are too many.
    fn add(&mut self, pc: AppPc) -> bool {
        if self.starts[..self.n].contains(&pc) {
            return true;
        }
        if self.n == MAX_RUNS {
            return false;
        }
        self.starts[self.n] = pc;
        self.n += 1;
        true
    }
}

/// Whether code at `pc` is to lend the registers: all ways on from there come to where they are needed, or back to where they
/// began, before the program names them. Code that the program may write is not looked at.
pub fn lends_at(ranges: &Ranges, pc: AppPc) -> bool {
    let mut runs = Runs { starts: [pc; MAX_RUNS], n: 1 };
    let (mut next, mut left, mut is_needed) = (0, MAX_INSTRUCTIONS, false);
    while next < runs.n {
        let mut buffer = [0; 256];
        let pc = runs.starts[next];
        match look_along(ranges, pc, pc, &mut buffer, &mut left, |instruction| look(instruction, &mut runs)) {
            Some(Outlook::Needed) => is_needed = true,
            Some(Outlook::Known) => {}
            Some(Outlook::Named) | None => return false,
        }
        next += 1;
    }
    is_needed
}

/// Whether direct branches lead from code at `pc` to `goal` without that the program names the registers on that way. Code that the
/// program may write is not looked at.
pub fn leads_to(ranges: &Ranges, pc: AppPc, goal: AppPc) -> bool {
    let mut runs = Runs { starts: [pc; MAX_RUNS], n: 1 };
    let (mut next, mut left) = (0, MAX_INSTRUCTIONS);
    while next < runs.n {
        let mut buffer = [0; 256];
        let pc = runs.starts[next];
        let is_back =
            look_along(ranges, pc, pc, &mut buffer, &mut left, |instruction| look_for(goal, instruction, &mut runs));
        if is_back == Some(true) {
            return true;
        }
        next += 1;
    }
    false
}

/// Whether a run leads to `goal`, once it ends.
fn look_for(goal: AppPc, instruction: &Instruction, runs: &mut Runs) -> ControlFlow<bool> {
    if names_lent_register(instruction) {
        return ControlFlow::Break(false);
    }
    let target = branch_target(instruction);
    match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch if target == goal => ControlFlow::Break(true),
        FlowControl::Next | FlowControl::ConditionalBranch if pc_behind(instruction) == goal => {
            ControlFlow::Break(true)
        }
        FlowControl::Next => ControlFlow::Continue(()),
        FlowControl::ConditionalBranch => {
            runs.add(target);
            ControlFlow::Continue(())
        }
        FlowControl::UnconditionalBranch => {
            runs.add(target);
            ControlFlow::Break(false)
        }
        _ => ControlFlow::Break(false),
    }
}

fn look(instruction: &Instruction, runs: &mut Runs) -> ControlFlow<Outlook> {
    if names_lent_register(instruction) {
        return ControlFlow::Break(Outlook::Named);
    }
    let outlook = match instruction.flow_control() {
        // A run that goes on into another one need not be looked at twice.
        FlowControl::Next if runs.starts[..runs.n].contains(&pc_behind(instruction)) => Outlook::Known,
        FlowControl::Next => return ControlFlow::Continue(()),
        FlowControl::ConditionalBranch if runs.add(branch_target(instruction)) => {
            return ControlFlow::Continue(());
        }
        FlowControl::UnconditionalBranch if runs.add(branch_target(instruction)) => Outlook::Known,
        FlowControl::Call if instruction.is_call_near() => Outlook::Needed,
        FlowControl::IndirectCall | FlowControl::IndirectBranch | FlowControl::Return => Outlook::Needed,
        _ => Outlook::Named,
    };
    ControlFlow::Break(outlook)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::kernel::{PROT_EXEC, PROT_READ};

    fn is_lending(code: &[u8]) -> bool {
        let mut ranges = Ranges::new();
        let start = AppPc::from_raw(code.as_ptr() as u64);
        ranges.insert(start, start + code.len() as u64, PROT_READ | PROT_EXEC, true);
        lends_at(&ranges, start)
    }

    #[test]
    fn code_that_comes_to_a_call_or_return_lends() {
        assert!(is_lending(&[0x48, 0x89, 0xc7, 0xc3]), "mov rdi, rax; ret");
        assert!(is_lending(&[0x85, 0xc0, 0x74, 0x01, 0xc3, 0xff, 0xe0]), "test eax, eax; je; ret; jmp rax");
        assert!(is_lending(&[0xff, 0xc8, 0x75, 0xfc, 0xc3]), "dec eax; jne back; ret");
    }

    #[test]
    fn loops_come_back_where_nothing_names_them() {
        let comes_back = |code: &[u8], from: u64| {
            let mut ranges = Ranges::new();
            let start = AppPc::from_raw(code.as_ptr() as u64);
            ranges.insert(start, start + code.len() as u64, PROT_READ | PROT_EXEC, true);
            super::leads_to(&ranges, start + from, start)
        };
        assert!(comes_back(&[0xff, 0xc0, 0x75, 0xfc, 0xc3], 0), "inc eax; jne back; ret");
        assert!(comes_back(&[0x85, 0xc0, 0x74, 0x03, 0x90, 0xeb, 0xf9, 0xc3], 0), "test; je out; nop; jmp back; ret");
        assert!(comes_back(&[0x74, 0x03, 0x4d, 0x89, 0xd3, 0xeb, 0xf9], 0), "je over; mov r11, r10; jmp back");
        assert!(!comes_back(&[0x4d, 0x89, 0xd3, 0xeb, 0xfb], 0), "mov r11, r10; jmp back");
        assert!(!comes_back(&[0x74, 0xfe, 0xff, 0xd0, 0xeb, 0xfa], 2), "from call rax on, which comes first");
        assert!(!comes_back(&[0xff, 0xc8, 0xc3], 0), "dec eax; ret");
    }

    #[test]
    fn code_that_names_them_does_not() {
        assert!(!is_lending(&[0x4d, 0x89, 0xd3, 0xc3]), "mov r11, r10; ret");
        assert!(!is_lending(&[0x43, 0x8b, 0x04, 0x13, 0xc3]), "mov eax, [r11 + r10]; ret");
        assert!(!is_lending(&[0x85, 0xc0, 0x74, 0x01, 0xc3, 0x41, 0x52, 0xc3]), "test; je; ret; push r10; ret");
        assert!(!is_lending(&[0x41, 0xff, 0xe3]), "jmp r11");
        assert!(!is_lending(&[0x0f, 0x05, 0xc3]), "syscall; ret");
    }

    #[test]
    fn a_loop_that_needs_them_nowhere_keeps_them() {
        assert!(!is_lending(&[0xff, 0xc0, 0xeb, 0xfc]), "inc eax; jmp back");
        assert!(!is_lending(&[0x90; 80]), "too far to see");
    }
}
