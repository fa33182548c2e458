//! A thread's tags (mode `region`): what the dispatcher decides and writes of them, and where they go.
//!
//! Runs in the dispatcher, between two fragments: what translated code has written is complete. All of it is done under the
//! engine's lock. Words and numbers are told in the schema (`RegionWord`).

extern crate alloc;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::numbers::{BlockNumber, CounterId};
use crate::context::ThreadContext;
use crate::cpu::region::{
    gs_region_cell, NUMBERS_END_OFFSET, REGION_LEVEL_OFFSET, REGION_TABLE_OFFSET, WORDS_END_OFFSET,
};
use crate::cpu::sys::clock::ticks;
use crate::instrument::tags::blocks::SOMEWHERE;
use crate::instrument::tags::rules::{fill_table, level_after};
use crate::instrument::Engine;
use crate::protocol::{
    self, record_kind, region_word, RegionChunkRecord, REGION_BUFFER_BYTES, REGION_KIND_SHIFT, REGION_NUMBERS_CELL,
    REGION_NUMBERS_LEFT_CELL, REGION_WORDS_CELL, REGION_WORDS_LEFT_CELL,
};
use crate::sys::lock::Lock;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A chunk is no larger than that, so that the ring holds several.
const CHUNK_BYTES: usize = 0x2000;

/// The blocks that busy threads count, by slot. Only taken under the engine's lock, so nobody waits for it.
static BUSY: Lock<BTreeMap<u32, Busy>> = Lock::new(BTreeMap::new());

/// What a thread counts since it became busy.
#[derive(Default)]
struct Busy {
    /// Numbers of blocks, and where the ways of each begin in `ways`, in the order in which they became busy.
    blocks: Vec<(BlockNumber, usize)>,
    /// For each block, by where they went, how many executions there were before. Sorted.
    ways: Vec<(AppPc, u64)>,
}

/// Makes a thread's tags begin here: nothing was executed, nothing is written. Its cells are zero.
pub fn begin(context: &ThreadContext, limit: u32) {
    for cell in [REGION_WORDS_CELL, REGION_NUMBERS_CELL] {
        set_cell(context, cell, REGION_BUFFER_BYTES.wrapping_neg());
    }
    for cell in [REGION_WORDS_LEFT_CELL, REGION_NUMBERS_LEFT_CELL] {
        set_cell(context, cell, 0);
    }
    BUSY.lock().remove(&context.slot);
    fill_table(limit as u8, |index, value| set_byte(context, REGION_TABLE_OFFSET + index as u64, value));
    set_byte(context, REGION_LEVEL_OFFSET, 1);
}

/// Decides about an execution of block `number` that is about to begin, where translated code does not: the thread becomes busy
/// with it, or is busy no more. Code that is asked again goes on by itself.
pub fn decide(engine: &Engine, context: &ThreadContext, writer: &RingWriter, number: BlockNumber) {
    flush_if_full(context, writer);
    let limit = engine.shared.header().busy_limit as i32;
    let block = i32::from(byte(context, level_offset(number))) - 1;
    let thread = i32::from(byte(context, REGION_LEVEL_OFFSET)) - 1;
    let level = level_after(block, thread, limit);
    if level == limit {
        set_byte(context, REGION_LEVEL_OFFSET, limit as u8 + 1);
        set_byte(context, level_offset(number), limit as u8 + 1);
        become_busy(engine, context, writer, number);
    } else if thread == limit {
        write_counts(engine, context, writer);
        // One below the limit: the block's level decides what it becomes.
        set_byte(context, REGION_LEVEL_OFFSET, limit as u8);
    }
}

/// Writes that the thread is busy with a block, and has it counted from now on.
fn become_busy(engine: &Engine, context: &ThreadContext, writer: &RingWriter, number: BlockNumber) {
    let mut all = BUSY.lock();
    let busy = all.entry(context.slot).or_default();
    let first = busy.ways.len();
    let total = add_ways(engine, context, number, &mut busy.ways);
    busy.blocks.push((number, first));
    set_byte(context, u64::from(gs_region_cell(number)), 1);
    write(context, writer, region_word::BECAME_BUSY, number.raw(), &[ticks(), total]);
}

/// Appends to `ways` how often the thread executed a block, by where it went; sorted, each once. Returns their sum.
fn add_ways(engine: &Engine, context: &ThreadContext, number: BlockNumber, ways: &mut Vec<(AppPc, u64)>) -> u64 {
    let first = ways.len();
    engine.visit_ways(context, number, &mut |target, executions| ways.push((target, executions)));
    let added = &mut ways[first..];
    added.sort_unstable();
    let mut n = 0;
    let mut total = 0u64;
    for index in 0..added.len() {
        let (target, executions) = added[index];
        total = total.wrapping_add(executions);
        if n > 0 && added[n - 1].0 == target {
            added[n - 1].1 = added[n - 1].1.wrapping_add(executions);
        } else {
            added[n] = (target, executions);
            n += 1;
        }
    }
    ways.truncate(first + n);
    total
}

/// Writes what a busy thread counted, if it is one, and that it is busy no more.
fn write_counts(engine: &Engine, context: &ThreadContext, writer: &RingWriter) {
    let Some(mut busy) = BUSY.lock().remove(&context.slot) else {
        return;
    };
    let n_before = busy.ways.len();
    for (index, (number, first)) in busy.blocks.iter().enumerate() {
        let end = busy.blocks.get(index + 1).map_or(n_before, |next| next.1);
        add_ways(engine, context, *number, &mut busy.ways);
        let (before, now) = busy.ways.split_at(n_before);
        let before = &before[*first..end];
        let counted = now.iter().map(|(target, executions)| {
            let known = before.binary_search_by_key(target, |way| way.0).map_or(0, |at| before[at].1);
            (*target, executions.wrapping_sub(known))
        });
        let total = counted.clone().fold(0u64, |total, way| total.wrapping_add(way.1));
        write(context, writer, region_word::COUNTS, number.raw(), &[total]);
        for (target, executions) in counted.filter(|(target, executions)| *target != SOMEWHERE && *executions != 0) {
            write(context, writer, region_word::COUNTS_TARGET, 0, &[target.raw(), executions]);
        }
        busy.ways.truncate(n_before);
        set_byte(context, u64::from(gs_region_cell(*number)), 0);
    }
    write(context, writer, region_word::LEFT_BUSY, 0, &[ticks()]);
}

/// Writes that an execution was cut off in front of the instruction at `pc`.
pub fn note_stop(context: &ThreadContext, writer: &RingWriter, pc: AppPc) {
    write(context, writer, region_word::STOPPED, 0, &[pc.raw()]);
}

/// Writes that a signal comes, at the instruction at `pc`.
pub fn note_signal(context: &ThreadContext, writer: &RingWriter, is_fault: bool, signal: u32, pc: AppPc) {
    let kind = if is_fault { region_word::FAULT } else { region_word::SIGNAL };
    write(context, writer, kind, signal & 0xff, &[ticks(), pc.raw()]);
}

/// Writes that system call `call` is about to be made.
pub fn note_call(context: &ThreadContext, writer: &RingWriter, call: u64) {
    write(context, writer, region_word::SYSCALL, 0, &[ticks(), call]);
}

/// Writes what is left to be written of a thread that is followed no further, or perhaps not.
pub fn end(engine: &Engine, context: &ThreadContext, writer: &RingWriter) {
    if BUSY.lock().contains_key(&context.slot) {
        write_counts(engine, context, writer);
        set_byte(context, REGION_LEVEL_OFFSET, engine.shared.header().busy_limit as u8);
    }
    write(context, writer, region_word::END, 0, &[ticks(), context.registers.pc.raw()]);
    flush(context, writer);
}

fn write(context: &ThreadContext, writer: &RingWriter, kind: u32, value: u32, numbers: &[u64]) {
    flush_if_full(context, writer);
    // The numbers first: a word that is there has its own, whatever a kill leaves behind.
    let mut offset = cell(context, REGION_NUMBERS_CELL);
    for number in numbers {
        let place = context.self_address.wrapping_add(NUMBERS_END_OFFSET).wrapping_add(offset) as *mut u64;
        // SAFETY: the buffer was not full, and 4,096 bytes follow it; it is aligned as the offset is.
        unsafe { place.write_volatile(*number) };
        offset = offset.wrapping_add(8);
    }
    set_cell(context, REGION_NUMBERS_CELL, offset);
    let offset = cell(context, REGION_WORDS_CELL);
    let place = context.self_address.wrapping_add(WORDS_END_OFFSET).wrapping_add(offset) as *mut u32;
    // SAFETY: as above.
    unsafe { place.write_volatile(kind << REGION_KIND_SHIFT | value) };
    set_cell(context, REGION_WORDS_CELL, offset.wrapping_add(4));
}

/// Empties the buffers if one is full.
pub fn flush_if_full(context: &ThreadContext, writer: &RingWriter) {
    let is_full = |number: u64| cell(context, number) as i64 >= 0;
    if is_full(REGION_WORDS_CELL) || is_full(REGION_NUMBERS_CELL) {
        flush(context, writer);
    }
}

/// Writes what is in the buffers into the ring.
fn flush(context: &ThreadContext, writer: &RingWriter) {
    let streams = [
        (REGION_WORDS_CELL, REGION_WORDS_LEFT_CELL, WORDS_END_OFFSET),
        (REGION_NUMBERS_CELL, REGION_NUMBERS_LEFT_CELL, NUMBERS_END_OFFSET),
    ];
    for (stream, (offset_cell, left_cell, end_offset)) in streams.into_iter().enumerate() {
        // What the program may have put there is no reason to read past the buffer's slack.
        let size = cell(context, offset_cell).wrapping_add(REGION_BUFFER_BYTES).min(REGION_BUFFER_BYTES + 64);
        let left = cell(context, left_cell);
        let address = context.self_address + end_offset - REGION_BUFFER_BYTES;
        // SAFETY: the buffer and the slack behind it are mapped, and only this thread writes them, which is here.
        let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) };
        write_chunks(writer, stream as u16, left, bytes);
        set_cell(context, left_cell, left + size);
        set_cell(context, offset_cell, REGION_BUFFER_BYTES.wrapping_neg());
    }
}

fn write_chunks(writer: &RingWriter, stream: u16, start: u64, bytes: &[u8]) {
    for (index, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
        let record = RegionChunkRecord {
            kind: record_kind::REGION_CHUNK,
            continuations: chunk.len().div_ceil(protocol::CONTINUATION_PAYLOAD_BYTES as usize) as u16,
            tid: writer.tid,
            tsc: ticks(),
            start: start + (index * CHUNK_BYTES) as u64,
            size_bytes: chunk.len() as u32,
            stream,
            reserved: [0; 34],
        };
        writer.write(&record, chunk);
    }
}

/// Where a block's level is, in the thread's block.
fn level_offset(number: BlockNumber) -> u64 {
    u64::from(gs_region_cell(number)) + 1
}

fn byte(context: &ThreadContext, offset: u64) -> u8 {
    // SAFETY: inside what mode region takes of the thread's own block; block numbers are below REGION_BLOCKS.
    unsafe { ((context.self_address + offset) as *const u8).read_volatile() }
}

fn set_byte(context: &ThreadContext, offset: u64, value: u8) {
    // SAFETY: as in `byte`; only the thread itself writes there.
    unsafe { ((context.self_address + offset) as *mut u8).write_volatile(value) };
}

fn cell(context: &ThreadContext, number: u64) -> u64 {
    // SAFETY: the cells are the first counters of the thread's mapped window.
    unsafe { context.counter(CounterId::of_cell(number)).read_volatile() }
}

fn set_cell(context: &ThreadContext, number: u64, value: u64) {
    // SAFETY: as in `cell`; only the thread itself writes them.
    unsafe { context.counter(CounterId::of_cell(number)).write_volatile(value) };
}
