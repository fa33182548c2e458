//! What a critical section's fragment is to be, before a byte of it is emitted: the question at its entry, what is copied and where,
//! ways out.
//!
//! As any plan (instrument/plan.rs) it is made from the block and what is known of it, and of the numbers of the enclosure; it asks
//! nobody. Nothing is inserted and there are no guards: nothing may change flags, and what counts stands on the ways out.

use super::branch_plan::BranchPlan;
use super::branch_way::BranchWay;
use super::facts::Facts;
use super::order::decisions::PathPlan;
use crate::cache::exit::ExitType;
use crate::cache::fragment::COUNTED_AT_EXITS;
use crate::cache::rseq::Enclosure;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::CounterId;
use crate::decode::{Block, Ending};

/// Why there is no copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RseqFailure {
    /// The enclosure is full.
    Full,
    /// An instruction that can't be there.
    Impossible,
    OutOfMemory,
}

/// What a way out leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// Out of the critical section.
    Outside,
    /// To what is in the enclosure as well. If it comes to the dispatcher on that way, it is noted what rseq_cs holds: where that is
    /// gone when the thread comes back, the kernel would have aborted it.
    Enclosed,
    /// To an instruction of the critical section that runs beside the enclosure: that is noted in any case.
    Beside,
    /// To a call that does. What is called is no part of the critical section, the kernel only clears the word there: nothing is noted.
    BesideCall,
}

/// What such a plan is made from, beside the block and the enclosure.
pub struct RseqFacts {
    pub of_block: Facts,
    /// The block is the critical section's last instruction.
    pub is_last: bool,
    /// What the way leads to that is taken, or the only one; and the one that is not taken.
    pub goals: [Goal; 2],
}

/// What rseq_cs holds of a thread that may come in: the program's descriptor, in whose place the shadow is put, or that one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryQuestion {
    pub announced: u64,
    pub shadow: u64,
}

/// What a way out is to the thread's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Implied,
    Decision,
    Surprise,
}

/// A way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    pub kind: ExitType,
    pub target: AppPc,
    pub counter: CounterId,
    pub step: Step,
    pub goal: Goal,
}

/// The plan of one fragment of a critical section.
pub struct RseqPlan {
    pub facts: Facts,
    pub question: EntryQuestion,
    /// Where the instruction is copied to that ends the critical section, counted in front of it: it ends where the kernel watches no
    /// more. `None`: what is copied follows the entry, and is counted on the ways out.
    pub last_start: Option<CachePc>,
    /// Application offset of where the ways out begin.
    pub exit_offset: u64,
    /// As `Plan` has it.
    pub count_before: u16,
    /// The way that is taken, or the only one.
    pub taken: Way,
    /// The other one of a conditional branch.
    pub not_taken: Option<Way>,
}

impl RseqPlan {
    pub fn of(block: &Block, facts: RseqFacts, enclosure: &Enclosure) -> RseqPlan {
        let RseqFacts { of_block: facts, is_last, goals: [goal, other_goal] } = facts;
        let path = facts.path.map(|path| PathPlan::of(path, None, CounterId::NONE));
        let branch = BranchPlan { straight: None, leads_back: false, counts_both: None, path };
        let step = |way| match branch.path {
            None => Step::Implied,
            Some(_) if branch.is_surprise(way) => Step::Surprise,
            Some(_) => Step::Decision,
        };
        let way = |side, kind, target, goal| {
            let counter = branch.counter(&facts.counters, side);
            Way { kind, target, counter, step: step(side), goal }
        };
        let (kind, target) = first_way(block, facts.ending);
        let taken = way(BranchWay::Taken, kind, target, goal);
        let is_conditional = matches!(facts.ending, Ending::Conditional(_));
        let not_taken = is_conditional.then(|| way(BranchWay::NotTaken, ExitType::NotTaken, block.end(), other_goal));
        RseqPlan {
            question: EntryQuestion { announced: enclosure.address, shadow: enclosure.shadow },
            last_start: is_last.then(|| enclosure.last_start(block.code.len())),
            exit_offset: match facts.n_copied < block.count() {
                true => block.pc_of(facts.n_copied) - block.pc,
                false => block.size_bytes(),
            },
            count_before: if is_last { 0 } else { COUNTED_AT_EXITS },
            taken,
            not_taken,
            facts,
        }
    }
}

/// The way out of a block that is taken, or the only one: of what kind, and whereto.
pub fn first_way(block: &Block, ending: Ending) -> (ExitType, AppPc) {
    match ending {
        Ending::Conditional(target) => (ExitType::Taken, target),
        Ending::Jump(target) => (ExitType::Jump, target),
        _ => (ExitType::FallThrough, block.end()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::counts::counters::Counters;
    use super::super::order::decisions::PathFacts;
    use super::super::request::{Arrival, Request};
    use super::*;
    use crate::cache::rseq::Descriptor;
    use crate::context::numbers::{ExitId, FragmentId};
    use crate::cpu::decode::samples::loop_of_one;
    use crate::protocol::exit_kind;

    const PC: AppPc = AppPc::from_raw(0x1000);
    const FIRST: CounterId = CounterId::from_raw(1);
    const SECOND: CounterId = CounterId::from_raw(2);

    /// The enclosure of a critical section of 64 bytes at `PC`.
    fn enclosure() -> Enclosure {
        let descriptor = Descriptor { version: 0, flags: 0, start: PC, size: 64, abort: AppPc::from_raw(0x2000) };
        Enclosure::laid_out(0x7f00_0000, 0x9000, descriptor, 0, ExitId::from_raw(3))
    }

    /// What is known of a block that is counted by 1 and 2.
    fn facts_of(block: &Block, ending: Ending, kind: u8) -> Facts {
        let request = Request::new(PC, Arrival::Other);
        let counters = Counters { first: FIRST, main: FIRST, second: SECOND, ..Counters::NONE };
        Facts { counters, ..Facts::of(FragmentId::from_raw(5), request, block, ending, kind) }
    }

    fn plan_of(block: &Block, of_block: Facts, goals: [Goal; 2]) -> RseqPlan {
        RseqPlan::of(block, RseqFacts { of_block, is_last: false, goals }, &enclosure())
    }

    #[test]
    fn a_branch_counts_on_each_way_out() {
        let block = loop_of_one(PC);
        let facts = facts_of(&block, Ending::Conditional(PC), exit_kind::CONDITIONAL);
        let plan = plan_of(&block, facts, [Goal::Enclosed, Goal::Outside]);
        let (step, goal) = (Step::Implied, Goal::Enclosed);
        assert_eq!(plan.taken, Way { kind: ExitType::Taken, target: PC, counter: FIRST, step, goal });
        let (kind, target, goal) = (ExitType::NotTaken, block.end(), Goal::Outside);
        assert_eq!(plan.not_taken, Some(Way { kind, target, counter: SECOND, step, goal }));
        assert_eq!(plan.exit_offset, block.last_pc() - block.pc, "the branch is not copied");
        assert_eq!((plan.facts.n_copied, plan.last_start, plan.count_before), (2, None, COUNTED_AT_EXITS));
    }

    #[test]
    fn the_entry_asks_for_the_descriptor_and_its_shadow() {
        let block = loop_of_one(PC);
        let facts = facts_of(&block, Ending::Conditional(PC), exit_kind::CONDITIONAL);
        let plan = plan_of(&block, facts, [Goal::Enclosed, Goal::Outside]);
        assert_eq!(plan.question, EntryQuestion { announced: 0x9000, shadow: 0x7f00_0000 });
    }

    #[test]
    fn a_path_is_told_of_decisions_and_surprises() {
        let block = loop_of_one(PC);
        let steps = |is_taken_expected| {
            let path = Some(PathFacts { cell: CounterId::from_raw(9), is_taken_expected });
            let facts = Facts { path, ..facts_of(&block, Ending::Conditional(PC), exit_kind::CONDITIONAL) };
            let plan = plan_of(&block, facts, [Goal::Enclosed, Goal::Outside]);
            (plan.taken.step, plan.not_taken.map(|way| way.step))
        };
        assert_eq!(steps(true), (Step::Decision, Some(Step::Surprise)));
        assert_eq!(steps(false), (Step::Surprise, Some(Step::Decision)));
        let path = Some(PathFacts { cell: CounterId::from_raw(9), is_taken_expected: true });
        let facts = Facts { path, ..facts_of(&block, Ending::Jump(PC), exit_kind::JUMP) };
        let plan = plan_of(&block, facts, [Goal::Enclosed, Goal::Outside]);
        assert_eq!((plan.taken.kind, plan.taken.step), (ExitType::Jump, Step::Decision), "a jump back");
    }

    #[test]
    fn what_is_cut_falls_through_to_what_runs_beside() {
        let mut block = loop_of_one(PC);
        block.truncate(1);
        for goal in [Goal::Beside, Goal::BesideCall] {
            let facts = facts_of(&block, Ending::Limit, exit_kind::FALL_THROUGH);
            let plan = plan_of(&block, facts, [goal, Goal::Outside]);
            let (kind, target) = (ExitType::FallThrough, block.end());
            assert_eq!(plan.taken, Way { kind, target, counter: FIRST, step: Step::Implied, goal });
            assert_eq!((plan.not_taken, plan.exit_offset), (None, block.size_bytes()));
        }
    }

    #[test]
    fn the_last_instruction_ends_where_nothing_is_watched() {
        let mut block = loop_of_one(PC);
        block.truncate(1);
        let of_block = facts_of(&block, Ending::Limit, exit_kind::FALL_THROUGH);
        let enclosure = enclosure();
        let goals = [Goal::Outside; 2];
        let plan = RseqPlan::of(&block, RseqFacts { of_block, is_last: true, goals }, &enclosure);
        assert_eq!(plan.last_start.map(|start| start + block.size_bytes()), Some(enclosure.covered_end));
        assert_eq!((plan.facts.n_copied, plan.count_before), (1, 0), "counted in front of it");
        let (kind, target, goal) = (ExitType::FallThrough, block.end(), Goal::Outside);
        assert_eq!(plan.taken, Way { kind, target, counter: FIRST, step: Step::Implied, goal });
    }
}
