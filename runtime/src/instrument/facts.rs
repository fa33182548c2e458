//! What is known of a block before its fragment is planned: how hot code was come to, which counters it has, what follows it.
//!
//! Gathering asks the engine, and takes numbers from it: counters, a cell for the decision. The plan itself asks nobody
//! (instrument/plan.rs).

extern crate alloc;
use super::branch_way::BranchWay;
use super::counts::counters::Counters;
use super::kinds::{count_copied, hash, kind_of};
use super::order::decisions::PathFacts;
use super::request::{Arrival, Request};
use super::transforms::changes::Changes;
use super::{BuildError, Engine};
use crate::buffer::RingWriter;
use crate::cache::fragment::{Fragment, Habit};
use crate::context::numbers::{BlockNumber, CounterId, ExitId, FragmentId};
use crate::cpu::decode::flags;
use crate::cpu::decode::scratch;
use crate::cpu::instrument::counting::find_straight_way;
use crate::decode::{Block, Ending};
use crate::instrument::counts::loops::Round;
use alloc::sync::Arc;

/// What a plan is made from, beside the block's instructions.
pub struct Facts {
    /// The number that the fragment will have.
    pub id: FragmentId,
    pub request: Request,
    pub ending: Ending,
    /// The exit kind of its record.
    pub kind: u8,
    /// So many of the block's instructions are copied; the way out does what is left.
    pub n_copied: usize,
    /// Of the code, and of how many bytes: more than the block has where it was cut for a breakpoint.
    pub code_hash: u64,
    pub hashed_size: u16,
    /// The fragment of the same code that went out of use because it was hot.
    pub before: Option<Fragment>,
    pub counters: Counters,
    /// The exit that it follows from, or `NONE` (instrument/counts/leaders.rs), and how far back that goes.
    pub leader: ExitId,
    pub rank: u8,
    /// Which way of a conditional branch goes straight on; `None`: both do.
    pub straight: Option<BranchWay>,
    /// That way leads to code that lies somewhere already.
    pub leads_back: bool,
    /// It is the straight way that is counted with both (instrument/plan.rs).
    pub counts_straight: bool,
    /// The flags of `inc` are dead behind the last instruction that is copied.
    pub are_dead_at_end: bool,
    /// What a path has to say of its end (mode full).
    pub path: Option<PathFacts>,
    /// The hot loop that it may be in.
    pub round: Round,
    /// All ways on from there come to where the lent registers are needed, so hot code lends them.
    pub lends: bool,
    /// A direct call came to it, or to what it stands for; an indirect branch did.
    pub is_called: bool,
    pub is_indirect_target: bool,
    /// Indirect branches of any site may enter it: no edge is counted.
    pub shares_entry: bool,
    /// It is to count how often it runs.
    pub counts_heat: bool,
    /// Code that is compared counts how often that held.
    pub counts_trust: bool,
    /// The number of its block, and the fragment that had it last, or `NONE` (mode region).
    pub region_block: BlockNumber,
    pub region_before: FragmentId,
    /// Something is captured in front of it.
    pub has_captures: bool,
    /// What is changed in it.
    pub changes: Option<Arc<Changes>>,
    /// What it does with memory is told (mode full).
    pub tells_accesses: bool,
}

impl Facts {
    /// What is known of a block of which nothing else is: it did not run yet, and nothing of it is recorded.
    pub fn of(id: FragmentId, request: Request, block: &Block, ending: Ending, kind: u8) -> Facts {
        Facts {
            id,
            request,
            ending,
            kind,
            n_copied: count_copied(block, ending, kind),
            code_hash: hash(&block.code),
            hashed_size: block.size_bytes() as u16,
            before: None,
            counters: Counters::NONE,
            leader: ExitId::NONE,
            rank: 0,
            straight: None,
            leads_back: false,
            counts_straight: false,
            are_dead_at_end: false,
            path: None,
            round: Round::No,
            lends: false,
            is_called: false,
            is_indirect_target: false,
            shares_entry: false,
            counts_heat: false,
            counts_trust: false,
            region_block: BlockNumber::NONE,
            region_before: FragmentId::NONE,
            has_captures: false,
            changes: None,
            tells_accesses: false,
        }
    }

    pub fn is_hot(&self) -> bool {
        self.before.is_some()
    }

    pub fn habit(&self) -> Option<Habit> {
        self.before.map(|before| before.habit)
    }

    /// Nothing follows from the block's instructions: others may be executed.
    pub fn is_changed(&self) -> bool {
        self.changes.as_ref().is_some_and(|changes| !changes.keeps_code)
    }

    pub fn is_led(&self) -> bool {
        self.leader != ExitId::NONE
    }
}

impl Engine {
    /// Gathers what is known of a decoded block, which is cut where it has to be.
    ///
    /// `Err`: the controller is to be asked first what is to be changed in it.
    pub fn gather(
        &mut self,
        writer: &RingWriter,
        request: Request,
        block: &mut Block,
        ending: Ending,
    ) -> Result<Facts, BuildError> {
        let changes = self.changes_of(&request, block)?;
        let is_changed = changes.as_ref().is_some_and(|changes| !changes.keeps_code);
        let (code_hash, hashed_size) = (hash(&block.code), block.size_bytes() as u16);
        // Behind the hash, which says whether the code is the same.
        let n_whole = block.count();
        let ending = self.cut_at_stops(&request, block, ending);
        let before = if request.is_once() { None } else { self.find_hot(writer, block.pc, code_hash) };
        let is_hot = before.is_some();
        let whole = ending;
        let ending = if is_hot { self.leave_call_to_others(block, ending) } else { ending };
        if block.count() < n_whole && !request.is_once() {
            self.note_piece(block.pc, block.end());
        }
        let block = &*block;
        let kind = kind_of(ending, self.features.has_transactions);
        let n_copied = count_copied(block, ending, kind);
        let habit = before.map(|before| before.habit);
        let straight = find_straight_way(block, habit);
        let leads_back = straight.is_some_and(|way| self.leads_back(block, ending, way, is_hot));
        let mut counters = self.plan_counters(&request, block, ending, kind);
        if is_hot {
            self.plan_misses(block, ending, ending != whole, &mut counters);
        }
        let find_leader = |before: Fragment| self.find_leader(request.arrival, block, ending, &before, &counters);
        let leader = before.filter(|_| !is_changed).map_or(ExitId::NONE, find_leader);
        counters.is_led = leader != ExitId::NONE;
        let are_dead_at_end = !is_changed && self.are_flags_dead_after(block, ending);
        let is_called = request.arrival == Arrival::Call || before.is_some_and(|before| before.is_called);
        let path = self.path_facts(block, ending);
        let has_captures = self.captures.at(block.pc).is_some();
        // What is captured is worked out with the program's registers in place.
        let may_lend = is_hot && !has_captures && changes.is_none() && !self.tells_accesses;
        let mangler = self.mangler.as_mut().filter(|_| self.tells_accesses);
        let tells_accesses = mangler.is_some_and(|mangler| mangler.has_accesses(block));
        let (region_block, region_before) = self.number_block(block.pc, code_hash, counters.is_counted());
        Ok(Facts {
            id: self.cache.next_fragment(),
            request,
            ending,
            kind,
            n_copied,
            code_hash,
            hashed_size,
            before,
            leader,
            rank: self.rank_behind(leader, before.as_ref()),
            straight,
            leads_back,
            counts_straight: self.counts_straight(block, ending, straight, leads_back, habit, &counters),
            are_dead_at_end,
            path,
            round: before
                .filter(|_| may_lend)
                .map_or(Round::No, |before| self.round_of(block, ending, &before, leader, is_called)),
            lends: may_lend && self.lends(block, ending),
            is_called,
            is_indirect_target: before.is_some_and(|before| before.is_indirect_target),
            shares_entry: self.tells_links(),
            counts_heat: !is_hot
                && !request.is_once()
                && !is_changed
                && self.counts_heat(request.arrival, block, ending, are_dead_at_end),
            counts_trust: block.is_writable && self.counts_trust(),
            region_block,
            region_before,
            has_captures,
            counters,
            changes,
            tells_accesses,
        })
    }

    /// Whether registers are to be lent in a hot block.
    fn lends(&self, block: &Block, ending: Ending) -> bool {
        let is_plain_way = !matches!(
            ending,
            Ending::Syscall
                | Ending::TransactionBegin(_)
                | Ending::Fault
                | Ending::Native
                | Ending::NativeBranch(_)
                | Ending::Unsupported
        );
        is_plain_way
            && !block.is_writable
            && !scratch::are_lent_named(block)
            && scratch::lends_at(&self.ranges, block.pc)
    }

    /// Whether the flags of `inc` are dead once the block's last copied instruction is done.
    fn are_flags_dead_after(&self, block: &Block, ending: Ending) -> bool {
        match ending {
            Ending::Jump(target) | Ending::Call(target) => flags::dead_at(&self.ranges, block.pc, target),
            Ending::Limit => flags::dead_at(&self.ranges, block.pc, block.end()),
            _ => false,
        }
    }

    /// Where a conditional branch's two ways are counted together in the block, whether that is with the counter of the straight one.
    ///
    /// The way aside is counted by what is left of both, so that its branch can lead straight to its target. Where that
    /// would take more than `inc` on the straight way, or the way aside is seldom taken, it is the straight way that is
    /// counted so; and where the straight way leads back, so that the branch itself can go there.
    fn counts_straight(
        &self,
        block: &Block,
        ending: Ending,
        straight: Option<BranchWay>,
        leads_back: bool,
        habit: Option<Habit>,
        counters: &Counters,
    ) -> bool {
        let (Ending::Conditional(target), Some(way)) = (ending, straight) else {
            return false;
        };
        let straight = if way == BranchWay::Taken { target } else { block.end() };
        let counts_both = counters.main != CounterId::NONE && counters.second != CounterId::NONE;
        let is_seldom_aside = habit.is_some_and(|habit| habit.is_one_sided);
        leads_back || is_seldom_aside || counts_both && !flags::dead_at(&self.ranges, block.pc, straight)
    }
}
