//! Pads: from one indirect branch site to one target. And edges that are counted by the dispatcher itself.

use crate::buffer::RingWriter;
use crate::cache::exit::{Entry, ExitType, Pad};
use crate::cache::{Cache, Fragment, PadId, Unit};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{CounterId, ExitId, FragmentId};
use crate::context::ThreadContext;
use crate::cpu::decode::flags;
use crate::cpu::decode::scratch;
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::counting::emit_count;
use crate::cpu::instrument::order::emit_symbol;
use crate::cpu::instrument::returns::emit_return_ways;
use crate::cpu::instrument::verification::{emit_verification, give_back_asked};
use crate::cpu::sys::clock::ticks;
use crate::instrument::exits::ExitList;
use crate::instrument::order::symbols::ReturnSymbols;
use crate::instrument::{BuildError, Engine};
use crate::protocol::{
    edge_kind, error_code, exit_kind, record_kind, DynamicEdgeRecord, LinkRecord, NO_SYMBOL, PATH_DECISIONS_CELL,
    PATH_OTHER_DECISIONS_CELL,
};

/// An edge that is found at run time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DynamicEdge {
    /// protocol::edge_kind
    pub kind: u8,
    pub source_fragment: FragmentId,
    pub source_pc: AppPc,
    pub target_pc: AppPc,
}

/// What a pad is to be.
struct PadPlan {
    target: AppPc,
    /// Where other targets go on that are not the one that is tried first; `None`: to the gate.
    table_way: Option<CachePc>,
    counter: CounterId,
    /// The flags of `inc` are dead at the target.
    are_flags_dead: bool,
    /// Registers stay lent behind it.
    is_lending: bool,
    /// What it writes into the path, or which ways a return that writes symbols has (mode full).
    symbol: Option<u16>,
    ways: Option<ReturnSymbols>,
}

impl Engine {
    /// Makes the pad from `source`'s indirect branch to `target`. Its exit is still to be linked. Returns its number.
    /// The pad that is tried first leads other targets to the branch table, all others to the gate.
    pub fn build_pad(
        &mut self,
        writer: &RingWriter,
        source: FragmentId,
        target: AppPc,
        is_first_try: bool,
    ) -> Result<PadId, BuildError> {
        let fragment = *self.cache.fragment(source);
        let branch = fragment.branch_pc();
        let ways = fragment.takes_symbol.then(|| self.symbols.of_return(branch, target));
        let symbol = match ways {
            None => self.symbol_of(branch, target).map_err(|_| BuildError::OutOfMemory)?,
            Some(_) => None,
        };
        let plan = PadPlan {
            target,
            table_way: is_first_try.then(|| self.cache.exit(fragment.first_try).stub),
            counter: self.take_pair(writer, source, target),
            are_flags_dead: flags::dead_at(&self.ranges, flags::NOWHERE, target),
            is_lending: fragment.is_hot && scratch::lends_at(&self.ranges, target),
            symbol,
            ways,
        };
        // The pad that is tried first is in reach of its branch, the others are where their target may follow.
        let neighbour = if is_first_try { fragment.app_pc } else { target };
        let room = self.cache.slabs.room_near(neighbour).ok_or(BuildError::OutOfMemory)?;
        // SAFETY: nothing uses the room yet; the lock is held.
        let mut emitter = unsafe { room.emitter() };
        let mut exits = ExitList::new(self.cache.next_exit(), self.cache.keeps_shadow);
        let exit = exits.next_id();
        let start = self.emit_pad(&plan, &mut emitter, &mut exits)?;
        let id = self.cache.next_pad();
        for exit in exits.as_mut_slice() {
            exit.fragment = source;
            exit.pad = id;
        }
        let pad = Pad {
            target,
            cache_start: start,
            source_fragment: source,
            exit,
            counter: plan.counter,
            symbol,
            return_ways: ways.map_or(0, |ways| ways.set()),
            is_dead: false,
            before: fragment.newest_pad,
        };
        if self.cache.exits.extend(exits.as_slice()).is_none() || self.cache.pads.push(pad).is_none() {
            self.shared.report_error(error_code::OUT_OF_MEMORY, [2, 0, 0, 0]);
            return Err(BuildError::OutOfMemory);
        }
        self.cache.fragment_mut(source).newest_pad = id;
        let cold_size = emitter.cold_position() as u64;
        self.cache.slabs.commit(room, emitter.position() as u64, cold_size, Unit::Pad(id));
        Ok(id)
    }

    /// Emits a planned pad. Returns where it starts.
    fn emit_pad(&self, plan: &PadPlan, emitter: &mut Emitter, exits: &mut ExitList) -> Result<CachePc, BuildError> {
        let start = emit_verification(emitter, self.features, plan.target, plan.table_way);
        // The registers are lent from here on; hot code may go on so.
        if plan.counter != CounterId::NONE {
            emit_count(emitter, plan.counter, plan.are_flags_dead, true);
        }
        let exit = exits.next_id();
        let mut elsewhere = None;
        let full = match &plan.ways {
            Some(ways) => {
                let ways = emit_return_ways(emitter, ways, exit, self.features);
                elsewhere = ways.elsewhere;
                Some(ways.full)
            }
            None => plan.symbol.map(|symbol| emit_symbol(emitter, symbol, exit, self.features)),
        };
        if full.is_none() {
            give_back_asked(emitter);
        }
        if plan.is_lending {
            exits.entry = Entry::Lending;
        } else {
            emitter.take_back_lent();
        }
        exits.emit_jump(emitter, ExitType::Pad, plan.target, plan.counter);
        if full.is_some_and(|full| !full.emit(emitter)) {
            return Err(BuildError::OutOfMemory);
        }
        if let Some(place) = elsewhere {
            emitter.bind(place);
            give_back_asked(emitter);
            emitter.take_back_lent();
            let exit = exits.add_stub_only(ExitType::Elsewhere, plan.target);
            exits.count_with(plan.counter);
            ExitList::emit_stub_jump(emitter, exit);
        }
        exits.emit_stubs(emitter);
        Ok(start)
    }

    /// A counter for the edge from `source`'s indirect branch to `target`, announced now. `NONE` where it is not counted: as
    /// returns are, if a call announced them.
    pub fn take_pair(&mut self, writer: &RingWriter, source: FragmentId, target: AppPc) -> CounterId {
        let is_return = self.cache.fragment(source).exit_kind == exit_kind::RETURN;
        if is_return && self.cache.landings.find(target).is_some() {
            return CounterId::NONE;
        }
        let fragment = self.cache.fragment(source);
        let (branch, takes_symbol) = (fragment.branch_pc(), fragment.takes_symbol);
        let symbol = if takes_symbol { None } else { self.symbol_of(branch, target).unwrap_or(None) };
        let edge = self.edge_of_branch(source, target);
        self.take_edge(writer, edge, self.cache.by_pc.find(target), symbol)
    }

    /// Announces the symbol of the return at the end of `source` for `target`.
    pub fn announce_return(&self, writer: &RingWriter, source: FragmentId, target: AppPc, symbol: u16) {
        let edge = DynamicEdge { kind: edge_kind::RETURN, ..self.edge_of_branch(source, target) };
        self.write_edge(writer, edge, self.cache.by_pc.find(target), CounterId::NONE, Some(symbol));
    }

    /// The edge from `source`'s indirect branch or return to `target`.
    pub fn edge_of_branch(&self, source: FragmentId, target: AppPc) -> DynamicEdge {
        let fragment = self.cache.fragment(source);
        let kind = match fragment.exit_kind {
            exit_kind::INDIRECT_CALL => edge_kind::INDIRECT_CALL,
            _ => edge_kind::INDIRECT_JUMP,
        };
        DynamicEdge { kind, source_fragment: source, source_pc: fragment.app_pc, target_pc: target }
    }

    /// A counter for a new dynamic edge, announced to the controller. `NONE` where it is not recorded or not counted.
    fn take_edge(
        &mut self,
        writer: &RingWriter,
        edge: DynamicEdge,
        target_fragment: Option<FragmentId>,
        symbol: Option<u16>,
    ) -> CounterId {
        let is_counted = match edge.source_fragment {
            FragmentId::NONE => {
                self.counts_left_out() || edge.kind == edge_kind::START || self.shared.is_included(edge.source_pc.raw())
            }
            source => self.cache.fragment(source).is_included,
        };
        if !is_counted && !self.shared.is_included(edge.target_pc.raw()) {
            return CounterId::NONE;
        }
        let counter = self.take_edge_counter();
        self.shared.add(crate::status_field!(dynamic_edges), 1);
        self.write_edge(writer, edge, target_fragment, counter, symbol);
        counter
    }

    fn write_edge(
        &self,
        writer: &RingWriter,
        edge: DynamicEdge,
        target_fragment: Option<FragmentId>,
        counter: CounterId,
        symbol: Option<u16>,
    ) {
        let record = DynamicEdgeRecord {
            kind: record_kind::DYNAMIC_EDGE,
            continuations: 0,
            tid: writer.tid,
            source_pc: edge.source_pc.raw(),
            target_pc: edge.target_pc.raw(),
            tsc: ticks(),
            source_fragment_id: edge.source_fragment.raw(),
            target_fragment_id: target_fragment.unwrap_or(FragmentId::NONE).raw(),
            counter_index: counter.raw(),
            edge_kind: edge.kind,
            reserved: [0; 1],
            symbol: symbol.unwrap_or(NO_SYMBOL),
            reserved_more: [0; 16],
        };
        writer.write(&record, &[]);
    }

    /// Counts one execution of an edge that has no code of its own.
    pub fn count_edge(&mut self, writer: &RingWriter, context: &ThreadContext, edge: DynamicEdge) {
        let counter = match self.edges.get(&edge) {
            Some(counter) => *counter,
            None => {
                let target = self.cache.by_pc.find(edge.target_pc);
                let counter = self.take_edge(writer, edge, target, None);
                self.edges.insert(edge, counter);
                counter
            }
        };
        if counter != CounterId::NONE {
            add_to_counter(context, counter, 1);
        }
    }

    /// The edges of a kind out of a fragment that the dispatcher counts itself, and their counters.
    pub fn edges_of(&self, kind: u8, source_fragment: FragmentId) -> impl Iterator<Item = (&DynamicEdge, CounterId)> {
        let first = DynamicEdge { kind, source_fragment, source_pc: AppPc::LOWEST, target_pc: AppPc::LOWEST };
        let last = DynamicEdge { source_pc: AppPc::HIGHEST, target_pc: AppPc::HIGHEST, ..first };
        self.edges.range(first..=last).map(|(edge, counter)| (edge, *counter))
    }

    /// Takes back one count of an edge.
    pub fn uncount_edge(&mut self, context: &ThreadContext, edge: DynamicEdge) {
        if let Some(counter) = self.edges.get(&edge).filter(|counter| **counter != CounterId::NONE) {
            add_to_counter(context, *counter, -1);
        }
    }

    /// Tells the controller that an exit was taken for the first time.
    pub fn write_link(&self, writer: &RingWriter, exit_id: ExitId, target_fragment: FragmentId) {
        let exit = self.cache.exit(exit_id);
        let kind = match exit.kind {
            ExitType::Jump => edge_kind::JUMP,
            ExitType::Taken => edge_kind::TAKEN,
            ExitType::NotTaken => edge_kind::NOT_TAKEN,
            ExitType::FallThrough | ExitType::FloatState | ExitType::Native => edge_kind::FALL_THROUGH,
            ExitType::Call => edge_kind::CALL,
            ExitType::Syscall => edge_kind::SYSCALL,
            ExitType::Landing => edge_kind::RETURN,
            ExitType::Pad
            | ExitType::Verified
            | ExitType::Elsewhere
            | ExitType::Interrupted
            | ExitType::FirstTry
            | ExitType::NativeBranch
            | ExitType::Release
            | ExitType::Stale
            | ExitType::Relayout
            | ExitType::Region
            | ExitType::Capture
            | ExitType::Room
            | ExitType::RseqEntry
            | ExitType::RseqAbort => return,
        };
        let source = self.cache.fragment(exit.fragment);
        let target = self.cache.fragment(target_fragment);
        if !source.is_included && !target.is_included {
            return;
        }
        let record = LinkRecord {
            kind: record_kind::LINK,
            continuations: 0,
            tid: writer.tid,
            source_pc: source.app_pc.raw(),
            target_pc: exit.target.raw(),
            tsc: ticks(),
            source_fragment_id: exit.fragment.raw(),
            target_fragment_id: target_fragment.raw(),
            edge_kind: kind,
            reserved: [0; 23],
        };
        writer.write(&record, &[]);
    }
}

/// Adds to what a fragment left in front of `app_pc` had counted by then, although it did not run to its end: -1 takes it back, 1
/// undoes that. Callable from the signal handler.
pub fn correct_early_counts(cache: &Cache, context: &ThreadContext, fragment: &Fragment, app_pc: AppPc, amount: i64) {
    correct_early_count(cache, context, fragment, app_pc, amount);
    if cache.decided_too_early(fragment, app_pc) {
        let [others, all] =
            [PATH_OTHER_DECISIONS_CELL, PATH_DECISIONS_CELL].map(|cell| context.counter(CounterId::of_cell(cell)));
        // Gathered in one cell: neither is ever less than nothing. In this order, in case the thread is killed on the way.
        // SAFETY: the cells are the first counters of the thread's mapped window, which only this thread writes.
        unsafe {
            let decisions = all.read_volatile().wrapping_add(others.read_volatile());
            others.write_volatile(0);
            all.write_volatile(decisions.wrapping_add_signed(amount));
        }
    }
}

/// The same of the execution alone, not of the decision at its end.
pub fn correct_early_count(cache: &Cache, context: &ThreadContext, fragment: &Fragment, app_pc: AppPc, amount: i64) {
    if let Some((counter, each)) = cache.counted_too_early(fragment, app_pc) {
        add_to_counter(context, counter, amount * each);
    }
}

/// Adds to a counter of the calling thread. Only the thread itself writes its counters, so no atomic is needed.
pub fn add_to_counter(context: &ThreadContext, counter: CounterId, amount: i64) {
    let pointer = context.counter(counter);
    // SAFETY: counters below `counters_used` are inside the thread's mapped window.
    unsafe { pointer.write_volatile(pointer.read_volatile().wrapping_add_signed(amount)) };
}
