//! Which memory of the target is executable.
//!
//! Kept from the system calls that change it, so that reading code is safe without asking the kernel: mappings change
//! under the runtime's lock only.

extern crate alloc;
use super::trusted::{page_of, page_start, TrustedPages};
use crate::context::addresses::AppPc;
use crate::sys::kernel::PROT_WRITE;
use alloc::vec::Vec;

/// A range of executable memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub start: AppPc,
    pub end: AppPc,
    /// PROT_* bits.
    pub protection: u64,
}

/// Sorted, disjoint ranges.
pub struct Ranges {
    ranges: Vec<Range>,
    /// How often they changed.
    pub n_changes: u64,
    /// All of them count as writable.
    are_writable: bool,
    /// Where the program may write, but not without a fault.
    pub trusted: TrustedPages,
    /// Where blocks may be translated otherwise than they are (instrument/transforms): nothing follows from the code there.
    pub rewritten: Vec<(AppPc, AppPc)>,
}

impl Ranges {
    pub const fn new() -> Ranges {
        Ranges {
            ranges: Vec::new(),
            n_changes: 0,
            are_writable: false,
            trusted: TrustedPages::new(),
            rewritten: Vec::new(),
        }
    }

    /// Whether blocks between two addresses may be translated otherwise than they are.
    pub fn is_rewritten(&self, start: AppPc, end: AppPc) -> bool {
        self.rewritten.iter().any(|range| range.0 < end && start < range.1)
    }

    /// The range that holds `address`.
    pub fn find(&self, address: AppPc) -> Option<Range> {
        let index = self.ranges.partition_point(|range| range.end <= address);
        self.ranges.get(index).copied().filter(|range| range.start <= address)
    }

    /// Whether any executable memory lies in the range.
    pub fn intersects(&self, start: AppPc, end: AppPc) -> bool {
        let index = self.ranges.partition_point(|range| range.end <= start);
        self.ranges.get(index).is_some_and(|range| range.start < end)
    }

    /// The first range that ends after `from` and starts before `end`.
    pub fn next_from(&self, from: AppPc, end: AppPc) -> Option<Range> {
        let index = self.ranges.partition_point(|range| range.end <= from);
        self.ranges.get(index).copied().filter(|range| range.start < end)
    }

    /// Forgets what lies in the range.
    pub fn remove(&mut self, start: AppPc, end: AppPc) {
        if start >= end || !self.intersects(start, end) {
            return;
        }
        self.n_changes += 1;
        let mut kept = Vec::with_capacity(self.ranges.len() + 1);
        for range in &self.ranges {
            if range.end <= start || range.start >= end {
                kept.push(*range);
                continue;
            }
            if range.start < start {
                kept.push(Range { end: start, ..*range });
            }
            if range.end > end {
                kept.push(Range { start: end, ..*range });
            }
        }
        self.ranges = kept;
    }

    /// Sets the protection of a range; only executable ones are kept.
    pub fn insert(&mut self, start: AppPc, end: AppPc, protection: u64, is_executable: bool) {
        self.remove(start, end);
        if !is_executable || start >= end {
            return;
        }
        self.n_changes += 1;
        let index = self.ranges.partition_point(|range| range.start < start);
        let protection = protection | if self.are_writable { PROT_WRITE } else { 0 };
        self.ranges.insert(index, Range { start, end, protection });
    }

    /// All code counts as writable from now on. `false` if it did before.
    pub fn make_writable(&mut self) -> bool {
        for range in &mut self.ranges {
            range.protection |= PROT_WRITE;
        }
        self.n_changes += 1;
        !core::mem::replace(&mut self.are_writable, true)
    }

    /// Whether all code counts as writable.
    pub fn are_writable(&self) -> bool {
        self.are_writable
    }

    /// Whether and how code at `address`, which lies in `range`, may change.
    fn kind_at(&self, range: &Range, address: AppPc) -> Kind {
        match range.protection & PROT_WRITE {
            0 => Kind::Fixed,
            _ if self.trusted.contains(page_of(address)) => Kind::Trusted,
            _ => Kind::Written,
        }
    }

    /// How much code there is from `address` on, at most `limit` bytes, over adjacent ranges.
    pub fn run_at(&self, address: AppPc, limit: usize) -> Run {
        let first = self.ranges.partition_point(|range| range.end <= address);
        let kind = self.ranges.get(first).map_or(Kind::Fixed, |range| self.kind_at(range, address));
        let (mut end, mut same_end) = (address, address);
        for range in &self.ranges[first..] {
            if range.start > end {
                break;
            }
            while end < range.end && end - address < limit as u64 {
                let here = self.kind_at(range, end);
                // Kinds change at pages where the program may write.
                let page_end = page_start(page_of(end) + 1);
                let next = if here == Kind::Fixed { range.end } else { page_end.min(range.end) };
                if here == kind && same_end == end {
                    same_end = next;
                }
                end = next;
            }
        }
        let clamp = |end: AppPc| (end - address).min(limit as u64) as usize;
        Run { size: clamp(end), same_kind: clamp(same_end), kind }
    }
}

/// How code may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only by a system call.
    Fixed,
    /// By a write that faults first.
    Trusted,
    /// By any write of the program's.
    Written,
}

/// Code that lies in one piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Bytes in all; 0 where nothing is executable.
    pub size: usize,
    /// Bytes at the start that are all of one kind.
    pub same_kind: usize,
    pub kind: Kind,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The range from `start` up to `end`, of which what is executable is kept.
    fn insert(ranges: &mut Ranges, start: u64, end: u64, protection: u64, is_executable: bool) {
        ranges.insert(AppPc::from_raw(start), AppPc::from_raw(end), protection, is_executable);
    }

    fn parts_at(ranges: &Ranges, address: u64, limit: usize) -> (usize, usize, Kind) {
        let run = ranges.run_at(AppPc::from_raw(address), limit);
        (run.size, run.same_kind, run.kind)
    }

    #[test]
    fn removal_splits_and_insertion_replaces() {
        let mut ranges = Ranges::new();
        insert(&mut ranges, 0x1000, 0x5000, 5, true);
        ranges.remove(AppPc::from_raw(0x2000), AppPc::from_raw(0x3000));
        assert_eq!(ranges.find(AppPc::from_raw(0x1fff)).unwrap().end.raw(), 0x2000);
        assert!(ranges.find(AppPc::from_raw(0x2000)).is_none());
        assert_eq!(ranges.find(AppPc::from_raw(0x3000)).unwrap().start.raw(), 0x3000);
        insert(&mut ranges, 0x1800, 0x3800, 7, true);
        assert_eq!(ranges.find(AppPc::from_raw(0x2000)).unwrap().protection, 7);
        assert_eq!(ranges.find(AppPc::from_raw(0x1000)).unwrap().end.raw(), 0x1800);
        insert(&mut ranges, 0x1000, 0x5000, 3, false);
        assert!(!ranges.intersects(AppPc::LOWEST, AppPc::HIGHEST));
    }

    #[test]
    fn all_code_can_count_as_writable() {
        let mut ranges = Ranges::new();
        insert(&mut ranges, 0x1000, 0x2000, 5, true);
        assert!(ranges.make_writable());
        insert(&mut ranges, 0x3000, 0x4000, 5, true);
        assert!(!ranges.make_writable());
        assert_eq!([0x1000, 0x3000].map(|address| ranges.run_at(AppPc::from_raw(address), 1).kind), [Kind::Written; 2]);
    }

    #[test]
    fn code_runs_over_adjacent_ranges() {
        let mut ranges = Ranges::new();
        insert(&mut ranges, 0x1000, 0x2000, 5, true);
        insert(&mut ranges, 0x2000, 0x3000, 4, true);
        insert(&mut ranges, 0x3000, 0x4000, 7, true);
        insert(&mut ranges, 0x5000, 0x6000, 5, true);
        let run = |address, limit| parts_at(&ranges, address, limit);
        assert_eq!(run(0x1f00, 0x10000), (0x2100, 0x1100, Kind::Fixed));
        assert_eq!(run(0x1f00, 0x10), (0x10, 0x10, Kind::Fixed));
        assert_eq!(run(0x3ff8, 0x10), (8, 8, Kind::Written));
        assert_eq!(run(0x4000, 0x10), (0, 0, Kind::Fixed));
        assert_eq!(run(0x4fff, 0x10), (0, 0, Kind::Fixed));
    }
    #[test]
    fn trusted_pages_are_a_kind_of_their_own() {
        let mut ranges = Ranges::new();
        insert(&mut ranges, 0x1000, 0x2000, 5, true);
        insert(&mut ranges, 0x2000, 0x6000, 7, true);
        for page in [1, 3, 4] {
            ranges.trusted.insert(page);
        }
        let run = |address, limit| parts_at(&ranges, address, limit);
        assert_eq!(run(0x1ff0, 0x20), (0x20, 0x10, Kind::Fixed));
        assert_eq!(run(0x2ff0, 0x20), (0x20, 0x10, Kind::Written));
        assert_eq!(run(0x3ff0, 0x20), (0x20, 0x20, Kind::Trusted));
        assert_eq!(run(0x3000, 0x10000), (0x3000, 0x2000, Kind::Trusted));
    }
}
