//! Slabs: pieces of executable memory near the code that they hold translations of.
//!
//! In a slab code grows up and the index of units (what starts where) grows down from the end, so that the signal handler
//! finds what a cache address belongs to without a lock.

use crate::sys::calls::mmap;
use crate::sys::heap::Arena;
use crate::sys::kernel::{
    MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, MAP_NORESERVE, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE,
};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub const SLAB_BYTES: u64 = 16 << 20;
/// Room kept for one fragment with everything around it.
pub const UNIT_ROOM_BYTES: u64 = 0x1_0000;
/// A slab's code starts here, after its header.
const HEADER_BYTES: u64 = 64;
/// No place in a slab may be farther than this from the code it translates: 2 GiB less room for operands around it.
const REACH: u64 = 0x7800_0000;
/// Gap kept below the highest library and above the program, where nothing grows.
const GAP: u64 = 0x20_0000;

/// What lies at an address of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Fragment(u32),
    Pad(u32),
    /// A far jump to this fragment.
    Thunk(u32),
}

#[repr(C)]
struct Header {
    used: AtomicU64,
    n_units: AtomicU32,
}

#[repr(C)]
struct UnitEntry {
    offset: u32,
    /// Kind in the top two bits, number below.
    what: u32,
}

#[derive(Clone, Copy)]
pub struct Slab {
    pub start: u64,
}

impl Slab {
    fn header(&self) -> &Header {
        // SAFETY: a slab starts with its header, written when it was made, and is never unmapped by the runtime.
        unsafe { &*(self.start as *const Header) }
    }

    fn unit_pointer(&self, index: u32) -> *mut UnitEntry {
        (self.start + SLAB_BYTES - (u64::from(index) + 1) * 8) as *mut UnitEntry
    }

    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < SLAB_BYTES
    }

    fn reaches(&self, app_pc: u64) -> bool {
        let middle_low = self.start;
        let middle_high = self.start + SLAB_BYTES;
        app_pc.abs_diff(middle_low) < REACH && app_pc.abs_diff(middle_high) < REACH
    }

    fn room(&self) -> u64 {
        let header = self.header();
        let units = u64::from(header.n_units.load(Ordering::Relaxed)) * 8;
        (SLAB_BYTES - units).saturating_sub(header.used.load(Ordering::Relaxed) + 64)
    }

    /// What `address` belongs to. Lock-free: called by the signal handler.
    fn find_unit(&self, address: u64) -> Option<(Unit, u64)> {
        let offset = (address - self.start) as u32;
        let n = self.header().n_units.load(Ordering::Acquire);
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = low + (high - low) / 2;
            // SAFETY: entries below n_units are written before it is published.
            if unsafe { (*self.unit_pointer(middle)).offset } <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low == 0 {
            return None;
        }
        // SAFETY: as above.
        let entry = unsafe { &*self.unit_pointer(low - 1) };
        let number = entry.what & 0x3fff_ffff;
        let unit = match entry.what >> 30 {
            0 => Unit::Fragment(number),
            1 => Unit::Pad(number),
            _ => Unit::Thunk(number),
        };
        Some((unit, self.start + u64::from(entry.offset)))
    }
}

/// All slabs of the process.
pub struct Slabs {
    list: Arena<Slab>,
    /// End of the highest executable range at start: where libraries are mapped below.
    high_end: u64,
    /// Addresses from here up are the stack's to grow into.
    stack_floor: u64,
}

impl Slabs {
    pub const fn new() -> Slabs {
        Slabs { list: Arena::new(1 << 20), high_end: 0, stack_floor: 0 }
    }

    /// Learns the layout of the address space.
    pub fn initialize(&mut self, high_end: u64, stack_floor: u64) {
        self.high_end = high_end;
        self.stack_floor = stack_floor;
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes of code in all slabs.
    pub fn used_bytes(&self) -> u64 {
        self.list.as_slice().iter().map(|slab| slab.header().used.load(Ordering::Relaxed)).sum()
    }

    /// Whether an address is in the code cache. Lock-free: called by the signal handler.
    pub fn contains(&self, address: u64) -> bool {
        self.list.as_slice().iter().any(|slab| slab.contains(address))
    }

    /// What an address of the cache belongs to, and where that starts. Lock-free: called by the signal handler.
    pub fn find_unit(&self, address: u64) -> Option<(Unit, u64)> {
        self.list.as_slice().iter().find(|slab| slab.contains(address))?.find_unit(address)
    }

    /// Room for a unit near `app_pc`: its address. `None`: no slab could be made.
    pub fn room_near(&mut self, app_pc: u64) -> Option<u64> {
        // The latest slab first: the others are full as a rule.
        let found =
            self.list.as_slice().iter().rev().find(|slab| slab.reaches(app_pc) && slab.room() >= UNIT_ROOM_BYTES);
        let slab = match found {
            Some(slab) => *slab,
            None => self.make_near(app_pc)?,
        };
        Some(slab.start + slab.header().used.load(Ordering::Relaxed))
    }

    /// Takes the room: the unit at `start` is `size` bytes long.
    pub fn commit(&mut self, start: u64, size: u64, unit: Unit) {
        let Some(slab) = self.list.as_slice().iter().find(|slab| slab.contains(start)) else {
            return;
        };
        let header = slab.header();
        let n = header.n_units.load(Ordering::Relaxed);
        let what = match unit {
            Unit::Fragment(id) => id,
            Unit::Pad(id) => id | 1 << 30,
            Unit::Thunk(id) => id | 2 << 30,
        };
        // SAFETY: `room` left space for the entry; only the lock's holder appends.
        unsafe { slab.unit_pointer(n).write(UnitEntry { offset: (start - slab.start) as u32, what }) };
        header.used.store((start - slab.start + size).next_multiple_of(16), Ordering::Relaxed);
        header.n_units.store(n + 1, Ordering::Release);
    }

    /// Maps a slab near `app_pc`, where neither brk nor mmap grows into it soon.
    fn make_near(&mut self, app_pc: u64) -> Option<Slab> {
        const STEPS: u64 = 120;
        let above_libraries = (0..STEPS).map(|k| self.high_end.next_multiple_of(0x1000) + GAP + k * SLAB_BYTES);
        let is_among_libraries = app_pc > self.high_end.saturating_sub(REACH) && app_pc < self.stack_floor;
        let below = |gap: u64| {
            let start = (app_pc & !(SLAB_BYTES - 1)).wrapping_sub(gap);
            (0..STEPS).map(move |k| start.wrapping_sub((k + 1) * SLAB_BYTES))
        };
        let above = (0..STEPS).map(|k| (app_pc & !(SLAB_BYTES - 1)) + REACH - (k + 2) * SLAB_BYTES);
        // mmap grows downwards among the libraries: far below is found free the longest.
        let gap = if is_among_libraries { 0x5000_0000 } else { 2 * SLAB_BYTES };
        let first = above_libraries.filter(|start| is_among_libraries && start + SLAB_BYTES < self.stack_floor);
        let candidates = first.chain(below(gap)).chain(above);
        for start in candidates {
            let slab = Slab { start };
            if !(0x1_0000..=0x7fff_ffff_0000 - SLAB_BYTES).contains(&start) || !slab.reaches(app_pc) {
                continue;
            }
            let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
            // SAFETY: MAP_FIXED_NOREPLACE never replaces a mapping.
            let mapped = unsafe { mmap(start, SLAB_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, flags) };
            match mapped {
                Ok(address) if address == start => {}
                // A kernel before 4.17 takes the address as a hint only.
                _ => continue,
            }
            slab.header().used.store(HEADER_BYTES, Ordering::Relaxed);
            self.list.push(slab)?;
            return Some(slab);
        }
        None
    }
}
