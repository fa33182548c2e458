//! The captures that the controller asks for, by place, and the code that was made for them.
//!
//! Runs under the runtime's lock.

extern crate alloc;
use super::aggregates::Table;
use super::form::Form;
use super::injections::Counts;
use super::layout::{is_behind, Action, Program, Room};
use super::open_calls::{forget_armed, ARMED, TICK_NS};
use super::other_calls::OtherCalls;
use super::rings::Rings;
use crate::buffer::Shared;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::FragmentId;
use crate::instrument::Engine;
use crate::protocol::{
    on_full, CapturePlace, StatusPage, CALL_PLACES, MAX_CAPTURES, MAX_CAPTURES_AT_PLACE, MAX_CAPTURE_BYTES,
    RING_OPERATIONS,
};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// No system call has a higher number.
const MAX_CALL_NUMBERS: u64 = 1 << 12;

/// Whether there was ever any place.
static ARE_ANY: AtomicBool = AtomicBool::new(false);

/// Whether anything is, or was, captured at a system call.
static ARE_CALLS: AtomicBool = AtomicBool::new(false);

/// How often the controller asked for other captures.
static STATE: AtomicU64 = AtomicU64::new(1);

/// Changes whenever other captures are asked for: whoever holds a place of the same state holds the one that is captured.
pub fn state() -> u64 {
    STATE.load(Ordering::Acquire)
}

/// The same, without a lock.
pub fn are_calls_captured() -> bool {
    ARE_CALLS.load(Ordering::Relaxed)
}

/// The place of what is captured at the system calls of a number.
pub fn call_place(number: u64) -> AppPc {
    AppPc::from_raw(CALL_PLACES + number)
}

/// Whether anything is, or was, captured anywhere. Needs no lock.
pub fn are_any() -> bool {
    ARE_ANY.load(Ordering::Relaxed)
}

/// What is captured at one address, in the order in which it was asked for.
#[derive(Debug, Default)]
pub struct Place {
    pub programs: Vec<Program>,
    /// How it was asked for, which tells whether it is still the same.
    asked: Vec<(u32, Action, u32, Vec<u8>)>,
}

impl Place {
    /// That of some rows, with the bytes of their forms; and how many are none, or find no room.
    fn of<'a>(rows: impl IntoIterator<Item = &'a (CapturePlace, Vec<u8>)>) -> (Place, u32) {
        let (mut place, mut room, mut n_refused) = (Place::default(), Room::default(), 0);
        for (one, bytes) in rows {
            let has_room = (place.programs.len() as u64) < MAX_CAPTURES_AT_PLACE;
            let form = Some(bytes).filter(|_| has_room).and_then(|bytes| Form::parse(bytes));
            match form.and_then(|form| Program::lay_out(one, form, &mut room)) {
                Some(program) => {
                    place.asked.push((one.number, program.action, program.returned, bytes.clone()));
                    place.programs.push(program);
                }
                None => n_refused += 1,
            }
        }
        (place, n_refused)
    }

    /// What has calls open from there on, each with their kind.
    pub fn opening(&self) -> impl Iterator<Item = (u32, &Program)> {
        self.programs
            .iter()
            .filter_map(|one| if let Action::Open(kind) = one.action { Some((kind, one)) } else { None })
    }

    /// Whether anything is done to the calls that begin there.
    pub fn injects(&self) -> bool {
        self.programs.iter().any(|one| one.action == Action::Inject)
    }

    /// Whether anything is taken there behind calls that return.
    pub fn has_returns(&self) -> bool {
        self.programs.iter().any(|one| one.returned != 0)
    }

    /// Whether all that is taken there is.
    pub fn is_of_returns(&self) -> bool {
        self.programs.iter().all(|one| one.returned != 0)
    }

    /// Whether anything is taken there behind an instruction that is marked.
    pub fn has_marks(&self) -> bool {
        self.programs.iter().flat_map(Program::needed).any(|(_, one)| is_behind(one))
    }

    /// Whether anything there reads the program's memory.
    pub fn reads_memory(&self) -> bool {
        self.programs.iter().any(Program::reads_memory)
    }

    /// Whether translated code writes down by itself what is taken: numbers only, and no thread stops.
    pub fn is_written_there(&self) -> bool {
        let is_alone = self.programs.len() == 1 || !self.has_returns();
        let is_written = |one: &Program| one.action == Action::Record && one.takes_numbers();
        is_alone && !self.is_told() && self.programs.iter().all(is_written)
    }

    /// The call that begins there, and its kind, if translated code takes note of it by itself: nothing else is captured there.
    pub fn opened_there(&self) -> Option<(&Program, u32)> {
        let [program] = &self.programs[..] else { return None };
        let Action::Open(kind) = program.action else { return None };
        (!self.is_told() && program.takes_numbers()).then_some((program, kind))
    }

    /// What is captured there and added up, if translated code does that by itself: it is the only one, and of integers.
    pub fn added_there(&self) -> Option<(&Program, &Table)> {
        let [program] = &self.programs[..] else { return None };
        let Action::Aggregate(table) = &program.action else { return None };
        (!self.is_told() && program.takes_numbers() && !program.has_float_values(table)).then_some((program, table))
    }

    /// Whether the dispatcher has to do anything before the rest is done.
    pub fn is_told(&self) -> bool {
        self.programs.iter().any(|program| program.told().next().is_some())
    }
}

/// Where translated code brings what it captures.
#[derive(Clone, Copy)]
pub struct Outlets {
    pub ring_bytes: u32,
    /// Where the tables of aggregates are, and when the clock was kept last, by the time stamp counter.
    pub aggregates: u64,
    pub clock: u64,
    /// Where it is what a tick of the counter takes, and which returns are armed (`open_calls`).
    pub tick_ns: u64,
    pub armed: u64,
    /// Calls that return are met in front of the instruction by which they do: at probes. Elsewhere it is where they return to.
    pub before_return: bool,
    /// There is always room in a ring: the oldest records are written over.
    pub overwrites: bool,
}

/// What a fragment does in front of its block for a place.
#[derive(Clone, Debug)]
pub struct Guarded {
    pub place: Arc<Place>,
    /// Where that begins, and where the block goes on behind it.
    pub start: CachePc,
    pub behind: CachePc,
}

/// All captures of the process.
#[derive(Default)]
pub struct Captures {
    by_pc: BTreeMap<AppPc, Arc<Place>>,
    /// Those of them that are of system calls, by number: each call is looked up here.
    by_call: Vec<Option<Arc<Place>>>,
    by_fragment: BTreeMap<FragmentId, Guarded>,
    /// By kind of call: what is taken where such calls return.
    returned: BTreeMap<u32, (CapturePlace, Vec<u8>)>,
    /// By address: of which kinds calls return there. What is taken in front of it besides.
    armed: BTreeMap<AppPc, BTreeSet<u32>>,
    asked: BTreeMap<AppPc, Vec<(CapturePlace, Vec<u8>)>>,
    /// By kinds: the place of all addresses where nothing is captured but where calls of these return.
    shared: BTreeMap<Vec<u32>, Arc<Place>>,
    /// By kind: the same of single ones. Each call that returns is looked up here.
    by_kind: Vec<Option<Arc<Place>>>,
    /// Open calls, as far as they are not in threads' tables.
    pub other_calls: OtherCalls,
    /// When the controller asked for anything last, by the time stamp counter.
    pub asked_tsc: u64,
    /// How many calls each thread has made that something is done to now and then.
    pub injected_calls: Counts,
    pub rings: Rings,
}

impl Captures {
    pub const fn new() -> Captures {
        Captures {
            by_pc: BTreeMap::new(),
            by_call: Vec::new(),
            by_fragment: BTreeMap::new(),
            returned: BTreeMap::new(),
            armed: BTreeMap::new(),
            asked: BTreeMap::new(),
            shared: BTreeMap::new(),
            by_kind: Vec::new(),
            other_calls: OtherCalls::new(),
            asked_tsc: 0,
            injected_calls: Counts::new(),
            rings: Rings::new(),
        }
    }

    /// What is captured at an address.
    pub fn at(&self, pc: AppPc) -> Option<&Arc<Place>> {
        self.by_pc.get(&pc)
    }

    /// What is captured at the system calls of a number.
    pub fn at_call(&self, number: u64) -> Option<&Arc<Place>> {
        self.by_call.get(number as usize)?.as_ref()
    }

    /// Where anything is captured.
    pub fn places(&self) -> impl Iterator<Item = AppPc> + '_ {
        self.by_pc.keys().copied()
    }

    /// What was emitted in front of a fragment.
    pub fn of_fragment(&self, id: FragmentId) -> Option<&Guarded> {
        self.by_fragment.get(&id)
    }

    /// Takes over what the controller asks for now, by the bytes of all forms: the addresses where that is other than before, and how many entries are none.
    pub fn replace(&mut self, asked: &[CapturePlace], heap: &[u8]) -> (Vec<AppPc>, u32) {
        let mut n_refused = 0;
        let mut by_pc: BTreeMap<AppPc, Vec<(CapturePlace, Vec<u8>)>> = BTreeMap::new();
        let mut returned = BTreeMap::new();
        for one in asked {
            let bytes = heap.get(one.form_start as usize..).and_then(|rest| rest.get(..one.form_bytes as usize));
            let row = (*one, bytes.unwrap_or_default().to_vec());
            if one.pc != 0 {
                by_pc.entry(AppPc::from_raw(one.pc)).or_default().push(row);
                continue;
            }
            let (place, _) = Place::of([&row]);
            let is_sound = place.has_returns();
            n_refused += u32::from(!is_sound);
            if is_sound {
                returned.insert(one.call_kind, row);
            }
        }
        self.take_over_returned(returned);
        let mut pcs: Vec<AppPc> = self.by_pc.keys().chain(by_pc.keys()).chain(self.armed.keys()).copied().collect();
        pcs.sort_unstable();
        pcs.dedup();
        if by_pc.keys().any(|pc| pc.raw() >= CALL_PLACES) {
            ARE_CALLS.store(true, Ordering::Relaxed);
        }
        self.asked = by_pc;
        let mut changed = Vec::new();
        for pc in pcs {
            let (place, n) = self.place_at(pc);
            n_refused += n;
            if self.set_place(pc, place) {
                changed.push(pc);
            }
        }
        STATE.fetch_add(1, Ordering::Release);
        (changed, n_refused)
    }

    /// Takes over what is taken where calls return; kinds that are gone return nowhere any more.
    fn take_over_returned(&mut self, returned: BTreeMap<u32, (CapturePlace, Vec<u8>)>) {
        self.returned = returned;
        for kinds in self.armed.values_mut() {
            kinds.retain(|kind| self.returned.contains_key(kind));
        }
        self.armed.retain(|_, kinds| !kinds.is_empty());
        self.shared.retain(|kinds, _| kinds.iter().all(|kind| self.returned.contains_key(kind)));
        self.by_kind.clear();
        forget_armed();
    }

    /// Whether anything is captured at the system calls of a number.
    pub fn takes_call(&self, number: u64) -> bool {
        self.by_pc.contains_key(&call_place(number))
    }

    /// Whether anything is captured of operations of io_uring, which are places as calls are.
    pub fn takes_rings(&self) -> bool {
        self.by_call.iter().skip(RING_OPERATIONS as usize).any(Option::is_some)
    }

    /// What is taken where calls of a kind return, wherever that is.
    pub fn returned_place(&mut self, kind: u32) -> Option<&Arc<Place>> {
        let index = kind as usize;
        if self.by_kind.get(index).is_none_or(Option::is_none) {
            let place = Arc::new(Place::of([self.returned.get(&kind)?]).0);
            self.by_kind.resize(self.by_kind.len().max(index + 1), None);
            self.by_kind[index] = Some(place);
        }
        self.by_kind[index].as_ref()
    }

    /// Has it captured that calls of a kind return to an address. Whether that is new; `None`: it can't be captured there.
    pub fn arm(&mut self, return_pc: AppPc, kind: u32) -> Option<bool> {
        let is_new = self.returned.contains_key(&kind) && self.armed.entry(return_pc).or_default().insert(kind);
        if is_new {
            let (place, _) = self.place_at(return_pc);
            self.set_place(return_pc, place);
        }
        let is_there = |place: &Arc<Place>| place.programs.iter().any(|one| one.returned == kind);
        self.at(return_pc).is_some_and(is_there).then_some(is_new)
    }

    /// What is captured at an address by now, and how much of that there is no room for.
    fn place_at(&mut self, pc: AppPc) -> (Option<Arc<Place>>, u32) {
        let own = self.asked.get(&pc).map_or(&[][..], |rows| &rows[..]);
        let kinds: Vec<u32> = self.armed.get(&pc).into_iter().flatten().copied().collect();
        if own.is_empty() {
            if let Some(place) = self.shared.get(&kinds) {
                return (Some(place.clone()), 0);
            }
        }
        let rows = own.iter().chain(kinds.iter().filter_map(|kind| self.returned.get(kind)));
        let (place, n_refused) = Place::of(rows);
        let place = (!place.programs.is_empty()).then(|| Arc::new(place));
        if let Some(place) = place.as_ref().filter(|_| own.is_empty()) {
            self.shared.insert(kinds, place.clone());
        }
        (place, n_refused)
    }

    /// Whether that is another place than there was.
    fn set_place(&mut self, pc: AppPc, place: Option<Arc<Place>>) -> bool {
        let is_same = match (self.by_pc.get(&pc), &place) {
            (Some(before), Some(now)) => before.asked == now.asked,
            (before, now) => before.is_none() && now.is_none(),
        };
        if !is_same {
            self.note_call(pc, place.as_ref());
            match place {
                Some(place) => self.by_pc.insert(pc, place),
                None => self.by_pc.remove(&pc),
            };
        }
        !is_same
    }
}

/// Where they are by number.
impl Captures {
    fn note_call(&mut self, pc: AppPc, place: Option<&Arc<Place>>) {
        let Some(number) = pc.raw().checked_sub(CALL_PLACES).filter(|number| *number < MAX_CALL_NUMBERS) else {
            return;
        };
        let number = number as usize;
        if self.by_call.len() <= number {
            self.by_call.resize(number + 1, None);
        }
        self.by_call[number] = place.cloned();
    }
}

impl Engine {
    /// Keeps where fragment `id` has what is captured at `pc`, and where it goes on behind it.
    pub fn note_captures(&mut self, pc: AppPc, id: FragmentId, (start, behind): (CachePc, CachePc)) {
        if let Some(place) = self.captures.at(pc).filter(|_| start != CachePc::NOWHERE).cloned() {
            self.captures.by_fragment.insert(id, Guarded { place, start, behind });
            ARE_ANY.store(true, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// Where translated code brings what it captures.
    pub fn outlets(&self) -> Outlets {
        let header = self.header();
        Outlets {
            ring_bytes: header.ring_bytes,
            aggregates: self.base() + header.aggregates_offset,
            clock: self.status() as u64 + offset_of!(StatusPage, last_tsc) as u64,
            tick_ns: TICK_NS.as_ptr() as u64,
            armed: ARMED.as_ptr() as u64,
            before_return: false,
            overwrites: header.on_full == on_full::OVERWRITE,
        }
    }

    /// The table of captures, and the bytes of their forms, as they are now.
    pub fn captures(&self) -> (Vec<CapturePlace>, Vec<u8>) {
        let count = u64::from(self.capture_count()).min(MAX_CAPTURES);
        if count == 0 {
            return (Vec::new(), Vec::new());
        }
        let table = self.base() + self.header().captures_offset;
        let heap = table + MAX_CAPTURES * size_of::<CapturePlace>() as u64;
        // SAFETY: table and forms are inside the mapping, as the controller laid it out; both are copied before anything is believed.
        unsafe {
            let places =
                (0..count).map(|index| (table as *const CapturePlace).add(index as usize).read_volatile()).collect();
            let used = |one: &CapturePlace| u64::from(one.form_start) + u64::from(one.form_bytes);
            let places: Vec<CapturePlace> = places;
            let size = places.iter().map(used).max().unwrap_or(0).min(MAX_CAPTURE_BYTES);
            let bytes = (0..size).map(|at| ((heap + at) as *const u8).read_volatile()).collect();
            (places, bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::samples::pack;
    use super::*;
    use crate::protocol::capture_action;

    fn place(pc: u64, number: u32, form_bytes: u32) -> CapturePlace {
        // SAFETY: all zeros are one.
        CapturePlace { pc, number, action: capture_action::RECORD, form_bytes, ..unsafe { core::mem::zeroed() } }
    }

    fn places_of(addresses: &[u64]) -> Vec<AppPc> {
        addresses.iter().copied().map(AppPc::from_raw).collect()
    }

    #[test]
    fn what_changes_is_told() {
        let heap = pack(&Form::default());
        let size = heap.len() as u32;
        let mut captures = Captures::new();
        assert_eq!(captures.replace(&[place(16, 1, size), place(32, 2, size)], &heap), (places_of(&[16, 32]), 0));
        assert_eq!(captures.replace(&[place(32, 2, size), place(16, 1, size)], &heap), (Vec::new(), 0));
        assert_eq!(captures.replace(&[place(32, 3, size), place(16, 1, size)], &heap), (places_of(&[32]), 0));
        assert_eq!(captures.replace(&[place(32, 3, size)], &heap), (places_of(&[16]), 0));
        assert!(captures.at(AppPc::from_raw(16)).is_none() && captures.at(AppPc::from_raw(32)).is_some());
        assert_eq!(captures.replace(&[], &heap), (places_of(&[32]), 0));
    }

    #[test]
    fn what_is_no_form_is_refused_and_counted() {
        let heap = pack(&Form::default());
        let mut captures = Captures::new();
        assert_eq!(captures.replace(&[place(16, 1, 3), place(16, 2, 1 << 20)], &heap), (Vec::new(), 2));
        let many: Vec<_> = (0..20).map(|number| place(16, number, heap.len() as u32)).collect();
        assert_eq!(captures.replace(&many, &heap), (places_of(&[16]), 4));
    }
}
