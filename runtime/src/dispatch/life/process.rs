//! New threads and new processes: which kind a clone makes, and tasks that share the program's memory.

use super::begin::begin;
use super::{fork, release};
use crate::buffer::Shared;
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::cpu::enter_block;
use crate::cpu::sys::number;
use crate::cpu::thread::create::{
    self, ChildEntry, CLONE_ARGS_FLAGS, CLONE_ARGS_SIZES, CLONE_ARGS_STACK, CLONE_ARGS_STACK_SIZE, CLONE_ARGS_WORDS,
};
use crate::dispatch::calls::access::is_readable;
use crate::dispatch::calls::seccomp;
use crate::instrument::ENGINE;
use crate::protocol::event_kind;
use crate::signal::table::{copy_table, free_table, table_of};
use crate::sys::calls::{check, gettid, program_call, set_signal_mask, E2BIG, EAGAIN, EINVAL};
use crate::sys::kernel::{CLONE_CLEAR_SIGHAND, CLONE_SIGHAND, CLONE_THREAD, CLONE_VFORK, CLONE_VM, SIGCHLD};
use crate::thread::block::set_signal_stack;
use crate::thread::registry::{take_slot, write_event, writer_of};
use crate::thread::THREADS;

/// clone: arguments are flags, stack, parent tid, child tid, tls.
pub fn clone(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let [flags, stack, parent_tid, child_tid, tls, _] = arguments;
    let others = [parent_tid, child_tid, tls];
    start_task(context, stack, flags, |child, top, entry| {
        create::clone(child.process.child_flags, others, top, child, entry)
    })
}

/// What makes the call: with the child's context, the stack on which the child starts, and what it runs first there.
type Start<'a> = &'a dyn Fn(&ThreadContext, u64, ChildEntry) -> i64;

/// Starts what a clone with `flags` makes, by `start`, which takes them of the child's context; without memory in common a
/// process, otherwise a task that is followed like a thread. `stack` is the child's stack pointer, 0: the parent's.
fn start_task(
    context: &mut ThreadContext,
    stack: u64,
    flags: u64,
    start: impl Fn(&ThreadContext, u64, ChildEntry) -> i64,
) -> i64 {
    context.process.child_flags = flags;
    if flags & CLONE_VM == 0 {
        return fork::start_process(context, stack, &start);
    }
    let is_process = flags & CLONE_THREAD == 0;
    if is_process && ENGINE.lock().shared.header().follows == 0 && flags & CLONE_VFORK != 0 {
        return fork::start_unfollowed(context, stack, &start);
    }
    start_sharing(context, stack, flags, &start)
}

/// clone3. As the kernel does, takes arguments larger than it knows if there are zeros behind what it knows.
pub fn clone3(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let [address, size, ..] = arguments;
    let mut words = [0u64; CLONE_ARGS_WORDS];
    let known_size = size.min(8 * CLONE_ARGS_WORDS as u64);
    if !CLONE_ARGS_SIZES.contains(&size) || !is_readable(address, size) {
        // SAFETY: cannot start anything: the kernel refuses such sizes, or what it would read is not there.
        return unsafe { program_call(number::CLONE3, arguments) };
    }
    // SAFETY: readable, as was just found: no more than two pages; `words` is large enough.
    unsafe { core::ptr::copy_nonoverlapping(address as *const u8, words.as_mut_ptr() as *mut u8, known_size as usize) };
    // SAFETY: as above.
    if (known_size..size).any(|at| unsafe { ((address + at) as *const u8).read() } != 0) {
        return -i64::from(E2BIG);
    }
    let flags = words[CLONE_ARGS_FLAGS];
    let (base, length) = (words[CLONE_ARGS_STACK], words[CLONE_ARGS_STACK_SIZE]);
    if (base == 0) != (length == 0) {
        return -i64::from(EINVAL);
    }
    let stack = base + length;
    start_task(context, stack, flags, |child, top, entry| {
        let mut words = words;
        words[CLONE_ARGS_FLAGS] = child.process.child_flags;
        create::clone3(words, known_size, top, child, entry)
    })
}

/// fork and vfork, as `call` says.
pub fn fork(context: &mut ThreadContext, call: u64) -> i64 {
    let flags = u64::from(SIGCHLD) | if call == number::VFORK { CLONE_VM | CLONE_VFORK } else { 0 };
    start_task(context, 0, flags, |child, top, entry| create::fork(call, top, child, entry))
}

/// Starts a task that shares the memory and runs under the runtime from its first instruction: a thread, or a process such as
/// vfork makes.
fn start_sharing(context: &mut ThreadContext, stack: u64, flags: u64, start: Start) -> i64 {
    let shared = ENGINE.lock().shared;
    // The child inherits the mask and must not meet a signal before it has its own signal stack.
    let mask = set_signal_mask(u64::MAX);
    let Some(child) = take_slot(shared) else {
        set_signal_mask(mask);
        shared.add(crate::status_field!(lost_threads), 1);
        return -i64::from(EAGAIN);
    };
    child.registers.inherit(&context.registers);
    child.registers.set_result(0);
    if stack != 0 {
        child.registers.set_sp(stack);
    }
    child.vector = context.vector;
    child.gate.pair_table = context.gate.pair_table;
    child.gate.pair_mask = context.gate.pair_mask;
    child.process.parent_tid = context.tid;
    child.process.start_mask =
        context.program_mask(if context.is_signal_waiting() { context.signals.pending_mask } else { mask });
    child.process.sharing = match flags & (CLONE_VFORK | CLONE_THREAD) {
        CLONE_VFORK => Sharing::WaitedFor,
        0 => Sharing::NotWaitedFor,
        _ => Sharing::Thread,
    };
    child.process.child_flags = flags;
    child.signals.table = if flags & CLONE_SIGHAND == 0 { copy_table(context) } else { context.signals.table };
    if flags & CLONE_VFORK != 0 {
        // As the kernel does for it (kernel/fork.c, copy_process).
        child.signals.stack = context.signals.stack;
    }
    let slot = child.slot;
    core::hint::black_box(&raw mut *child);
    let result = start(child, child.gate.stack_top, started_task);
    let is_started = check(result).is_ok();
    if is_started && child.process.sharing != Sharing::Thread {
        let details = [result as u64, 1, 0];
        write_event(&writer_of(context, shared), event_kind::FORK, context.registers.pc, details);
    }
    if !is_started {
        THREADS.lock().give_back(shared, slot);
    } else if flags & (CLONE_VFORK | CLONE_THREAD) == CLONE_VFORK {
        clean_up_after(child, shared);
    }
    if flags & CLONE_SIGHAND == 0 && (!is_started || flags & CLONE_VFORK != 0) {
        // SAFETY: the child never was, or uses this memory no more.
        unsafe { free_table(child.signals.table) };
    }
    set_signal_mask(mask);
    result
}

/// Whether the thread is a vfork's child, whose slot its parent ends.
pub fn is_waited_for(context: &ThreadContext) -> bool {
    context.process.sharing == Sharing::WaitedFor
}

/// After a vfork: the child is gone from this memory, by a new program, its own end or a signal that killed it.
fn clean_up_after(child: &mut ThreadContext, shared: Shared) {
    if child.is_signal_waiting() {
        release::take_pending(child);
    }
    THREADS.lock().end_for(child.slot, shared);
}

/// The first thing that a new task does: on its own stack, all signals blocked.
extern "C" fn started_task(context: &mut ThreadContext) -> ! {
    enter_block(context);
    set_signal_stack(context);
    context.tid = gettid();
    THREADS.lock().set_tid(context.slot, context.tid);
    if context.process.child_flags & CLONE_CLEAR_SIGHAND != 0 {
        table_of(context).lock().clear_handlers();
    }
    begin(context, context.process.parent_tid);
    set_signal_mask(context.note_mask(context.process.start_mask));
    create::enter(context)
}

/// Prepares the gate for the calls that come here.
pub fn initialize() {
    seccomp::initialize();
}
