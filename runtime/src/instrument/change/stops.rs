//! Code in front of which threads stop, code that one thread executes by itself, and code that is to be recorded in
//! another way than it was.
//!
//! What is in the cache goes out of use for it, as hot code does that is laid out anew: it keeps what it counted, and what
//! leads to it comes to the dispatcher.

extern crate alloc;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::numbers::{CounterId, FragmentId};
use crate::cpu::decode::placed;
use crate::cpu::{guarded, probe_points};
use crate::decode::trusted::{page_of, page_start};
use crate::decode::{decode_block, Block, Ending};
use crate::instrument::request::{Arrival, Request};
use crate::instrument::{BuildError, Engine};
use crate::protocol::{exit_kind, MAX_CHANGED_PAGES, PAGE_BYTES};
use alloc::vec::Vec;

/// What the controller told all threads, as far as the engine has carried it out.
pub struct Directives {
    count: u32,
    n_filters: u32,
    n_changed: u32,
    pub(super) n_invalidated: u32,
    /// How many addresses were translated because the controller told them.
    pub n_prefetched: u32,
    breakpoints: Vec<AppPc>,
}

impl Directives {
    pub const fn new() -> Directives {
        Directives { count: 0, n_filters: 0, n_changed: 0, n_invalidated: 0, n_prefetched: 0, breakpoints: Vec::new() }
    }

    /// How many directives were carried out.
    pub fn count(&self) -> u32 {
        self.count
    }
}

/// What is executed alone at a breakpoint of the program's, or of another.
pub struct ProbeCode {
    fragment: FragmentId,
    /// How many directives of the controller were carried out.
    n_directives: u32,
    bytes: Vec<u8>,
}

const MAX_INSTRUCTION_BYTES: usize = 15;

impl Engine {
    /// Carries out the controller's directives, `n_directives` of them by now: code that they change goes out of use. Whether the order
    /// is recorded from now on, and was not before, or the other way round.
    pub fn carry_out(&mut self, writer: &RingWriter, n_directives: u32) -> bool {
        if self.directives.count == n_directives {
            return false;
        }
        self.directives.count = n_directives;
        let breakpoints: Vec<_> = self.shared.breakpoints().into_iter().map(AppPc::from_raw).collect();
        let before = core::mem::replace(&mut self.directives.breakpoints, breakpoints.clone());
        let (asked, heap) = self.shared.captures();
        let (other_captures, n_refused) = self.captures.replace(&asked, &heap);
        self.captures.asked_tsc = self.shared.captures_tsc();
        self.shared.set_refused_captures(n_refused);
        let n_filters = self.shared.filter_count();
        let has_other_filters = core::mem::replace(&mut self.directives.n_filters, n_filters) != n_filters;
        if self.shared.is_written() {
            self.distrust(writer);
        }
        self.look_at_changed_pages(writer);
        self.renew(writer);
        if self.follow_transforms() {
            self.retire_all(writer);
        }
        let has_other_mode = self.change_mode(writer);
        if has_other_mode || has_other_filters {
            // What was counted need not be any more, or the other way round.
            self.edges.clear();
            self.retire_all(writer);
            return has_other_mode;
        }
        let is_of_one = |pc: &&AppPc| before.contains(pc) != breakpoints.contains(pc);
        for pc in before.iter().chain(&breakpoints).filter(is_of_one).chain(&other_captures) {
            self.retire_at(writer, *pc);
        }
        false
    }

    /// Looks at the pages again that were written behind the process' back: what is there now is translated anew.
    fn look_at_changed_pages(&mut self, writer: &RingWriter) {
        let count = self.shared.changed_count();
        let before = core::mem::replace(&mut self.directives.n_changed, count);
        if count.wrapping_sub(before) > MAX_CHANGED_PAGES as u32 {
            self.look_at_changed(writer, AppPc::LOWEST, AppPc::HIGHEST);
            return;
        }
        for number in 0..count.wrapping_sub(before) {
            let address = AppPc::from_raw(self.shared.changed_page(before.wrapping_add(number)));
            let page = page_start(page_of(address));
            self.look_at_changed(writer, page, page.saturating_add(PAGE_BYTES));
        }
    }

    /// Drops what was translated from `start` up to `end` of other code than is there now, and forgets the breakpoints of others that
    /// were taken away.
    fn look_at_changed(&mut self, writer: &RingWriter, start: AppPc, end: AppPc) {
        let fragments = self.fragments_within(start, end);
        if placed::forget_gone(start, end) || fragments.iter().any(|id| !self.is_as_translated(*id)) {
            self.invalidate(writer, start, end);
        }
    }

    /// The program set a probe on code whose address modulo the size of a page is that of `place`: code that was translated already and
    /// has it now is translated anew.
    pub fn meet_probe(&mut self, writer: &RingWriter, place: u64) {
        for id in self.cache.fragment_ids() {
            let fragment = *self.cache.fragment(id);
            let behind = place.wrapping_sub(fragment.app_pc.raw()) % PAGE_BYTES;
            if fragment.is_valid && behind < u64::from(fragment.app_size) && !self.is_as_translated(id) {
                let pc = fragment.app_pc + behind;
                self.invalidate(writer, pc, pc + 1);
            }
        }
    }

    /// Has what is translated from now on tell of the order, or no more, as the controller has it. Whether that is other than before:
    /// nothing of what was translated is to be executed then.
    fn change_mode(&mut self, writer: &RingWriter) -> bool {
        if !self.follow_records_order() {
            return false;
        }
        // Paths are to expect what hot branches do by now.
        let n_looked_at = if self.records_order() { self.cache.fragments.len() as u32 } else { 0 };
        for id in (0..n_looked_at).map(FragmentId::from_raw) {
            let fragment = *self.cache.fragment(id);
            if fragment.is_valid && fragment.is_hot && fragment.exit_kind == exit_kind::CONDITIONAL {
                self.expect_habit(writer, &fragment, fragment.habit);
            }
        }
        true
    }

    /// Has what is captured at an address translated anew, for it is other than before.
    pub fn renew_at(&mut self, writer: &RingWriter, pc: AppPc) {
        self.retire_at(writer, pc);
    }

    /// Has everything that is captured translated anew.
    pub fn renew_captures(&mut self, writer: &RingWriter) {
        let places: Vec<AppPc> = self.captures.places().collect();
        for pc in places {
            self.retire_at(writer, pc);
        }
    }

    /// Takes all fragments with the instruction at `pc` out of use.
    fn retire_at(&mut self, writer: &RingWriter, pc: AppPc) {
        for id in self.fragments_within(pc, pc.saturating_add(1)) {
            self.retire_to_be_made_again(writer, id);
        }
    }

    pub(super) fn retire_all(&mut self, writer: &RingWriter) {
        for id in self.cache.fragment_ids() {
            self.retire_to_be_made_again(writer, id);
        }
        // One that is full too often is given up.
        self.renew_enclosures();
    }

    /// Whether nothing may lead to the instruction at `pc` but the dispatcher: a breakpoint of the controller's, the program's or
    /// another's is there.
    pub fn stops_at(&self, pc: AppPc) -> bool {
        self.shared.has_breakpoint(pc.raw()) || probe_points::find(pc).is_some() || placed::is_known(pc)
    }

    /// From now on threads that come to `pc` come by its point.
    pub fn begin_probe(&mut self, writer: &RingWriter, pc: AppPc) {
        self.retire_at(writer, pc);
    }

    /// What was made for a breakpoint at `pc` that is none of the controller's, if it is the same code that is to be executed and counted
    /// alike.
    fn find_probe_code(&self, pc: AppPc) -> Option<FragmentId> {
        let code = self.probe_codes.get(&pc)?;
        let mut bytes = [0; MAX_INSTRUCTION_BYTES];
        let bytes = &mut bytes[..code.bytes.len()];
        let is_same = match placed::instruction_at(pc) {
            Some((instruction, length)) => instruction[..length] == *code.bytes,
            None => guarded::read_code(bytes, pc) == bytes.len() && *bytes == *code.bytes,
        };
        (is_same && code.n_directives == self.directives.count).then_some(code.fragment)
    }

    /// Keeps it: a breakpoint may be come to a million times.
    fn keep_probe_code(&mut self, pc: AppPc, fragment: FragmentId, bytes: &[u8], is_before_path: bool) {
        if (probe_points::find(pc).is_some() || placed::is_known(pc)) && !is_before_path {
            let size = usize::from(self.cache.fragment(fragment).app_size).min(bytes.len());
            let bytes = bytes[..size].to_vec();
            self.probe_codes.insert(pc, ProbeCode { fragment, n_directives: self.directives.count, bytes });
        }
    }

    /// What counts the instruction at `pc`, where another's breakpoint is; `NONE`: nothing does.
    pub fn probe_counter(&self, pc: AppPc) -> CounterId {
        self.find_probe_code(pc).map_or(CounterId::NONE, |id| self.cache.fragment(id).counter)
    }

    /// Gives up all that was translated: every way out of it leads into the dispatcher, and what runs on is translated anew. Threads
    /// may still be inside.
    pub fn give_up_all(&mut self, writer: &RingWriter) {
        self.retire_all(writer);
        self.cache.unlink_all();
    }

    /// Translates the instruction at `pc` for one execution by the calling thread: nothing leads to it or on from it but the
    /// dispatcher. `is_before_path`: its path goes on in front of the next block.
    pub fn build_alone(
        &mut self,
        writer: &RingWriter,
        pc: AppPc,
        is_before_path: bool,
    ) -> Result<FragmentId, BuildError> {
        if let Some(id) = self.find_probe_code(pc).filter(|_| !is_before_path) {
            return Ok(id);
        }
        if self.needs_whole_fragments() && self.cache.by_pc.find(pc).is_none() {
            // Paths speak of code by its whole fragments.
            let id = self.build(writer, Request::new(pc, Arrival::Other))?;
            if self.stops_at(pc) {
                self.retire_to_be_made_again(writer, id);
            }
        }
        let mut block = core::mem::take(&mut self.block);
        let result = match decode_block(&mut block, &self.ranges, pc) {
            Ok(ending) => {
                if block.is_writable {
                    self.drop_overwritten(writer, &block);
                }
                let result = self.build_block(writer, Request::once(pc, is_before_path), &mut block, ending);
                if let Ok(id) = result {
                    self.keep_probe_code(pc, id, &block.code, is_before_path);
                }
                result
            }
            Err(reason) => Err(BuildError::NoCode(reason)),
        };
        self.block = block;
        result
    }

    /// Cuts a block in front of the first breakpoint or capture behind its first instruction, or behind that if it is to be executed
    /// alone.
    /// Returns how it ends now.
    pub fn cut_at_stops(&self, request: &Request, block: &mut Block, ending: Ending) -> Ending {
        let is_stop = |pc: AppPc| request.is_once() || self.stops_at(pc) || self.captures.at(pc).is_some();
        match (1..block.count()).position(|index| is_stop(block.pc_of(index))) {
            Some(before) => {
                block.truncate(before + 1);
                Ending::Limit
            }
            None => ending,
        }
    }
}
