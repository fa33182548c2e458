//! The two ways of a conditional branch.

use core::ops::Not;

/// One of the two ways of a conditional branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BranchWay {
    Taken,
    NotTaken,
}

impl BranchWay {
    /// Of a branch that `is_taken`.
    pub const fn of(is_taken: bool) -> BranchWay {
        if is_taken {
            BranchWay::Taken
        } else {
            BranchWay::NotTaken
        }
    }
}

impl Not for BranchWay {
    type Output = BranchWay;

    fn not(self) -> BranchWay {
        BranchWay::of(self == BranchWay::NotTaken)
    }
}
