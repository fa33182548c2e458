//! What each mode asks of translated code and of the dispatcher.
//!
//! This is the one place that asks for the mode. Makers (`counts`, `order`, `tags`) ask here whether they have something to do;
//! everybody else asks for what it needs to know, by name.

use super::Engine;
use crate::buffer::Shared;
use crate::protocol::{mode, PATH_WINDOW_BYTES, REGION_WINDOW_BYTES};

/// Whether threads have a cell for each block (mode region), so that what is executed elsewhere would have no tag.
pub fn has_cells(shared: Shared) -> bool {
    shared.header().mode == mode::REGION
}

impl Engine {
    fn mode(&self) -> u32 {
        self.shared.header().mode
    }

    /// Learns from the header what is to be recorded. Once, before anything is translated.
    pub fn prepare_mode(&mut self) {
        self.cache.keeps_shadow = self.mode() == mode::FULL;
        if self.may_record_order() {
            self.counters_used = (PATH_WINDOW_BYTES / 8) as u32;
        }
        if self.records_tags() {
            self.counters_used = (REGION_WINDOW_BYTES / 8) as u32;
        }
    }

    /// Executions are counted, by counters in translated code: in all modes but coverage.
    pub fn counts(&self) -> bool {
        matches!(self.mode(), mode::COUNTS | mode::REGION | mode::FULL)
    }

    /// The order of execution is recorded now (mode full): what is translated tells of it, and calls push onto the shadow stack.
    pub fn records_order(&self) -> bool {
        self.cache.keeps_shadow
    }

    /// It can be, if not now.
    pub fn may_record_order(&self) -> bool {
        matches!(self.mode(), mode::COUNTS | mode::FULL)
    }

    /// Has what is translated from now on tell of the order, or no more, as the controller has it. Whether that is other than
    /// before.
    pub fn follow_records_order(&mut self) -> bool {
        let records_order = self.may_record_order() && self.shared.records_order();
        let tells_accesses = records_order && self.shared.tells_accesses();
        let is_other = (records_order, tells_accesses) != (self.records_order(), self.tells_accesses);
        (self.cache.keeps_shadow, self.tells_accesses) = (records_order, tells_accesses);
        is_other
    }

    /// Blocks are tagged (mode region).
    pub fn records_tags(&self) -> bool {
        has_cells(self.shared)
    }

    /// Links are told as they are made, since nothing counts what goes through them; indirect branches of any site may share an
    /// entry, and a fork's child begins anew: what its parent came to would not be told again (mode coverage).
    pub fn tells_links(&self) -> bool {
        !self.counts()
    }

    /// Paths lead through code that filters leave out as well, and counters say how far.
    pub fn counts_left_out(&self) -> bool {
        self.records_order()
    }

    /// Each execution of a block is told by its own guard: no copy of its code may stand for another, none may follow from what
    /// leads to it, and none goes past its guard (mode region).
    pub fn tells_blocks_apart(&self) -> bool {
        self.records_tags()
    }

    /// Code that went is remembered: paths tell of what comes in its place.
    pub fn remembers_gone_code(&self) -> bool {
        self.may_record_order()
    }

    /// Paths speak of code by whole fragments: there is to be one before a single instruction of it is executed alone.
    pub fn needs_whole_fragments(&self) -> bool {
        self.records_order()
    }

    /// All system calls come to the dispatcher: paths have their times, and tags the block that made them.
    pub fn sees_all_calls(&self) -> bool {
        self.records_order() || self.records_tags()
    }

    /// The dispatcher has something to do each time that a handler returns.
    pub fn sees_all_returns(&self) -> bool {
        self.records_order()
    }
}
