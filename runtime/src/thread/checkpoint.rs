//! Checkpoints of a thread's path (mode `full`): where the thread is, which calls are open, and how much its counters rose
//! since the last one. Who reads the path can begin there.
//!
//! Runs in the dispatcher, between two fragments, as `path` does.

use super::block::map_kept;
use super::open_calls::open_calls;
use crate::buffer::{RingWriter, Shared};
use crate::context::layout::{KEPT_CALLS_OFFSET, KEPT_COUNTERS_BYTES, KEPT_COUNTERS_OFFSET};
use crate::context::numbers::CounterId;
use crate::context::ThreadContext;
use crate::cpu::sys::clock::ticks;
use crate::protocol::{path_event_kind, path_stream, PATH_WINDOW_BYTES};
use crate::thread::path_words::{event_here, write_chunk};

/// No sooner after another: some milliseconds. A reader walks through as much in a few more.
const INTERVAL_CYCLES: u64 = 1 << 24;
/// A checkpoint may take one part in so many of the time,
const SHARE: u64 = 32;
/// with what it takes the controller, so many cycles for each counter that rose,
const RISE_CYCLES: u64 = 1 << 9;
/// but is due after so much whatever it took: most of that may have been a wait for the controller.
const MAX_INTERVAL_CYCLES: u64 = 1 << 27;
/// So many counters more than that are no longer followed: nothing says how much was executed.
const MAX_COUNTERS: u64 = KEPT_COUNTERS_BYTES / 8;
/// Counters that are compared at once.
const GROUP: u64 = 8;

/// The path begins. `false`: there is no memory for it.
pub fn begin(context: &mut ThreadContext, shared: Shared) -> bool {
    // A slot's block is used by one thread after another, and a fork's child has its parent's.
    if !map_kept(context, shared) {
        return false;
    }
    context.path.checkpoint_due = ticks() + INTERVAL_CYCLES;
    (context.path.counters_written, context.path.calls_written, context.path.calls_kept) = (0, 0, 0);
    true
}

pub fn is_due(context: &ThreadContext) -> bool {
    ticks() >= context.path.checkpoint_due
}

/// No checkpoint is due for some milliseconds.
pub fn postpone(context: &mut ThreadContext) {
    context.path.checkpoint_due = ticks() + INTERVAL_CYCLES;
}

/// Writes a checkpoint that shows all open calls.
pub fn write_whole(context: &mut ThreadContext, writer: &RingWriter) -> bool {
    context.path.calls_kept = 0;
    write(context, writer)
}

/// Writes a checkpoint in front of the context's pc. `false`: something of it was dropped.
pub fn write(context: &mut ThreadContext, writer: &RingWriter) -> bool {
    let start = ticks();
    context.left.is_kept_used = true;
    let Some(n_rises) = write_counters(context, writer) else {
        return false;
    };
    let Some(n_same) = write_calls(context, writer) else {
        return false;
    };
    let event = event_here(context, writer, path_event_kind::CHECKPOINT, context.registers.pc, n_same);
    let end = ticks();
    let cost = end.wrapping_sub(start).saturating_add(n_rises * RISE_CYCLES);
    context.path.checkpoint_due = end + cost.saturating_mul(SHARE).clamp(INTERVAL_CYCLES, MAX_INTERVAL_CYCLES);
    writer.write(&event, &[])
}

/// How many bytes one takes now, but for open calls.
pub fn find_cost(context: &ThreadContext, writer: &RingWriter) -> u64 {
    let (mut cost, mut last) = (0, 0);
    Rises::of(context, writer.shared).each(|index, rise| {
        cost += match (is_few(rise), index - last > MAX_STEP) {
            (false, _) => MANY_BYTES,
            (true, false) => FEW_BYTES,
            (true, true) => 2 * FEW_BYTES,
        };
        last = index;
        true
    });
    cost as u64
}

/// Writes how much each counter rose, and keeps what they are; how many did. `None`: dropped.
fn write_counters(context: &mut ThreadContext, writer: &RingWriter) -> Option<u64> {
    let mut n_rises = 0;
    let mut piece = Piece { few: [0; Piece::BYTES], few_used: 0, few_last: 0, many: [0; Piece::BYTES], many_used: 0 };
    let rises = Rises::of(context, writer.shared);
    let all_sent = rises.each(|index, rise| {
        if !piece.has_room() && !piece.send(context, writer, rises.kept) {
            return false;
        }
        piece.add(index, rise);
        n_rises += 1;
        true
    });
    (all_sent && piece.send(context, writer, rises.kept)).then_some(n_rises)
}

/// Writes the open calls that are not as they were at the last checkpoint; how many are. `None`: dropped.
fn write_calls(context: &mut ThreadContext, writer: &RingWriter) -> Option<u64> {
    const PIECE: usize = 0x1000;
    let kept = (context.self_address + KEPT_CALLS_OFFSET) as *mut u64;
    let open = open_calls(context);
    let mut written = context.path.calls_written;
    // SAFETY: there is room for as many kept addresses as may be open; only this thread touches them.
    let is_same = |index: usize| unsafe { kept.add(index).read_volatile() == open[index] };
    let n_same = (0..open.len().min(context.path.calls_kept as usize)).take_while(|index| is_same(*index)).count();
    for calls in open[n_same..].chunks(PIECE) {
        // SAFETY: plain memory of as many bytes.
        let bytes = unsafe { core::slice::from_raw_parts(calls.as_ptr().cast::<u8>(), size_of_val(calls)) };
        if !write_chunk(writer, path_stream::CALLS, written, bytes) {
            return None;
        }
        written += bytes.len() as u64;
    }
    for (index, address) in open.iter().enumerate().skip(n_same) {
        // SAFETY: as above.
        unsafe { kept.add(index).write_volatile(*address) };
    }
    let n_open = open.len() as u64;
    (context.path.calls_written, context.path.calls_kept) = (written, n_open);
    Some(n_same as u64)
}

/// The thread's counters, and what they were at the last checkpoint.
struct Rises {
    counters: *const u64,
    kept: *mut u64,
    end: u64,
}

impl Rises {
    fn of(context: &ThreadContext, shared: Shared) -> Self {
        // SAFETY: the status page is mapped.
        let n_used = unsafe { (&raw const (*shared.status()).counters_used).read_volatile() };
        Self {
            counters: context.counter(CounterId::of_cell(0)),
            kept: (context.self_address + KEPT_COUNTERS_OFFSET) as *mut u64,
            end: n_used.min(shared.header().counter_bytes / 8).min(MAX_COUNTERS),
        }
    }

    /// Calls `take` with the index of each counter that rose, and by how much, until it is `false`; the last one's.
    fn each(&self, mut take: impl FnMut(u32, u64) -> bool) -> bool {
        // SAFETY: counters below `end` are inside the thread's window, and there is room for as many kept ones; only this
        // thread writes either.
        let rise = |index: u64| unsafe {
            let index = index as usize;
            self.counters.add(index).read_volatile().wrapping_sub(self.kept.add(index).read_volatile())
        };
        for group in (PATH_WINDOW_BYTES / 8..self.end).step_by(GROUP as usize) {
            let group_end = (group + GROUP).min(self.end);
            if (group..group_end).fold(0, |all, index| all | rise(index)) == 0 {
                continue;
            }
            for index in group..group_end {
                let rose = rise(index);
                if rose != 0 && !take(index as u32, rose) {
                    return false;
                }
            }
        }
        true
    }
}

/// What a counter takes that rose by less than 65,536: step and rise. Where it is farther behind another such one than
/// `MAX_STEP`, there is as much in front of it that has no rise, for each `MAX_STEP` times `FAR` indices.
const FEW_BYTES: usize = 3;
const MAX_STEP: u32 = u8::MAX as u32;
const FAR: u32 = MAX_STEP + 1;
/// What another one takes: index and rise.
const MANY_BYTES: usize = 12;

fn is_few(rise: u64) -> bool {
    rise <= u64::from(u16::MAX)
}

/// Counters on their way into the ring, as the streams `few` and `counters` have them.
struct Piece {
    few: [u8; Piece::BYTES],
    few_used: usize,
    /// Index of the last one there.
    few_last: u32,
    many: [u8; Piece::BYTES],
    many_used: usize,
}

impl Piece {
    const HEAD_BYTES: usize = 4;
    const BYTES: usize = Self::HEAD_BYTES + 2000 * MANY_BYTES;

    /// As many bytes as the farthest step takes.
    const STEP_BYTES: usize = (MAX_COUNTERS as usize / (MAX_STEP * FAR) as usize + 2) * FEW_BYTES;

    fn has_room(&self) -> bool {
        self.few_used + Self::STEP_BYTES <= Self::BYTES && self.many_used + MANY_BYTES <= Self::BYTES
    }

    /// Adds a counter, behind those before it; there is room.
    fn add(&mut self, index: u32, rise: u64) {
        if !is_few(rise) {
            let entry = &mut self.many[self.many_used..self.many_used + MANY_BYTES];
            entry[..4].copy_from_slice(&index.to_le_bytes());
            entry[4..].copy_from_slice(&rise.to_le_bytes());
            self.many_used += MANY_BYTES;
            return;
        }
        if self.few_used == 0 {
            self.few[..Self::HEAD_BYTES].copy_from_slice(&index.to_le_bytes());
            (self.few_used, self.few_last) = (Self::HEAD_BYTES, index);
        }
        let mut step = index - self.few_last;
        while step > MAX_STEP {
            let far = (step / FAR).min(MAX_STEP);
            self.add_few(far as u8, 0);
            step -= far * FAR;
        }
        self.add_few(step as u8, rise as u16);
        self.few_last = index;
    }

    fn add_few(&mut self, step: u8, rise: u16) {
        let [low, high] = rise.to_le_bytes();
        self.few[self.few_used..self.few_used + FEW_BYTES].copy_from_slice(&[step, low, high]);
        self.few_used += FEW_BYTES;
    }

    /// Writes them, and has them kept; `false`: dropped. `kept` are the kept counters.
    fn send(&mut self, context: &mut ThreadContext, writer: &RingWriter, kept: *mut u64) -> bool {
        let few = &self.few[..core::mem::take(&mut self.few_used)];
        let many = &self.many[..core::mem::take(&mut self.many_used)];
        // SAFETY: an index that `add` was given: there is room for as many.
        let keep = |index: u32, rise: u64| unsafe {
            let place = kept.add(index as usize);
            place.write_volatile(place.read_volatile().wrapping_add(rise));
        };
        if let Some((head, entries)) = few.split_first_chunk() {
            if !write_chunk(writer, path_stream::FEW, context.path.counters_written, few) {
                return false;
            }
            context.path.counters_written += few.len() as u64;
            let mut index = u32::from_le_bytes(*head);
            for entry in entries.chunks_exact(FEW_BYTES) {
                let (step, rise) = (u32::from(entry[0]), u16::from_le_bytes([entry[1], entry[2]]));
                index += if rise == 0 { step * FAR } else { step };
                keep(index, u64::from(rise));
            }
        }
        if many.is_empty() {
            return true;
        }
        if !write_chunk(writer, path_stream::COUNTERS, context.path.counters_written, many) {
            return false;
        }
        context.path.counters_written += many.len() as u64;
        for entry in many.chunks_exact(MANY_BYTES) {
            let (index, rise) = entry.split_at(4);
            let index = u32::from_le_bytes(index.try_into().unwrap_or_default());
            keep(index, u64::from_le_bytes(rise.try_into().unwrap_or_default()));
        }
        true
    }
}
