//! What the controller calls, by the C calling convention. Only in the shared library (feature `loaded`).
//!
//! The caller keeps all memory: tables and streams stay where they are while a walk goes on, and a walk's state is
//! `clew_path_walk_bytes` of its memory, aligned to 16, which may be copied as long as it does.

use crate::accesses::Accesses;
use crate::call_frames::read_rules;
use crate::code::Code;
use crate::flow::{read_flow, Details, Progress as FlowProgress, Question};
use crate::predictor::MEMORY_WORDS;
use crate::protocol::{
    stop, Coded, Encoded, Event, FlowEvent, FlowReading, Limit, Position, Progress, Tables, ValueEvent,
};
use crate::recode::{decode, encode, Reading, Start};
use crate::shadow::ShadowStack;
use crate::source::{Path, Stop};
use crate::walk::Walker;
use core::slice;

impl Tables {
    /// `None` if the code can't be walked through.
    ///
    /// # Safety
    /// Pointers and counts belong together.
    unsafe fn code<'a>(&self) -> Option<Code<'a>> {
        // SAFETY: as the caller promises.
        unsafe {
            let blocks = slice::from_raw_parts_mut(self.blocks, self.n_blocks as usize);
            Code::new(blocks, slice::from_raw_parts(self.targets, self.n_targets as usize))
        }
    }

    /// # Safety
    /// Pointers and counts belong together.
    unsafe fn stack<'a>(&self) -> ShadowStack<'a> {
        // SAFETY: as the caller promises.
        unsafe {
            let addresses = slice::from_raw_parts_mut(self.addresses, self.max_depth as usize);
            let numbers = slice::from_raw_parts_mut(self.numbers, self.max_depth as usize);
            ShadowStack::restore(addresses, numbers, self.depth as usize, self.forgotten)
        }
    }

    /// # Safety
    /// Pointers and counts belong together.
    unsafe fn events<'a>(&self) -> &'a [Event] {
        // SAFETY: as the caller promises.
        unsafe { slice::from_raw_parts(self.events, self.n_events as usize) }
    }
}

fn number_of(stop: Option<Stop>) -> u32 {
    match stop {
        None => stop::ASKED,
        Some(Stop::End) => stop::END,
        Some(Stop::Cut) => stop::CUT,
        Some(Stop::Damaged) => stop::DAMAGED,
    }
}

/// The processor's time stamp counter now: what the time stamps of a recording that goes on are compared with.
#[no_mangle]
pub extern "C" fn clew_time_stamp() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, which changes nothing.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Size of a walk's state.
#[no_mangle]
pub extern "C" fn clew_path_walk_bytes() -> u64 {
    size_of::<Walker>() as u64
}

/// Begins a walk in `state`. Returns 0, or `DAMAGED` if the code can't be walked through.
///
/// # Safety
/// `state` and all that `tables` name must be as described above, and stay while the walk is used.
#[no_mangle]
pub unsafe extern "C" fn clew_path_open(state: *mut u8, tables: *const Tables) -> u32 {
    // SAFETY: the caller promises that pointers and counts belong together.
    unsafe {
        let tables = &*tables;
        let Some(code) = tables.code() else {
            return stop::DAMAGED;
        };
        let path = Path {
            start: tables.start,
            surprises: slice::from_raw_parts(tables.surprises, tables.n_surprise_bytes as usize),
            symbols: slice::from_raw_parts(tables.symbols, tables.n_symbol_bytes as usize),
            events: tables.events(),
            decisions: tables.decisions,
        };
        state.cast::<Walker>().write(Walker::new(code, path, tables.stack(), tables.block as u32));
    }
    stop::ASKED
}

/// Writes the next executed blocks to `out`, at most `n`, and returns how many; `stop` says why there are fewer.
///
/// # Safety
/// `state` is an open walk, `out` has room for `n` numbers.
#[no_mangle]
pub unsafe extern "C" fn clew_path_walk(state: *mut u8, out: *mut u32, n: u64, stop: *mut u32) -> u64 {
    // SAFETY: as the caller promises.
    unsafe {
        let walker = &mut *state.cast::<Walker>();
        for done in 0..n {
            match walker.step() {
                Ok(block) => out.add(done as usize).write(block),
                Err(reason) => {
                    stop.write(number_of(Some(reason)));
                    return done;
                }
            }
        }
        stop.write(stop::ASKED);
    }
    n
}

/// Executes blocks up to `limit`. Returns why it stopped.
///
/// # Safety
/// `state` is an open walk; `limit` and `done` are valid.
#[no_mangle]
pub unsafe extern "C" fn clew_path_advance(state: *mut u8, limit: *const Limit, done: *mut Progress) -> u32 {
    // SAFETY: as the caller promises.
    unsafe {
        let (progress, stop) = (*state.cast::<Walker>()).advance(&*limit);
        done.write(progress);
        number_of(stop)
    }
}

/// Writes what the thread did next as events, as many as there is room for, and returns how many; `stop` says why there
/// are no more: `ASKED` if there was no room, `CUT` if no more is known, `DAMAGED` also where code is not known.
///
/// # Safety
/// `state` is an open walk; what `reading` names has as many rows as it says; `stop` is valid.
#[no_mangle]
pub unsafe extern "C" fn clew_path_read_flow(state: *mut u8, reading: *mut FlowReading, stop: *mut u32) -> u64 {
    // SAFETY: as the caller promises.
    unsafe {
        let reading = &mut *reading;
        let details = Details {
            blocks: slice::from_raw_parts(reading.details, reading.n_details as usize),
            starts: slice::from_raw_parts(reading.starts, reading.n_starts as usize),
            times: slice::from_raw_parts(reading.times, reading.n_times as usize),
            told: slice::from_raw_parts(reading.told, reading.n_told as usize),
        };
        let FlowReading { begun, sequence, time, thread, kinds, .. } = *reading;
        let question = Question { thread, kinds, known: (reading.surprise_bytes, reading.decisions) };
        let accesses = slice::from_raw_parts(reading.accesses, reading.n_accesses as usize);
        let accesses = Accesses::new(accesses, reading.has_accesses == 2);
        let is_open = reading.is_open != 0;
        let mut progress = FlowProgress { begun, sequence, time, is_open, accesses };
        let (walker, n_rows) = (&mut *state.cast::<Walker>(), reading.n_rows as usize);
        let (events, values) = (reading.rows.cast::<FlowEvent>(), reading.rows.cast::<ValueEvent>());
        let (n, reason) = match (reading.has_values != 0, reading.has_accesses != 0) {
            (false, false) => {
                let rows = slice::from_raw_parts_mut(events, n_rows);
                read_flow::<_, false>(walker, details, question, &mut progress, rows)
            }
            (false, true) => {
                let rows = slice::from_raw_parts_mut(events, n_rows);
                read_flow::<_, true>(walker, details, question, &mut progress, rows)
            }
            (true, false) => {
                let rows = slice::from_raw_parts_mut(values, n_rows);
                read_flow::<_, false>(walker, details, question, &mut progress, rows)
            }
            (true, true) => {
                let rows = slice::from_raw_parts_mut(values, n_rows);
                read_flow::<_, true>(walker, details, question, &mut progress, rows)
            }
        };
        (reading.begun, reading.sequence, reading.time) = (progress.begun, progress.sequence, progress.time);
        reading.is_open = u32::from(progress.is_open);
        reading.n_passed = progress.accesses.n_passed() as u64;
        stop.write(number_of(reason));
        n as u64
    }
}

/// Where a walk is: its position, the block that would run next, and how many events are behind it.
///
/// # Safety
/// `state` is an open walk.
#[no_mangle]
pub unsafe extern "C" fn clew_path_place(state: *mut u8, position: *mut Position, block: *mut u32, events: *mut u64) {
    // SAFETY: as the caller promises.
    unsafe {
        let walker = &*state.cast::<Walker>();
        position.write(walker.position());
        block.write(walker.block());
        events.write(walker.next_event() as u64);
    }
}

/// How many of the open calls are in memory; the others are forgotten.
///
/// # Safety
/// `state` is an open walk.
#[no_mangle]
pub unsafe extern "C" fn clew_path_open_calls(state: *mut u8) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { (*state.cast::<Walker>()).stack().open().0.len() as u64 }
}

/// Numbers of four bytes that a predictor takes.
#[no_mangle]
pub extern "C" fn clew_path_memory_words() -> u64 {
    MEMORY_WORDS as u64
}

/// Goes on by `n_items` conditional and indirect branches, and encodes them. Returns why it stopped, or `NO_ROOM`.
///
/// # Safety
/// `state` is an open walk, and the other pointers and counts belong together.
#[no_mangle]
pub unsafe extern "C" fn clew_path_encode(
    state: *mut u8,
    n_items: u64,
    words: *mut u32,
    n_words: u64,
    room: *mut u8,
    n_room: u64,
    encoded: *mut Encoded,
) -> u32 {
    // SAFETY: as the caller promises; the walk is put back where it was taken from, and nothing in between panics.
    unsafe {
        let state = state.cast::<Walker>();
        let words = slice::from_raw_parts_mut(words, n_words as usize);
        let room = slice::from_raw_parts_mut(room, n_room as usize);
        let (walker, segment) = encode(state.read(), n_items, words, room);
        state.write(walker);
        let Some(segment) = segment else {
            return stop::NO_ROOM;
        };
        let (n_bytes, n_blocks, n_items) = (segment.n_bytes as u64, segment.n_blocks, segment.n_items);
        encoded.write(Encoded { n_bytes, n_blocks, n_items });
        number_of(segment.stop)
    }
}

/// Decodes the streams of a segment to where `tables` has its streams, and says where it ends. Returns 0, or why it can't.
///
/// # Safety
/// `tables` and `coded` must be as described above.
#[no_mangle]
pub unsafe extern "C" fn clew_path_decode(tables: *const Tables, coded: *const Coded, end: *mut Position) -> u32 {
    // SAFETY: as the caller promises.
    unsafe {
        let (tables, coded) = (&*tables, &*coded);
        if (coded.n_words as usize) < MEMORY_WORDS {
            return stop::NO_ROOM;
        }
        let Some(code) = tables.code() else {
            return stop::DAMAGED;
        };
        let (block, position) = (tables.block as u32, tables.start);
        let start = Start { code, events: tables.events(), stack: tables.stack(), block, position };
        let reading = Reading {
            coded: slice::from_raw_parts(coded.bytes, coded.n_bytes as usize),
            words: slice::from_raw_parts_mut(coded.words, coded.n_words as usize),
            surprises: slice::from_raw_parts_mut(tables.surprises, tables.n_surprise_bytes as usize),
            symbols: slice::from_raw_parts_mut(tables.symbols, tables.n_symbol_bytes as usize),
        };
        match decode(start, coded.n_blocks, reading) {
            Ok(position) => {
                end.write(position);
                stop::ASKED
            }
            Err(stop) => number_of(Some(stop)),
        }
    }
}

/// Writes the rules of all functions of which a section .eh_frame tells, linked at `address`, to `rows`: how far it is from `base`, in the
/// upper half, and the rule (`frame_rules`). Returns how many there are, or `u64::MAX` if there is no room for all.
///
/// # Safety
/// Pointers and counts belong together.
#[no_mangle]
pub unsafe extern "C" fn clew_frame_rows(
    section: *const u8,
    n_bytes: u64,
    address: u64,
    base: u64,
    rows: *mut u64,
    n_rows: u64,
) -> u64 {
    // SAFETY: as the caller promises.
    let (section, rows) =
        unsafe { (slice::from_raw_parts(section, n_bytes as usize), slice::from_raw_parts_mut(rows, n_rows as usize)) };
    let mut rows = rows.iter_mut();
    let mut n = 0;
    let has_room = read_rules(section, address, |row| {
        // What is elsewhere is no code of the file's.
        let Ok(distance) = u32::try_from(row.address.wrapping_sub(base)) else { return true };
        let Some(place) = rows.next() else { return false };
        *place = u64::from(distance) << 32 | u64::from(row.rule.0);
        n += 1;
        true
    });
    if has_room {
        n
    } else {
        u64::MAX
    }
}
