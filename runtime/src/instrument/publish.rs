//! A finished fragment is made known: to the lookups, the slab's index and the controller.
//!
//! Runs under the runtime's lock, on the runtime's stack.

use super::counts::counters::Counters;
use super::Engine;
use crate::buffer::RingWriter;
use crate::context::numbers::{FragmentId, SiteId};
use crate::cpu::sys::clock::ticks;
use crate::decode::places::name_of;
use crate::decode::trusted::page_of;
use crate::decode::{Block, Ending};
use crate::protocol::{exit_kind, fragment_flag, record_kind, FragmentRecord};

impl Engine {
    /// Makes a finished fragment known: to the lookups, the slab's index and the controller.
    pub fn publish(
        &mut self,
        writer: &RingWriter,
        block: &Block,
        id: FragmentId,
        kind: u8,
        ending: Ending,
        counters: &Counters,
    ) {
        let is_alone = !self.cache.fragment(id).is_valid;
        let is_later = !is_alone && self.note_in_log(block, id);
        if !is_alone {
            self.cache.by_pc.insert(block.pc, id);
        }
        let page = page_of(block.pc);
        let next = self.cache.by_page.find(page).unwrap_or(FragmentId::NONE);
        self.cache.fragment_mut(id).next_in_page = next;
        self.cache.by_page.insert(page, id);
        if !is_alone && matches!(kind, exit_kind::CALL | exit_kind::INDIRECT_CALL) && self.is_landing_of_all(id) {
            self.cache.landings.insert(block.end(), id);
        }
        let site = self.cache.fragment(id).site;
        if site != SiteId::NONE {
            self.cache.sites.insert(u64::from(site.raw()), id);
        }
        self.instructions_translated += block.count() as u64;
        self.shared.set(crate::status_field!(fragments), u64::from(id.raw()) + 1);
        self.shared.set(crate::status_field!(instructions_translated), self.instructions_translated);
        let target_pc = match ending {
            Ending::Jump(target) | Ending::Conditional(target) | Ending::Call(target) => name_of(target).raw(),
            Ending::TransactionBegin(target) if kind == exit_kind::JUMP => name_of(target).raw(),
            _ => 0,
        };
        let mut payload =
            [0u8; (crate::protocol::MAX_FRAGMENT_BYTES + crate::protocol::MAX_FRAGMENT_BYTES / 8 + 16) as usize];
        let n = block.code.len();
        payload[..n].copy_from_slice(&block.code);
        for index in 0..block.count() {
            let offset = (block.pc_of(index) - block.pc) as usize;
            payload[n + offset / 8] |= 1 << (offset % 8);
        }
        let payload = &payload[..n + n.div_ceil(8)];
        let record = FragmentRecord {
            kind: record_kind::FRAGMENT,
            continuations: payload.len().div_ceil(60) as u16,
            tid: writer.tid,
            app_pc: block.pc.raw(),
            target_pc,
            tsc: ticks(),
            fragment_id: id.raw(),
            counter_index: counters.first.raw(),
            code_version: self.cache.fragment(id).code_version,
            size_bytes: n as u16,
            n_instructions: block.count() as u16,
            exit_kind: kind,
            flags: counters.flags | if is_later { fragment_flag::LATER_CODE } else { 0 },
            reserved: [0; 1],
            n_misses: counters.n_misses,
            region_block: self.cache.fragment(id).region_block.raw(),
            reserved_more: [0; 8],
        };
        writer.write(&record, payload);
    }
}
