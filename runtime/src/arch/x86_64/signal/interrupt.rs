//! Where a signal found a thread, and the application's state there.
//!
//! Called by the signal handler: reads arenas without a lock, stores links, allocates nothing.

use crate::cache::slab::Found;
use crate::cache::{Cache, Fragment, Unit, NO_INTERRUPT};
use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::cpu::gate;
use crate::cpu::spill::SpillState;
use crate::cpu::sys::calls::CALL_BYTES;
use crate::cpu::sys::kernel::SigContext;
use crate::protocol::exit_kind;

/// What the handler does with an asynchronous signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interruption {
    /// The thread runs on; it comes to the dispatcher by itself.
    RunOn,
    /// The thread goes on at this address of the runtime.
    Redirect(u64),
    /// The context holds the application's state now: the signal can be delivered at once.
    TakenBack,
    /// As well: nothing of a fragment was executed.
    TakenBackAtStart,
}

fn address_of(label: unsafe extern "C" fn()) -> u64 {
    label as *const () as u64
}

/// Whether `pc` is in the runtime's own code between two labels.
fn is_between(pc: u64, start: unsafe extern "C" fn(), end: unsafe extern "C" fn()) -> bool {
    (address_of(start)..address_of(end)).contains(&pc)
}

/// Decides about a signal that found the thread in one of the gates or elsewhere in the runtime.
pub fn in_runtime(pc: u64) -> Interruption {
    if is_between(pc, gate::clew_gate_resume, gate::clew_gate_resume_end) {
        return Interruption::Redirect(address_of(gate::clew_gate_redispatch));
    }
    if is_between(pc, gate::clew_gate_indirect_restart, gate::clew_gate_indirect_end) {
        return Interruption::Redirect(address_of(gate::clew_gate_indirect_restart));
    }
    if is_between(pc, gate::clew_syscall_checked, gate::clew_syscall_instruction)
        || pc == address_of(gate::clew_syscall_instruction)
    {
        return Interruption::Redirect(address_of(gate::clew_syscall_again_pending));
    }
    if is_between(pc, gate::clew_syscall_done, gate::clew_gate_syscall_end) {
        return Interruption::Redirect(address_of(gate::clew_syscall_done_pending));
    }
    Interruption::RunOn
}

/// Whether a system call was begun, interrupted, and is to be made again: rcx shows that the instruction was executed, before
/// which the gate has a zero there.
pub fn is_call_restarted(machine: &SigContext) -> bool {
    let instruction = address_of(gate::clew_syscall_instruction);
    machine.rip == instruction && machine.rcx == instruction + 2
}

/// Where the thread goes on behind the system call under way. Reads an arena without a lock.
pub fn behind_call(cache: &Cache, context: &ThreadContext) -> AppPc {
    match context.native.call_pc {
        AppPc::NOWHERE => cache.exit(context.gate.exit_id).target,
        call_pc => call_pc + CALL_BYTES,
    }
}

/// Decides about a signal that found the thread in the code cache.
pub fn in_cache(cache: &Cache, context: &mut ThreadContext, machine: &SigContext) -> Interruption {
    let Some(found) = cache.slabs.find_unit(machine.rip) else {
        return Interruption::RunOn;
    };
    match found.unit {
        // What a return from a handler let in comes in front of the instruction that it leads to. All registers are in place where it
        // leads straight into the cache.
        Unit::Fragment(id) if machine.rip == context.signals.returned_to.raw() => {
            context.registers.general = machine.registers();
            context.registers.flags = machine.rflags;
            context.registers.pc = cache.fragment(id).app_pc;
            return Interruption::TakenBackAtStart;
        }
        Unit::Fragment(id) => {
            let fragment = *cache.fragment(id);
            let offset = machine.rip - found.start;
            let is_indirect =
                matches!(fragment.exit_kind, exit_kind::INDIRECT_JUMP | exit_kind::INDIRECT_CALL | exit_kind::RETURN);
            let state = state_at(cache, &fragment, offset).map(|(_, state)| state);
            let is_past_interruption = offset > u64::from(fragment.interrupt_offset)
                && offset >= u64::from(fragment.exit_offset)
                && fragment.interrupt_offset != NO_INTERRUPT
                && state != Some(SpillState::Landing)
                && !found.is_cold;
            if state == Some(SpillState::Dropped) && !found.is_cold {
                // Not to be done twice: the stack pointer is past what it would read. The gate sees that a signal waits.
                return Interruption::Redirect(address_of(gate::clew_gate_indirect));
            }
            if is_indirect && is_past_interruption {
                take_back(cache, context, machine, &fragment, offset);
                return Interruption::TakenBack;
            }
            cache.interrupt(id);
            context.signals.unlinked_fragment = id;
        }
        Unit::Pad(id) => cache.interrupt_pad(id),
        Unit::Thunk(id) => {
            cache.interrupt(id);
            context.signals.unlinked_fragment = id;
        }
        Unit::Enclosure(index) => {
            if take_aborted(cache, context, machine) {
                return Interruption::TakenBack;
            }
            if let Some(id) = cache.rseqs.fragment_at(index, machine.rip) {
                cache.interrupt(id);
                context.signals.unlinked_fragment = id;
            }
        }
    }
    Interruption::RunOn
}

/// Puts the application's state into the context if the kernel has just aborted a critical section: where that goes on. It does so
/// before it delivers a signal.
pub fn take_aborted(cache: &Cache, context: &mut ThreadContext, machine: &SigContext) -> bool {
    let Some(Found { unit: Unit::Enclosure(index), .. }) = cache.slabs.find_unit(machine.rip) else {
        return false;
    };
    let enclosure = cache.rseqs.enclosure(index);
    if machine.rip != enclosure.stub.raw() {
        return false;
    }
    context.registers.general = machine.registers();
    context.registers.flags = machine.rflags;
    context.undo_rseq();
    context.registers.pc = enclosure.descriptor.abort;
    context.rseq.aborted = 1;
    true
}

/// The instruction map's entry for a cache offset: application offset and where registers are.
fn state_at(cache: &Cache, fragment: &Fragment, offset: u64) -> Option<(u64, SpillState)> {
    let start = fragment.map_start as usize;
    let entries = cache.map.as_slice().get(start..start + fragment.map_length as usize)?;
    let index = entries.partition_point(|entry| u64::from(entry.cache_offset) <= offset);
    let entry = entries.get(index.checked_sub(1)?)?;
    Some((u64::from(entry.app_offset), entry.state))
}

/// Puts the application's state at a fault or inside an indirect exit into the context: registers as before the
/// instruction. Returns the fragment and the instruction's address.
pub fn take_back(
    cache: &Cache,
    context: &mut ThreadContext,
    machine: &SigContext,
    fragment: &Fragment,
    offset: u64,
) -> AppPc {
    context.registers.general = machine.registers();
    context.registers.flags = machine.rflags;
    let (app_offset, state) = state_at(cache, fragment, offset).unwrap_or((0, SpillState::None));
    let app_pc = fragment.app_pc + app_offset;
    context.registers.pc = app_pc;
    match state {
        SpillState::None | SpillState::Landing | SpillState::Dropped => {}
        SpillState::Target => context.registers.general[11] = context.gate.spill_target,
        SpillState::Pushed => context.registers.general[4] = context.registers.general[4].wrapping_add(8),
        SpillState::Both | SpillState::BothPushed | SpillState::BothCalled | SpillState::BothReturning => {
            if state == SpillState::BothReturning {
                // The return slot gets the application's address back: r11 holds it.
                // SAFETY: the slot was just written by the fragment.
                unsafe { (context.registers.general[4] as *mut u64).write_unaligned(context.registers.general[11]) };
            }
            context.registers.general[10] = context.gate.spill_index;
            context.registers.general[11] = context.gate.spill_target;
            if matches!(state, SpillState::BothPushed | SpillState::BothCalled) {
                context.registers.general[4] = context.registers.general[4].wrapping_add(8);
            }
            if state == SpillState::BothCalled {
                // The call is made again after the signal, and pushes again.
                context.path.shadow_depth = context.path.shadow_depth.saturating_sub(1);
            }
        }
        register => context.registers.general[register as u8 as usize & 15] = context.gate.spill_address,
    }
    app_pc
}

/// A return writes its slot for an instant, and the landing once more; the program's own only reads it. Where the slot can't
/// be written the fault is no fault of the program's: it goes on as if the return had been made, or the slot been written.
/// Returns whether that is so.
pub fn skip_slot_write(cache: &Cache, fragment: &Fragment, offset: u64, machine: &mut SigContext) -> bool {
    /// mov [rsp], r10 (arch/x86_64/instrument/terminator.rs, paired_return)
    const IN_RETURN: [u8; 4] = [0x4c, 0x89, 0x14, 0x24];
    /// mov [rsp - 8], r11 (landing)
    const IN_LANDING: [u8; 5] = [0x4c, 0x89, 0x5c, 0x24, 0xf8];
    // SAFETY: the processor has just read this instruction, and code in slabs stays.
    let code = unsafe { (machine.rip as *const [u8; 5]).read_unaligned() };
    match state_at(cache, fragment, offset) {
        Some((_, SpillState::Both)) if fragment.exit_kind == exit_kind::RETURN && code.starts_with(&IN_RETURN) => {
            // As a return to what the branch table does not know: r11 holds the target, the site is named.
            machine.rsp = machine.rsp.wrapping_add(8);
            machine.rip = address_of(gate::clew_gate_indirect);
            true
        }
        Some((_, SpillState::Landing)) if code == IN_LANDING => {
            machine.rip += IN_LANDING.len() as u64;
            true
        }
        _ => false,
    }
}

/// The instruction whose copy an address of the cache belongs to.
pub fn app_pc_at(cache: &Cache, pc: u64) -> Option<AppPc> {
    let (id, offset) = fragment_at(cache, pc)?;
    let fragment = cache.fragment(id);
    Some(fragment.app_pc + state_at(cache, fragment, offset)?.0)
}

/// The fragment that an address of the cache belongs to.
pub fn fragment_at(cache: &Cache, pc: u64) -> Option<(FragmentId, u64)> {
    match cache.slabs.find_unit(pc)? {
        Found { unit: Unit::Fragment(id), start, is_cold: false } => Some((id, pc - start)),
        Found { unit: Unit::Enclosure(index), .. } => {
            let id = cache.rseqs.fragment_at(index, pc)?;
            Some((id, pc - cache.fragment(id).cache_start.raw()))
        }
        _ => None,
    }
}
