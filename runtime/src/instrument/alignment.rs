//! Where a hot loop's code is to begin, and where no-ops may stand in it.
//!
//! A processor fetches code by lines: a loop that fits into one and lies across two takes a cycle more each turn. A no-op inside a loop
//! takes part of one, and between what sets flags and the branch that asks for them both become two operations instead of
//! one. Branches that are linked need their place in an aligned word all the same (`Emitter::jump_condition_linkable`), so no-ops go
//! in front of the loop, or else in front of both.

use super::branch_way::BranchWay;
use super::plan::Plan;
use super::Engine;
use crate::cache::slab::MAX_PADDING;
use crate::context::addresses::AppPc;
use crate::cpu::emit::{BRANCH_BYTES, WORD_BYTES};
use crate::decode::{Block, Ending};
use crate::protocol::exit_kind;

/// Bytes of a line of code.
const LINE_BYTES: u64 = 64;
/// About as many bytes does what counts take.
const INSERTED_BYTES: u64 = 9;
const _: () = assert!(LINE_BYTES + WORD_BYTES <= MAX_PADDING);
/// Blocks of a loop that is worth a line, at most.
const MAX_BLOCKS: usize = 4;

/// How far behind `address` a loop of so many bytes may begin so that it crosses no line it needs not. If `ends_word`, its branch, which
/// is its end, is to end a word.
fn padding_of(address: u64, bytes: u64, ends_word: bool) -> u64 {
    let (first, step) = match ends_word {
        true => ((address + bytes).wrapping_neg() % WORD_BYTES, WORD_BYTES as usize),
        false => (0, 1),
    };
    let is_good = |padding: &u64| bytes > LINE_BYTES || (address + padding) % LINE_BYTES + bytes <= LINE_BYTES;
    (first..first + LINE_BYTES).step_by(step).find(is_good).unwrap_or(first)
}

impl Engine {
    /// How many bytes are to be left in front of a hot block at `address`.
    pub fn loop_padding(&self, address: u64, block: &Block, plan: &Plan) -> u64 {
        let ending = plan.facts.ending;
        let (Ending::Conditional(_) | Ending::Jump(_)) = ending else {
            return 0;
        };
        let Some(successor) = straight_way(block.end(), ending, plan.branch.straight) else {
            return 0;
        };
        let (inserted, is_known) = plan.insertions.size_bytes();
        let copied = block.size_bytes() - block.last_bytes();
        let bytes = copied + inserted + BRANCH_BYTES;
        if successor == block.pc {
            return padding_of(address, bytes, is_known);
        }
        match self.bytes_back_to(block.pc, successor, plan.insertions.count() as u64) {
            Some(rest) if bytes + rest <= LINE_BYTES => padding_of(address, bytes + rest, false),
            _ => 0,
        }
    }

    /// About how many bytes the blocks take by which a loop's first one at `pc` comes back to itself. `None`: not by few, or they lie
    /// elsewhere already.
    fn bytes_back_to(&self, pc: AppPc, successor: AppPc, n_inserted: u64) -> Option<u64> {
        let (mut next, mut bytes) = (successor, 0);
        for _ in 1..MAX_BLOCKS {
            let id = self.cache.by_pc.find(next).or(self.cache.versions.find(next))?;
            let fragment = self.cache.fragment(id);
            if fragment.is_hot && fragment.is_valid {
                return None;
            }
            bytes += u64::from(fragment.app_size) + n_inserted * INSERTED_BYTES + WORD_BYTES;
            let taken = self.cache.taken_exit(fragment).map(|exit| exit.target);
            next = match fragment.exit_kind {
                exit_kind::JUMP => self.cache.exit(fragment.first_exit).target,
                exit_kind::CONDITIONAL if taken == Some(pc) || fragment.habit.is_mostly_taken => taken?,
                exit_kind::CONDITIONAL | exit_kind::FALL_THROUGH => fragment.end(),
                _ => return None,
            };
            if next == pc {
                return Some(bytes);
            }
        }
        None
    }
}

/// Where a block mostly goes.
fn straight_way(end: AppPc, ending: Ending, straight: Option<BranchWay>) -> Option<AppPc> {
    match ending {
        Ending::Conditional(target) => straight.map(|way| if way == BranchWay::Taken { target } else { end }),
        Ending::Jump(target) => Some(target),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_that_fit_lie_in_one_line() {
        for address in 0x1000..0x1080 {
            for bytes in 1..=LINE_BYTES {
                let start = address + padding_of(address, bytes, false);
                assert!(start % LINE_BYTES + bytes <= LINE_BYTES, "{address:#x} {bytes}");
            }
        }
    }

    #[test]
    fn branches_end_words_where_that_is_possible() {
        for address in 0x1000..0x1080 {
            for bytes in 6..=3 * LINE_BYTES {
                let start = address + padding_of(address, bytes, true);
                assert_eq!((start + bytes) % WORD_BYTES, 0, "{address:#x} {bytes}");
                let is_in_line = start % LINE_BYTES + bytes <= LINE_BYTES;
                assert!(is_in_line || bytes > LINE_BYTES, "{address:#x} {bytes}");
            }
        }
    }
}
