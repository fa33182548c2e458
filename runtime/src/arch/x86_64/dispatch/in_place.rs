//! Instructions that the processor executes at the program's own address, with the program's own segment registers: for far
//! branches and loads of gs nothing else comes out right, nor do the faults of either.
//!
//! Runs in the target on the runtime's stack, in the dispatcher. The trap behind the instruction, or its fault, brings the thread
//! back (arch/x86_64/signal/faults.rs, `end_step`), to `settle`. Far branches inside of 64-bit code are not worth a trap: see far.rs.

use crate::cache::exit::ExitType;
use crate::context::addresses::AppPc;
use crate::context::numbers::{ExitId, FragmentId};
use crate::context::stepping::STEPPING_ALREADY;
use crate::context::stepping::STEPPING_LOADS_FLAGS;
use crate::context::ThreadContext;
use crate::cpu::decode::block::decoder_options;
use crate::cpu::decode::MAX_INSTRUCTION_BYTES;
use crate::cpu::dispatch::far;
use crate::cpu::guarded;
use crate::cpu::selectors;
use crate::cpu::signal::deliver;
use crate::cpu::sys::kernel::TRAP_FLAG;
use crate::decode::places::is_beyond;
use crate::dispatch::apart::away;
use crate::dispatch::flow::indirect;
use crate::dispatch::flow::parts::uncount_block;
use crate::dispatch::life::release;
use crate::dispatch::signals::{masks, raise};
use crate::instrument::indirect::pads::correct_early_counts;
use crate::instrument::ENGINE;
use crate::protocol::{exit_kind, release_reason};
use crate::sys::calls::set_signal_mask;
use crate::thread::open_calls;
use iced_x86::{Decoder, Instruction, Mnemonic};

/// Has the instruction executed in front of which exit `exit_id` led. Comes back if that is done, or if a signal goes before; returns
/// the exit to link.
pub fn execute(context: &mut ThreadContext, exit_id: ExitId) -> ExitId {
    let (source, pc, is_branch) = {
        let engine = ENGINE.lock();
        let exit = *engine.cache.exit(exit_id);
        let fragment = *engine.cache.fragment(exit.fragment);
        let pc = fragment.branch_pc();
        (exit.fragment, pc, exit.kind == ExitType::NativeBranch)
    };
    context.registers.pc = pc;
    context.gate.exit_id = exit_id;
    let instruction = read_instruction(context, pc, 64);
    if is_branch && masks::with_faults(context, |context| far::transfer(context, &instruction)) {
        finish_branch(context, exit_id);
        return ExitId::NONE;
    }
    let is_lost = !selectors::has_base_instructions() && crate::cpu::decode::in_place::is_in_place(&instruction);
    let mask = set_signal_mask(u64::MAX);
    if context.is_signal_waiting() || is_lost {
        set_signal_mask(mask);
        uncount_block(&mut ENGINE.lock(), context, source, pc);
        if is_lost {
            release::release(context, release_reason::UNSUPPORTED);
        }
        return ExitId::NONE;
    }
    context.stepping.native_exit = exit_id.raw() + 1;
    deliver::step_native(context, mask, loads_flags(&instruction))
}

/// The instruction at `pc`, as it is now.
pub fn read_instruction(context: &mut ThreadContext, pc: AppPc, bits: u32) -> Instruction {
    let mut code = [0; MAX_INSTRUCTION_BYTES];
    let n = masks::with_faults(context, |_| guarded::read_code(&mut code, pc));
    let options = if bits == 64 { decoder_options() } else { 0 };
    Decoder::with_ip(bits, &code[..n], pc.raw(), options).decode()
}

/// `STEPPING_LOADS_FLAGS` for an instruction that does.
pub fn loads_flags(instruction: &Instruction) -> u32 {
    let does = matches!(
        instruction.mnemonic(),
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq | Mnemonic::Popf | Mnemonic::Popfd | Mnemonic::Popfq
    );
    if does {
        STEPPING_LOADS_FLAGS
    } else {
        0
    }
}

/// The processor executed the instruction, or it faulted, or it has more to do: counts it. Returns the exit to link.
pub fn settle(context: &mut ThreadContext) -> ExitId {
    let exit_id = ExitId::from_raw(core::mem::take(&mut context.stepping.native_exit) - 1);
    let (source, pc, next, is_branch) = {
        let engine = ENGINE.lock();
        let exit = *engine.cache.exit(exit_id);
        let fragment = *engine.cache.fragment(exit.fragment);
        let pc = fragment.branch_pc();
        if context.signals.fault_pending != 0 {
            correct_early_counts(&engine.cache, context, &fragment, pc, -1);
            context.gate.note_fault_fragment(exit.fragment);
            return ExitId::NONE;
        }
        (exit.fragment, pc, exit.target, exit.kind == ExitType::NativeBranch)
    };
    if !is_branch && context.registers.pc == pc {
        // A string instruction, after one of its turns.
        return execute(context, exit_id);
    }
    if is_branch {
        finish_branch(context, exit_id);
    } else if context.registers.pc != next {
        // Other code was put there meanwhile. What was executed is one instruction not counted.
        uncount_block(&mut ENGINE.lock(), context, source, pc);
    }
    let kind = core::mem::take(&mut context.stepping.kind);
    if kind & STEPPING_LOADS_FLAGS != 0 && kind & STEPPING_ALREADY == 0 {
        context.note_step();
    } else if kind & STEPPING_LOADS_FLAGS != 0 && context.registers.flags & TRAP_FLAG == 0 {
        raise::raise_step(context);
    }
    if is_branch || context.registers.pc != next {
        ExitId::NONE
    } else {
        exit_id
    }
}

/// The branch in front of which exit `exit_id` led is done.
fn finish_branch(context: &mut ThreadContext, exit_id: ExitId) {
    if context.registers.are_foreign() {
        away::begin(context, exit_id);
        return;
    }
    let source = ENGINE.lock().cache.exit(exit_id).fragment;
    follow_branch(context, source);
}

/// Counts the branch at the end of fragment `source`, which led to where the context is.
pub fn follow_branch(context: &mut ThreadContext, source: FragmentId) {
    let target = context.registers.pc;
    let fragment = *ENGINE.lock().cache.fragment(source);
    if context.path.is_on && fragment.exit_kind == exit_kind::INDIRECT_CALL {
        open_calls::push(context, fragment.end());
    }
    if is_beyond(target) {
        indirect::blame_branch(context, source);
    } else {
        masks::with_faults(context, |context| indirect::follow_indirect(context, source, target));
    }
}
