//! What the controller calls, by the C calling convention. Only in the shared library (feature `loaded`).
//!
//! The caller keeps all memory: tables and streams stay where they are while a walk goes on, and a walk's state is
//! `clew_path_walk_bytes` of its memory, aligned to 16, which may be copied as long as it does.

use crate::advance::Progress;
use crate::code::{Block, Code};
use crate::event::{Event, Position};
use crate::shadow::ShadowStack;
use crate::walk::{Path, Stop, Walker};
use core::slice;

/// Why a walk stopped: there may be more.
const GOES_ON: i32 = 0;
const END: i32 = 1;
const CUT: i32 = 2;
const DAMAGED: i32 = 3;

/// What a walk reads. Pointers to nothing are as good as any others where the count is 0, but not null.
#[repr(C)]
pub struct Tables {
    pub blocks: *mut Block,
    pub n_blocks: u64,
    pub targets: *const u32,
    pub n_targets: u64,
    pub surprises: *const u8,
    pub n_surprise_bytes: u64,
    pub symbols: *const u8,
    pub n_symbol_bytes: u64,
    pub events: *const Event,
    pub n_events: u64,
    /// Decisions behind the last surprise.
    pub decisions: u64,
    /// The shadow stack: room for so many, of which the first `depth` are open.
    pub addresses: *mut u64,
    pub numbers: *mut u32,
    pub max_depth: u64,
    pub depth: u64,
    pub forgotten: u64,
    /// Where the streams begin, and the block that would run next.
    pub start: Position,
    pub block: u64,
}

fn number_of(stop: Option<Stop>) -> i32 {
    match stop {
        None => GOES_ON,
        Some(Stop::End) => END,
        Some(Stop::Cut) => CUT,
        Some(Stop::Damaged) => DAMAGED,
    }
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
pub unsafe extern "C" fn clew_path_open(state: *mut u8, tables: *const Tables) -> i32 {
    // SAFETY: the caller promises that pointers and counts belong together.
    unsafe {
        let tables = &*tables;
        let blocks = slice::from_raw_parts_mut(tables.blocks, tables.n_blocks as usize);
        let targets = slice::from_raw_parts(tables.targets, tables.n_targets as usize);
        let Some(code) = Code::new(blocks, targets) else {
            return DAMAGED;
        };
        let path = Path {
            start: tables.start,
            surprises: slice::from_raw_parts(tables.surprises, tables.n_surprise_bytes as usize),
            symbols: slice::from_raw_parts(tables.symbols, tables.n_symbol_bytes as usize),
            events: slice::from_raw_parts(tables.events, tables.n_events as usize),
            decisions: tables.decisions,
        };
        let addresses = slice::from_raw_parts_mut(tables.addresses, tables.max_depth as usize);
        let numbers = slice::from_raw_parts_mut(tables.numbers, tables.max_depth as usize);
        let stack = ShadowStack::restore(addresses, numbers, tables.depth as usize, tables.forgotten);
        state.cast::<Walker>().write(Walker::new(code, path, stack, tables.block as u32));
    }
    GOES_ON
}

/// Writes the next executed blocks to `out`, at most `n`, and returns how many; `stop` says why there are fewer.
///
/// # Safety
/// `state` is an open walk, `out` has room for `n` numbers.
#[no_mangle]
pub unsafe extern "C" fn clew_path_walk(state: *mut u8, out: *mut u32, n: u64, stop: *mut i32) -> u64 {
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
        stop.write(GOES_ON);
    }
    n
}

/// Executes blocks as long as no more than `instructions` are executed. Returns why it stopped.
///
/// # Safety
/// `state` is an open walk.
#[no_mangle]
pub unsafe extern "C" fn clew_path_advance(state: *mut u8, instructions: u64, done: *mut Progress) -> i32 {
    // SAFETY: as the caller promises.
    unsafe {
        let (progress, stop) = (*state.cast::<Walker>()).advance(instructions);
        done.write(progress);
        number_of(stop)
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
