//! What a fragment is to be, before a byte of it is emitted: guards in front of its code, what is inserted into it, ways out.
//!
//! A plan is made from the block and what is known of it (instrument/facts.rs), and nothing else: so it is tested without a process.
//! Each thing that is recorded is a maker here, which adds its guards and insertions; the emitter (instrument/emission.rs) knows
//! none of them.

use super::branch_plan::BranchPlan;
use super::branch_way::BranchWay;
use super::counts::counters::Counters;
use super::facts::Facts;
use super::insertions::{Count, Insertions};
use super::order::decisions::PathPlan;
use crate::cache::fragment::COUNTED_AT_EXITS;
use crate::context::numbers::{BlockNumber, CounterId};
use crate::cpu::instrument::counting::{are_flags_dead_at_start, CountPlace, KEPT_COUNTER};
use crate::decode::{Block, Ending};
use crate::instrument::counts::loops::LoopPlan;
use crate::protocol::exit_kind;

/// What stands in front of a block's code and may leave the fragment there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Guard {
    /// The code is compared with what was translated (cpu::instrument::staleness), and it may be counted how often that held.
    Compare { counts_trust: bool },
    /// It is counted how often the fragment runs (instrument/change/relayout.rs).
    Heat,
    /// Is this block tagged now (mode region)?
    Tag(BlockNumber),
    /// Something is captured there (instrument/captures).
    Captures,
    /// Is there room for what is told of memory?
    Room,
}

/// The plan of one fragment.
pub struct Plan {
    pub facts: Facts,
    pub counters: Counters,
    /// What counts the block inside, or would if it followed from nothing; `NONE`: its ways out count.
    pub body_counter: CounterId,
    /// The instruction before which that, and the decision, are counted, or `COUNTED_AT_EXITS`.
    pub count_before: u16,
    pub decides_before: u16,
    pub guards: [Option<Guard>; 5],
    pub insertions: Insertions,
    pub branch: BranchPlan,
    pub in_loop: Option<LoopPlan>,
    /// Its code runs with registers lent.
    pub is_lending: bool,
    /// In front of its code there is an entry by the processor's call, or one for indirect branches.
    pub has_call_entry: bool,
    pub has_verified_entry: bool,
    /// The flags of `inc` are dead where its code starts.
    pub are_dead_at_start: bool,
}

impl Plan {
    pub fn of(block: &Block, facts: Facts) -> Plan {
        let mut counters = facts.counters;
        let both = both_in_block(block, &facts);
        let body_counter = both.map_or(counters.main, |(_, way)| counters.count_both(way));
        let place = count_place(block, &facts, both);
        let cell = facts.path.map_or(CounterId::NONE, |path| path.cell);
        let in_loop =
            LoopPlan::of(facts.round, facts.id, if place.is_some() { body_counter } else { CounterId::NONE }, cell);
        let is_kept = in_loop.is_some_and(|one| one.is_kept);
        let place = if is_kept { place.map(|place| place.kept_in(KEPT_COUNTER)) } else { place };
        let kept_cell = in_loop.map_or(CounterId::NONE, |one| one.cell);
        let path = facts.path.map(|path| PathPlan::of(path, decision_place(block, &facts), kept_cell));
        let decision = path.and_then(|path| Some((path.place?, path.cell)));
        let is_lending = is_kept || facts.lends;
        let has_call_entry = is_lending && facts.is_called;
        let has_verified_entry = is_lending && !facts.is_called && facts.is_indirect_target && facts.shares_entry;
        let mut insertions = Insertions::new();
        for (place, counter) in place.map(|place| (place, body_counter)).into_iter().chain(decision) {
            if counter != CounterId::NONE {
                insertions.add(place.before, Count { place, counter });
            }
        }
        Plan {
            body_counter,
            count_before: match place {
                _ if facts.is_led() => 0,
                Some(place) => place.before as u16,
                None => COUNTED_AT_EXITS,
            },
            decides_before: decision.map_or(COUNTED_AT_EXITS, |(place, _)| place.before as u16),
            guards: guards_of(block, &facts),
            insertions,
            branch: BranchPlan {
                straight: facts.straight,
                leads_back: facts.leads_back,
                counts_both: both.map(|(_, way)| way),
                path,
            },
            in_loop: in_loop.filter(|one| one.is_kept || !has_call_entry && !has_verified_entry),
            is_lending,
            has_call_entry,
            has_verified_entry,
            are_dead_at_start: !facts.is_changed() && are_flags_dead_at_start(block, facts.are_dead_at_end),
            counters,
            facts,
        }
    }

    /// What a register has all around the loop that it is in, or `NONE`.
    pub fn kept_cell(&self) -> CounterId {
        self.in_loop.map_or(CounterId::NONE, |one| one.cell)
    }
}

/// The guards in front of a block, in their order.
fn guards_of(block: &Block, facts: &Facts) -> [Option<Guard>; 5] {
    [
        block.is_writable.then_some(Guard::Compare { counts_trust: facts.counts_trust }),
        facts.counts_heat.then_some(Guard::Heat),
        (facts.region_block != BlockNumber::NONE).then_some(Guard::Tag(facts.region_block)),
        // Who leaves for room comes back to the start: nothing may be captured before.
        facts.tells_accesses.then_some(Guard::Room),
        facts.has_captures.then_some(Guard::Captures),
    ]
}

/// Where both ways of a conditional branch are counted together, if `inc` is possible in the block, and with which
/// way's counter. Where a leader counts both, that takes no place.
fn both_in_block(block: &Block, facts: &Facts) -> Option<(Option<CountPlace>, BranchWay)> {
    let counters = &facts.counters;
    if !matches!(facts.ending, Ending::Conditional(_))
        || counters.main == CounterId::NONE
        || counters.second == CounterId::NONE
    {
        return None;
    }
    if counters.is_led && facts.straight.is_none() {
        return Some((None, BranchWay::NotTaken));
    }
    let straight = facts.straight.filter(|_| !facts.is_changed())?;
    let place = CountPlace::find_for_flags(block, block.count() - 1);
    (place.is_some() || counters.is_led).then_some((place, if facts.counts_straight { straight } else { !straight }))
}

/// Where the decision at a block's end is counted inside; `None`: on the ways out.
fn decision_place(block: &Block, facts: &Facts) -> Option<CountPlace> {
    match facts.ending {
        Ending::Conditional(_) if facts.is_changed() => None,
        Ending::Conditional(_) => CountPlace::find_for_flags(block, facts.n_copied),
        _ => Some(place_of_all(block, facts)),
    }
}

/// The best place for what is counted whichever way the block is left.
fn place_of_all(block: &Block, facts: &Facts) -> CountPlace {
    if facts.is_changed() {
        return CountPlace::AT_START;
    }
    let place = CountPlace::find(block, facts.n_copied, facts.are_dead_at_end);
    // What is added may be shown all registers, those among them that the program is about to overwrite.
    if facts.changes.is_some() {
        place.spilled()
    } else {
        place
    }
}

/// Where the block's own counter is incremented; `None`: nowhere, or on the ways out.
fn count_place(block: &Block, facts: &Facts, both: Option<(Option<CountPlace>, BranchWay)>) -> Option<CountPlace> {
    if facts.is_led() {
        return None;
    }
    let counts_in_body =
        facts.counters.main != CounterId::NONE && !matches!(facts.kind, exit_kind::CONDITIONAL | exit_kind::NONE);
    match both {
        Some((place, _)) => place,
        None => counts_in_body.then(|| place_of_all(block, facts)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::decisions::PathFacts;
    use super::super::request::{Arrival, Request};
    use super::*;
    use crate::cache::Fragment;
    use crate::context::addresses::AppPc;
    use crate::context::numbers::{ExitId, FragmentId};
    use crate::cpu::decode::samples::loop_of_one;
    use crate::instrument::counts::loops::Round;

    const PC: AppPc = AppPc::from_raw(0x1000);

    /// What is known of a block with a conditional branch back that has not run yet, counted by 1 and 2.
    fn facts_of(block: &Block) -> Facts {
        let (ending, kind) = (Ending::Conditional(PC), exit_kind::CONDITIONAL);
        Facts {
            counters: Counters {
                first: CounterId::from_raw(1),
                main: CounterId::from_raw(1),
                second: CounterId::from_raw(2),
                ..Counters::NONE
            },
            straight: Some(BranchWay::Taken),
            leads_back: true,
            counts_straight: true,
            ..Facts::of(FragmentId::from_raw(5), Request::new(PC, Arrival::Other), block, ending, kind)
        }
    }

    #[test]
    fn a_branch_is_counted_once_where_flags_are_dead() {
        let block = loop_of_one(PC);
        let plan = Plan::of(&block, facts_of(&block));
        assert_eq!((plan.body_counter.raw(), plan.count_before), (1, 1), "in front of what sets the flags");
        assert!(plan.insertions.has(1) && plan.insertions.count() == 1);
        assert_eq!(plan.branch.linked_way(&plan.counters), Some(BranchWay::Taken), "the branch itself leads back");
        assert!(!plan.is_lending && plan.guards == [None; 5]);
    }

    #[test]
    fn a_hot_loop_keeps_its_counter_and_its_decisions() {
        let block = loop_of_one(PC);
        let round = Round::Head { is_one_block: true, may_keep_counter: true, may_keep_cell: true };
        let path = Some(PathFacts { cell: CounterId::from_raw(9), is_taken_expected: true });
        let facts = Facts { before: Some(Fragment::BLANK), round, path, ..facts_of(&block) };
        let plan = Plan::of(&block, facts);
        assert_eq!(
            plan.in_loop,
            Some(LoopPlan {
                head: FragmentId::from_raw(5),
                counter: CounterId::from_raw(1),
                is_kept: true,
                cell: CounterId::from_raw(9)
            })
        );
        assert!(plan.is_lending, "registers have both");
        assert_eq!((plan.insertions.count(), plan.decides_before), (2, 1));
    }

    #[test]
    fn a_loop_that_names_the_registers_counts_in_memory() {
        let block = loop_of_one(PC);
        let round = Round::Head { is_one_block: true, may_keep_counter: false, may_keep_cell: false };
        let plan = Plan::of(&block, Facts { before: Some(Fragment::BLANK), round, ..facts_of(&block) });
        assert_eq!(
            plan.in_loop,
            Some(LoopPlan {
                head: FragmentId::from_raw(5),
                counter: CounterId::from_raw(1),
                is_kept: false,
                cell: CounterId::NONE
            })
        );
        assert!(!plan.is_lending);
    }

    #[test]
    fn what_follows_from_its_leader_counts_nothing() {
        let block = loop_of_one(PC);
        let mut facts = facts_of(&block);
        (facts.leader, facts.counters.is_led) = (ExitId::from_raw(3), true);
        let plan = Plan::of(&block, facts);
        assert_eq!((plan.insertions.count(), plan.count_before), (0, 0));
    }

    #[test]
    fn what_is_recorded_of_a_block_stands_in_front_of_it_in_order() {
        let mut block = loop_of_one(PC);
        block.is_writable = true;
        let facts = Facts {
            counts_heat: true,
            counts_trust: true,
            region_block: BlockNumber::from_raw(7),
            has_captures: true,
            tells_accesses: true,
            ..facts_of(&block)
        };
        let guards = Plan::of(&block, facts).guards;
        let tag = Guard::Tag(BlockNumber::from_raw(7));
        let expected = [Guard::Compare { counts_trust: true }, Guard::Heat, tag, Guard::Room, Guard::Captures];
        assert_eq!(guards, expected.map(Some));
    }

    #[test]
    fn indirect_branches_share_an_entry_where_no_edge_is_counted() {
        let block = loop_of_one(PC);
        let hot = |is_called| Facts {
            before: Some(Fragment::BLANK),
            counters: Counters::NONE,
            lends: true,
            shares_entry: true,
            is_indirect_target: true,
            is_called,
            ..facts_of(&block)
        };
        let plan = Plan::of(&block, hot(false));
        assert!(plan.has_verified_entry && !plan.has_call_entry && plan.insertions.count() == 0);
        let plan = Plan::of(&block, hot(true));
        assert!(plan.has_call_entry && !plan.has_verified_entry, "one of them can run straight on into the code");
    }
}
