//! Children with memory of their own.
//!
//! A fork copies the code cache and everything the runtime knows; what is shared with the controller it must not copy. So
//! the child, before it runs on, moves to a region of its own in the shared file, which the parent asked for, and says who
//! it is. A child without a region goes on natively.

use super::begin::begin;
use super::dumpable;
use super::dumpable::while_shown;
use super::running::{stamp_start, tell_running};
use crate::buffer::Shared;
use crate::cache::copies;
use crate::cache::links::UNDELIVERED;
use crate::context::native::Native;
use crate::context::numbers::FragmentId;
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::cpu::signal::deliver;
use crate::cpu::sys::clock::ticks;
use crate::cpu::thread::create::{self, child_stack_top, ChildEntry};
use crate::dispatch::apart::{captured_calls, captured_rings};
use crate::dispatch::calls::{advice, locks, user_dispatch};
use crate::dispatch::proc::proc_reads;
use crate::instrument::recorders::has_cells;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{event_kind, request_kind};
use crate::signal::table::table_of;
use crate::sys::calls::{check, getpid, gettid, set_signal_mask};
use crate::sys::kernel::{CLONE_CLEAR_SIGHAND, CLONE_VFORK};
use crate::sys::{filter, heap};
use crate::thread::block::{fill_branch_table, map_cells};
use crate::thread::registry::{write_event, writer_of};
use crate::thread::THREADS;
use core::sync::atomic::Ordering;

/// What makes the call: see `process::start_task`.
type Start<'a> = &'a dyn Fn(&ThreadContext, u64, ChildEntry) -> i64;

/// Starts a process whose memory is a copy of this one's.
pub fn start_process(context: &mut ThreadContext, stack: u64, start: Start) -> i64 {
    let shared = ENGINE.lock().shared;
    let region = ask_for_region(context, shared);
    if region == 0 {
        return start_unfollowed(context, stack, start);
    }
    context.process.child_region = region;
    // No lock of the runtime's may be held for as long as a child is waited for, so it is not the kernel that waits.
    let is_waited_for = context.process.child_flags & CLONE_VFORK != 0;
    context.process.child_flags &= !CLONE_VFORK;
    let mut is_possible = true;
    let result = start_copy(context, stack, |context| {
        let Some(result) = start_whole_copy(context, start) else {
            is_possible = false;
            return 0;
        };
        let writer = writer_of(context, shared);
        match check(result) {
            Ok(pid) => {
                writer.tell_birth(region, pid);
                write_event(&writer, event_kind::FORK, context.registers.pc, [pid, 1, 0]);
                if is_buried_unseen(context) {
                    await_births(context);
                }
                if is_waited_for {
                    writer.await_child(region, pid);
                }
            }
            Err(_) => {
                writer.request(request_kind::FORK, [u64::from(region), 0, 0, 0]);
            }
        }
        result
    });
    if !is_possible {
        context.process.child_flags |= if is_waited_for { CLONE_VFORK } else { 0 };
        writer_of(context, shared).request(request_kind::FORK, [u64::from(region), 0, 0, 0]);
        return start_unfollowed(context, stack, start);
    }
    result
}

/// `None`: the child can't have a cache of its own, and is not made.
fn start_whole_copy(context: &mut ThreadContext, start: Start) -> Option<i64> {
    // The copy must be whole: nobody else is changing anything while it is made. The child gives these up.
    let _shown = dumpable::hold();
    let mut engine = ENGINE.lock();
    if !copies::make_copies(&engine.cache.slabs) {
        return None;
    }
    engine.captures.other_calls.pass(crate::thread::captured_calls::table_of(context));
    let _threads = THREADS.lock();
    let _actions = table_of(context).lock();
    let _texts = proc_reads::hold();
    heap::hold();
    context.process.fork_tsc = ticks();
    core::hint::black_box(&raw mut *context);
    let result = start(context, child_stack_top(context), followed_child);
    // SAFETY: held above.
    unsafe { heap::let_go() };
    copies::drop_copies();
    engine.captures.other_calls.pass(None);
    Some(result)
}

/// Whether a child may be buried before this thread waits for it: as it ends, or by another thread that waits already.
fn is_buried_unseen(context: &ThreadContext) -> bool {
    THREADS.lock().contexts().nth(1).is_some() || table_of(context).lock().buries_children()
}

/// Has the controller know of all children before one of them may be buried: of one that ends at its birth it learns nothing more.
pub fn await_births(context: &ThreadContext) {
    let n_slots = THREADS.lock().n_slots();
    let shared = ENGINE.lock().shared;
    if shared.header().follows != 0 && !filter::may_wait() {
        writer_of(context, shared).await_births(n_slots);
    }
}

/// Starts a process that goes on natively, with a copy of the memory or while its parent waits; the event says so.
pub fn start_unfollowed(context: &mut ThreadContext, stack: u64, start: Start) -> i64 {
    let mut engine = ENGINE.lock();
    let shared = engine.shared;
    engine.suspend_trust(&writer_of(context, shared));
    drop(engine);
    let result = start_copy(context, stack, |context| start(context, child_stack_top(context), released_child));
    ENGINE.lock().resume_trust();
    if let Ok(pid) = check(result) {
        write_event(&writer_of(context, shared), event_kind::FORK, context.registers.pc, [pid, 0, 0]);
    }
    result
}

/// A region of the shared file for a child; 0: it is not to be followed, or can't be.
fn ask_for_region(context: &ThreadContext, shared: Shared) -> u32 {
    // A call that another thread has to answer can't be made while all locks are held.
    if shared.header().follows == 0 || filter::may_wait() {
        return 0;
    }
    writer_of(context, shared).request(request_kind::FORK, [0; 4]).unwrap_or(0)
}

/// Makes the call with the context as the child is to find it: it starts with that, or with a copy of it.
fn start_copy(context: &mut ThreadContext, stack: u64, start: impl FnOnce(&mut ThreadContext) -> i64) -> i64 {
    let mask = set_signal_mask(u64::MAX);
    // A child that shares memory runs on this very context, and changes nothing that is not put back.
    let saved = (context.registers.general, context.process.start_mask);
    context.registers.set_result(0);
    if stack != 0 {
        context.registers.set_sp(stack);
    }
    context.process.start_mask =
        context.program_mask(if context.is_signal_waiting() { context.signals.pending_mask } else { mask });
    // The child gets the context by its address alone: the stores above must not be taken for dead.
    core::hint::black_box(&raw mut *context);
    let result = start(context);
    core::hint::black_box(&raw mut *context);
    (context.registers.general, context.process.start_mask) = saved;
    set_signal_mask(mask);
    result
}

/// The first thing that a process does which is not followed: it leaves the runtime.
extern "C" fn released_child(context: &mut ThreadContext) -> ! {
    let mask = context.process.start_mask;
    deliver::release_process(context, mask)
}

/// The first thing that a followed process does: all signals are blocked, and every lock is held.
extern "C" fn followed_child(context: &mut ThreadContext) -> ! {
    // SAFETY: the parent took all of them for this; the child is the only thread here.
    unsafe {
        heap::let_go();
        proc_reads::let_go();
        table_of(context).give_up();
        THREADS.give_up();
        ENGINE.give_up();
        dumpable::let_go();
    }
    let mask = context.process.start_mask;
    if !copies::take_copies() {
        deliver::release_process(context, mask);
    }
    user_dispatch::end(context);
    // Nor does the kernel dispatch any call of a new task's (kernel/fork.c, copy_process).
    context.native = Native::default();
    forget_signals(context);
    let mut engine = ENGINE.lock();
    let shared = engine.shared;
    context.tid = gettid();
    context.process.parent_tid = 0;
    // Whatever made it, it has its memory to itself.
    context.process.sharing = Sharing::Thread;
    // SAFETY: the only thread, and it does not touch the shared memory meanwhile.
    if unsafe { shared.move_to_region(context.process.child_region) }.is_err()
        || !THREADS.lock().keep_only(context, shared)
    {
        // What is mapped is still the parent's, or nothing: not a word about it.
        engine.unprotect_all();
        deliver::release_process(context, mask);
    }
    move_in(context, &mut engine);
    captured_calls::begin_child(&mut engine, context);
    captured_rings::begin_child(&mut engine);
    drop(engine);
    let arguments = [u64::from(getpid()), context.process.fork_tsc, 0, 0];
    if while_shown(|| writer_of(context, shared).request(request_kind::ADOPT, arguments)) != Some(1) {
        ENGINE.lock().unprotect_all();
        deliver::release_process(context, mask);
    }
    if context.process.child_flags & CLONE_CLEAR_SIGHAND != 0 {
        table_of(context).lock().clear_handlers();
    }
    locks::forget();
    advice::forget_not_inherited(&mut ENGINE.lock(), &writer_of(context, shared));
    begin(context, 0);
    set_signal_mask(context.note_mask(mask));
    create::enter(context)
}

/// Says in the new region what a started process says.
fn move_in(context: &ThreadContext, engine: &mut Engine) {
    if engine.continue_in_child() {
        let filled = THREADS.lock().branch_table_filled;
        fill_branch_table(context.self_address, 0, filled);
    }
    if has_cells(engine.shared) {
        // Nothing was executed here yet.
        map_cells(context.self_address, engine.shared);
    }
    stamp_start(engine.shared);
    tell_running(engine.shared);
}

/// Signals that the parent's threads took are theirs to deliver.
fn forget_signals(context: &mut ThreadContext) {
    UNDELIVERED.store(0, Ordering::SeqCst);
    context.signals.pending = 0;
    for info in &mut context.signals.held {
        info.signo = 0;
    }
    if context.signals.unlinked_fragment != FragmentId::NONE {
        let id = core::mem::replace(&mut context.signals.unlinked_fragment, FragmentId::NONE);
        ENGINE.lock().cache.relink_after_interrupt(id);
    }
}
