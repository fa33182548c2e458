//! Dropping fragments whose code went or changed.
//!
//! A dropped fragment's memory is not used again, so threads inside it run on to its end; nothing leads into it any more.
//! Fragments that were linked to it are dropped too: their next copies have new counters, so that an edge's count belongs
//! to one version of its target.
//!
//! Code that is compared when it is entered is found to have changed only where it is entered again. What is translated across it
//! is other code all the same: then it is dropped as well, for the trace is told of what came after what.

extern crate alloc;
use crate::buffer::RingWriter;
use crate::cache::exit::ExitType;
use crate::cache::fragment::Fragment;
use crate::cache::pairs::PairWay;
use crate::cache::PadId;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{ExitId, FragmentId};
use crate::cpu::guarded;
use crate::cpu::sys::clock::ticks;
use crate::decode::trusted::{page_of, page_start};
use crate::decode::Block;
use crate::instrument::kinds::hash;
use crate::instrument::Engine;
use crate::protocol::{record_kind, InvalidateRecord, MAX_FRAGMENT_BYTES};
use alloc::vec::Vec;

impl Engine {
    /// Drops all fragments that hold code from `start` up to `end`, and forgets the critical sections there.
    pub fn invalidate(&mut self, writer: &RingWriter, start: AppPc, end: AppPc) {
        self.cache.rseqs.remove(start, end);
        self.invalidate_fragments(writer, start, end);
    }

    /// Drops all fragments that hold code from `start` up to `end`.
    pub fn invalidate_fragments(&mut self, writer: &RingWriter, start: AppPc, end: AppPc) {
        if !self.ranges.intersects(start, end) {
            return;
        }
        self.note_translated_gone(start, end);
        for id in self.fragments_within(start, end) {
            self.drop_fragment(writer, id, true);
        }
    }

    /// Code of any kind may have gone from the pages from `start` up to `end` of which some was translated: what went out of use
    /// before need not be on a list any more.
    fn note_translated_gone(&mut self, start: AppPc, end: AppPc) {
        if !self.remembers_gone_code() {
            return;
        }
        let mut pc = start;
        while let Some(range) = self.ranges.next_from(pc, end) {
            let (first, last) = (range.start.max(start), range.end.min(end));
            for page in page_of(first).saturating_sub(1)..=page_of(last - 1) {
                // A fragment that starts in a page may end in the next one.
                if self.cache.by_page.find(page).is_some() {
                    let (from, to) = (first.max(page_start(page)), last.min(page_start(page + 2)));
                    self.note_gone(from, to);
                }
            }
            pc = range.end;
        }
    }

    /// Drops the fragments that `block`, which is about to be translated, shows to be of code that is there no more. For code that
    /// is compared: all other changes are known as they happen.
    pub fn drop_overwritten(&mut self, writer: &RingWriter, block: &Block) {
        for id in self.fragments_within(block.pc, block.end()) {
            let fragment = *self.cache.fragment(id);
            if is_as_translated(&fragment) {
                continue;
            }
            if fragment.is_valid {
                self.drop_fragment(writer, id, true);
            } else {
                self.note_gone(fragment.app_pc, fragment.end());
            }
        }
    }

    /// As `retire_to_be_made_again`, of code that was compared and is to be compared no more: that it changed before shows now or never.
    pub fn retire_compared(&mut self, writer: &RingWriter, id: FragmentId) {
        let fragment = *self.cache.fragment(id);
        if !is_as_translated(&fragment) {
            self.note_gone(fragment.app_pc, fragment.end());
        }
        self.retire_to_be_made_again(writer, id);
    }

    /// All fragments that hold code from `start` up to `end`, those out of use among them.
    pub fn fragments_within(&mut self, start: AppPc, end: AppPc) -> Vec<FragmentId> {
        let mut found = Vec::new();
        let mut pc = start;
        while let Some(range) = self.ranges.next_from(pc, end) {
            let first_page = page_of(range.start.max(start)).saturating_sub(1);
            let last_page = page_of(range.end.min(end) - 1);
            for page in first_page..=last_page {
                self.forget_dropped(page);
                let mut id = self.cache.by_page.find(page).unwrap_or(FragmentId::NONE);
                while id != FragmentId::NONE {
                    let fragment = self.cache.fragment(id);
                    if fragment.app_pc < end && fragment.end() > start {
                        found.push(id);
                    }
                    id = fragment.next_in_page;
                }
            }
            pc = range.end;
        }
        found
    }

    /// Compares all code with its translation from now on, each time it is entered: it can be written behind its protection.
    pub fn distrust(&mut self, writer: &RingWriter) {
        self.end_trust(writer, AppPc::LOWEST, AppPc::HIGHEST, false);
        if self.ranges.make_writable() {
            self.invalidate(writer, AppPc::LOWEST, AppPc::HIGHEST);
        }
    }

    /// Takes those out of a page's list that are out of use, and to which nothing is linked: nothing ever is again.
    fn forget_dropped(&mut self, page: u64) {
        let mut last = FragmentId::NONE;
        let mut id = self.cache.by_page.find(page).unwrap_or(FragmentId::NONE);
        while id != FragmentId::NONE {
            let fragment = *self.cache.fragment(id);
            if fragment.is_valid || fragment.incoming != ExitId::NONE {
                last = id;
                id = fragment.next_in_page;
                continue;
            }
            if fragment.is_compared {
                // Nobody will see any more whether it is overwritten.
                self.note_gone(fragment.app_pc, fragment.end());
            }
            if last == FragmentId::NONE {
                self.cache.by_page.insert(page, fragment.next_in_page);
            } else {
                self.cache.fragment_mut(last).next_in_page = fragment.next_in_page;
            }
            id = fragment.next_in_page;
        }
    }

    /// Drops a fragment whose code the program has written.
    pub fn drop_stale(&mut self, writer: &RingWriter, id: FragmentId) {
        self.drop_fragment(writer, id, true);
    }

    /// Drops one fragment; with `cascade`, those linked to it as well.
    fn drop_fragment(&mut self, writer: &RingWriter, id: FragmentId, cascade: bool) {
        // What had been laid out anew as this fragment has exits on its list that were not linked again yet.
        let before = self.cache.versions.find(self.cache.fragment(id).app_pc);
        let fragment = *self.cache.fragment(id);
        self.note_gone(fragment.app_pc, fragment.end());
        self.transforms.forget(fragment.app_pc, fragment.end());
        if fragment.is_valid {
            self.shared.add(crate::status_field!(invalidated), 1);
            self.retire(writer, id);
        }
        self.cut_off(writer, id, cascade);
        if let Some(before) = before {
            self.cut_off(writer, before, cascade);
        }
    }

    /// Unlinks all that leads to a fragment that is not valid any more.
    pub fn cut_off(&mut self, writer: &RingWriter, id: FragmentId, cascade: bool) {
        while self.cache.fragment(id).incoming != ExitId::NONE {
            let exit_id = self.cache.fragment(id).incoming;
            let exit = *self.cache.exit(exit_id);
            self.cache.unlink_exit(exit_id);
            match exit.kind {
                ExitType::Pad => self.kill_pad(exit.pad),
                ExitType::Landing => {}
                _ if cascade && exit.fragment != id => self.drop_fragment(writer, exit.fragment, false),
                _ => {}
            }
        }
    }

    /// As `retire`, of a fragment that is in use, and what is linked to it comes to the dispatcher, which translates it again.
    pub fn retire_to_be_made_again(&mut self, writer: &RingWriter, id: FragmentId) {
        if self.cache.fragment(id).is_valid {
            self.retire(writer, id);
            self.cache.bypass(id);
        }
    }

    /// Takes a fragment out of use: nothing finds it any more, but what is linked to it still is.
    pub fn retire(&mut self, writer: &RingWriter, id: FragmentId) {
        let fragment = *self.cache.fragment(id);
        self.cache.fragment_mut(id).is_valid = false;
        if let Some(before) = self.cache.versions.find(fragment.app_pc).filter(|before| *before != id) {
            self.cache.hand_over_incoming(before, id);
        }
        if self.cache.by_pc.find(fragment.app_pc) == Some(id) {
            self.cache.by_pc.remove(fragment.app_pc);
        }
        self.cache.versions.insert(fragment.app_pc, id);
        // Returns to a call's landing come to the dispatcher, which shows them the landing of the call's next copy.
        for exit_id in fragment.exits() {
            if self.cache.exit(exit_id).kind == ExitType::Landing {
                self.cache.unlink_exit(exit_id);
            }
        }
        let record = InvalidateRecord {
            kind: record_kind::INVALIDATE,
            continuations: 0,
            tid: writer.tid,
            app_pc: fragment.app_pc.raw(),
            reserved_target: 0,
            tsc: ticks(),
            fragment_id: id.raw(),
            reserved: [0; 28],
        };
        writer.write(&record, &[]);
    }

    /// Whether memory holds what a fragment was translated from.
    pub fn is_as_translated(&self, id: FragmentId) -> bool {
        is_as_translated(self.cache.fragment(id))
    }

    /// Takes a pad out of the pair table: its counter stands for a target that is gone.
    fn kill_pad(&mut self, pad_id: PadId) {
        let pad = *self.cache.pad(pad_id);
        self.cache.pad_mut(pad_id).is_dead = true;
        let site = self.cache.fragment(pad.source_fragment).site;
        if self.cache.pairs.find(site, pad.target).is_some_and(|entry| entry.pad == pad.cache_start) {
            // Replacing an entry never moves the table.
            self.cache.pairs.insert(site, pad.target, CachePc::NOWHERE, PairWay::Pad(pad_id));
        }
    }

    /// How often the code at `pc` had changed, given what it is now.
    pub fn version_of(&mut self, pc: AppPc, code_hash: u64) -> u32 {
        match self.cache.versions.find(pc) {
            None => 0,
            Some(id) => {
                let old = self.cache.fragment(id);
                if old.code_hash == code_hash {
                    old.code_version
                } else {
                    old.code_version + 1
                }
            }
        }
    }
}

/// Whether memory holds what a fragment was translated from.
fn is_as_translated(fragment: &Fragment) -> bool {
    is_read_as_translated(fragment, guarded::read_code)
}

/// The same, of memory that is read by `read`: how many bytes there were to be had. Reachable from the signal handler.
pub fn is_read_as_translated(fragment: &Fragment, read: fn(&mut [u8], AppPc) -> usize) -> bool {
    let mut code = [0; MAX_FRAGMENT_BYTES as usize];
    let code = &mut code[..usize::from(fragment.hashed_size)];
    read(code, fragment.app_pc) == code.len() && hash(code) == fragment.code_hash
}
