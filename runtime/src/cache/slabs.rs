//! All slabs: near the code that they hold translations of, or, where nothing near is free, far from it.

extern crate alloc;
use super::slab::{Found, Room, Slab, Unit, COLD_ROOM_BYTES, GONE, HOT_ROOM_BYTES, JUMP_ROOM_BYTES, REACH};
use super::views::{map, unmap};
use crate::cache::views::SLAB_BYTES;
use crate::context::addresses::{AppPc, CachePc};
use crate::protocol::PAGE_BYTES;
use crate::sys::heap::Arena;
use crate::sys::kernel::MAP_FIXED_NOREPLACE;
use alloc::vec::Vec;
use core::ops::Range;

/// Code whose addresses agree in the bits from this one on has one neighbourhood.
const NEIGHBOURHOOD_BITS: u32 = 28;
/// Gap kept below the highest library and above the program, where nothing grows.
const GAP: u64 = 0x20_0000;

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

    /// What of the slab at `start` is in use, as offsets.
    pub fn used_of(&self, start: u64) -> Vec<Range<u64>> {
        self.iter().filter(|slab| slab.start == start).flat_map(Slab::used).collect()
    }

    /// Bytes of code in all slabs.
    pub fn used_bytes(&self) -> u64 {
        self.iter().map(Slab::used_bytes).sum()
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
    pub fn room_near(&mut self, app_pc: AppPc) -> Option<Room> {
        let near = app_pc.raw();
        // The latest slab first: the others are full as a rule.
        let in_use = |slab: &&Slab| !slab.is_leaving;
        let room = |slab: &Slab| slab.room(HOT_ROOM_BYTES, COLD_ROOM_BYTES);
        if let Some(found) = self.iter().rev().filter(in_use).filter(|slab| slab.reaches(near)).find_map(room) {
            return Some(found);
        }
        let neighbourhood = near >> NEIGHBOURHOOD_BITS;
        if self.crowded != Some(neighbourhood) {
            if let Some(slab) = self.make_near(near) {
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
    pub fn room_for_jump(&mut self, address: CachePc) -> Option<Room> {
        let near = |slab: &&Slab| !slab.is_leaving && slab.reaches(address.raw());
        let found = self.iter().rev().filter(near).find_map(|slab| slab.room(JUMP_ROOM_BYTES, 0));
        found.or_else(|| self.make_near(address.raw())?.room(JUMP_ROOM_BYTES, 0))
    }

    /// Takes room: the unit there has so many bytes in the hot and in the cold part.
    pub fn commit(&mut self, room: Room, hot_bytes: u64, cold_bytes: u64, unit: Unit) {
        let Some(slab) = self.list.as_slice().iter().find(|slab| slab.contains(room.hot.raw())) else {
            return;
        };
        let what = match unit {
            Unit::Fragment(id) => id.raw(),
            Unit::Pad(id) => id.raw() | 1 << 30,
            Unit::Thunk(id) => id.raw() | 2 << 30,
            Unit::Enclosure(index) => index | 3 << 30,
        };
        // A unit starts right where the one before ends with a linkable jump, so that the jump can become a no-op.
        let end = |start: u64, size: u64| (start - slab.start + size).next_multiple_of(8);
        if cold_bytes != 0 {
            slab.append(true, room.cold.raw(), what, end(room.cold.raw(), cold_bytes));
        }
        if hot_bytes != 0 {
            slab.append(false, room.hot.raw(), what, end(room.hot.raw(), hot_bytes));
        }
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
            unsafe { unmap(start) };
        }
    }

    /// Maps a slab near `address`, of the program's or of the cache's, where neither brk nor mmap grows into it soon.
    fn make_near(&mut self, address: u64) -> Option<Slab> {
        const STEPS: u64 = 120;
        let (high_end, stack_floor) = (self.high_end, self.stack_floor);
        let is_among_libraries = address > high_end.saturating_sub(REACH) && address < stack_floor;
        let below = |gap: u64| {
            let start = (address & !(SLAB_BYTES - 1)).wrapping_sub(gap);
            (0..STEPS).map(move |k| start.wrapping_sub((k + 1) * SLAB_BYTES))
        };
        let above = (0..STEPS).map(|k| (address & !(SLAB_BYTES - 1)) + REACH - (k + 2) * SLAB_BYTES);
        // mmap grows downwards among the libraries: far below is found free the longest.
        let gap = if is_among_libraries { 0x5000_0000 } else { 2 * SLAB_BYTES };
        let first = above_libraries(high_end, stack_floor, if is_among_libraries { STEPS } else { 0 });
        let reaches = |start: &u64| Slab { start: *start, is_leaving: false }.reaches(address);
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
        let start = map(0, 0)?;
        self.begin(start)
    }

    /// Maps a slab at `start`, if nothing is there.
    fn make_at(&mut self, start: u64) -> Option<Slab> {
        let is_possible = (0x1_0000..=0x7fff_ffff_0000 - SLAB_BYTES).contains(&start);
        if !is_possible || (Slab { start, is_leaving: false }).overlaps(&self.wanted) {
            return None;
        }
        // A kernel before 4.17 takes the address as a hint only.
        let address = map(start, MAP_FIXED_NOREPLACE)?;
        if address == start {
            return self.begin(start);
        }
        // SAFETY: just mapped, and of no use.
        unsafe { unmap(address) };
        None
    }

    /// Begins the slab that was just mapped at `start`.
    fn begin(&mut self, start: u64) -> Option<Slab> {
        let slab = Slab { start, is_leaving: false };
        slab.begin();
        self.list.push(slab)?;
        Some(slab)
    }
}

/// Where slabs may be above the libraries, which end at `high_end`, and below where the stack grows.
fn above_libraries(high_end: u64, stack_floor: u64, steps: u64) -> impl Iterator<Item = u64> {
    let first = high_end.next_multiple_of(PAGE_BYTES) + GAP;
    (0..steps).map(move |k| first + k * SLAB_BYTES).filter(move |start| start + SLAB_BYTES < stack_floor)
}
