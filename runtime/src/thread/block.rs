//! A thread's private block: mapping it and filling its context.

use crate::buffer::Shared;
use crate::context::layout::{
    BRANCH_TABLE_OFFSET, KEPT_COUNTERS_OFFSET, OPEN_CALLS_OFFSET, PRIVATE_BYTES, SHADOW_BYTES, SHADOW_OFFSET,
    SIGNAL_STACK_BYTES, SIGNAL_STACK_OFFSET, STACK_BYTES, STACK_OFFSET,
};
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::cpu::context::Vector;
use crate::cpu::region::{REGION_BYTES, REGION_CELLS_OFFSET};
use crate::cpu::sys::number;
use crate::cpu::{dispatcher, gate};
use crate::instrument::captures::open_calls::OpenCalls;
use crate::instrument::recorders::has_cells;
use crate::protocol::{error_code, CALL_WINDOW_BYTES, PAGE_BYTES, THREAD_COUNTERS_OFFSET, THREAD_STRIDE_BYTES};
use crate::sys::calls::{mmap, mremap, syscall};
use crate::sys::kernel::{
    SigInfo, SigStack, MADV_REMOVE, MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE, MAP_PRIVATE, MREMAP_FIXED, MREMAP_MAYMOVE,
    PROT_READ, PROT_WRITE,
};
use crate::sys::spare::with_mapping;

/// Maps the block of slot `slot` at `address`, which never was. `false`: reported.
pub fn map(address: u64, slot: u32, shared: Shared, branch_table_filled: u32) -> bool {
    if !map_zeros(address, PRIVATE_BYTES, 0, shared) || !map_counters(address, slot, shared) {
        return false;
    }
    fill_branch_table(address, 0, branch_table_filled);
    true
}

/// The same for a thread that executes the program's own code: nothing is counted in it. `false`: reported.
pub fn map_bare(address: u64, shared: Shared) -> bool {
    map_zeros(address, PRIVATE_BYTES, 0, shared)
}

/// Makes a context of the mapped block of slot `slot` at `address`, which no thread uses. What is known of branches and of how
/// often code runs stays from one of its threads to the next: that is as true for the one as for the other.
pub fn make(address: u64, slot: u32, shared: Shared) -> Option<&'static mut ThreadContext> {
    if has_cells(shared) && !map_cells(address, shared) {
        return None;
    }
    let context = address as *mut ThreadContext;
    // SAFETY: mapped, large enough, and nobody else's; all-zero is a valid context.
    let context = unsafe {
        let left = (*context).left;
        context.write_bytes(0, 1);
        (*context).left = left;
        &mut *context
    };
    context.self_address = address;
    context.gate.stack_top = address + STACK_OFFSET + STACK_BYTES;
    context.gate.gate_exit = gate::clew_gate_exit as *const () as u64;
    context.gate.gate_indirect = gate::clew_gate_indirect as *const () as u64;
    context.gate.gate_syscall = gate::clew_gate_syscall as *const () as u64;
    context.gate.one = 1;
    context.call.handled = &raw const dispatcher::HANDLED_SYSCALLS as u64;
    context.vector = Vector::INITIAL;
    context.signals.pending_info = SigInfo::ZERO;
    context.signals.stack = SigStack::DISABLED;
    context.signals.unlinked_fragment = FragmentId::NONE;
    context.slot = slot;
    (context.capture.slot_address, context.capture.ring) = (shared.slot(slot) as u64, shared.ring(slot));
    context.path.tells_first = 1;
    context.rseq.word = &raw const context.rseq.no_word as u64;
    Some(context)
}

/// Has the block have a shadow stack, and the page below it; what lies above is not mapped. `false`: reported.
pub fn map_shadow_stack(context: &mut ThreadContext, shared: Shared) -> bool {
    if !context.left.has_shadow_stack {
        let start = context.self_address + SHADOW_OFFSET - PAGE_BYTES;
        context.left.has_shadow_stack = map_zeros(start, PAGE_BYTES + SHADOW_BYTES, 2, shared);
    }
    context.left.has_shadow_stack
}

/// Has the thread have its window of calls, in which none is open. `false`: reported.
pub fn map_open_calls(context: &mut ThreadContext, shared: Shared) -> bool {
    let window = context.self_address + OPEN_CALLS_OFFSET;
    if context.capture.has_open_calls == 0
        && map_shared(shared.calls(context.slot), CALL_WINDOW_BYTES, window, 4, shared)
    {
        clear_open_calls(context);
        context.capture.has_open_calls = 1;
    }
    context.capture.has_open_calls != 0
}

/// Has the thread have its window of calls, with those that are in it. `false`: reported, or it has it already.
pub fn map_handed_calls(context: &mut ThreadContext, shared: Shared) -> bool {
    let window = context.self_address + OPEN_CALLS_OFFSET;
    let is_new = context.capture.has_open_calls == 0
        && map_shared(shared.calls(context.slot), CALL_WINDOW_BYTES, window, 4, shared);
    context.capture.has_open_calls |= u32::from(is_new);
    is_new
}

/// Has no call be open in the thread's window, which is mapped: the memory is given back.
pub fn clear_open_calls(context: &ThreadContext) {
    let window = context.self_address + OPEN_CALLS_OFFSET;
    let arguments = [window, CALL_WINDOW_BYTES, u64::from(MADV_REMOVE), 0, 0, 0];
    // SAFETY: the thread's own window, in which nothing else is.
    if unsafe { syscall(number::MADVISE, arguments) } < 0 {
        // SAFETY: as above. A filter of the program's refused it.
        unsafe { OpenCalls::of(context.self_address) }.clear();
    }
}

/// Has the block have what is kept of a thread's path at checkpoints, as zeros. `false`: reported.
pub fn map_kept(context: &mut ThreadContext, shared: Shared) -> bool {
    let start = context.self_address + KEPT_COUNTERS_OFFSET;
    if !context.left.has_kept || context.left.is_kept_used {
        context.left.has_kept = map_zeros(start, THREAD_STRIDE_BYTES - KEPT_COUNTERS_OFFSET, 2, shared);
        context.left.is_kept_used = false;
    }
    context.left.has_kept
}

/// Maps a part of a block; `what` goes with the report. `false`: reported.
fn map_zeros(address: u64, size: u64, what: u64, shared: Shared) -> bool {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    // SAFETY: a part of a slot's block that nothing else uses.
    match with_mapping(|| unsafe { mmap(address, size, PROT_READ | PROT_WRITE, flags) }) {
        Ok(_) => true,
        Err(error) => {
            shared.report_error(error_code::MAPPING_FAILED, [error.0 as u64, address, what, 0]);
            false
        }
    }
}

/// Maps what tags take of a block, zeroed. `false`: reported.
pub fn map_cells(address: u64, shared: Shared) -> bool {
    map_zeros(address + REGION_CELLS_OFFSET, REGION_BYTES, 3, shared)
}

/// Maps the counters of slot `slot` into the window of its block; `false`: reported.
pub fn map_counters(address: u64, slot: u32, shared: Shared) -> bool {
    map_shared(shared.counters(slot), shared.header().counter_bytes, address + THREAD_COUNTERS_OFFSET, 1, shared)
}

/// Maps a part of the shared memory once more, at a window of a block; `what` goes with the report. `false`: reported.
fn map_shared(part: u64, size: u64, window: u64, what: u64, shared: Shared) -> bool {
    // An old size of zero makes a second mapping of the same shared pages (mremap(2)).
    let flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    // SAFETY: the target range is the window inside the slot's part of the reserve.
    match with_mapping(|| unsafe { mremap(part, 0, size, flags, window) }) {
        Ok(_) => true,
        Err(error) => {
            shared.report_error(error_code::MAPPING_FAILED, [error.0 as u64, window, what, 0]);
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

/// Makes entries of the branch table of the block at `address` lead to the indirect gate: nothing known.
pub fn fill_branch_table(address: u64, from: u32, to: u32) {
    let gate = gate::clew_gate_indirect as *const () as u64;
    for index in from..to {
        let entry = (address + BRANCH_TABLE_OFFSET + u64::from(index) * 8) as *mut u64;
        // SAFETY: the table is inside the block; `to` is at most BRANCH_TABLE_ENTRIES, by how sites are numbered.
        unsafe { entry.write_volatile(gate) };
    }
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
