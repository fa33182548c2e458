//! Calls whose returns are captured, where their thread ends, or its process, or executes another program.
//!
//! Runs in the target on the runtime's stack, no lock held.

extern crate alloc;
use super::captured_calls::forget_all;
use super::captured_rings;
use super::known_places;
use crate::buffer::RingWriter;
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::instrument::captures::open_calls::OpenCalls;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::StatusPage;
use crate::thread::block::clear_open_calls;
use crate::thread::captured_calls::table_of;
use crate::thread::left_calls::{tell, Left};
use crate::thread::THREADS;
use alloc::vec::Vec;

/// Nothing more is captured of the thread: none of its calls is open any more.
pub fn end_thread(context: &mut ThreadContext, writer: &RingWriter) {
    known_places::forget(context);
    if let Some(table) = table_of(context) {
        let mut engine = ENGINE.lock();
        tell_all(&mut engine, writer, context.tid, table, Left::Over);
        engine.captures.other_calls.forget(table);
        drop(engine);
        clear_open_calls(context);
        forget_all(context);
    }
}

/// The process ends, or is about to execute another program, or did not do that: so do its threads, whose calls stay as they are. Of
/// one that runs on meanwhile a call may return all the same; when it began tells that it is the same one.
pub fn end_process(context: &ThreadContext, writer: &RingWriter, how: Left) {
    captured_rings::end_process(context, writer, how);
    let mut engine = ENGINE.lock();
    let others: Vec<(u32, OpenCalls)> = if context.process.sharing == Sharing::Thread {
        let threads = THREADS.lock();
        // SAFETY: contexts of slots that are in use are mapped; a thread may change its own meanwhile.
        let of = |one: *mut ThreadContext| unsafe { open_calls_of(one) };
        threads.contexts().filter(|one| !core::ptr::eq(*one, context)).filter_map(of).collect()
    } else {
        Vec::new()
    };
    for (tid, table) in others.into_iter().chain(table_of(context).map(|table| (context.tid, table))) {
        tell_all(&mut engine, writer, tid, table, how);
    }
}

/// A thread of the process, and the table of its open calls, if it has one.
///
/// # Safety
/// The context is mapped.
unsafe fn open_calls_of(context: *const ThreadContext) -> Option<(u32, OpenCalls)> {
    // SAFETY: by the caller; fields are read one by one, as they are at that moment.
    let (has_calls, sharing, tid, block) = unsafe {
        (
            (&raw const (*context).capture.has_open_calls).read_volatile(),
            (&raw const (*context).process.sharing).read_volatile(),
            (&raw const (*context).tid).read_volatile(),
            (&raw const (*context).self_address).read_volatile(),
        )
    };
    if has_calls == 0 || sharing != Sharing::Thread {
        return None;
    }
    // SAFETY: the table is mapped from then on, and only read here.
    Some((tid, unsafe { OpenCalls::of(block) }))
}

fn tell_all(engine: &mut Engine, writer: &RingWriter, tid: u32, table: OpenCalls, how: Left) {
    let status: *const StatusPage = writer.shared.status();
    // SAFETY: the status page is mapped; this was written when the runtime began in the process.
    let start_tsc = unsafe { (&raw const (*status).start_tsc).read_volatile() };
    for (place, call) in engine.captures.other_calls.all(table) {
        // What began before is the parent's, of which this process has a copy.
        if call.tsc >= start_tsc {
            let texts = engine.captures.other_calls.texts_of(table, call.texts).to_vec();
            tell(engine, writer, tid, &call, &texts, how);
        }
        if let Some(place) = place {
            table.note_told(place, if how == Left::Stays { 0 } else { call.tsc });
        }
    }
}
