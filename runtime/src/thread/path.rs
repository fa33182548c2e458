//! A thread's path (mode `full`): what the dispatcher writes of it, and where its buffers go.
//!
//! Runs in the dispatcher, between two fragments: what translated code has written is complete. The streams, the shadow
//! stack and the meaning of events are the crate `pathcodec`'s.

use crate::arch::x86_64::context::{
    ThreadContext, SHADOW_BYTES, SHADOW_OFFSET, SURPRISES_END_OFFSET, SYMBOLS_END_OFFSET,
};
use crate::buffer::RingWriter;
use crate::protocol::{
    self, record_kind, PathChunkRecord, PathEventRecord, PATH_BUFFER_BYTES, PATH_DECISIONS_CELL, PATH_SURPRISES_CELL,
    PATH_SURPRISES_LEFT_CELL, PATH_SYMBOLS_CELL, PATH_SYMBOLS_LEFT_CELL,
};
use crate::sys::calls::rdtsc;
use clew_pathcodec::shadow::depth_after;
use clew_pathcodec::symbols::write_symbol as write_into;

/// A chunk is no larger than that, so that the ring holds several.
const CHUNK_BYTES: usize = 0x2000;

/// Makes the path begin here: nothing is written, no call is open.
pub fn begin(context: &mut ThreadContext) {
    set_cell(context, PATH_DECISIONS_CELL, 0);
    for cell in [PATH_SURPRISES_CELL, PATH_SYMBOLS_CELL] {
        set_cell(context, cell, PATH_BUFFER_BYTES.wrapping_neg());
    }
    set_cell(context, PATH_SURPRISES_LEFT_CELL, 0);
    set_cell(context, PATH_SYMBOLS_LEFT_CELL, 0);
    context.shadow_forgotten = 0;
    set_depth(context, 0);
}

/// Writes that something happened at `pc`, which is about to run or, as `kind` has it, is being left.
pub fn write_event(context: &ThreadContext, writer: &RingWriter, kind: u16, pc: u64, value: u64) {
    let record = PathEventRecord {
        kind: record_kind::PATH_EVENT,
        event_kind: kind,
        tid: writer.tid,
        tsc: rdtsc(),
        surprise_bytes: cell(context, PATH_SURPRISES_LEFT_CELL) + written(context, PATH_SURPRISES_CELL),
        decisions: cell(context, PATH_DECISIONS_CELL),
        symbol_bytes: cell(context, PATH_SYMBOLS_LEFT_CELL) + written(context, PATH_SYMBOLS_CELL),
        depth: context.shadow_forgotten + context.shadow_depth,
        pc,
        value,
    };
    writer.write(&record, &[]);
}

/// A return to `target` that no landing compared: it pops, or says with an event that it went elsewhere.
pub fn return_to(context: &ThreadContext, writer: &RingWriter, return_pc: u64, target: u64) {
    let open = shadow_stack(context);
    if open.last() == Some(&target) {
        set_depth(context, context.shadow_depth - 1);
        return;
    }
    let left = depth_after(open, target) as u64;
    write_event(context, writer, protocol::path_event_kind::ELSEWHERE, return_pc, target);
    set_depth(context, left);
}

/// Writes the symbol of an indirect branch that the dispatcher makes itself.
pub fn write_symbol(context: &ThreadContext, symbol: u16) {
    let offset = cell(context, PATH_SYMBOLS_CELL);
    let place = context.self_address.wrapping_add(SYMBOLS_END_OFFSET).wrapping_add(offset);
    let mut bytes = [0; 3];
    let size = write_into(&mut bytes, symbol).unwrap_or(0);
    for (index, byte) in bytes[..size].iter().enumerate() {
        // SAFETY: the offset is at most a few bytes past the buffer's end, where there are 4,096 more.
        unsafe { ((place + index as u64) as *mut u8).write_volatile(*byte) };
    }
    set_cell(context, PATH_SYMBOLS_CELL, offset.wrapping_add(size as u64));
}

/// Takes back a symbol that a pad wrote last.
pub fn unwrite_symbol(context: &ThreadContext, symbol: u16) {
    let size = write_into(&mut [0; 3], symbol).unwrap_or(0);
    set_cell(context, PATH_SYMBOLS_CELL, cell(context, PATH_SYMBOLS_CELL).wrapping_sub(size as u64));
}

/// Empties the buffers if one is full.
pub fn flush_if_full(context: &ThreadContext, writer: &RingWriter) {
    let is_full = |number: u64| cell(context, number) as i64 >= 0;
    if is_full(PATH_SURPRISES_CELL) || is_full(PATH_SYMBOLS_CELL) {
        flush(context, writer);
    }
}

/// Writes what is in the buffers into the ring.
pub fn flush(context: &ThreadContext, writer: &RingWriter) {
    let streams = [
        (PATH_SURPRISES_CELL, PATH_SURPRISES_LEFT_CELL, SURPRISES_END_OFFSET),
        (PATH_SYMBOLS_CELL, PATH_SYMBOLS_LEFT_CELL, SYMBOLS_END_OFFSET),
    ];
    for (stream, (offset_cell, left_cell, end_offset)) in streams.into_iter().enumerate() {
        let (left, size) = (cell(context, left_cell), written(context, offset_cell));
        write_chunks(context, writer, stream as u16, left, end_offset, size);
        set_cell(context, left_cell, left + size);
        set_cell(context, offset_cell, PATH_BUFFER_BYTES.wrapping_neg());
    }
}

fn write_chunks(context: &ThreadContext, writer: &RingWriter, stream: u16, start: u64, end_offset: u64, size: u64) {
    let address = context.self_address + end_offset - PATH_BUFFER_BYTES;
    // SAFETY: the buffer and the slack behind it are mapped, and only this thread writes them, which is here.
    let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) };
    for (index, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
        let record = PathChunkRecord {
            kind: record_kind::PATH_CHUNK,
            continuations: chunk.len().div_ceil(protocol::CONTINUATION_PAYLOAD_BYTES as usize) as u16,
            tid: writer.tid,
            tsc: rdtsc(),
            start: start + (index * CHUNK_BYTES) as u64,
            size_bytes: chunk.len() as u32,
            stream,
            reserved: [0; 34],
        };
        writer.write(&record, chunk);
    }
}

/// Bytes in a buffer.
fn written(context: &ThreadContext, number: u64) -> u64 {
    // What the program may have put there is no reason to read past the buffer's slack.
    cell(context, number).wrapping_add(PATH_BUFFER_BYTES).min(PATH_BUFFER_BYTES + 16)
}

/// Addresses of the open calls, the outermost first.
fn shadow_stack(context: &ThreadContext) -> &[u64] {
    let depth = context.shadow_depth.min(SHADOW_BYTES / 8) as usize;
    // SAFETY: the thread's own stack, mapped as a whole, which only this thread writes.
    unsafe { core::slice::from_raw_parts((context.self_address + SHADOW_OFFSET) as *const u64, depth) }
}

fn set_depth(context: &ThreadContext, depth: u64) {
    // SAFETY: a field of a live context that only the thread itself writes, here and in translated code.
    unsafe { (&raw const context.shadow_depth as *mut u64).write_volatile(depth) };
}

fn cell(context: &ThreadContext, number: u64) -> u64 {
    // SAFETY: the cells are the first counters of the thread's mapped window.
    unsafe { context.counter(number as u32).read_volatile() }
}

fn set_cell(context: &ThreadContext, number: u64, value: u64) {
    // SAFETY: as in `cell`; only the thread itself writes them.
    unsafe { context.counter(number as u32).write_volatile(value) };
}
