//! What is known of the conditional branch at a block's end before code is emitted.

use super::counts::counters::Counters;
use super::order::decisions::PathPlan;
use crate::context::numbers::CounterId;

/// What is known of the branch at a block's end before code is emitted.
#[derive(Clone, Copy)]
pub struct BranchPlan {
    /// Which way goes straight on; `None`: both do.
    pub is_taken_straight: Option<bool>,
    /// That way leads to code that lies somewhere already, not behind this.
    pub leads_back: bool,
    /// Both ways are counted in the block, with the taken way's counter or the other one.
    pub is_taken_counted: Option<bool>,
    /// What of it the thread's path records.
    pub path: Option<PathPlan>,
}

impl BranchPlan {
    /// The counter of the taken way, or of the other one, beside what counts both.
    pub fn counter(&self, counters: &Counters, is_taken: bool) -> CounterId {
        match is_taken {
            _ if self.is_taken_counted == Some(is_taken) => CounterId::NONE,
            true => counters.main,
            false => counters.second,
        }
    }

    pub fn is_surprise(&self, is_taken: bool) -> bool {
        self.path.is_some_and(|path| path.is_taken_expected != is_taken)
    }

    /// Whether the branch itself can lead to where this way goes: nothing is to be counted or recorded on it.
    fn is_bare(&self, counters: &Counters, is_taken: bool) -> bool {
        let is_recorded = self.is_surprise(is_taken) || self.path.is_some_and(|path| path.place.is_none());
        self.counter(counters, is_taken) == CounterId::NONE && !is_recorded
    }

    /// The way to which the branch itself leads, which is linked: aside, so that the other way goes straight on; or back, as each
    /// further jump that is taken costs a loop a cycle a turn. `None`: there is more to do on both.
    pub fn linked_way(&self, counters: &Counters) -> Option<bool> {
        let straight = self.is_taken_straight?;
        let goes_back = self.leads_back && self.is_bare(counters, straight);
        let way = if goes_back { straight } else { !straight };
        self.is_bare(counters, way).then_some(way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::instrument::counting::{CountPlace, CountWay};

    const PLAN: BranchPlan =
        BranchPlan { is_taken_straight: Some(true), leads_back: false, is_taken_counted: None, path: None };
    const COUNTED: Counters = Counters {
        first: CounterId::from_raw(1),
        main: CounterId::from_raw(1),
        second: CounterId::from_raw(2),
        ..Counters::NONE
    };
    const NOT_COUNTED: Counters = Counters::NONE;

    #[test]
    fn the_branch_leads_aside_or_back() {
        assert_eq!(PLAN.linked_way(&NOT_COUNTED), Some(false));
        assert_eq!(BranchPlan { leads_back: true, ..PLAN }.linked_way(&NOT_COUNTED), Some(true));
        assert_eq!(BranchPlan { is_taken_counted: Some(false), ..PLAN }.linked_way(&COUNTED), Some(false));
        let back = BranchPlan { leads_back: true, is_taken_counted: Some(true), ..PLAN };
        assert_eq!(back.linked_way(&COUNTED), Some(true));
        assert_eq!(
            BranchPlan { is_taken_straight: Some(false), is_taken_counted: Some(false), ..back }.linked_way(&COUNTED),
            Some(false)
        );
    }

    #[test]
    fn what_has_more_to_do_has_code_of_its_own() {
        assert_eq!(PLAN.linked_way(&COUNTED), None);
        assert_eq!(BranchPlan { is_taken_counted: Some(true), ..PLAN }.linked_way(&COUNTED), None);
        assert_eq!(BranchPlan { is_taken_straight: None, ..PLAN }.linked_way(&NOT_COUNTED), None);
        let path = PathPlan { place: None, cell: CounterId::from_raw(0), is_taken_expected: true };
        assert_eq!(BranchPlan { leads_back: true, path: Some(path), ..PLAN }.linked_way(&NOT_COUNTED), None);
    }

    #[test]
    fn surprises_are_recorded_beside_the_branch() {
        let place = CountPlace { before: 0, way: CountWay::Flags };
        let expected =
            |is_taken_expected| Some(PathPlan { place: Some(place), cell: CounterId::from_raw(0), is_taken_expected });
        let back = BranchPlan { leads_back: true, ..PLAN };
        assert_eq!(BranchPlan { path: expected(true), ..back }.linked_way(&NOT_COUNTED), Some(true));
        assert_eq!(BranchPlan { path: expected(false), ..back }.linked_way(&NOT_COUNTED), Some(false));
    }
}
