//! What is known of the conditional branch at a block's end before code is emitted.

use super::branch_way::BranchWay;
use super::counts::counters::Counters;
use super::order::decisions::PathPlan;
use crate::context::numbers::CounterId;

/// What is known of the branch at a block's end before code is emitted.
#[derive(Clone, Copy)]
pub struct BranchPlan {
    /// Which way goes straight on; `None`: both do.
    pub straight: Option<BranchWay>,
    /// That way leads to code that lies somewhere already, not behind this.
    pub leads_back: bool,
    /// Both ways are counted in the block, with this way's counter; `None`: they are not.
    pub counts_both: Option<BranchWay>,
    /// What of it the thread's path records.
    pub path: Option<PathPlan>,
}

impl BranchPlan {
    /// The counter of a way, beside what counts both.
    pub fn counter(&self, counters: &Counters, way: BranchWay) -> CounterId {
        match way {
            _ if self.counts_both == Some(way) => CounterId::NONE,
            BranchWay::Taken => counters.main,
            BranchWay::NotTaken => counters.second,
        }
    }

    pub fn is_surprise(&self, way: BranchWay) -> bool {
        self.path.is_some_and(|path| BranchWay::of(path.is_taken_expected) != way)
    }

    /// Whether the branch itself can lead to where this way goes: nothing is to be counted or recorded on it.
    fn is_bare(&self, counters: &Counters, way: BranchWay) -> bool {
        let is_recorded = self.is_surprise(way) || self.path.is_some_and(|path| path.place.is_none());
        self.counter(counters, way) == CounterId::NONE && !is_recorded
    }

    /// The way to which the branch itself leads, which is linked: aside, so that the other way goes straight on; or back, as each
    /// further jump that is taken costs a loop a cycle a turn. `None`: there is more to do on both.
    pub fn linked_way(&self, counters: &Counters) -> Option<BranchWay> {
        let straight = self.straight?;
        let goes_back = self.leads_back && self.is_bare(counters, straight);
        let way = if goes_back { straight } else { !straight };
        self.is_bare(counters, way).then_some(way)
    }
}

#[cfg(test)]
mod tests {
    use super::BranchWay::{NotTaken, Taken};
    use super::*;
    use crate::cpu::instrument::counting::{CountPlace, CountWay};

    const PLAN: BranchPlan = BranchPlan { straight: Some(Taken), leads_back: false, counts_both: None, path: None };
    const COUNTED: Counters = Counters {
        first: CounterId::from_raw(1),
        main: CounterId::from_raw(1),
        second: CounterId::from_raw(2),
        ..Counters::NONE
    };
    const NOT_COUNTED: Counters = Counters::NONE;

    #[test]
    fn the_branch_leads_aside_or_back() {
        assert_eq!(PLAN.linked_way(&NOT_COUNTED), Some(NotTaken));
        assert_eq!(BranchPlan { leads_back: true, ..PLAN }.linked_way(&NOT_COUNTED), Some(Taken));
        assert_eq!(BranchPlan { counts_both: Some(NotTaken), ..PLAN }.linked_way(&COUNTED), Some(NotTaken));
        let back = BranchPlan { leads_back: true, counts_both: Some(Taken), ..PLAN };
        assert_eq!(back.linked_way(&COUNTED), Some(Taken));
        assert_eq!(
            BranchPlan { straight: Some(NotTaken), counts_both: Some(NotTaken), ..back }.linked_way(&COUNTED),
            Some(NotTaken)
        );
    }

    #[test]
    fn what_has_more_to_do_has_code_of_its_own() {
        assert_eq!(PLAN.linked_way(&COUNTED), None);
        assert_eq!(BranchPlan { counts_both: Some(Taken), ..PLAN }.linked_way(&COUNTED), None);
        assert_eq!(BranchPlan { straight: None, ..PLAN }.linked_way(&NOT_COUNTED), None);
        let path = PathPlan { place: None, cell: CounterId::from_raw(0), is_taken_expected: true };
        assert_eq!(BranchPlan { leads_back: true, path: Some(path), ..PLAN }.linked_way(&NOT_COUNTED), None);
    }

    #[test]
    fn surprises_are_recorded_beside_the_branch() {
        let place = CountPlace { before: 0, way: CountWay::Flags };
        let expected =
            |is_taken_expected| Some(PathPlan { place: Some(place), cell: CounterId::from_raw(0), is_taken_expected });
        let back = BranchPlan { leads_back: true, ..PLAN };
        assert_eq!(BranchPlan { path: expected(true), ..back }.linked_way(&NOT_COUNTED), Some(Taken));
        assert_eq!(BranchPlan { path: expected(false), ..back }.linked_way(&NOT_COUNTED), Some(NotTaken));
    }
}
