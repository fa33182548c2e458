//! What every thread's path has to tell before the thread executes what follows from it (mode `full`): code that came in the
//! place of other code, and branches that are expected to go another way.
//!
//! A thread tells what is new in the dispatcher, at its own place. Until all that execute did so, nothing is linked to what
//! depends on it: whoever comes there comes by the dispatcher.

extern crate alloc;
use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::decode::trusted::page_of;
use crate::decode::Block;
use crate::instrument::Engine;
use crate::protocol::path_event_kind;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// An event of kind `path_event_kind::CODE` or `UNLIKE`, and its value.
pub type Change = (u16, u64);

pub struct PathLog {
    /// All changes so far, in their order.
    changes: Vec<Change>,
    /// Conditional branches whose expected way is not the one that their direction suggests.
    unlike: BTreeSet<AppPc>,
    /// By address of such a branch, and of one that was: how long the log was when that changed last.
    changed_at: BTreeMap<AppPc, u32>,
    /// Pages on which code went out of use because it was changed or unmapped.
    changed_pages: BTreeSet<u64>,
    /// The fragments of such pages that came last, by address.
    codes: BTreeMap<AppPc, FragmentId>,
    /// All threads that execute have told so many of the changes; or more.
    told_by_all: u32,
}

impl PathLog {
    pub const fn new() -> PathLog {
        PathLog {
            changes: Vec::new(),
            unlike: BTreeSet::new(),
            changed_at: BTreeMap::new(),
            changed_pages: BTreeSet::new(),
            codes: BTreeMap::new(),
            told_by_all: 0,
        }
    }

    pub fn length(&self) -> u32 {
        self.changes.len() as u32
    }

    pub fn change(&self, number: u32) -> Option<Change> {
        self.changes.get(number as usize).copied()
    }

    /// What a path that begins now has to tell first.
    pub fn state(&self) -> impl Iterator<Item = Change> + '_ {
        let unlike = self.unlike.iter().map(|branch| (path_event_kind::UNLIKE, branch.raw()));
        // As they came: of those that overlap the last one holds.
        let codes: BTreeSet<FragmentId> = self.codes.values().copied().collect();
        unlike.chain(codes.into_iter().map(|id| (path_event_kind::CODE, u64::from(id.raw()))))
    }

    /// Whether the branch at `branch` is expected to go another way than its direction suggests.
    pub fn is_unlike(&self, branch: AppPc) -> bool {
        self.unlike.contains(&branch)
    }

    /// From now on the branch at `branch` is expected to go the other way.
    pub fn turn(&mut self, branch: AppPc) {
        if !self.unlike.remove(&branch) {
            self.unlike.insert(branch);
        }
        self.changes.push((path_event_kind::UNLIKE, branch.raw()));
        self.changed_at.insert(branch, self.length());
    }

    /// Whether a block's code may have come in the place of other code.
    fn is_later(&self, block: &Block) -> bool {
        !self.changed_pages.is_empty()
            && self.changed_pages.range(page_of(block.pc)..=page_of(block.end() - 1)).next().is_some()
    }

    /// Fragment `id` at `pc` has code that may have come in the place of other code.
    fn note_code(&mut self, pc: AppPc, id: FragmentId) {
        self.codes.insert(pc, id);
        self.changes.push((path_event_kind::CODE, u64::from(id.raw())));
    }

    /// How many changes have to be told before a fragment with the branch at `branch` is executed.
    fn needed(&self, branch: AppPc, is_later: bool) -> u32 {
        if is_later {
            return self.length();
        }
        self.changed_at.get(&branch).copied().unwrap_or(0)
    }

    /// Whether all threads have told the first `needed` changes. `told_by_all` says how many they have, if that has to be known.
    pub fn is_told(&mut self, needed: u32, told_by_all: impl FnOnce() -> u32) -> bool {
        if needed > self.told_by_all {
            self.told_by_all = told_by_all();
        }
        needed <= self.told_by_all
    }
}

impl Engine {
    /// Code from `start` up to `end` went.
    pub fn note_gone(&mut self, start: AppPc, end: AppPc) {
        if self.remembers_gone_code() {
            self.path_log.changed_pages.extend(page_of(start)..=page_of(end - 1));
        }
    }

    /// Notes a fragment that is about to be published: what has to be told before it is executed. Whether its code may have come
    /// in the place of other code.
    pub fn note_in_log(&mut self, block: &Block, id: FragmentId) -> bool {
        let is_later = self.path_log.is_later(block);
        if !self.records_order() {
            return is_later;
        }
        if is_later {
            self.path_log.note_code(block.pc, id);
        }
        let needed = self.path_log.needed(self.cache.fragment(id).branch_pc(), is_later);
        self.cache.fragment_mut(id).changes_needed = needed;
        is_later
    }
}
