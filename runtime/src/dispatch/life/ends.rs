//! The system calls that end a thread or the process.

use super::{execute, process, release};
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::cpu::signal::deliver;
use crate::cpu::sys::number;
use crate::dispatch::apart::ended_calls;
use crate::dispatch::calls::results::{finish, is_trapped};
use crate::instrument::ENGINE;
use crate::protocol::{end_kind, event_kind};
use crate::sys::calls::{program_call, set_signal_mask};
use crate::sys::filter;
use crate::thread::left_calls::Left;
use crate::thread::registry::{describe_end, end_slot, write_event, writer_of};
use crate::thread::THREADS;

/// Ends the thread. Comes back if a signal waits: the thread took it, so its handler runs first.
pub fn exit_thread(context: &mut ThreadContext, arguments: [u64; 6]) {
    let shared = {
        let engine = ENGINE.lock();
        engine.shared
    };
    // No signal may find the thread once its slot is given away.
    let mask = set_signal_mask(u64::MAX);
    if context.is_signal_waiting() {
        set_signal_mask(mask);
        return;
    }
    let writer = writer_of(context, shared);
    ended_calls::end_thread(context, &writer);
    write_event(&writer, event_kind::THREAD_END, context.registers.pc, [u64::from(end_kind::EXIT), 0, 0]);
    release::end_path(&ENGINE.lock(), &writer, context);
    describe_end(context, shared, end_kind::EXIT);
    if !process::is_waited_for(context) {
        end_slot(context, shared);
    }
    filter::open_for_trap(mask);
    // SAFETY: ends the thread; its block is reused only once the kernel knows it no more.
    let result = unsafe { program_call(number::EXIT, arguments) };
    go_on_without_slot(context, context.program_mask(mask), result)
}

/// A filter refused the thread's end. The slot is the controller's, but the block is kept for the thread.
fn go_on_without_slot(context: &mut ThreadContext, mask: u64, result: i64) -> ! {
    finish(context, result);
    set_signal_mask(u64::MAX);
    if is_trapped(context) {
        deliver::raise_again(&context.signals.fault_info);
    }
    deliver::release_native(context, mask)
}

/// Comes back only if a filter refuses the call.
pub fn exit_group(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let shared = {
        let engine = ENGINE.lock();
        engine.tell_memory();
        engine.shared
    };
    let writer = writer_of(context, shared);
    ended_calls::end_process(context, &writer, Left::Over);
    write_event(&writer, event_kind::EXIT_GROUP, context.registers.pc, [arguments[0], 0, 0]);
    THREADS.lock().tell_misses(shared);
    release::end_path(&ENGINE.lock(), &writer, context);
    describe_end(context, shared, end_kind::EXIT_GROUP);
    if context.process.sharing != Sharing::Thread && !process::is_waited_for(context) {
        // The process whose memory this is goes on, and does not wait for this one.
        let mask = set_signal_mask(u64::MAX);
        end_slot(context, shared);
        filter::open_for_trap(mask);
        // SAFETY: ends the process.
        let result = unsafe { program_call(number::EXIT_GROUP, arguments) };
        go_on_without_slot(context, context.program_mask(mask), result);
    }
    // SAFETY: as above.
    let result = unsafe { program_call(number::EXIT_GROUP, arguments) };
    execute::begin_slot_again(context);
    result
}
