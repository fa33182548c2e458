//! A thread's path (mode `full`): what the dispatcher writes of it, and where its buffers go.
//!
//! Runs in the dispatcher, between two fragments: what translated code has written is complete. The streams, the shadow
//! stack and the meaning of events are the crate `pathcodec`'s.

use super::block::map_shadow_stack;
use super::checkpoint;
use super::open_calls::forget_calls;
use super::path_words::{
    cell, decisions, event_here, flush_accesses, position, set_cell, set_decisions, write_chunk, write_event,
    write_record, written,
};
use super::path_words::{gap, lose, Gap};
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::displacements::{SURPRISES_END_OFFSET, SYMBOLS_END_OFFSET};
use crate::instrument::order::log::PathLog;
use crate::protocol::{
    path_event_kind, path_gap, PathEventRecord, PATH_ACCESSES_BUFFER_BYTES, PATH_ACCESSES_CELL,
    PATH_ACCESSES_LEFT_CELL, PATH_BUFFER_BYTES, PATH_LOST_CELL, PATH_START, PATH_SURPRISES_CELL,
    PATH_SURPRISES_LEFT_CELL, PATH_SYMBOLS_CELL, PATH_SYMBOLS_LEFT_CELL,
};
use clew_pathcodec::protocol::FIRST_LONG_SURPRISE;
use clew_pathcodec::surprises::{write_surprise, MAX_BYTES};
use clew_pathcodec::symbols::write_symbol as write_into;
use core::sync::atomic::{compiler_fence, AtomicU32, Ordering};

/// The cells of each stream's buffer, where the next byte goes and what left it, and where it ends; by number of the stream.
const BUFFERS: [(u64, u64, u64); 2] = [
    (PATH_SURPRISES_CELL, PATH_SURPRISES_LEFT_CELL, SURPRISES_END_OFFSET),
    (PATH_SYMBOLS_CELL, PATH_SYMBOLS_LEFT_CELL, SYMBOLS_END_OFFSET),
];

/// ThreadContext.promised_bytes of a thread that wrote without a budget. A path never comes to so many.
pub const ALL_PROMISED: u64 = u64::MAX;

/// Begins the path where the thread began, and tells all that such a path has to. `false`: there is no memory for it.
pub fn begin(context: &mut ThreadContext, writer: &RingWriter, log: &PathLog) -> bool {
    set_decisions(context, 0);
    for number in [PATH_SURPRISES_LEFT_CELL, PATH_SYMBOLS_LEFT_CELL, PATH_ACCESSES_LEFT_CELL, PATH_LOST_CELL] {
        set_cell(context, number, 0);
    }
    for number in [PATH_SURPRISES_CELL, PATH_SYMBOLS_CELL] {
        set_cell(context, number, PATH_BUFFER_BYTES.wrapping_neg());
    }
    if !map_shadow_stack(context, writer.shared) || !checkpoint::begin(context, writer.shared) {
        return false;
    }
    forget_calls(context);
    (context.path.is_on, context.path.began, context.path.has_news) = (true, true, false);
    context.path.least_cost = 0;
    promise_all(context, writer);
    let start = AppPc::from_raw(PATH_START);
    tell_state(context, writer, start, log);
    write_event(context, writer, path_event_kind::RESUME, start, context.path.start_pc.raw());
    if writer.shared.may_tell_nothing() {
        // No checkpoint may come before the thread ends, and what is in its buffers then is told.
        break_off(context, writer, context.path.start_pc);
    }
    true
}

/// Without a budget all that a thread writes is told, also if one is set before its buffers are emptied.
fn promise_all(context: &mut ThreadContext, writer: &RingWriter) {
    context.path.promised_bytes = if writer.shared.has_budget() { 0 } else { ALL_PROMISED };
}

/// No order is recorded from here on, in front of the context's pc.
pub fn suspend(context: &mut ThreadContext, writer: &RingWriter) {
    flush(context, writer);
    break_off(context, writer, context.registers.pc);
    (context.path.is_on, context.path.is_due) = (false, false);
}

/// What follows is left out, from exactly `pc` on.
fn break_off(context: &mut ThreadContext, writer: &RingWriter, pc: AppPc) {
    if gap(context) == Gap::None {
        write_event(context, writer, path_event_kind::END, pc, 0);
    }
    if gap(context) == Gap::None {
        leave_out(context, writer);
    }
}

/// The order is to be recorded again from the next block on (`path_due`); of the calls that are open now it is not known. `false`:
/// there is no memory.
pub fn resume(context: &mut ThreadContext, writer: &RingWriter, log: &PathLog) -> bool {
    if !context.path.began {
        if !begin(context, writer, log) {
            return false;
        }
        if !context.path.has_executed {
            return true;
        }
        // It is further than where the path begins, which was not recorded.
        break_off(context, writer, context.path.start_pc);
    }
    (context.path.is_on, context.path.is_due) = (true, true);
    promise_all(context, writer);
    forget_calls(context);
    context.path.calls_kept = 0;
    true
}

/// An indirect branch at `branch_pc` to `target`, for which there is no symbol. A call (`is_call`) was pushed already.
pub fn branch_elsewhere(
    context: &mut ThreadContext,
    writer: &RingWriter,
    branch_pc: AppPc,
    target: AppPc,
    is_call: bool,
) {
    let event = event_here(context, writer, path_event_kind::ELSEWHERE, branch_pc, target.raw());
    write_record(context, writer, &PathEventRecord { depth: event.depth - u64::from(is_call), ..event });
}

/// How many bytes the path has come to, checkpoints included, whether or not they were told.
pub fn come_to_bytes(context: &ThreadContext) -> u64 {
    let [surprise_bytes, _, symbol_bytes, _] = position(context);
    surprise_bytes + symbol_bytes + context.path.counters_written + context.path.calls_written
}

/// From here on nothing of the path is told, nor what is in the buffers.
pub fn leave_out(context: &mut ThreadContext, writer: &RingWriter) {
    context.path.lost_at = position(context);
    set_cell(context, PATH_LOST_CELL, path_gap::LEFT_OUT);
    discard_all(context);
    checkpoint::postpone(context);
    writer.shared.add(crate::status_field!(thinned), 1);
}

/// Goes on behind what is missing, if there is room again: in front of the context's pc. Whether it does from here on, and
/// has to tell anew what it told before.
pub fn go_on(context: &mut ThreadContext, writer: &RingWriter) -> bool {
    let gap = gap(context);
    let kind = match gap {
        Gap::None => return false,
        Gap::Lost => path_event_kind::LOST,
        Gap::LeftOut => path_event_kind::THINNED,
    };
    // What is in the buffers follows what is missing.
    discard_all(context);
    let [surprise_bytes, decisions, symbol_bytes, depth] = context.path.lost_at;
    let here = event_here(context, writer, kind, context.registers.pc, 0);
    let event = PathEventRecord { surprise_bytes, decisions, symbol_bytes, depth, ..here };
    let is_told = writer.write(&event, &[])
        && match gap {
            Gap::LeftOut => checkpoint::write(context, writer),
            _ => checkpoint::write_whole(context, writer),
        };
    set_cell(context, PATH_LOST_CELL, if is_told { path_gap::NONE } else { path_gap::LOST });
    context.path.is_due &= !is_told;
    is_told && gap == Gap::Lost
}

/// Tells, in front of `pc`, all that a path has to that begins or goes on there.
pub fn tell_state(context: &mut ThreadContext, writer: &RingWriter, pc: AppPc, log: &PathLog) {
    for (kind, value) in log.state() {
        write_event(context, writer, kind, pc, value);
    }
    context.path.changes_told = log.length();
}

/// From here on the thread tells what changed before it executes anything: others need not wait for that.
pub fn note_that_it_tells_first(context: &mut ThreadContext) {
    // SAFETY: an aligned field that other threads read.
    unsafe { AtomicU32::from_ptr(&raw mut context.path.tells_first) }.store(1, Ordering::Release);
}

/// The thread told all changes, and is about to execute. The engine's lock is held.
pub fn note_that_it_told(context: &mut ThreadContext) {
    // SAFETY: as above.
    unsafe { AtomicU32::from_ptr(&raw mut context.path.tells_first) }.store(0, Ordering::Release);
}

/// How many of `length` changes a thread has told, or tells before it executes anything that is recorded. The engine's lock is held.
///
/// # Safety
/// `context` is that of a slot that was in use.
pub unsafe fn changes_told(context: *mut ThreadContext, length: u32) -> u32 {
    // SAFETY: as the caller promises: mapped, the fields aligned.
    unsafe {
        let is_telling = AtomicU32::from_ptr(&raw mut (*context).path.tells_first).load(Ordering::Acquire) != 0;
        let is_recorded = (&raw const (*context).path.is_on).read_volatile();
        if is_telling || !is_recorded || gap(&*context) == Gap::LeftOut {
            return length;
        }
        (&raw const (*context).path.changes_told).read_volatile()
    }
}

/// Writes the symbol of an indirect branch that the dispatcher makes itself.
pub fn write_symbol(context: &ThreadContext, symbol: u16) {
    let mut bytes = [0; 3];
    let size = write_into(&mut bytes, symbol).unwrap_or(0);
    append(context, PATH_SYMBOLS_CELL, SYMBOLS_END_OFFSET, &bytes[..size]);
}

/// Writes the surprise that translated code leaves to the dispatcher, if it did so at the exit just taken, which is one.
pub fn write_long_surprise(context: &ThreadContext) {
    let decisions = decisions(context);
    if decisions >= FIRST_LONG_SURPRISE {
        let mut bytes = [0; MAX_BYTES];
        let size = write_surprise(&mut bytes, decisions).unwrap_or(0);
        let offset = place(context, PATH_SURPRISES_CELL, SURPRISES_END_OFFSET, &bytes[..size]);
        // As translated code does it: whoever finds all of a number behind the offset takes it for written.
        set_decisions(context, 0);
        set_cell(context, PATH_SURPRISES_CELL, offset);
    }
}

/// Appends to what is in a buffer.
fn append(context: &ThreadContext, offset_cell: u64, end_offset: u64, bytes: &[u8]) {
    let offset = place(context, offset_cell, end_offset, bytes);
    set_cell(context, offset_cell, offset);
}

/// Writes behind what is in a buffer; the offset behind that, still to be set.
fn place(context: &ThreadContext, offset_cell: u64, end_offset: u64, bytes: &[u8]) -> u64 {
    let offset = cell(context, offset_cell);
    let place = context.self_address.wrapping_add(end_offset).wrapping_add(offset);
    for (index, byte) in bytes.iter().enumerate() {
        // SAFETY: the offset is at most a few bytes past the buffer's end, where there are 4,096 more.
        unsafe { ((place + index as u64) as *mut u8).write_volatile(*byte) };
    }
    offset.wrapping_add(bytes.len() as u64)
}

/// Takes back a symbol that a pad wrote last.
pub fn unwrite_symbol(context: &ThreadContext, symbol: u16) {
    let size = write_into(&mut [0; 3], symbol).unwrap_or(0);
    set_cell(context, PATH_SYMBOLS_CELL, cell(context, PATH_SYMBOLS_CELL).wrapping_sub(size as u64));
}

/// Between two fragments: empties the buffers if one is full. Between two blocks (`is_between`) says where the thread is if that
/// was long ago. Whether it goes on behind something that was dropped.
pub fn flush_due(context: &mut ThreadContext, writer: &RingWriter, is_between: bool) -> bool {
    let goes_on = is_between && go_on(context, writer);
    context.path.promised_bytes = ALL_PROMISED;
    if is_full(context) {
        flush(context, writer);
    }
    if is_between && gap(context) == Gap::None && checkpoint::is_due(context) {
        flush(context, writer);
        if !checkpoint::write(context, writer) {
            lose(context);
        }
    }
    goes_on
}

/// Whether a buffer has no room.
pub fn is_full(context: &ThreadContext) -> bool {
    [PATH_SURPRISES_CELL, PATH_SYMBOLS_CELL].into_iter().any(|number| cell(context, number) as i64 >= 0)
}

/// Writes what is in the buffers into the ring.
pub fn flush(context: &mut ThreadContext, writer: &RingWriter) {
    flush_accesses(context, writer);
    for (stream, (offset_cell, left_cell, end_offset)) in BUFFERS.into_iter().enumerate() {
        let size = written(context, offset_cell);
        if size == 0 || gap(context) != Gap::None {
            continue;
        }
        let address = context.self_address + end_offset - PATH_BUFFER_BYTES;
        // SAFETY: the buffer and the slack behind it are mapped, and only this thread writes them, which is here.
        let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) };
        let left = cell(context, left_cell);
        if !write_chunk(writer, stream as u16, left, bytes) {
            lose(context);
            continue;
        }
        discard(context, offset_cell, left_cell, end_offset);
    }
}

/// Empties all buffers.
pub fn discard_all(context: &ThreadContext) {
    set_cell(context, PATH_ACCESSES_CELL, PATH_ACCESSES_BUFFER_BYTES.wrapping_neg());
    for (offset_cell, left_cell, end_offset) in BUFFERS {
        discard(context, offset_cell, left_cell, end_offset);
    }
}

/// Empties a buffer. In this order: what a kill leaves on the way is told from what was written behind it, and no byte behind
/// the offset may look like one.
fn discard(context: &ThreadContext, offset_cell: u64, left_cell: u64, end_offset: u64) {
    let size = written(context, offset_cell);
    let start = context.self_address + end_offset - PATH_BUFFER_BYTES;
    // SAFETY: the buffer and the slack behind it are mapped, and only this thread writes them, which is here.
    unsafe { core::ptr::write_bytes(start as *mut u8, 0, size as usize + MAX_BYTES) };
    compiler_fence(Ordering::SeqCst);
    set_cell(context, offset_cell, PATH_BUFFER_BYTES.wrapping_neg());
    set_cell(context, left_cell, cell(context, left_cell) + size);
}
