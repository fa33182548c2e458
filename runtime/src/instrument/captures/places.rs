//! The captures that the controller asks for, by place, and the code that was made for them.
//!
//! Runs under the runtime's lock.

extern crate alloc;
use super::aggregates::Table;
use super::form::{Form, Kind};
use super::layout::{Action, Program, Room};
use crate::buffer::Shared;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::FragmentId;
use crate::instrument::Engine;
use crate::protocol::{CapturePlace, StatusPage, MAX_CAPTURES, MAX_CAPTURES_AT_PLACE, MAX_CAPTURE_BYTES};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether there was ever any place.
static ARE_ANY: AtomicBool = AtomicBool::new(false);

/// Whether anything is, or was, captured anywhere. Needs no lock.
pub fn are_any() -> bool {
    ARE_ANY.load(Ordering::Relaxed)
}

/// What is captured at one address, in the order in which it was asked for.
#[derive(Debug, Default)]
pub struct Place {
    pub programs: Vec<Program>,
    /// How it was asked for, which tells whether it is still the same.
    asked: Vec<(u32, Action, Vec<u8>)>,
}

impl Place {
    /// Whether anything there reads the program's memory.
    pub fn reads_memory(&self) -> bool {
        self.programs.iter().any(Program::reads_memory)
    }

    /// Whether translated code writes down by itself what is taken: numbers only, and no thread stops.
    pub fn is_written_there(&self) -> bool {
        !self.is_told() && self.programs.iter().all(|one| one.action == Action::Record && takes_numbers(one))
    }

    /// What is captured there and added up, if translated code does that by itself: it is the only one, and of integers.
    pub fn added_there(&self) -> Option<(&Program, &Table)> {
        let [program] = &self.programs[..] else { return None };
        let Action::Aggregate(table) = &program.action else { return None };
        let mut values = program.form.fields.iter().skip(table.n_keys);
        let has_floats = values.any(|field| program.form.kind_of(usize::from(*field)).is_float());
        (!self.is_told() && takes_numbers(program) && !has_floats).then_some((program, table))
    }

    /// Whether the dispatcher has to do anything before the rest is done.
    pub fn is_told(&self) -> bool {
        self.programs.iter().any(|program| program.told().next().is_some())
    }
}

/// Whether nothing that a capture takes is bytes.
fn takes_numbers(program: &Program) -> bool {
    program.form.fields.iter().all(|field| program.form.kind_of(usize::from(*field)) != Kind::TEXT)
}

/// Where translated code brings what it captures.
#[derive(Clone, Copy)]
pub struct Outlets {
    pub ring_bytes: u32,
    /// Where the tables of aggregates are, and when the clock was kept last, by the time stamp counter.
    pub aggregates: u64,
    pub clock: u64,
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
#[derive(Debug, Default)]
pub struct Captures {
    by_pc: BTreeMap<AppPc, Arc<Place>>,
    by_fragment: BTreeMap<FragmentId, Guarded>,
}

impl Captures {
    pub const fn new() -> Captures {
        Captures { by_pc: BTreeMap::new(), by_fragment: BTreeMap::new() }
    }

    /// What is captured at an address.
    pub fn at(&self, pc: AppPc) -> Option<&Arc<Place>> {
        self.by_pc.get(&pc)
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
        let mut places: BTreeMap<AppPc, (Place, Room)> = BTreeMap::new();
        let mut n_refused = 0;
        for one in asked {
            let (place, room) = places.entry(AppPc::from_raw(one.pc)).or_default();
            let bytes = heap.get(one.form_start as usize..).and_then(|rest| rest.get(..one.form_bytes as usize));
            let has_room = (place.programs.len() as u64) < MAX_CAPTURES_AT_PLACE;
            let form = bytes.filter(|_| has_room).and_then(Form::parse);
            match form.and_then(|form| Program::lay_out(one, form, room)) {
                Some(program) => {
                    place.asked.push((one.number, program.action, bytes.unwrap_or_default().to_vec()));
                    place.programs.push(program);
                }
                None => n_refused += 1,
            }
        }
        places.retain(|_, (place, _)| !place.programs.is_empty());
        let is_same = |pc: &AppPc| match (self.by_pc.get(pc), places.get(pc)) {
            (Some(before), Some((now, _))) => before.asked == now.asked,
            (before, now) => before.is_none() && now.is_none(),
        };
        let mut changed: Vec<AppPc> =
            self.by_pc.keys().chain(places.keys()).copied().filter(|pc| !is_same(pc)).collect();
        changed.sort_unstable();
        changed.dedup();
        for pc in &changed {
            match places.remove(pc) {
                Some((place, _)) => self.by_pc.insert(*pc, Arc::new(place)),
                None => self.by_pc.remove(pc),
            };
        }
        (changed, n_refused)
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
