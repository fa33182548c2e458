//! Slabs: pieces of executable memory near the code that they hold translations of, or, where nothing near is free, far from it.
//!
//! A slab has a hot part, whose code runs straight on, a cold part for what runs seldom, and for each an index of units
//! (what starts where), so that the signal handler finds what a cache address belongs to without a lock. All grow up.

extern crate alloc;
use crate::arch::x86_64::emit::Emitter;
use crate::sys::calls::{mmap, munmap};
use crate::sys::heap::Arena;
use crate::sys::kernel::{
    MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, MAP_NORESERVE, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE,
};
use crate::sys::spare::with_mapping;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub const SLAB_BYTES: u64 = 16 << 20;
/// Where the cold part starts, and the indices of the hot and of the cold part; and their ends.
const COLD_OFFSET: u64 = 9 << 20;
const HOT_INDEX_OFFSET: u64 = 13 << 20;
const COLD_INDEX_OFFSET: u64 = (14 << 20) + (1 << 19);
/// Room kept for one unit in the hot and in the cold part.
pub const HOT_ROOM_BYTES: u64 = 0x1_0000;
const COLD_ROOM_BYTES: u64 = 0x1000;
/// Entries of the index kept for them.
const KEPT_FOR_JUMPS: u64 = 1024;
/// Room for a jump: those find some where no other unit does.
const JUMP_ROOM_BYTES: u64 = 64;
/// A slab's code starts here, after its header.
const HEADER_BYTES: u64 = 64;
/// No place in a slab may be farther than this from the code it translates: 2 GiB less room for operands around it.
const REACH: u64 = 0x7800_0000;
/// Code whose addresses agree in the bits from this one on has one neighbourhood.
const NEIGHBOURHOOD_BITS: u32 = 28;
/// Gap kept below the highest library and above the program, where nothing grows.
const GAP: u64 = 0x20_0000;

/// What lies at an address of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    Fragment(u32),
    Pad(u32),
    /// A far jump to this fragment.
    Thunk(u32),
    /// The enclosure of a restartable sequence.
    Sequence(u32),
}

/// Room for one unit: where its hot and its cold part start, and how large these may be.
#[derive(Clone, Copy)]
pub struct Room {
    pub hot: u64,
    cold: u64,
    hot_bytes: u64,
    cold_bytes: u64,
}

impl Room {
    /// Writes into the room.
    ///
    /// # Safety
    /// Nothing else may use the room meanwhile.
    pub unsafe fn emitter(&self) -> Emitter<'static> {
        // SAFETY: so many bytes were found unused in the slab, which is unmapped only when nothing is put into it any more.
        let (hot, cold) = unsafe {
            (
                core::slice::from_raw_parts_mut(self.hot as *mut u8, self.hot_bytes as usize),
                core::slice::from_raw_parts_mut(self.cold as *mut u8, self.cold_bytes as usize),
            )
        };
        Emitter::new(hot, self.hot, cold, self.cold)
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
    is_leaving: bool,
}

/// No address is near it.
const GONE: u64 = 1 << 63;

impl Slab {
    fn header(&self) -> &Header {
        // SAFETY: a slab starts with its header, written when it was made, and is never unmapped by the runtime.
        unsafe { &*(self.start as *const Header) }
    }

    fn entry_pointer(&self, is_cold: bool, index: u32) -> *mut UnitEntry {
        let offset = if is_cold { COLD_INDEX_OFFSET } else { HOT_INDEX_OFFSET };
        (self.start + offset + u64::from(index) * size_of::<UnitEntry>() as u64) as *mut UnitEntry
    }

    fn part(&self, is_cold: bool) -> &Part {
        if is_cold {
            &self.header().cold
        } else {
            &self.header().hot
        }
    }

    /// Appends to a part's index; `used` is where the part ends now.
    fn append(&self, is_cold: bool, start: u64, what: u32, used: u64) {
        let part = self.part(is_cold);
        let n = part.n_units.load(Ordering::Relaxed);
        // SAFETY: `has_room` left space for the entry; only the lock's holder appends.
        unsafe { self.entry_pointer(is_cold, n).write(UnitEntry { offset: (start - self.start) as u32, what }) };
        part.used.store(used, Ordering::Relaxed);
        part.n_units.store(n + 1, Ordering::Release);
    }

    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < SLAB_BYTES
    }

    fn overlaps(&self, range: &Range<u64>) -> bool {
        self.start < range.end && range.start < self.start + SLAB_BYTES
    }

    fn reaches(&self, app_pc: u64) -> bool {
        let middle_low = self.start;
        let middle_high = self.start + SLAB_BYTES;
        app_pc.abs_diff(middle_low) < REACH && app_pc.abs_diff(middle_high) < REACH
    }

    /// Room for a unit that is so large at most; `None`: the slab is full. It leaves entries of the index for what is smaller.
    fn room(&self, hot_bytes: u64, cold_bytes: u64) -> Option<Room> {
        let Header { hot, cold } = self.header();
        let (hot_used, cold_used) = (hot.used.load(Ordering::Relaxed), cold.used.load(Ordering::Relaxed));
        let n_left = if cold_bytes != 0 { KEPT_FOR_JUMPS } else { 0 };
        let index_end = |n: &AtomicU32, offset, left| offset + (u64::from(n.load(Ordering::Relaxed)) + 1 + left) * 8;
        let has_room = hot_used + hot_bytes <= COLD_OFFSET
            && cold_used + cold_bytes <= HOT_INDEX_OFFSET
            && index_end(&hot.n_units, HOT_INDEX_OFFSET, n_left) <= COLD_INDEX_OFFSET
            && index_end(&cold.n_units, COLD_INDEX_OFFSET, 0) <= SLAB_BYTES;
        let room = Room { hot: self.start + hot_used, cold: self.start + cold_used, hot_bytes, cold_bytes };
        has_room.then_some(room)
    }

    /// What `address` belongs to. Lock-free: called by the signal handler.
    fn find_unit(&self, address: u64) -> Option<Found> {
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
            0 => Unit::Fragment(number),
            1 => Unit::Pad(number),
            2 => Unit::Thunk(number),
            _ => Unit::Sequence(number),
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

/// All slabs of the process.
pub struct Slabs {
    list: Arena<Slab>,
    /// End of the highest executable range at start: where libraries are mapped below.
    high_end: u64,
    /// Addresses from here up are the stack's to grow into.
    stack_floor: u64,
    /// Where the program is about to map memory.
    wanted: Range<u64>,
    /// Where no slab could be made near code: that is not tried again and again.
    crowded: Option<u64>,
}

impl Slabs {
    pub const fn new() -> Slabs {
        Slabs { list: Arena::new(1 << 20), high_end: 0, stack_floor: 0, wanted: 0..0, crowded: None }
    }

    /// Learns the layout of the address space.
    pub fn initialize(&mut self, high_end: u64, stack_floor: u64) {
        self.high_end = high_end;
        self.stack_floor = stack_floor;
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &Slab> + '_ {
        self.list.as_slice().iter().filter(|slab| slab.start != GONE)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.iter().count()
    }

    /// Where each slab starts. Lock-free.
    pub fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        self.iter().map(|slab| slab.start)
    }

    /// Bytes of code in all slabs.
    pub fn used_bytes(&self) -> u64 {
        let used = |slab: &Slab| {
            let Header { hot, cold } = slab.header();
            hot.used.load(Ordering::Relaxed) + cold.used.load(Ordering::Relaxed) - COLD_OFFSET
        };
        self.iter().map(used).sum()
    }

    /// Whether an address is in the code cache. Lock-free: called by the signal handler.
    pub fn contains(&self, address: u64) -> bool {
        self.list.as_slice().iter().any(|slab| slab.contains(address))
    }

    /// What an address of the cache belongs to. Lock-free: called by the signal handler.
    pub fn find_unit(&self, address: u64) -> Option<Found> {
        self.list.as_slice().iter().find(|slab| slab.contains(address))?.find_unit(address)
    }

    /// Room for the translation of code at `app_pc`: as near as can be. `None`: no slab could be made.
    pub fn room_near(&mut self, app_pc: u64) -> Option<Room> {
        // The latest slab first: the others are full as a rule.
        let in_use = |slab: &&Slab| !slab.is_leaving;
        let room = |slab: &Slab| slab.room(HOT_ROOM_BYTES, COLD_ROOM_BYTES);
        if let Some(found) = self.iter().rev().filter(in_use).filter(|slab| slab.reaches(app_pc)).find_map(room) {
            return Some(found);
        }
        let neighbourhood = app_pc >> NEIGHBOURHOOD_BITS;
        if self.crowded != Some(neighbourhood) {
            if let Some(slab) = self.make_near(app_pc) {
                return room(&slab);
            }
            self.crowded = Some(neighbourhood);
        }
        if let Some(found) = self.iter().rev().filter(in_use).find_map(room) {
            return Some(found);
        }
        room(&self.make_anywhere()?)
    }

    /// Room for a jump that a jump at `address` in the cache can lead to. `None`: there is none.
    pub fn room_for_jump(&mut self, address: u64) -> Option<Room> {
        let near = |slab: &&Slab| !slab.is_leaving && slab.reaches(address);
        let found = self.iter().rev().filter(near).find_map(|slab| slab.room(JUMP_ROOM_BYTES, 0));
        found.or_else(|| self.make_near(address)?.room(JUMP_ROOM_BYTES, 0))
    }

    /// Takes room: the unit there has so many bytes in the hot and in the cold part.
    pub fn commit(&mut self, room: Room, hot_bytes: u64, cold_bytes: u64, unit: Unit) {
        let Some(slab) = self.list.as_slice().iter().find(|slab| slab.contains(room.hot)) else {
            return;
        };
        let what = match unit {
            Unit::Fragment(id) => id,
            Unit::Pad(id) => id | 1 << 30,
            Unit::Thunk(id) => id | 2 << 30,
            Unit::Sequence(index) => index | 3 << 30,
        };
        // A unit starts right where the one before ends with a linkable jump, so that the jump can become a no-op.
        let end = |start: u64, size: u64| (start - slab.start + size).next_multiple_of(8);
        if cold_bytes != 0 {
            slab.append(true, room.cold, what, end(room.cold, cold_bytes));
        }
        slab.append(false, room.hot, what, end(room.hot, hot_bytes));
    }

    /// Gives all slabs back to the kernel.
    ///
    /// # Safety
    /// No thread may run or ever come back to translated code.
    pub unsafe fn unmap_all(&mut self) {
        for slab in self.list.as_mut_slice() {
            slab.is_leaving = slab.start != GONE;
        }
        // SAFETY: the caller's promise.
        unsafe { self.remove_leaving() };
    }

    /// The program is about to map memory in `wanted`: no new slab is put there. Returns where the slabs are that lie there, which are
    /// used no more; they stay until `remove_leaving`.
    pub fn leave(&mut self, wanted: Range<u64>) -> Vec<Range<u64>> {
        let mut left = Vec::new();
        for slab in self.list.as_mut_slice().iter_mut().filter(|slab| slab.start != GONE && slab.overlaps(&wanted)) {
            slab.is_leaving = true;
            left.push(slab.start..slab.start + SLAB_BYTES);
        }
        self.wanted = wanted;
        left
    }

    /// Uses the slabs that were to leave again.
    pub fn stay(&mut self) {
        for slab in self.list.as_mut_slice() {
            slab.is_leaving = false;
        }
    }

    /// Gives the slabs that were to leave back to the kernel.
    ///
    /// # Safety
    /// No thread may run or ever come back to code in them, and nothing may write to it.
    pub unsafe fn remove_leaving(&mut self) {
        for slab in self.list.as_mut_slice().iter_mut().filter(|slab| slab.is_leaving) {
            let start = slab.start;
            // Signal handlers look where slabs are: first it is none.
            // SAFETY: a field of the list; read as a whole.
            unsafe { (&raw mut slab.start).write_volatile(GONE) };
            slab.is_leaving = false;
            // SAFETY: the slab is the runtime's own, and the caller promises that nobody uses it.
            unsafe { munmap(start, SLAB_BYTES) };
        }
    }

    /// Maps a slab near `app_pc`, where neither brk nor mmap grows into it soon.
    fn make_near(&mut self, app_pc: u64) -> Option<Slab> {
        const STEPS: u64 = 120;
        let (high_end, stack_floor) = (self.high_end, self.stack_floor);
        let is_among_libraries = app_pc > high_end.saturating_sub(REACH) && app_pc < stack_floor;
        let below = |gap: u64| {
            let start = (app_pc & !(SLAB_BYTES - 1)).wrapping_sub(gap);
            (0..STEPS).map(move |k| start.wrapping_sub((k + 1) * SLAB_BYTES))
        };
        let above = (0..STEPS).map(|k| (app_pc & !(SLAB_BYTES - 1)) + REACH - (k + 2) * SLAB_BYTES);
        // mmap grows downwards among the libraries: far below is found free the longest.
        let gap = if is_among_libraries { 0x5000_0000 } else { 2 * SLAB_BYTES };
        let first = above_libraries(high_end, stack_floor, if is_among_libraries { STEPS } else { 0 });
        let reaches = |start: &u64| Slab { start: *start, is_leaving: false }.reaches(app_pc);
        first.chain(below(gap)).chain(above).filter(reaches).find_map(|start| self.make_at(start))
    }

    /// Maps a slab where the libraries are, or else wherever the kernel has room: it holds what has no room near its code.
    fn make_anywhere(&mut self) -> Option<Slab> {
        const STEPS: u64 = 512;
        if let Some(slab) =
            above_libraries(self.high_end, self.stack_floor, STEPS).find_map(|start| self.make_at(start))
        {
            return Some(slab);
        }
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        // SAFETY: without MAP_FIXED only free addresses are taken.
        let start = unsafe { mmap(0, SLAB_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, flags) }.ok()?;
        self.begin(start)
    }

    /// Maps a slab at `start`, if nothing is there.
    fn make_at(&mut self, start: u64) -> Option<Slab> {
        let is_possible = (0x1_0000..=0x7fff_ffff_0000 - SLAB_BYTES).contains(&start);
        if !is_possible || (Slab { start, is_leaving: false }).overlaps(&self.wanted) {
            return None;
        }
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
        // SAFETY: MAP_FIXED_NOREPLACE never replaces a mapping.
        let mapped = with_mapping(|| unsafe { mmap(start, SLAB_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, flags) });
        match mapped {
            Ok(address) if address == start => self.begin(start),
            // A kernel before 4.17 takes the address as a hint only.
            _ => None,
        }
    }

    /// Begins the slab that was just mapped at `start`.
    fn begin(&mut self, start: u64) -> Option<Slab> {
        let slab = Slab { start, is_leaving: false };
        slab.header().hot.used.store(HEADER_BYTES, Ordering::Relaxed);
        slab.header().cold.used.store(COLD_OFFSET, Ordering::Relaxed);
        self.list.push(slab)?;
        Some(slab)
    }
}

/// Where slabs may be above the libraries, which end at `high_end`, and below where the stack grows.
fn above_libraries(high_end: u64, stack_floor: u64, steps: u64) -> impl Iterator<Item = u64> {
    let first = high_end.next_multiple_of(0x1000) + GAP;
    (0..steps).map(move |k| first + k * SLAB_BYTES).filter(move |start| start + SLAB_BYTES < stack_floor)
}
