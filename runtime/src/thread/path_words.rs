//! What is written of a thread's path: events at its position, and chunks of its streams.

use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::numbers::CounterId;
use crate::context::ThreadContext;
use crate::cpu::displacements::ACCESSES_END_OFFSET;
use crate::cpu::sys::clock::ticks;
use crate::protocol::{
    self, path_gap, path_stream, record_kind, PathChunkRecord, PathEventRecord, PATH_ACCESSES_BUFFER_BYTES,
    PATH_ACCESSES_CELL, PATH_ACCESSES_LEAVE, PATH_ACCESSES_LEFT_CELL, PATH_ACCESSES_SLACK_BYTES, PATH_BUFFER_BYTES,
    PATH_DECISIONS_CELL, PATH_LOST_CELL, PATH_OTHER_DECISIONS_CELL, PATH_SLACK_BYTES, PATH_SURPRISES_CELL,
    PATH_SURPRISES_LEFT_CELL, PATH_SYMBOLS_CELL, PATH_SYMBOLS_LEFT_CELL,
};

/// Writes that something happened at `pc`, which is about to run or, as `kind` has it, is being left.
pub fn write_event(context: &mut ThreadContext, writer: &RingWriter, kind: u16, pc: AppPc, value: u64) {
    let event = event_here(context, writer, kind, pc, value);
    write_record(context, writer, &event);
}

pub fn write_record(context: &mut ThreadContext, writer: &RingWriter, event: &PathEventRecord) {
    flush_accesses(context, writer);
    match gap(context) {
        Gap::Lost => writer.count_lost(),
        Gap::LeftOut => {}
        Gap::None if writer.write(event, &[]) => writer.shared.spend(protocol::RECORD_BYTES),
        Gap::None => lose(context),
    }
}

/// An event at the path's end as it is now.
pub fn event_here(context: &ThreadContext, writer: &RingWriter, kind: u16, pc: AppPc, value: u64) -> PathEventRecord {
    let [surprise_bytes, decisions, symbol_bytes, depth] = position(context);
    let event_kind = kind;
    let (kind, tid, tsc, pc) = (record_kind::PATH_EVENT, writer.tid, ticks(), pc.raw());
    PathEventRecord { kind, event_kind, tid, tsc, surprise_bytes, decisions, symbol_bytes, depth, pc, value }
}

/// Bytes of surprises, decisions since the last one, bytes of symbols, and open calls.
pub fn position(context: &ThreadContext) -> [u64; 4] {
    [
        cell(context, PATH_SURPRISES_LEFT_CELL) + written(context, PATH_SURPRISES_CELL),
        decisions(context),
        cell(context, PATH_SYMBOLS_LEFT_CELL) + written(context, PATH_SYMBOLS_CELL),
        context.path.shadow_forgotten + context.path.shadow_depth,
    ]
}

/// Bytes in a buffer.
pub fn written(context: &ThreadContext, number: u64) -> u64 {
    // What the program may have put there is no reason to read past the buffer's slack.
    cell(context, number).wrapping_add(PATH_BUFFER_BYTES).min(PATH_BUFFER_BYTES + PATH_SLACK_BYTES)
}

pub fn cell(context: &ThreadContext, number: u64) -> u64 {
    // SAFETY: the cells are the first counters of the thread's mapped window.
    unsafe { context.counter(CounterId::of_cell(number)).read_volatile() }
}

pub fn set_cell(context: &ThreadContext, number: u64, value: u64) {
    // SAFETY: as in `cell`; only the thread itself writes them.
    unsafe { context.counter(CounterId::of_cell(number)).write_volatile(value) };
}

/// Decisions since the last surprise.
pub fn decisions(context: &ThreadContext) -> u64 {
    cell(context, PATH_DECISIONS_CELL).wrapping_add(cell(context, PATH_OTHER_DECISIONS_CELL))
}

/// In this order: if the thread is killed on the way, some are missing, which were made last.
pub fn set_decisions(context: &ThreadContext, decisions: u64) {
    set_cell(context, PATH_OTHER_DECISIONS_CELL, 0);
    set_cell(context, PATH_DECISIONS_CELL, decisions);
}

/// Writes a piece of a stream that begins at `start`.
pub fn write_chunk(writer: &RingWriter, stream: u16, start: u64, bytes: &[u8]) -> bool {
    let record = PathChunkRecord {
        kind: record_kind::PATH_CHUNK,
        rows: bytes.len().div_ceil(protocol::RECORD_BYTES as usize) as u16,
        tid: writer.tid,
        tsc: ticks(),
        start,
        size_bytes: bytes.len() as u32,
        stream,
        reserved: [0; 34],
    };
    let is_written = writer.write_rows(&record, bytes);
    if is_written {
        writer.shared.spend(protocol::RECORD_BYTES + bytes.len() as u64);
    }
    is_written
}

/// Writes what is told of memory into the ring: before whatever says that the thread went further.
pub fn flush_accesses(context: &mut ThreadContext, writer: &RingWriter) {
    if !context.path.tells_accesses {
        return;
    }
    let (most, left) = (PATH_ACCESSES_BUFFER_BYTES + PATH_ACCESSES_SLACK_BYTES, cell(context, PATH_ACCESSES_LEFT_CELL));
    let size = cell(context, PATH_ACCESSES_CELL).wrapping_add(PATH_ACCESSES_BUFFER_BYTES).min(most);
    if size == 0 || !context.path.is_on || gap(context) != Gap::None {
        set_cell(context, PATH_ACCESSES_CELL, PATH_ACCESSES_BUFFER_BYTES.wrapping_neg());
        return;
    }
    // Who looks at the buffer now is not to believe that it is empty, while what was in it has not left.
    set_cell(context, PATH_ACCESSES_LEFT_CELL, left | PATH_ACCESSES_LEAVE);
    set_cell(context, PATH_ACCESSES_CELL, PATH_ACCESSES_BUFFER_BYTES.wrapping_neg());
    let address = context.self_address + ACCESSES_END_OFFSET - PATH_ACCESSES_BUFFER_BYTES;
    // SAFETY: the buffer and the slack behind it are mapped, and only this thread writes them, which is here.
    let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) };
    let is_told = write_chunk(writer, path_stream::ACCESSES, left, bytes);
    set_cell(context, PATH_ACCESSES_LEFT_CELL, if is_told { left + size } else { left });
    if !is_told {
        lose(context);
    }
}

/// What is told of memory from here on belongs to what is recorded from here on.
pub fn begin_accesses(context: &mut ThreadContext, tells_accesses: bool) {
    context.path.tells_accesses = tells_accesses;
    // Otherwise the cell may be a counter.
    if tells_accesses {
        set_cell(context, PATH_ACCESSES_CELL, PATH_ACCESSES_BUFFER_BYTES.wrapping_neg());
    }
}

/// What of a thread's path is missing where it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    None,
    /// Something was dropped, and not told yet.
    Lost,
    /// It is left out (thread/thinning.rs).
    LeftOut,
}

pub fn gap(context: &ThreadContext) -> Gap {
    match cell(context, PATH_LOST_CELL) {
        path_gap::NONE => Gap::None,
        path_gap::LEFT_OUT => Gap::LeftOut,
        _ => Gap::Lost,
    }
}

/// Something was dropped here: nothing more of the path can be told until a checkpoint finds room.
pub fn lose(context: &mut ThreadContext) {
    if gap(context) == Gap::None {
        context.path.lost_at = position(context);
        set_cell(context, PATH_LOST_CELL, path_gap::LOST);
    }
}
