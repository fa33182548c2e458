//! Building fragments: decoded, mangled, counted, emitted, made known.
//!
//! Runs under the runtime's lock, on the runtime's stack.

pub mod alignment;
pub mod branch_plan;
pub mod branch_way;
pub mod captures;
pub mod change;
pub mod counts;
pub mod emission;
pub mod exits;
pub mod facts;
pub mod fragment;
pub mod indirect;
pub mod insertions;
pub mod instruction_map;
pub mod kinds;
pub mod order;
pub mod output;
pub mod plan;
pub mod publish;
pub mod recorders;
pub mod request;
pub mod rseq;
pub mod rseq_fragment;
pub mod rseq_plan;
pub mod tags;
pub mod transforms;

extern crate alloc;
use crate::buffer::{RingWriter, Shared};
use crate::cache::Cache;
use crate::context::addresses::AppPc;
use crate::context::numbers::{CounterId, FragmentId};
use crate::cpu::features::Features;
use crate::cpu::translate::Mangler;
use crate::decode::{Block, NoCode, Ranges};
use crate::protocol;
use crate::sys::lock::Lock;
use alloc::collections::BTreeMap;
use captures::places::Captures;
use change::stops::{Directives, ProbeCode};
use change::trust::Trust;
use indirect::pads::DynamicEdge;
use order::decisions::DecisionCells;
use order::log::PathLog;
use order::symbols::Symbols;
use request::{Arrival, Request};
use tags::blocks::RegionBlocks;
use transforms::asked::Transforms;

/// The process' one engine. Its lock is the runtime's lock.
pub static ENGINE: Lock<Engine> = Lock::new(Engine::new());

/// Why no fragment could be made.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum BuildError {
    /// There is no instruction that could be translated.
    NoCode(NoCode),
    /// Memory of the runtime is used up; reported on the status page.
    OutOfMemory,
    /// The order is recorded now, and the thread does not know it yet; or the other way round.
    OtherMode,
    /// Another put a breakpoint there, which is known only now: the instruction is to be executed alone.
    Breakpoint,
    /// The controller is to be asked first what of the block of so many bytes there is to be changed.
    Untransformed(u16),
}

/// What it takes to turn application code into fragments.
pub struct Engine {
    pub cache: Cache,
    pub ranges: Ranges,
    /// Memory that may be written at another address (dispatch/calls/aliases.rs).
    pub aliases: Ranges,
    /// Memory that a fork's child does not get as it is (dispatch/calls/advice.rs).
    pub not_inherited: Ranges,
    pub shared: Shared,
    pub mangler: Option<Mangler>,
    block: Block,
    pub trust: Trust,
    /// Fragments that may be looked at to find warm ones (instrument/change/relayout.rs).
    looks_saved: u32,
    /// Counters of edges that the dispatcher counts itself.
    edges: BTreeMap<DynamicEdge, CounterId>,
    /// What paths have to tell (mode full).
    pub path_log: PathLog,
    /// By address of a return: how often it led elsewhere than its call (instrument/indirect/strays.rs).
    strays: BTreeMap<AppPc, u32>,
    /// Which of its two cells a decision is counted in.
    decision_cells: DecisionCells,
    /// The numbers that paths have for targets of indirect branches.
    pub symbols: Symbols,
    /// The blocks that tags are about (mode region).
    pub region_blocks: RegionBlocks,
    /// What the controller told all threads while the program ran.
    pub directives: Directives,
    /// What is captured where.
    pub captures: Captures,
    /// What is changed in blocks before they are translated.
    pub transforms: Transforms,
    /// By address: what is executed where the program or another set a breakpoint.
    probe_codes: BTreeMap<AppPc, ProbeCode>,
    /// What is translated tells of accesses to memory.
    pub tells_accesses: bool,
    counters_used: u32,
    instructions_translated: u64,
    /// What the processor can do.
    pub features: Features,
}

impl Engine {
    pub const fn new() -> Engine {
        Engine {
            cache: Cache::new(),
            ranges: Ranges::new(),
            aliases: Ranges::new(),
            not_inherited: Ranges::new(),
            shared: Shared::NONE,
            mangler: None,
            block: Block::new(),
            trust: Trust::new(),
            looks_saved: 0,
            edges: BTreeMap::new(),
            path_log: PathLog::new(),
            strays: BTreeMap::new(),
            decision_cells: DecisionCells::new(),
            symbols: Symbols::new(),
            region_blocks: RegionBlocks::new(),
            directives: Directives::new(),
            captures: Captures::new(),
            transforms: Transforms::new(),
            probe_codes: BTreeMap::new(),
            tells_accesses: false,
            counters_used: 0,
            instructions_translated: 0,
            features: Features::NONE,
        }
    }

    /// In a fork's child: says in its region how many counters are given out already, and begins anew in `coverage`, where
    /// what the parent had come to would not be told again. `true`: the thread's branch table is to be emptied.
    pub fn continue_in_child(&mut self) -> bool {
        self.shared.set(crate::status_field!(counters_used), u64::from(self.counters_used));
        if !self.tells_links() {
            return false;
        }
        self.cache.forget_all();
        self.edges.clear();
        true
    }

    /// Gives out `n` consecutive counters; `NONE` when they are used up.
    pub fn take_counters(&mut self, n: u32) -> CounterId {
        let limit = (self.shared.header().counter_bytes / 8) as u32;
        if self.counters_used + n > limit {
            self.shared.report_error(protocol::error_code::COUNTERS_FULL, [u64::from(limit), 0, 0, 0]);
            return CounterId::NONE;
        }
        let first = self.counters_used;
        self.counters_used += n;
        self.shared.set(crate::status_field!(counters_used), u64::from(self.counters_used));
        CounterId::from_raw(first)
    }

    /// Says on the status page how much memory is in use.
    pub fn tell_memory(&self) {
        self.shared.set(crate::status_field!(cache_bytes), self.cache.slabs.used_bytes());
        self.shared.set(crate::status_field!(heap_bytes), crate::sys::heap::used_bytes());
        self.shared.set(crate::status_field!(slabs), self.cache.slabs.count() as u64);
    }

    /// The fragment at `pc`, made now if there is none yet.
    pub fn fragment_at(&mut self, writer: &RingWriter, pc: AppPc) -> Result<FragmentId, BuildError> {
        if let Some(id) = self.cache.by_pc.find(pc) {
            return Ok(id);
        }
        self.build(writer, Request::new(pc, Arrival::Other))
    }
}
