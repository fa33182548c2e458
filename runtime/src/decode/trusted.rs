//! Pages of code that the program may write and that are protected, so that no write to them goes unseen.

extern crate alloc;
use crate::protocol::PAGE_BYTES;
use alloc::vec::Vec;

pub const PAGE_BITS: u32 = PAGE_BYTES.trailing_zeros();

/// Page numbers, sorted.
pub struct TrustedPages {
    pages: Vec<u64>,
}

impl TrustedPages {
    pub const fn new() -> TrustedPages {
        TrustedPages { pages: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.pages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub fn contains(&self, page: u64) -> bool {
        self.pages.binary_search(&page).is_ok()
    }

    pub fn insert(&mut self, page: u64) {
        if let Err(index) = self.pages.binary_search(&page) {
            self.pages.insert(index, page);
        }
    }

    /// The pages that hold any byte from `start` up to `end`.
    pub fn within(&self, start: u64, end: u64) -> &[u64] {
        &self.pages[self.indices(start, end)]
    }

    /// Takes out the pages that hold any byte from `start` up to `end`.
    pub fn take(&mut self, start: u64, end: u64) -> Vec<u64> {
        let indices = self.indices(start, end);
        self.pages.drain(indices).collect()
    }

    fn indices(&self, start: u64, end: u64) -> core::ops::Range<usize> {
        let first = self.pages.partition_point(|page| *page < start >> PAGE_BITS);
        let behind = self.pages.partition_point(|page| page << PAGE_BITS < end);
        first..behind.max(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_any_byte() {
        let mut pages = TrustedPages::new();
        for page in [7, 5, 9, 7] {
            pages.insert(page);
        }
        assert_eq!(pages.len(), 3);
        assert!(pages.contains(7) && !pages.contains(6));
        assert_eq!(pages.within(0x5fff, 0x7001), [5, 7]);
        assert_eq!(pages.within(0x6000, 0x7000), []);
        assert_eq!(pages.within(0x9000, 0x5000), []);
        assert_eq!(pages.take(0x7800, u64::MAX), [7, 9]);
        assert_eq!(pages.within(0, u64::MAX), [5]);
    }
}
