//! Which memory of the target is executable.
//!
//! Kept from the system calls that change it, so that reading code is safe without asking the kernel: mappings change
//! under the runtime's lock only.

extern crate alloc;
use crate::sys::kernel::PROT_WRITE;
use alloc::vec::Vec;

/// A range of executable memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub start: u64,
    pub end: u64,
    /// PROT_* bits.
    pub protection: u64,
}

/// Sorted, disjoint ranges.
pub struct Ranges {
    ranges: Vec<Range>,
}

impl Ranges {
    pub const fn new() -> Ranges {
        Ranges { ranges: Vec::new() }
    }

    /// The range that holds `address`.
    pub fn find(&self, address: u64) -> Option<Range> {
        let index = self.ranges.partition_point(|range| range.end <= address);
        self.ranges.get(index).copied().filter(|range| range.start <= address)
    }

    /// Whether any executable memory lies in the range.
    pub fn intersects(&self, start: u64, end: u64) -> bool {
        let index = self.ranges.partition_point(|range| range.end <= start);
        self.ranges.get(index).is_some_and(|range| range.start < end)
    }

    /// The first range that ends after `from` and starts before `end`.
    pub fn next_from(&self, from: u64, end: u64) -> Option<Range> {
        let index = self.ranges.partition_point(|range| range.end <= from);
        self.ranges.get(index).copied().filter(|range| range.start < end)
    }

    /// Forgets what lies in the range.
    pub fn remove(&mut self, start: u64, end: u64) {
        if start >= end || !self.intersects(start, end) {
            return;
        }
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
    pub fn insert(&mut self, start: u64, end: u64, protection: u64, is_executable: bool) {
        self.remove(start, end);
        if !is_executable || start >= end {
            return;
        }
        let index = self.ranges.partition_point(|range| range.start < start);
        self.ranges.insert(index, Range { start, end, protection });
    }

    /// The code bytes from `address` on, at most `limit`, over adjacent ranges of one kind (may the program write it?);
    /// empty where nothing is executable.
    pub fn code_at(&self, address: u64, limit: usize) -> &'static [u8] {
        let mut end = address;
        let first = self.ranges.partition_point(|range| range.end <= address);
        let mut index = first;
        while let Some(range) = self.ranges.get(index) {
            let is_other_kind = (range.protection ^ self.ranges[first].protection) & PROT_WRITE != 0;
            if range.start > end || end - address >= limit as u64 || is_other_kind {
                break;
            }
            end = range.end;
            index += 1;
        }
        let size = ((end - address) as usize).min(limit);
        if size == 0 {
            return &[];
        }
        // SAFETY: the bytes are mapped and executable, hence readable; they stay so while the runtime's lock is held,
        // which is as long as any caller keeps the slice. Another thread may write them: a torn read decodes other
        // instructions, never out of bounds.
        unsafe { core::slice::from_raw_parts(address as *const u8, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_splits_and_insertion_replaces() {
        let mut ranges = Ranges::new();
        ranges.insert(0x1000, 0x5000, 5, true);
        ranges.remove(0x2000, 0x3000);
        assert_eq!(ranges.find(0x1fff).unwrap().end, 0x2000);
        assert!(ranges.find(0x2000).is_none());
        assert_eq!(ranges.find(0x3000).unwrap().start, 0x3000);
        ranges.insert(0x1800, 0x3800, 7, true);
        assert_eq!(ranges.find(0x2000).unwrap().protection, 7);
        assert_eq!(ranges.find(0x1000).unwrap().end, 0x1800);
        ranges.insert(0x1000, 0x5000, 3, false);
        assert!(!ranges.intersects(0, u64::MAX));
    }

    #[test]
    fn code_runs_over_adjacent_ranges() {
        let bytes = [0x90u8; 64];
        let base = bytes.as_ptr() as u64;
        let mut ranges = Ranges::new();
        ranges.insert(base, base + 16, 5, true);
        ranges.insert(base + 16, base + 32, 4, true);
        assert_eq!(ranges.code_at(base + 8, 100).len(), 24);
        assert_eq!(ranges.code_at(base + 8, 4).len(), 4);
        assert_eq!(ranges.code_at(base + 32, 4).len(), 0);
    }
}
