//! Advice about memory (madvise, process_madvise): private pages with code that are thrown away come back as others.

extern crate alloc;
use super::mappings::page_end;
use super::memory::{call_holding, is_place};
use super::vectors::read_pieces;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::dispatch::life::hidden;
use crate::instrument::{Engine, ENGINE};
use crate::sys::calls::{program_call, ENOMEM};
use crate::sys::kernel::{MADV_DONTFORK, MADV_GUARD_INSTALL, MADV_HWPOISON, MADV_WIPEONFORK};
use crate::sys::kernel::{MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_FREE, MADV_REMOVE};
use crate::thread::registry::writer_of;
use alloc::vec::Vec;

/// Whether what memory holds may be gone after the advice.
fn discards(advice: u64) -> bool {
    matches!(
        advice as u32,
        MADV_DONTNEED | MADV_FREE | MADV_REMOVE | MADV_DONTNEED_LOCKED | MADV_HWPOISON | MADV_GUARD_INSTALL
    )
}

/// Notes what a fork's child may not get as it is. Where that is taken back later the child finds the same code again.
fn note_inheritance(engine: &mut Engine, start: u64, end: u64, advice: u64) {
    if matches!(advice as u32, MADV_DONTFORK | MADV_WIPEONFORK) {
        engine.not_inherited.insert(AppPc::from_raw(start), AppPc::from_raw(end), 0, true);
    }
}

/// In a fork's child: code that it did not get is looked for anew.
pub fn forget_not_inherited(engine: &mut Engine, writer: &RingWriter) {
    while let Some(range) = engine.not_inherited.next_from(AppPc::LOWEST, AppPc::HIGHEST) {
        engine.invalidate(writer, range.start, range.end);
        engine.ranges.remove(range.start, range.end);
        engine.not_inherited.remove(range.start, range.end);
    }
}

/// madvise: private pages that are thrown away come back as zeros, or as they are in their file.
pub fn advise(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    let [start, size, advice, ..] = arguments;
    let end = page_end(start, size);
    if is_place(&(start..end)) && hidden::is_within(&(start..end)) {
        // It goes on behind what is not mapped, and says that there was such (mm/madvise.c).
        for part in hidden::visible_parts(&(start..end)) {
            let result = advise(context, [part.start, part.end - part.start, advice, 0, 0, 0]);
            if result != 0 && result != -i64::from(ENOMEM) {
                return result;
            }
        }
        return -i64::from(ENOMEM);
    }
    let engine = ENGINE.lock();
    let [first, behind] = [start, end].map(AppPc::from_raw);
    if !discards(advice) || !engine.ranges.intersects(first, behind) {
        let mut engine = engine;
        let writer = writer_of(context, engine.shared);
        engine.end_trust(&writer, first, behind, false);
        note_inheritance(&mut engine, start, end, advice);
        drop(engine);
        // SAFETY: the program's own call.
        return unsafe { program_call(number::MADVISE, arguments) };
    }
    let writer = writer_of(context, engine.shared);
    let (result, mut engine) = call_holding(engine, &writer, number::MADVISE, arguments, [start, end]);
    // Part of it may be done where it failed.
    engine.invalidate(&writer, first, behind);
    result
}

/// process_madvise: as madvise for each piece of a vector. Should the process be another one, no more than some code is translated
/// again for nothing.
pub fn advise_pieces(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let [_, vector, length, advice, ..] = arguments;
    let pieces: Vec<_> =
        read_pieces(context, vector, length).into_iter().map(|(at, size)| at..page_end(at, size)).collect();
    if pieces.iter().any(|piece| is_place(piece) && hidden::is_within(piece)) {
        return -i64::from(ENOMEM);
    }
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    for piece in &pieces {
        engine.end_trust(&writer, AppPc::from_raw(piece.start), AppPc::from_raw(piece.end), false);
    }
    let (result, mut engine) = call_holding(engine, &writer, number::PROCESS_MADVISE, arguments, [0; 2]);
    if discards(advice) {
        for piece in pieces.iter().filter(|piece| is_place(piece)) {
            engine.invalidate(&writer, AppPc::from_raw(piece.start), AppPc::from_raw(piece.end));
        }
    }
    result
}
