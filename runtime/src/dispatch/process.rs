//! New threads, new processes, new programs.

use crate::arch::x86_64::context::{ThreadContext, RESTART_ARMED, RESTART_DUE};
use crate::dispatch::{seccomp, syscalls};
use crate::instrument::pads::DynamicEdge;
use crate::instrument::ENGINE;
use crate::protocol::{edge_kind, end_kind, error_code, event_kind, release_reason};
use crate::signal::deliver;
use crate::signal::table::SIGNALS;
use crate::sys::calls::{check, gettid, program_call, set_signal_mask, syscall, EAGAIN, EFAULT, EINVAL};
use crate::sys::kernel::{CLONE_THREAD, CLONE_VFORK, CLONE_VM};
use crate::sys::number;
use crate::thread::block::{set_gs_base, set_signal_stack};
use crate::thread::create::{
    self, child_stack_top, CLONE_ARGS_FLAGS, CLONE_ARGS_STACK, CLONE_ARGS_STACK_SIZE, CLONE_ARGS_WORDS,
};
use crate::thread::registry::{begin_slot, describe_end, write_event, writer_of};
use crate::thread::THREADS;

/// Whether the program may read `size` bytes at `address`: the kernel is asked, by a call that fails without an effect.
pub fn is_readable(address: u64, size: u64) -> bool {
    // rt_sigprocmask reads eight bytes of a set and then refuses the unknown way to apply it: EINVAL, or EFAULT before.
    let probe = |at: u64| {
        // SAFETY: changes nothing, because 99 is no way to apply a mask.
        let result = unsafe { syscall(number::RT_SIGPROCMASK, [99, at, 0, 8, 0, 0]) };
        result != -i64::from(EFAULT)
    };
    size >= 8 && probe(address) && probe(address + size - 8)
}

/// Whether the program may write `size` bytes at `address`.
pub fn is_writable(address: u64, size: u64) -> bool {
    // rt_sigpending writes up to eight bytes: what is pending, which is put back.
    const RT_SIGPENDING: u64 = 127;
    if !is_readable(address, size) {
        return false;
    }
    let probe = |at: u64| {
        // SAFETY: readable, as was just found.
        let before = unsafe { (at as *const u64).read_unaligned() };
        // SAFETY: writes eight bytes where the program asked for more to be written.
        let result = unsafe { syscall(RT_SIGPENDING, [at, 8, 0, 0, 0, 0]) };
        if result == 0 {
            // SAFETY: the kernel just wrote there.
            unsafe { (at as *mut u64).write_unaligned(before) };
        }
        result == 0
    };
    probe(address) && probe(address + size - 8)
}

/// clone: arguments are flags, stack, parent tid, child tid, tls.
pub fn clone(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let [flags, stack, parent_tid, child_tid, tls, _] = arguments;
    if is_process(flags) {
        return start_process(context, stack, |context| {
            let entry = [parent_tid, child_tid, tls];
            create::clone(flags, entry, child_stack_top(context), context, released_child)
        });
    }
    start_thread(context, stack, |child| {
        create::clone(flags, [parent_tid, child_tid, tls], child.stack_top, child, started_thread)
    })
}

/// Whether a clone makes a process with memory of its own, or one that its parent waits for. Any other task shares the
/// memory while both run, and is followed like a thread.
fn is_process(flags: u64) -> bool {
    flags & CLONE_VM == 0 || flags & (CLONE_VFORK | CLONE_THREAD) == CLONE_VFORK
}

/// clone3.
pub fn clone3(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let [address, size, ..] = arguments;
    let mut words = [0u64; CLONE_ARGS_WORDS];
    if size < 64 || size > 8 * CLONE_ARGS_WORDS as u64 || size % 8 != 0 {
        // The kernel's own answer to sizes that it does not know: E2BIG or EINVAL, or it knows more than we do.
        // SAFETY: cannot start anything, as that size is refused.
        let result = unsafe { program_call(number::CLONE3, [address, size.min(8), 0, 0, 0, 0]) };
        return if size >= 64 && result == -i64::from(EINVAL) { -7 } else { result };
    }
    if !is_readable(address, size) {
        // SAFETY: cannot start anything: what it would read is not there.
        return unsafe { program_call(number::CLONE3, arguments) };
    }
    // SAFETY: readable, as was just found; `words` is large enough.
    unsafe { core::ptr::copy_nonoverlapping(address as *const u8, words.as_mut_ptr() as *mut u8, size as usize) };
    let flags = words[CLONE_ARGS_FLAGS];
    let (base, length) = (words[CLONE_ARGS_STACK], words[CLONE_ARGS_STACK_SIZE]);
    if (base == 0) != (length == 0) {
        return -i64::from(EINVAL);
    }
    let stack = base + length;
    if is_process(flags) {
        return start_process(context, stack, |context| {
            create::clone3(words, size, child_stack_top(context), context, released_child)
        });
    }
    start_thread(context, stack, |child| create::clone3(words, size, child.stack_top, child, started_thread))
}

/// fork and vfork.
pub fn fork(context: &mut ThreadContext, call: u64) -> i64 {
    start_process(context, 0, |context| create::fork(call, child_stack_top(context), context, released_child))
}

/// Starts a thread that runs under the runtime from its first instruction.
fn start_thread(context: &mut ThreadContext, stack: u64, start: impl FnOnce(&ThreadContext) -> i64) -> i64 {
    let shared = ENGINE.lock().shared;
    // The child inherits the mask and must not meet a signal before it has its own signal stack.
    let mask = set_signal_mask(u64::MAX);
    let Some(child) = THREADS.lock().take(shared) else {
        set_signal_mask(mask);
        shared.add(crate::status_field!(lost_threads), 1);
        shared.report_error(error_code::THREADS_FULL, [0; 4]);
        return -i64::from(EAGAIN);
    };
    child.registers = context.registers;
    child.registers[0] = 0;
    if stack != 0 {
        child.registers[4] = stack;
    }
    child.rip = context.rip;
    child.rflags = context.rflags;
    child.xmm = context.xmm;
    child.mxcsr = context.mxcsr;
    child.app_gs_base = context.app_gs_base;
    child.pair_table = context.pair_table;
    child.pair_mask = context.pair_mask;
    child.parent_tid = context.tid;
    child.start_mask = if syscalls::is_signal_waiting(context) { context.pending_mask } else { mask };
    let slot = child.slot;
    core::hint::black_box(&raw mut *child);
    let result = start(child);
    if check(result).is_err() {
        THREADS.lock().give_back(shared, slot);
    }
    set_signal_mask(mask);
    result
}

/// The first thing a new thread does: on its own stack, all signals blocked.
extern "C" fn started_thread(context: &mut ThreadContext) -> ! {
    set_gs_base(context.self_address);
    set_signal_stack(context);
    context.tid = gettid();
    THREADS.lock().set_tid(context.slot, context.tid);
    begin(context, context.parent_tid);
    context.note_mask(context.start_mask);
    set_signal_mask(context.start_mask);
    create::enter(context)
}

/// Records a thread's start: its slot, an event, and the edge into its first block.
pub fn begin(context: &mut ThreadContext, parent: u32) {
    let mut engine = ENGINE.lock();
    let shared = engine.shared;
    begin_slot(context, shared);
    let writer = writer_of(context, shared);
    write_event(&writer, event_kind::THREAD_START, context.rip, [u64::from(parent), u64::from(context.slot), 0]);
    let edge = DynamicEdge {
        kind: edge_kind::START,
        source_fragment: crate::cache::NONE,
        source_pc: 0,
        target_pc: context.rip,
    };
    engine.count_edge(&writer, context, edge);
}

/// Starts a process. Its child goes on natively; the event says so.
fn start_process(context: &mut ThreadContext, stack: u64, start: impl FnOnce(&ThreadContext) -> i64) -> i64 {
    let mask = set_signal_mask(u64::MAX);
    // A child that shares memory runs on this very context: it finds what it needs there, and changes nothing that
    // is not put back.
    let saved = (context.registers, context.start_mask);
    context.registers[0] = 0;
    if stack != 0 {
        context.registers[4] = stack;
    }
    context.start_mask = if syscalls::is_signal_waiting(context) { context.pending_mask } else { mask };
    // The child gets the context by its address alone: the stores above must not be taken for dead.
    core::hint::black_box(&raw mut *context);
    let result = start(context);
    core::hint::black_box(&raw mut *context);
    (context.registers, context.start_mask) = saved;
    if let Ok(pid) = check(result) {
        let shared = ENGINE.lock().shared;
        write_event(&writer_of(context, shared), event_kind::FORK, context.rip, [pid, 0, 0]);
    }
    set_signal_mask(mask);
    result
}

/// The first thing a new process does: it leaves the runtime.
extern "C" fn released_child(context: &mut ThreadContext) -> ! {
    let mask = context.start_mask;
    deliver::release_process(context, mask)
}

/// execve and execveat: everything is recorded before, because nothing of the runtime is left after.
pub fn execute(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> i64 {
    let shared = ENGINE.lock().shared;
    let writer = writer_of(context, shared);
    write_event(&writer, event_kind::EXECVE, context.rip, [0; 3]);
    describe_end(context, shared, end_kind::EXECVE);
    SIGNALS.lock().pass_ignored(true);
    let result = call_restartable(context, call, arguments);
    SIGNALS.lock().pass_ignored(false);
    begin_slot_again(context);
    write_event(&writer, event_kind::EXECVE_FAILED, context.rip, [-result as u64, 0, 0]);
    result
}

/// Makes a call that passes the thread's mask on: a signal before it gives it up, is delivered, and the program makes
/// the call again. No lock may be held.
fn call_restartable(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> i64 {
    let after = (context.registers[1], context.registers[11], context.rip);
    context.registers[1] = context.spill_rcx;
    context.registers[11] = context.spill_r11;
    let mask = set_signal_mask(u64::MAX);
    // SAFETY: a field of a live context, which the signal handler reads.
    unsafe { (&raw mut context.restart).write_volatile(RESTART_ARMED) };
    if syscalls::is_signal_waiting(context) {
        // It came before the call was armed: the mask is not the program's.
        context.restart = RESTART_DUE;
        set_signal_mask(mask);
        create::enter(context);
    }
    set_signal_mask(mask);
    // SAFETY: the program's own call.
    let result = unsafe { program_call(call, arguments) };
    // SAFETY: as above.
    unsafe { (&raw mut context.restart).write_volatile(0) };
    (context.registers[1], context.registers[11], context.rip) = after;
    result
}

/// The program was not replaced: the thread runs on.
pub fn begin_slot_again(context: &ThreadContext) {
    let shared = ENGINE.lock().shared;
    let slot = shared.slot(context.slot);
    // SAFETY: the slot is mapped and this thread's own.
    unsafe {
        (&raw mut (*slot).end_kind).write_volatile(end_kind::UNKNOWN);
        (&raw mut (*slot).end_tsc).write_volatile(0);
        (&raw mut (*slot).name).write_volatile([0; 16]);
    }
}

/// Releases the calling thread because the runtime cannot go on with it.
pub fn give_up(context: &mut ThreadContext) -> ! {
    super::delivery::release(context, release_reason::RUNTIME_ERROR)
}

/// Prepares the gate for the calls that come here.
pub fn initialize() {
    syscalls::initialize();
    seccomp::initialize();
}
