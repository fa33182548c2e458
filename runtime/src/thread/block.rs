//! A thread's private block: mapping it and filling its context.

use crate::arch::x86_64::context::{
    ThreadContext, BRANCH_TABLE_OFFSET, KEPT_COUNTERS_OFFSET, PRIVATE_BYTES, SHADOW_BYTES, SHADOW_OFFSET,
    SIGNAL_STACK_BYTES, SIGNAL_STACK_OFFSET, STACK_BYTES, STACK_OFFSET,
};
use crate::arch::x86_64::gate;
use crate::arch::x86_64::region::{REGION_BYTES, REGION_CELLS_OFFSET};
use crate::buffer::Shared;
use crate::cache::NONE;
use crate::protocol::{error_code, mode, THREAD_COUNTERS_OFFSET, THREAD_STRIDE_BYTES};
use crate::sys::calls::{mmap, mremap, syscall};
use crate::sys::kernel::{
    SigInfo, SigStack, ARCH_SET_GS, MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE, MREMAP_FIXED, MREMAP_MAYMOVE,
    PROT_READ, PROT_WRITE,
};
use crate::sys::number;
use crate::sys::spare::with_mapping;

/// Makes the block of slot `slot` at `address`.
pub fn make(
    address: u64,
    slot: u32,
    shared: Shared,
    is_mapped: bool,
    branch_table_filled: u32,
) -> Option<&'static mut ThreadContext> {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    // SAFETY: the range is the slot's part of the address space that the controller reserved; no thread uses it.
    let mapped = with_mapping(|| unsafe { mmap(address, PRIVATE_BYTES, PROT_READ | PROT_WRITE, flags) });
    if let Err(error) = mapped {
        shared.report_error(error_code::MAPPING_FAILED, [error.0 as u64, address, 0, 0]);
        return None;
    }
    if !is_mapped && !map_counters(address, slot, shared) {
        return None;
    }
    if shared.header().mode == mode::REGION && !map_cells(address, shared) {
        return None;
    }
    // SAFETY: just mapped, zeroed, large enough, and nobody else's; all-zero is a valid context.
    let context = unsafe { &mut *(address as *mut ThreadContext) };
    context.self_address = address;
    context.stack_top = address + STACK_OFFSET + STACK_BYTES;
    context.gate_exit = gate::clew_gate_exit as *const () as u64;
    context.gate_indirect = gate::clew_gate_indirect as *const () as u64;
    context.gate_syscall = gate::clew_gate_syscall as *const () as u64;
    context.handled_calls = &raw const gate::HANDLED_SYSCALLS as u64;
    context.mxcsr = 0x1f80;
    context.pending_info = SigInfo::ZERO;
    context.app_signal_stack = SigStack::DISABLED;
    context.unlinked_fragment = NONE;
    context.slot = slot;
    context.tells_first = 1;
    context.sequence_word = &raw const context.no_sequence as u64;
    fill_branch_table(context, 0, branch_table_filled);
    Some(context)
}

/// Maps an empty shadow stack, and the page below it; what lies above is not mapped. `false`: reported.
pub fn map_shadow_stack(address: u64, shared: Shared) -> bool {
    const BELOW: u64 = 0x1000;
    map_zeros(address + SHADOW_OFFSET - BELOW, BELOW + SHADOW_BYTES, shared)
}

/// Maps, as zeros, what is kept of a thread's path at checkpoints. `false`: reported.
pub fn map_kept(address: u64, shared: Shared) -> bool {
    map_zeros(address + KEPT_COUNTERS_OFFSET, THREAD_STRIDE_BYTES - KEPT_COUNTERS_OFFSET, shared)
}

fn map_zeros(address: u64, size: u64, shared: Shared) -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    // SAFETY: a part of a slot's block that nothing else uses.
    match with_mapping(|| unsafe { mmap(address, size, PROT_READ | PROT_WRITE, flags) }) {
        Ok(_) => true,
        Err(error) => {
            shared.report_error(error_code::MAPPING_FAILED, [error.0 as u64, address, 2, 0]);
            false
        }
    }
}

/// Maps what tags take of a block, zeroed. `false`: reported.
pub fn map_cells(address: u64, shared: Shared) -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    let start = address + REGION_CELLS_OFFSET;
    // SAFETY: a part of the slot's block that nothing else uses, and of which no translated code runs now.
    match with_mapping(|| unsafe { mmap(start, REGION_BYTES, PROT_READ | PROT_WRITE, flags) }) {
        Ok(_) => true,
        Err(error) => {
            shared.report_error(error_code::MAPPING_FAILED, [error.0 as u64, address, 3, 0]);
            false
        }
    }
}

/// Maps the counters of slot `slot` into the window of its block; `false`: reported.
pub fn map_counters(address: u64, slot: u32, shared: Shared) -> bool {
    let (size, flags) = (shared.header().counter_bytes, MREMAP_MAYMOVE | MREMAP_FIXED);
    // An old size of zero makes a second mapping of the same shared pages (mremap(2)).
    let window = address + THREAD_COUNTERS_OFFSET;
    // SAFETY: the target range is the window inside the slot's part of the reserve.
    match with_mapping(|| unsafe { mremap(shared.counters(slot), 0, size, flags, window) }) {
        Ok(_) => true,
        Err(error) => {
            shared.report_error(error_code::MAPPING_FAILED, [error.0 as u64, address, 1, 0]);
            false
        }
    }
}

/// Makes a block's address space as the controller reserved it: no thread uses it.
pub fn forget(address: u64) {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    // SAFETY: the slot's part of the reserve.
    let _ = unsafe { mmap(address, THREAD_STRIDE_BYTES, 0, flags) };
}

/// Makes branch table entries lead to the indirect gate: nothing known.
pub fn fill_branch_table(context: &ThreadContext, from: u32, to: u32) {
    let gate = gate::clew_gate_indirect as *const () as u64;
    for index in from..to {
        let entry = (context.self_address + BRANCH_TABLE_OFFSET + u64::from(index) * 8) as *mut u64;
        // SAFETY: the table is inside the block; `to` is at most BRANCH_TABLE_ENTRIES, by how sites are numbered.
        unsafe { entry.write_volatile(gate) };
    }
}

/// Sets the calling thread's gs base.
pub fn set_gs_base(base: u64) {
    // SAFETY: the runtime's code does not use gs but through contexts; translated code expects this very base.
    unsafe { syscall(number::ARCH_PRCTL, [ARCH_SET_GS, base, 0, 0, 0, 0]) };
}

/// Gives the calling thread the runtime's alternate signal stack.
pub fn set_signal_stack(context: &ThreadContext) {
    let stack = signal_stack(context);
    // SAFETY: reads the structure; the memory is this thread's own.
    unsafe { syscall(number::SIGALTSTACK, [&stack as *const SigStack as u64, 0, 0, 0, 0, 0]) };
}

/// The runtime's alternate signal stack of a thread.
pub fn signal_stack(context: &ThreadContext) -> SigStack {
    SigStack { sp: context.self_address + SIGNAL_STACK_OFFSET, flags: 0, padding: 0, size: SIGNAL_STACK_BYTES }
}
