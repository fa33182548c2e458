//! Code that is not 64-bit code: a thread that went there by a far branch, or by a return from a handler, executes it natively,
//! instruction by instruction, and is followed again where it comes back.
//!
//! Runs in the target on the runtime's stack, in the dispatcher. 32-bit code is not translated: but with the trap flag set the thread
//! comes to the signal handler behind each instruction, and nothing else shows where and when it comes back: the far branch that
//! leads there may stand in the same page as its target, and may be made while it runs. What it does there is not counted; for the
//! records the branch led to where the thread comes back. System calls of 32-bit code have numbers that nothing here knows, and who
//! stays for long is to run at full speed: both are released for good.

extern crate alloc;
use crate::cache::exit::ExitType;
use crate::context::addresses::AppPc;
use crate::context::stepping::FOREIGN_PUSH;
use crate::context::stepping::FOREIGN_STEP;
use crate::context::stepping::STEPPING_ALREADY;
use crate::context::ThreadContext;
use crate::cpu::dispatch::in_place;
use crate::cpu::guarded;
use crate::cpu::selectors;
use crate::cpu::signal::deliver;
use crate::cpu::sys::kernel::TRAP_FLAG;
use crate::cpu::sys::number;
use crate::dispatch::apart::away::end;
use crate::dispatch::life::release;
use crate::dispatch::signals::{masks, signal_calls};
use crate::instrument::ENGINE;
use crate::protocol::release_reason;
use crate::sys::calls::{set_signal_mask, syscall};
use alloc::vec;
use iced_x86::{Code, Instruction, Mnemonic};

/// As many instructions are executed one by one before the thread is released: a tenth of a second, or a second in a virtual machine.
const MAX_STEPS: u32 = 1 << 16;

/// Executes the next instruction. Comes back only if a signal goes before.
pub fn go_on(context: &mut ThreadContext) {
    let instruction = next_instruction(context);
    let is_call = instruction.is_some_and(|instruction| is_system_call(&instruction));
    if is_call || context.stepping.excursion_steps == MAX_STEPS {
        release::release(context, release_reason::OTHER_CODE);
    }
    let mask = set_signal_mask(u64::MAX);
    if context.is_signal_waiting() {
        set_signal_mask(mask);
        return;
    }
    context.stepping.excursion_steps += 1;
    let does_push = instruction.is_some_and(|instruction| pushes_flags(&instruction));
    context.stepping.foreign = if does_push { FOREIGN_PUSH } else { FOREIGN_STEP };
    let kind = instruction.map_or(0, |instruction| in_place::loads_flags(&instruction));
    deliver::step_native(context, mask, kind)
}

/// After an instruction, unless it faulted: tells of it, and takes back the trap flag that it pushed if that was not the program's.
/// Whether the program has a trap for it.
pub fn settle(context: &mut ThreadContext) -> bool {
    let step = core::mem::take(&mut context.stepping.foreign);
    if step == 0 || context.signals.fault_pending != 0 {
        return false;
    }
    ENGINE.lock().shared.add(crate::status_field!(uncounted_instructions), 1);
    let is_traced = context.stepping.kind & STEPPING_ALREADY != 0;
    if step == FOREIGN_PUSH && !is_traced {
        clear_pushed_flag(context);
    }
    is_traced
}

/// Clears the trap flag in the flags that were pushed last.
fn clear_pushed_flag(context: &mut ThreadContext) {
    // The stack segment begins at address 0, or it is one of the program's own making, which has a base.
    let base = if context.registers.stack_selector == 0 { 0 } else { base_of(context.registers.stack_selector) };
    let place = (base.wrapping_add(context.registers.general[4]) & 0xffff_ffff).wrapping_add(1);
    masks::with_faults(context, |_| {
        let mut byte = [0];
        if guarded::read_program(&mut byte, place) == 1 {
            byte[0] &= !((TRAP_FLAG >> 8) as u8);
            // SAFETY: the program has just had the processor write there.
            unsafe { guarded::write_program(place, &byte) };
        }
    });
}

/// The thread is back in 64-bit code, at the context's rip: that is where the branch led.
pub fn come_back(context: &mut ThreadContext) {
    let Some(exit_id) = end(context) else {
        return;
    };
    let exit = *ENGINE.lock().cache.exit(exit_id);
    if exit.kind == ExitType::NativeBranch {
        in_place::follow_branch(context, exit.fragment);
    } else {
        signal_calls::count_signal_return(context, exit_id, context.registers.pc);
    }
}

/// The instruction that is next, if it can be read.
fn next_instruction(context: &mut ThreadContext) -> Option<Instruction> {
    let selector = context.registers.code_selector;
    if selector == 0 {
        return None;
    }
    let bits = selectors::code_bits(selector)?;
    let base = base_of(selector);
    let pc = AppPc::from_raw(base.wrapping_add(context.registers.pc.raw()) & 0xffff_ffff);
    Some(in_place::read_instruction(context, pc, bits))
}

fn is_system_call(instruction: &Instruction) -> bool {
    let is_call = matches!(instruction.code(), Code::Sysenter | Code::Syscall);
    is_call || instruction.code() == Code::Int_imm8 && instruction.immediate8() == 0x80
}

fn pushes_flags(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Pushf | Mnemonic::Pushfd)
}

/// Where a segment begins: at 0, unless it is of the program's own table, which the kernel tells (modify_ldt(2)).
fn base_of(selector: u16) -> u64 {
    const LOCAL: u16 = 4;
    const ENTRY_BYTES: usize = 8;
    if selector & LOCAL == 0 {
        return 0;
    }
    let index = usize::from(selector >> 3);
    let mut table = vec![0u8; (index + 1) * ENTRY_BYTES];
    // SAFETY: writes inside the table.
    let n = unsafe { syscall(number::MODIFY_LDT, [0, table.as_mut_ptr() as u64, table.len() as u64, 0, 0, 0]) };
    if n != table.len() as i64 {
        return 0;
    }
    let entry = &table[index * ENTRY_BYTES..];
    u64::from(u32::from_le_bytes([entry[2], entry[3], entry[4], entry[7]]))
}
