//! What is known of a fragment, its exits and its pads.

use super::exit::PadId;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{BlockNumber, CounterId, ExitId, FragmentId, SiteId};
use crate::cpu::spill::SpillState;
use crate::protocol::exit_kind;

/// `Fragment::interrupt_offset`: it is interrupted nowhere.
pub const NO_INTERRUPT: u32 = u32::MAX;

/// `Fragment::count_before`: the fragment has no counter of its own but at its exits.
pub const COUNTED_AT_EXITS: u16 = u16::MAX;

/// A block's translated copy.
#[derive(Clone, Copy)]
pub struct Fragment {
    pub app_pc: AppPc,
    /// Where its code begins: cache offsets are counted from there.
    pub cache_start: CachePc,
    /// Where it is entered with all registers in place.
    pub plain_entry: CachePc,
    /// Where it is entered with registers lent (see cpu::decode::scratch); 0: not made yet.
    pub lending_entry: CachePc,
    /// Where it is entered by the processor's call, with registers lent, one with the return address for the return slot; 0: not
    /// made yet.
    pub call_entry: CachePc,
    /// Where indirect branches of any site may enter it, with registers lent, one with the target, which is verified there; 0: there
    /// is no such entry.
    pub verified_entry: CachePc,
    pub cache_size: u32,
    /// Cache offset at which the last instruction's own code ends and the way out begins.
    pub exit_offset: u32,
    pub app_size: u16,
    pub n_instructions: u16,
    /// Application offset of the last instruction.
    pub last_offset: u16,
    /// protocol::exit_kind
    pub exit_kind: u8,
    pub is_valid: bool,
    /// Instruction before which the block's own counter is incremented, or `COUNTED_AT_EXITS`.
    pub count_before: u16,
    /// Instruction before which its decision is counted, or `COUNTED_AT_EXITS` (mode full).
    pub decides_before: u16,
    pub code_version: u32,
    /// So many changes a thread's path has to have told before it executes this (instrument/order/log.rs).
    pub changes_needed: u32,
    pub counter: CounterId,
    pub first_exit: ExitId,
    pub n_exits: u8,
    pub is_included: bool,
    /// First entry of its instruction map, and how many.
    pub map_start: u32,
    pub map_length: u16,
    /// Cache offset of the eight bytes that `interrupt` replaces to interrupt an indirect exit; `NO_INTERRUPT`: there is none.
    pub interrupt_offset: u32,
    /// What stands there.
    pub interrupt_original: u64,
    /// What interrupts.
    pub interrupt_patch: u64,
    /// First exit linked to this fragment; the others follow by `next_incoming`.
    pub incoming: ExitId,
    pub next_in_page: FragmentId,
    /// Site index of its indirect branch.
    pub site: SiteId,
    /// How much more than its address its return drops.
    pub dropped_bytes: u16,
    /// It ends with a return that writes a symbol into the path (mode full).
    pub takes_symbol: bool,
    /// The exit by which its indirect branch jumps to the pad that is tried first.
    pub first_try: ExitId,
    /// That pad; none: the branch table decides alone.
    pub first_pad: PadId,
    /// Targets that were tried first so far.
    pub n_tries: u32,
    /// It counts how often it runs, or is not to be found hot at all: see instrument/change/relayout.rs.
    pub counts_heat: bool,
    /// Bytes of what counts that, at its plain entry.
    pub heat_bytes: u8,
    /// Its code may be written at any time: it starts with the comparison (cpu::instrument::staleness).
    pub is_compared: bool,
    /// When it began to count, in cycles of the time stamp counter, and how often it was found not to be hot since.
    pub heated_at: u64,
    pub n_looks: u8,
    /// It was hot, or stands for one that was.
    pub is_hot: bool,
    /// What its conditional branch had done when it was found to be hot.
    pub habit: Habit,
    /// In a restartable sequence: where it is entered from inside, counted from `cache_start`; 0 elsewhere.
    pub inner_offset: u16,
    /// Where its code goes on behind the question whether it is tagged (mode region), lent registers as `is_lending` says; 0: there
    /// is none, or it may not be left out.
    pub behind_question: CachePc,
    /// The number of its block, or `NONE` (mode region).
    pub region_block: BlockNumber,
    /// The fragment that was made of that before.
    pub region_before: FragmentId,
    /// The pad of its indirect branch that was made last; others follow by `Pad::before`.
    pub newest_pad: PadId,
    /// Its code runs with registers lent.
    pub is_lending: bool,
    /// The first exit that led to it past what counts it (instrument/counts/leaders.rs), or `NONE`.
    pub leader: ExitId,
    /// Higher than that of each fragment that leads to it so; 0 if none does.
    pub rank: u8,
    /// Where those enter it with all registers in place and where with registers lent; 0: not made yet.
    pub led_entries: [CachePc; 2],
    /// Where it is entered with registers lent if that has something counted, loaded or rewritten first; 0: at `lending_entry`.
    pub counted_entry: CachePc,
    /// The fragment at the head of the hot loop it is in (cpu::instrument::loops), or `NONE`: those of a loop enter each other past
    /// `counted_entry`.
    pub loop_head: FragmentId,
    /// A register has the head's counter all around that loop.
    pub keeps_counter: bool,
    /// What another one has there, or `NONE`: the cell of the loop's decisions (mode full).
    pub kept_cell: CounterId,
    /// The one or two fragments from which nearly all executions came when it was found to be hot, or `NONE`.
    pub main_sources: [FragmentId; 2],
    /// An indirect branch came to it, or to what it stands for.
    pub is_indirect_target: bool,
    /// A direct call did.
    pub is_called: bool,
    pub code_hash: u64,
    /// So many bytes from `app_pc` on have that hash: more than it holds where it was cut for a breakpoint.
    pub hashed_size: u16,
}

impl Fragment {
    /// A fragment of which nothing is known but that it is in use.
    pub const BLANK: Fragment = Fragment {
        app_pc: AppPc::NOWHERE,
        cache_start: CachePc::NOWHERE,
        plain_entry: CachePc::NOWHERE,
        lending_entry: CachePc::NOWHERE,
        call_entry: CachePc::NOWHERE,
        verified_entry: CachePc::NOWHERE,
        cache_size: 0,
        exit_offset: 0,
        app_size: 0,
        n_instructions: 0,
        last_offset: 0,
        exit_kind: exit_kind::NONE,
        is_valid: true,
        count_before: COUNTED_AT_EXITS,
        decides_before: COUNTED_AT_EXITS,
        code_version: 0,
        changes_needed: 0,
        counter: CounterId::NONE,
        first_exit: ExitId::from_raw(0),
        n_exits: 0,
        is_included: false,
        map_start: 0,
        map_length: 0,
        interrupt_offset: NO_INTERRUPT,
        interrupt_original: 0,
        interrupt_patch: 0,
        incoming: ExitId::NONE,
        next_in_page: FragmentId::NONE,
        site: SiteId::NONE,
        dropped_bytes: 0,
        takes_symbol: false,
        first_try: ExitId::NONE,
        first_pad: PadId::NONE,
        n_tries: 0,
        counts_heat: false,
        heat_bytes: 0,
        is_compared: false,
        heated_at: 0,
        n_looks: 0,
        is_hot: false,
        habit: Habit::UNKNOWN,
        inner_offset: 0,
        behind_question: CachePc::NOWHERE,
        region_block: BlockNumber::NONE,
        region_before: FragmentId::NONE,
        newest_pad: PadId::NONE,
        is_lending: false,
        leader: ExitId::NONE,
        rank: 0,
        led_entries: [CachePc::NOWHERE; 2],
        counted_entry: CachePc::NOWHERE,
        loop_head: FragmentId::NONE,
        keeps_counter: false,
        kept_cell: CounterId::NONE,
        main_sources: [FragmentId::NONE; 2],
        is_indirect_target: false,
        is_called: false,
        code_hash: 0,
        hashed_size: 0,
    };

    /// Its exits, in the order in which they were emitted.
    pub fn exits(&self) -> impl Iterator<Item = ExitId> + use<> {
        let first = self.first_exit;
        (0..u32::from(self.n_exits)).map(move |n| first.plus(n))
    }

    /// Whether a call ends it.
    pub fn ends_with_call(&self) -> bool {
        matches!(self.exit_kind, exit_kind::CALL | exit_kind::INDIRECT_CALL)
    }

    /// Cache offset behind what stands in front of its code: entries of other kinds.
    pub fn code_offset(&self) -> u64 {
        if self.is_lending {
            self.lending_entry - self.cache_start
        } else {
            0
        }
    }

    /// The address of its last instruction.
    pub fn branch_pc(&self) -> AppPc {
        self.app_pc + u64::from(self.last_offset)
    }

    /// The address behind its last instruction.
    pub fn end(&self) -> AppPc {
        self.app_pc + u64::from(self.app_size)
    }
}

/// Which way a conditional branch goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Habit {
    /// It is taken more often than not.
    pub is_mostly_taken: bool,
    /// It seldom goes the other way.
    pub is_one_sided: bool,
}

impl Habit {
    pub const UNKNOWN: Habit = Habit { is_mostly_taken: false, is_one_sided: false };

    /// Of a branch that was taken so many times of `executed`.
    pub fn of(taken: u64, executed: u64) -> Habit {
        const SELDOM: u64 = 8;
        let least = taken.min(executed.saturating_sub(taken));
        Habit { is_mostly_taken: taken * 2 > executed, is_one_sided: least * SELDOM < executed }
    }
}

/// Where an instruction of a fragment went. Several entries may stand for one instruction.
#[derive(Clone, Copy)]
pub struct MapEntry {
    pub cache_offset: u16,
    pub app_offset: u16,
    pub state: SpillState,
    pub padding: [u8; 3],
}
