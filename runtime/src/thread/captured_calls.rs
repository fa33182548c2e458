//! The calls of a thread whose returns are captured: its table, what is kept of a call, and what becomes of calls that others replace.
//!
//! What such a call keeps lies in the thread's table (instrument/captures/open_calls.rs).

extern crate alloc;
use super::block;
use super::left_calls::{self, Left};
use crate::buffer::{RingWriter, Shared};
use crate::context::ThreadContext;
use crate::cpu::sys::clock::ticks;
use crate::instrument::captures::layout::Program;
use crate::instrument::captures::open_calls::{CallHead, OpenCall, OpenCalls, TICK_NS};
use crate::instrument::captures::other_calls::OtherCalls;
use crate::instrument::captures::taken::Taken;
use crate::instrument::captures::text_cells::KeptText;
use crate::instrument::Engine;
use crate::protocol::StatusPage;
use crate::sys::calls::monotonic_ns;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

/// The table of the thread's open calls; `None`: there are none.
pub fn table_of(context: &ThreadContext) -> Option<OpenCalls> {
    // SAFETY: the block is the calling thread's, and the table is mapped from then on.
    (context.capture.has_open_calls != 0).then(|| unsafe { OpenCalls::of(context.self_address) })
}

/// Has a call open that keeps those values, and those bytes.
pub fn open(
    engine: &mut Engine,
    writer: &RingWriter,
    context: &mut ThreadContext,
    mut call: CallHead,
    values: &[u64],
    texts: Vec<KeptText>,
) {
    let others = &mut engine.captures.other_calls;
    let Some(table) = table_to_open(others, context, writer) else { return };
    call.texts = others.keep_texts(table, texts);
    let left = others.open(table, &call, values);
    settle_left(engine, writer, context, table, left);
}

/// The thread's table, which is made if it has none yet; `None`: there is no memory for it, which is reported.
pub fn table_to_open(others: &mut OtherCalls, context: &mut ThreadContext, writer: &RingWriter) -> Option<OpenCalls> {
    let is_first = context.capture.has_open_calls == 0;
    if is_first && !block::map_open_calls(context, writer.shared) {
        return None;
    }
    let table = table_of(context)?;
    if is_first {
        others.forget(table);
    }
    Some(table)
}

/// Tells of calls that are over, since others began where they were.
pub fn settle_left(
    engine: &mut Engine,
    writer: &RingWriter,
    context: &mut ThreadContext,
    table: OpenCalls,
    left: Vec<OpenCall>,
) {
    for left in left {
        let texts = engine.captures.other_calls.take_texts(table, left.texts);
        left_calls::tell(engine, writer, context.tid, &left, &texts, Left::Over);
    }
    note_others(engine, context, table);
}

/// The fields that are bytes.
pub fn texts_of(program: &Program, taken: &Taken) -> Vec<KeptText> {
    let mut texts = Vec::new();
    let mut rest = &taken.bytes[..];
    for (field, size) in taken.words.iter().enumerate().filter(|(field, _)| program.is_text_field(*field)) {
        let (own, behind) = rest.split_at((*size as usize).min(rest.len()));
        texts.push((field, own.to_vec()));
        rest = behind;
    }
    texts
}

/// Has translated code know whether calls are beside the thread's table.
pub fn note_others(engine: &Engine, context: &mut ThreadContext, table: OpenCalls) {
    let n = engine.captures.other_calls.count(table) as u32;
    if context.capture.n_other_calls != n {
        context.capture.n_other_calls = n;
        table.tell_others(n.into());
    }
}

/// How long so many ticks take; 0: it is not known yet.
pub fn to_ns(ticks: u64) -> u64 {
    ((u128::from(ticks) * u128::from(TICK_NS.load(Ordering::Relaxed))) >> 32) as u64
}

/// Finds out how long ticks take, as well as can be by now.
pub fn measure_ticks(shared: Shared) {
    const MOMENT_NS: u64 = 1 << 20;
    // SAFETY: the status page is mapped; both were written when the runtime began.
    let (start_tsc, start_ns) = unsafe {
        let status: *const StatusPage = shared.status();
        ((&raw const (*status).start_tsc).read_volatile(), (&raw const (*status).start_ns).read_volatile())
    };
    loop {
        let (now_ns, now_tsc) = (monotonic_ns(), ticks());
        let (took_ns, took) = (now_ns.saturating_sub(start_ns), now_tsc.saturating_sub(start_tsc));
        // What says that time went backwards was written by the program.
        if took_ns >= MOMENT_NS || now_ns < start_ns {
            let tick = (u128::from(took_ns) << 32).checked_div(u128::from(took)).unwrap_or(0);
            TICK_NS.store(tick as u64, Ordering::Relaxed);
            return;
        }
    }
}
