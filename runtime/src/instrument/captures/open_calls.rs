//! Calls whose returns are to be captured, while they are open: a table in each thread's private block.
//!
//! A call is known by where the stack pointer is when its function begins: just below where it is when the call has returned. So it does not
//! matter what is between: other stacks, exceptions, longjmp. A call that was left otherwise stays until another one of the function begins
//! at the same place. Translated code looks a few places up that the stack pointer tells (cpu::instrument::captures). What finds no room
//! there is kept aside (other_calls.rs); as long as there is any of that the thread comes to the dispatcher for every call and return that is
//! captured.
//!
//! The table lies in memory that the controller shares: of a thread that a signal ends it finds there which calls were open. So a place
//! holds a whole call at any instruction, or none: the stack pointer is written last, and first when a call is over.

use crate::context::addresses::AppPc;
use crate::context::layout::{OPEN_CALLS_BYTES, OPEN_CALLS_OFFSET};
use crate::protocol::{
    self, CallsHead, CALL_HEADS_OFFSET, CALL_TEXTS_OFFSET, CALL_TEXT_CELL_BYTES, CALL_WINDOW_BYTES, MAX_KEPT_VALUES,
    OPEN_CALLS,
};
use core::mem::offset_of;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, Ordering};

/// Where a call may be: so many next to each other.
pub const WAYS: u64 = 4;
pub const SETS: u64 = OPEN_CALLS_BYTES / (WAYS * OPEN_CALL_BYTES);
pub const OPEN_CALL_BYTES: u64 = size_of::<OpenCall>() as u64;
/// What the stack pointer is shifted by to tell the set, and once more.
pub const SET_SHIFTS: (u8, u8) = (4, 10);
/// A function's return address lies so far below where the stack pointer is behind the call.
pub const RETURN_ADDRESS_BYTES: u64 = 8;

/// A call that is open, but for what it keeps; a stack pointer of 0: none.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallHead {
    /// The stack pointer in front of the function's first instruction; 0: no call is here.
    pub stack_pointer: u64,
    /// Where it returns to.
    pub return_pc: u64,
    pub function: u64,
    /// The time stamp counter when it began.
    pub tsc: u64,
    pub kind: u32,
    /// A bit for each value: it is missing.
    pub missing: u32,
    /// The number of the bytes that are kept (`OtherCalls::texts`); 0: there are none.
    pub texts: u64,
}

impl CallHead {
    /// Whether this one and another can't both be open.
    pub fn is_same(&self, other: &CallHead) -> bool {
        (self.stack_pointer, self.kind, self.function) == (other.stack_pointer, other.kind, other.function)
    }
}

/// A call that is open. Behind the values that calls of its kind keep there is anything.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenCall {
    pub head: CallHead,
    /// What is kept: of bytes how many there are.
    pub values: [u64; MAX_KEPT_VALUES as usize],
}

impl Deref for OpenCall {
    type Target = CallHead;

    fn deref(&self) -> &CallHead {
        &self.head
    }
}

/// The table of the thread whose private block begins at an address.
#[derive(Clone, Copy)]
pub struct OpenCalls {
    block: u64,
}

impl OpenCalls {
    /// # Safety
    /// The table of the block is mapped, and the calling thread's.
    pub unsafe fn of(block: u64) -> OpenCalls {
        OpenCalls { block }
    }

    fn get(self, place: u64) -> *mut OpenCall {
        (self.block + place) as *mut OpenCall
    }

    /// The call at a place that was given.
    fn read(self, place: u64) -> OpenCall {
        // SAFETY: places are inside the table.
        unsafe { self.get(place).read_volatile() }
    }

    /// The same where it lies: most keep little of what there is room for.
    ///
    /// # Safety
    /// The table is the calling thread's, which has no call open as long as the reference is there.
    pub unsafe fn at<'t>(self, place: u64) -> &'t OpenCall {
        // SAFETY: places are inside the table, which by the caller nobody writes to.
        unsafe { &*self.get(place) }
    }

    /// A field of the call at a place, without the rest of it.
    fn field<T: Copy>(self, place: u64, of: impl FnOnce(*const OpenCall) -> *const T) -> T {
        // SAFETY: as above, and fields are inside their calls.
        unsafe { of(self.get(place)).read_volatile() }
    }

    /// Where the stack was in front of the call at a place; 0: there is none.
    fn stack_pointer(self, place: u64) -> u64 {
        // SAFETY: only its address is taken.
        self.field(place, |call| unsafe { &raw const (*call).head.stack_pointer })
    }

    fn kind(self, place: u64) -> u32 {
        // SAFETY: as above.
        self.field(place, |call| unsafe { &raw const (*call).head.kind })
    }

    /// Has a call open that keeps those values, and says what had to make room for it: one that was left otherwise, or the oldest that
    /// may be at its places.
    pub fn open(self, call: &CallHead, values: &[u64]) -> Option<OpenCall> {
        let places = || places_of(call.stack_pointer);
        let is_same = |place: &u64| {
            self.stack_pointer(*place) == call.stack_pointer
                && self.kind(*place) == call.kind
                // SAFETY: as above.
                && self.field(*place, |one| unsafe { &raw const (*one).head.function }) == call.function
        };
        // From the last one on, so that inner calls are found first.
        let free = || places().filter(|place| self.stack_pointer(*place) == 0).last();
        // SAFETY: as above.
        let oldest = || places().min_by_key(|place| self.field(*place, |one| unsafe { &raw const (*one).head.tsc }));
        let place = places().find(is_same).or_else(free).or_else(oldest)?;
        let before = (self.stack_pointer(place) != 0).then(|| self.read(place));
        self.write(place, call, values);
        before
    }

    /// The same where no other call has to make room: whether that is so.
    pub fn open_beside(self, call: &CallHead, values: &[u64]) -> bool {
        let mut free = None;
        for place in places_of(call.stack_pointer) {
            match self.stack_pointer(place) {
                0 => free = Some(place),
                // It may be the same call.
                other if other == call.stack_pointer => return false,
                _ => {}
            }
        }
        if let Some(place) = free {
            self.write(place, call, values);
        }
        free.is_some()
    }

    /// Has a call at a place.
    fn write(self, place: u64, call: &CallHead, values: &[u64]) {
        self.close(place);
        // SAFETY: as above; no more values than there is room for.
        unsafe {
            let kept = (&raw mut (*self.get(place)).values).cast::<u64>();
            for (index, value) in values.iter().take(MAX_KEPT_VALUES as usize).enumerate() {
                kept.add(index).write_volatile(*value);
            }
            (&raw mut (*self.get(place)).head).write_volatile(CallHead { stack_pointer: 0, ..*call });
            (&raw mut (*self.get(place)).head.stack_pointer).write_volatile(call.stack_pointer);
        }
    }

    /// Has the calls at the places where they were in another table.
    pub fn write_all(self, calls: &[(u64, OpenCall)]) {
        calls.iter().for_each(|(place, call)| self.write(*place, &call.head, &call.values));
    }

    /// A call that returns to `pc` with that stack pointer, of a kind that is asked for: the one that translated code finds.
    pub fn find(self, stack_pointer: u64, pc: AppPc, is_asked: impl Fn(u32) -> bool) -> Option<u64> {
        let below = stack_pointer.wrapping_sub(RETURN_ADDRESS_BYTES);
        let is_it = |place: &u64| {
            self.stack_pointer(*place) == below
                // SAFETY: only its address is taken.
                && self.field(*place, |call| unsafe { &raw const (*call).head.return_pc }) == pc.raw()
                && is_asked(self.kind(*place))
        };
        places_of(below).find(is_it)
    }

    /// The calls that are in the table, each with its place.
    pub fn all(self) -> impl Iterator<Item = (u64, OpenCall)> {
        let places = (0..SETS * WAYS).map(|index| OPEN_CALLS_OFFSET + index * OPEN_CALL_BYTES);
        places.filter(move |place| self.stack_pointer(*place) != 0).map(move |place| (place, self.read(place)))
    }

    /// The call there is open no more.
    pub fn close(self, place: u64) {
        // SAFETY: as above.
        unsafe { (&raw mut (*self.get(place)).head.stack_pointer).write_volatile(0) };
    }

    /// The call at a place that began at `tsc` was told of, and the controller is not to; 0: it is.
    pub fn note_told(self, place: u64, tsc: u64) {
        let index = (place - OPEN_CALLS_OFFSET) / OPEN_CALL_BYTES;
        let told = self.window() + CALL_HEADS_OFFSET + size_of::<CallsHead>() as u64 + index * 8;
        // SAFETY: behind the head there is a word for each place, which only the holder of the engine's lock writes.
        unsafe { (told as *mut u64).write_volatile(tsc) };
    }

    /// Has the controller know how many open calls are beside the table.
    pub fn tell_others(self, n: u64) {
        let others = self.window() + CALL_HEADS_OFFSET + offset_of!(CallsHead, others) as u64;
        // SAFETY: an aligned word of the window, as above.
        unsafe { (others as *mut u64).write_volatile(n) };
    }

    /// Writes bytes that a call keeps, from a cell on.
    pub fn write_texts(self, cell: usize, bytes: &[u8]) {
        let start = CALL_TEXTS_OFFSET + cell as u64 * CALL_TEXT_CELL_BYTES;
        if start + bytes.len() as u64 <= CALL_WINDOW_BYTES {
            // SAFETY: inside the window, where nothing of the runtime's own is but such bytes.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), (self.window() + start) as *mut u8, bytes.len()) };
        }
    }

    /// Nothing is open, and nothing is told: as a new table is.
    pub fn clear(self) {
        (0..SETS * WAYS).map(|index| OPEN_CALLS_OFFSET + index * OPEN_CALL_BYTES).for_each(|place| {
            self.close(place);
            self.note_told(place, 0);
        });
        self.tell_others(0);
    }

    pub fn block(self) -> u64 {
        self.block
    }

    fn window(self) -> u64 {
        self.block + OPEN_CALLS_OFFSET
    }
}

/// Where in a block calls may be that begin with a stack pointer.
fn places_of(stack_pointer: u64) -> impl Iterator<Item = u64> {
    let hash = stack_pointer >> SET_SHIFTS.0;
    let set = (hash ^ (hash >> SET_SHIFTS.1)) % SETS;
    let first = OPEN_CALLS_OFFSET + set * WAYS * OPEN_CALL_BYTES;
    (0..WAYS).map(move |way| first + way * OPEN_CALL_BYTES)
}

/// Return addresses where calls of a kind are known to be captured when they return: one of those whose cell it is.
pub static ARMED: [AtomicU64; ARMED_CELLS] = [const { AtomicU64::new(0) }; ARMED_CELLS];
pub const ARMED_CELLS: usize = 256;
/// A cell has the kind above the address.
pub const KIND_SHIFT: u32 = 48;

/// The cell of a return address and a kind, and what it holds where they are the ones.
pub fn armed_cell(return_pc: u64, kind: u32) -> (usize, u64) {
    ((return_pc as u8).wrapping_add(kind as u8).into(), return_pc ^ u64::from(kind) << KIND_SHIFT)
}

pub fn is_armed(return_pc: u64, kind: u32) -> bool {
    let (cell, held) = armed_cell(return_pc, kind);
    ARMED[cell].load(Ordering::Relaxed) == held
}

pub fn note_armed(return_pc: u64, kind: u32) {
    let (cell, held) = armed_cell(return_pc, kind);
    ARMED[cell].store(held, Ordering::Relaxed);
}

/// Nothing is known to be armed.
pub fn forget_armed() {
    ARMED.iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
}

/// Nanoseconds of a tick of the time stamp counter, times 2 to the 32nd; 0: not known yet.
pub static TICK_NS: AtomicU64 = AtomicU64::new(0);

const _: () = assert!(SETS.is_power_of_two() && SETS * WAYS == OPEN_CALLS);
const _: () = assert!(OPEN_CALL_BYTES == size_of::<protocol::OpenCall>() as u64);
const _: () = assert!(offset_of!(OpenCall, head.stack_pointer) == offset_of!(protocol::OpenCall, stack_pointer));
const _: () = assert!(offset_of!(OpenCall, head.function) == offset_of!(protocol::OpenCall, function));
const _: () = assert!(offset_of!(OpenCall, head.tsc) == offset_of!(protocol::OpenCall, tsc));
const _: () = assert!(offset_of!(OpenCall, head.kind) == offset_of!(protocol::OpenCall, kind));
const _: () = assert!(offset_of!(OpenCall, head.missing) == offset_of!(protocol::OpenCall, missing));
const _: () = assert!(offset_of!(OpenCall, head.texts) == offset_of!(protocol::OpenCall, texts));
const _: () = assert!(offset_of!(OpenCall, values) == offset_of!(protocol::OpenCall, values));

/// Tables for tests.
#[cfg(test)]
pub mod samples {
    extern crate alloc;
    use super::*;

    /// A block that has nothing but a window of calls.
    pub fn with_table(test: impl FnOnce(OpenCalls)) {
        let mut memory = alloc::vec![OpenCall::default(); (CALL_WINDOW_BYTES / OPEN_CALL_BYTES) as usize];
        // SAFETY: places of the block are in `memory`, which nobody else uses.
        test(unsafe { OpenCalls::of(memory.as_mut_ptr() as u64 - OPEN_CALLS_OFFSET) });
    }

    pub fn call(stack_pointer: u64, function: u64, tsc: u64) -> CallHead {
        CallHead { stack_pointer, return_pc: 0x500, function, tsc, kind: 1, ..CallHead::default() }
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::samples::{call, with_table};
    use super::*;
    use alloc::vec::Vec;

    fn open(table: OpenCalls, stack_pointer: u64, function: u64, tsc: u64) -> Option<OpenCall> {
        table.open(&call(stack_pointer, function, tsc), &[tsc, tsc + 1])
    }

    fn find(table: OpenCalls, stack_pointer: u64) -> Option<u64> {
        table.find(stack_pointer, AppPc::from_raw(0x500), |kind| kind == 1)
    }

    #[test]
    fn calls_return_in_any_order() {
        with_table(|table| {
            let stacks: Vec<u64> = (0..200).map(|number| 0x7fff_0008 - 80 * number).collect();
            for (number, stack) in stacks.iter().enumerate() {
                assert_eq!(open(table, *stack, 0x1000, number as u64), None);
            }
            for stack in stacks.iter().step_by(2).chain(stacks.iter().skip(1).step_by(2)) {
                let place = find(table, stack + 8).unwrap();
                assert_eq!(table.read(place).stack_pointer, *stack);
                table.close(place);
                assert_eq!(find(table, stack + 8), None);
            }
        });
    }

    #[test]
    fn a_call_that_has_room_leaves_all_others_alone() {
        with_table(|table| {
            let stacks = || (0..200).map(|number| 0x7fff_0008 - 80 * number).collect::<Vec<u64>>();
            let mut open_there = Vec::new();
            for (number, stack) in stacks().into_iter().enumerate() {
                let one = call(stack, 0x1000, number as u64);
                let has_room = places_of(stack).any(|place| table.stack_pointer(place) == 0);
                assert_eq!(table.open_beside(&one, &[number as u64]), has_room);
                open_there.extend(has_room.then_some((stack, number as u64)));
                assert!(!table.open_beside(&one, &[7]), "it may be the same call");
            }
            for (stack, number) in open_there {
                let found = table.read(find(table, stack + 8).unwrap());
                assert_eq!((found.stack_pointer, found.tsc, found.values[0]), (stack, number, number));
            }
        });
    }

    #[test]
    fn a_call_takes_the_place_of_one_that_was_left_otherwise() {
        with_table(|table| {
            assert_eq!(open(table, 0x7008, 0x1000, 1), None);
            assert_eq!(open(table, 0x7008, 0x1000, 2).map(|before| (before.tsc, before.values[1])), Some((1, 2)));
            let place = find(table, 0x7010).unwrap();
            assert_eq!(table.read(place).tsc, 2);
            table.close(place);
            assert_eq!(find(table, 0x7010), None);
        });
    }

    #[test]
    fn of_two_that_return_at_once_the_inner_one_comes_first() {
        with_table(|table| {
            open(table, 0x7008, 0x1000, 1);
            open(table, 0x7008, 0x2000, 2);
            for function in [0x2000, 0x1000] {
                let place = find(table, 0x7010).unwrap();
                assert_eq!(table.read(place).function, function);
                table.close(place);
            }
        });
    }

    #[test]
    fn the_oldest_makes_room() {
        with_table(|table| {
            for function in 0..WAYS {
                assert_eq!(open(table, 0x7008, 0x1000 + function, function), None);
            }
            assert_eq!(open(table, 0x7008, 0x2000, WAYS).map(|before| before.function), Some(0x1000));
        });
    }
}
