//! A slab: a piece of executable memory for translations.
//!
//! It has a hot part, whose code runs straight on, a cold part for what runs seldom, and for each an index of units
//! (what starts where), so that the signal handler finds what a cache address belongs to without a lock. All grow up.

use super::exit::PadId;
use super::views::writable;
use super::views::SLAB_BYTES;
use crate::context::addresses::CachePc;
use crate::context::numbers::FragmentId;
use crate::cpu::emit::Emitter;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Where the cold part starts, and the indices of the hot and of the cold part; and their ends.
const COLD_OFFSET: u64 = 9 << 20;
const HOT_INDEX_OFFSET: u64 = 13 << 20;
const COLD_INDEX_OFFSET: u64 = (14 << 20) + (1 << 19);
/// Room kept for one unit in the hot and in the cold part.
pub const HOT_ROOM_BYTES: u64 = 0x1_0000;
/// So much of it may be left out in front.
pub const MAX_PADDING: u64 = 128;
pub(super) const COLD_ROOM_BYTES: u64 = 0x1000;
/// Entries of the index kept for them.
const KEPT_FOR_JUMPS: u64 = 1024;
/// Room for a jump: those find some where no other unit does.
pub(super) const JUMP_ROOM_BYTES: u64 = 64;
/// A slab's code starts here, after its header.
const HEADER_BYTES: u64 = 64;
/// No place in a slab may be farther than this from the code it translates: 2 GiB less room for operands around it.
pub(super) const REACH: u64 = 0x7800_0000;

/// What lies at an address of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Fragment(FragmentId),
    Pad(PadId),
    /// A far jump to this fragment.
    Thunk(FragmentId),
    /// The enclosure of a restartable sequence.
    Enclosure(u32),
}

/// Room for one unit: where its hot and its cold part start, and how large these may be.
#[derive(Clone, Copy)]
pub struct Room {
    pub hot: CachePc,
    pub(super) cold: CachePc,
    hot_bytes: u64,
    cold_bytes: u64,
}

impl Room {
    /// Begins so many bytes later, at most `MAX_PADDING`.
    pub fn leave_out(&mut self, bytes: u64) {
        let bytes = bytes.min(MAX_PADDING).min(self.hot_bytes);
        self.hot = self.hot + bytes;
        self.hot_bytes -= bytes;
    }

    /// Writes into the room.
    ///
    /// # Safety
    /// Nothing else may use the room meanwhile.
    pub unsafe fn emitter(&self) -> Emitter<'static> {
        // SAFETY: so many bytes were found unused in the slab, which is unmapped only when nothing is put into it any more.
        let (hot, cold) = unsafe {
            (
                core::slice::from_raw_parts_mut(writable(self.hot.raw()) as *mut u8, self.hot_bytes as usize),
                core::slice::from_raw_parts_mut(writable(self.cold.raw()) as *mut u8, self.cold_bytes as usize),
            )
        };
        Emitter::new(hot, self.hot.raw(), cold, self.cold.raw())
    }
}

/// How far a part of a slab is used, and how many units it holds.
#[repr(C)]
struct Part {
    used: AtomicU64,
    n_units: AtomicU32,
}

#[repr(C)]
struct Header {
    hot: Part,
    cold: Part,
}

#[repr(C)]
struct UnitEntry {
    offset: u32,
    /// Kind in the top two bits, number below.
    what: u32,
}

#[derive(Clone, Copy)]
pub struct Slab {
    /// Where it is; `GONE`: nowhere any more.
    pub start: u64,
    /// It makes room for the program: nothing is put into it any more.
    pub(super) is_leaving: bool,
}

/// No address is near it.
pub(super) const GONE: u64 = 1 << 63;

impl Slab {
    fn header(&self) -> &Header {
        // SAFETY: a slab starts with its header, written when it was made, and is never unmapped by the runtime.
        unsafe { &*(writable(self.start) as *const Header) }
    }

    /// Begins a slab that was just mapped.
    pub(super) fn begin(&self) {
        self.header().hot.used.store(HEADER_BYTES, Ordering::Relaxed);
        self.header().cold.used.store(COLD_OFFSET, Ordering::Relaxed);
    }

    /// Bytes of code in it.
    pub(super) fn used_bytes(&self) -> u64 {
        let Header { hot, cold } = self.header();
        hot.used.load(Ordering::Relaxed) + cold.used.load(Ordering::Relaxed) - COLD_OFFSET
    }

    /// What of it is in use, as offsets.
    pub(super) fn used(&self) -> [Range<u64>; 4] {
        let Header { hot, cold } = self.header();
        let index = |part: &Part, offset| offset..offset + u64::from(part.n_units.load(Ordering::Relaxed)) * 8;
        [
            0..hot.used.load(Ordering::Relaxed),
            COLD_OFFSET..cold.used.load(Ordering::Relaxed),
            index(hot, HOT_INDEX_OFFSET),
            index(cold, COLD_INDEX_OFFSET),
        ]
    }

    fn entry_pointer(&self, is_cold: bool, index: u32) -> *mut UnitEntry {
        let offset = if is_cold { COLD_INDEX_OFFSET } else { HOT_INDEX_OFFSET };
        writable(self.start + offset + u64::from(index) * size_of::<UnitEntry>() as u64) as *mut UnitEntry
    }

    fn part(&self, is_cold: bool) -> &Part {
        if is_cold {
            &self.header().cold
        } else {
            &self.header().hot
        }
    }

    /// Appends to a part's index; `used` is where the part ends now.
    pub(super) fn append(&self, is_cold: bool, start: u64, what: u32, used: u64) {
        let part = self.part(is_cold);
        let n = part.n_units.load(Ordering::Relaxed);
        // SAFETY: `has_room` left space for the entry; only the lock's holder appends.
        unsafe { self.entry_pointer(is_cold, n).write(UnitEntry { offset: (start - self.start) as u32, what }) };
        part.used.store(used, Ordering::Relaxed);
        part.n_units.store(n + 1, Ordering::Release);
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < SLAB_BYTES
    }

    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        self.start < range.end && range.start < self.start + SLAB_BYTES
    }

    pub(super) fn reaches(&self, address: u64) -> bool {
        let middle_low = self.start;
        let middle_high = self.start + SLAB_BYTES;
        address.abs_diff(middle_low) < REACH && address.abs_diff(middle_high) < REACH
    }

    /// Room for a unit that is so large at most; `None`: the slab is full. It leaves entries of the index for what is smaller.
    pub(super) fn room(&self, hot_bytes: u64, cold_bytes: u64) -> Option<Room> {
        let Header { hot, cold } = self.header();
        let (hot_used, cold_used) = (hot.used.load(Ordering::Relaxed), cold.used.load(Ordering::Relaxed));
        let n_left = if cold_bytes != 0 { KEPT_FOR_JUMPS } else { 0 };
        let index_end = |n: &AtomicU32, offset, left| offset + (u64::from(n.load(Ordering::Relaxed)) + 1 + left) * 8;
        let has_room = hot_used + hot_bytes <= COLD_OFFSET
            && cold_used + cold_bytes <= HOT_INDEX_OFFSET
            && index_end(&hot.n_units, HOT_INDEX_OFFSET, n_left) <= COLD_INDEX_OFFSET
            && index_end(&cold.n_units, COLD_INDEX_OFFSET, 0) <= SLAB_BYTES;
        let room = Room {
            hot: CachePc::from_raw(self.start + hot_used),
            cold: CachePc::from_raw(self.start + cold_used),
            hot_bytes,
            cold_bytes,
        };
        has_room.then_some(room)
    }

    /// What `address` belongs to. Lock-free: called by the signal handler.
    pub(super) fn find_unit(&self, address: u64) -> Option<Found> {
        let offset = (address - self.start) as u32;
        let is_cold = u64::from(offset) >= COLD_OFFSET;
        let n = self.part(is_cold).n_units.load(Ordering::Acquire);
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = low + (high - low) / 2;
            // SAFETY: entries below n_units are written before it is published.
            if unsafe { (*self.entry_pointer(is_cold, middle)).offset } <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == 0 {
            return None;
        }
        // SAFETY: as above.
        let entry = unsafe { &*self.entry_pointer(is_cold, low - 1) };
        let number = entry.what & 0x3fff_ffff;
        let unit = match entry.what >> 30 {
            0 => Unit::Fragment(FragmentId::from_raw(number)),
            1 => Unit::Pad(PadId::from_raw(number)),
            2 => Unit::Thunk(FragmentId::from_raw(number)),
            _ => Unit::Enclosure(number),
        };
        Some(Found { unit, start: self.start + u64::from(entry.offset), is_cold })
    }
}

/// What an address of the cache belongs to, where that part of it starts, and which part it is.
#[derive(Clone, Copy)]
pub struct Found {
    pub unit: Unit,
    pub start: u64,
    pub is_cold: bool,
}
