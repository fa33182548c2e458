//! The code cache: slabs of memory near the code they translate, and what is known of the fragments in them.
//!
//! Changed under the runtime's lock only. Arenas and slab headers never move, so the signal handler reads them without.
//! Knows nothing of how fragments are made or counted.

pub mod copies;
pub mod exit;
pub mod fragment;
pub mod links;
pub mod pairs;
pub mod rseq;
pub mod slab;
pub mod slabs;
pub mod table;
pub mod views;

pub use exit::{Entry, Exit, Pad, PadId};
pub use fragment::{Fragment, COUNTED_AT_EXITS, NO_INTERRUPT};
pub use slab::Unit;
pub use slabs::Slabs;

use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{CounterId, ExitId, FragmentId};
use crate::sys::heap::Arena;
use core::ops::Range;
use pairs::PairTable;
use rseq::Rseqs;
use table::PcTable;

/// The whole cache of a process.
pub struct Cache {
    pub slabs: Slabs,
    pub fragments: Arena<Fragment>,
    pub exits: Arena<Exit>,
    pub pads: Arena<Pad>,
    /// Where each instruction of each fragment went: see `fragment::MapEntry`.
    pub map: Arena<fragment::MapEntry>,
    /// Fragments by application address.
    pub by_pc: PcTable<AppPc, FragmentId>,
    /// Call fragments by return address: the fragment whose landing expects it.
    pub landings: PcTable<AppPc, FragmentId>,
    /// First fragment of each page of code; the others follow by `next_in_page`.
    pub by_page: PcTable<u64, FragmentId>,
    /// How often code at an address was replaced by other bytes; absent: never.
    pub versions: PcTable<AppPc, FragmentId>,
    /// Fragments with an indirect branch by their site index.
    pub sites: PcTable<u64, FragmentId>,
    pub pairs: PairTable,
    pub rseqs: Rseqs,
    /// Calls push onto a shadow stack, and landings compare (mode full).
    pub keeps_shadow: bool,
    /// Sites given out so far.
    pub n_sites: u32,
    pub n_links: u64,
    pub n_unlinks: u64,
}

impl Cache {
    pub const fn new() -> Cache {
        Cache {
            slabs: Slabs::new(),
            fragments: Arena::new(1 << 32),
            exits: Arena::new(1 << 33),
            pads: Arena::new(1 << 32),
            map: Arena::new(1 << 32),
            by_pc: PcTable::new(),
            landings: PcTable::new(),
            by_page: PcTable::new(),
            versions: PcTable::new(),
            sites: PcTable::new(),
            pairs: PairTable::new(),
            rseqs: Rseqs::new(),
            keeps_shadow: false,
            n_sites: 0,
            n_links: 0,
            n_unlinks: 0,
        }
    }

    /// Forgets what was translated: nothing leads into it any more but what runs there now.
    pub fn forget_all(&mut self) {
        for fragment in self.fragments.as_mut_slice() {
            fragment.is_valid = false;
        }
        for table in [&mut self.by_pc, &mut self.landings, &mut self.versions] {
            *table = PcTable::new();
        }
        self.by_page = PcTable::new();
        self.pairs.clear();
        self.rseqs.forget_all();
    }

    /// Unlinks everything: every way out of translated code leads into the dispatcher.
    pub fn unlink_all(&mut self) {
        for id in self.fragment_ids() {
            while self.fragment(id).incoming != ExitId::NONE {
                self.unlink_exit(self.fragment(id).incoming);
            }
        }
        self.pairs.clear();
    }

    /// The cache's memory in `left` is about to go: nothing writes to it any more. No fragment there may be in use, and no exit linked.
    pub fn forget_memory(&mut self, left: &Range<u64>) {
        for exit in self.exits.as_mut_slice().iter_mut().filter(|exit| left.contains(&exit.patch.raw())) {
            exit.patch = CachePc::NOWHERE;
        }
        for fragment in self.fragments.as_mut_slice() {
            if left.contains(&(fragment.cache_start.raw() + u64::from(fragment.interrupt_offset))) {
                fragment.interrupt_offset = NO_INTERRUPT;
            }
        }
        self.rseqs.forget_memory(left);
    }

    /// The numbers of all fragments, in use or not.
    pub fn fragment_ids(&self) -> impl Iterator<Item = FragmentId> + use<> {
        (0..self.fragments.len() as u32).map(FragmentId::from_raw)
    }

    /// The number that the next fragment will have.
    pub fn next_fragment(&self) -> FragmentId {
        FragmentId::from_raw(self.fragments.len() as u32)
    }

    pub fn fragment(&self, id: FragmentId) -> &Fragment {
        &self.fragments.as_slice()[id.raw() as usize]
    }

    /// `id` where that is a fragment that holds the application's `app_pc`; else `NONE`.
    pub fn holder(&self, id: FragmentId, app_pc: AppPc) -> FragmentId {
        if id == FragmentId::NONE {
            return FragmentId::NONE;
        }
        let fragment = self.fragment(id);
        let end = fragment.app_pc + u64::from(fragment.app_size);
        if (fragment.app_pc..end).contains(&app_pc) {
            id
        } else {
            FragmentId::NONE
        }
    }

    pub fn fragment_mut(&mut self, id: FragmentId) -> &mut Fragment {
        &mut self.fragments.as_mut_slice()[id.raw() as usize]
    }

    /// Which instruction of a fragment starts at `app_pc`. Lock-free: called by the signal handler.
    fn instruction_index(&self, fragment: &Fragment, app_pc: AppPc) -> u32 {
        let start = fragment.map_start as usize;
        let entries = &self.map.as_slice()[start..start + fragment.map_length as usize];
        let offset = app_pc - fragment.app_pc;
        let mut index = 0;
        let mut last = None;
        for entry in entries {
            if u64::from(entry.app_offset) >= offset {
                break;
            }
            if last != Some(entry.app_offset) {
                index += 1;
                last = Some(entry.app_offset);
            }
        }
        index
    }

    /// The counter that a fragment left in front of `app_pc` had incremented by then, although it did not run to its end, and what an
    /// execution adds to it: 1, but where a leader counted -1 to what is less.
    pub fn counted_too_early(&self, fragment: &Fragment, app_pc: AppPc) -> Option<(CounterId, i64)> {
        let is_counted = fragment.counter != CounterId::NONE
            && fragment.count_before != COUNTED_AT_EXITS
            && app_pc != fragment.end()
            && self.instruction_index(fragment, app_pc) >= u32::from(fragment.count_before);
        is_counted.then(|| match fragment.leader {
            ExitId::NONE => (fragment.counter, 1),
            leader => (self.exit(leader).misses, -1),
        })
    }

    /// Whether its decision was counted by then (mode full).
    pub fn decided_too_early(&self, fragment: &Fragment, app_pc: AppPc) -> bool {
        fragment.decides_before != COUNTED_AT_EXITS
            && app_pc != fragment.end()
            && self.instruction_index(fragment, app_pc) >= u32::from(fragment.decides_before)
    }

    /// The exit of a fragment by which its conditional branch is taken.
    pub fn taken_exit(&self, fragment: &Fragment) -> Option<&Exit> {
        self.exits_of(fragment).iter().find(|exit| exit.kind == exit::ExitType::Taken)
    }

    /// A fragment's exits, in the order in which they were emitted.
    pub fn exits_of(&self, fragment: &Fragment) -> &[Exit] {
        let first = fragment.first_exit.raw() as usize;
        &self.exits.as_slice()[first..first + fragment.n_exits as usize]
    }

    pub fn exit(&self, id: ExitId) -> &Exit {
        &self.exits.as_slice()[id.raw() as usize]
    }

    pub fn exit_mut(&mut self, id: ExitId) -> &mut Exit {
        &mut self.exits.as_mut_slice()[id.raw() as usize]
    }

    /// The number that the next exit will have.
    pub fn next_exit(&self) -> ExitId {
        ExitId::from_raw(self.exits.len() as u32)
    }

    pub fn pad(&self, id: PadId) -> &Pad {
        &self.pads.as_slice()[id.raw() as usize]
    }

    pub fn pad_mut(&mut self, id: PadId) -> &mut Pad {
        &mut self.pads.as_mut_slice()[id.raw() as usize]
    }

    /// The number that the next pad will have.
    pub fn next_pad(&self) -> PadId {
        PadId::from_raw(self.pads.len() as u32)
    }
}
