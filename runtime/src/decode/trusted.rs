//! Pages of code that the program may write and that are protected, so that no write to them goes unseen.

extern crate alloc;
use crate::context::addresses::AppPc;
use crate::protocol::PAGE_BYTES;
use alloc::vec::Vec;

pub const PAGE_BITS: u32 = PAGE_BYTES.trailing_zeros();

/// The number of the page that holds `address`.
pub fn page_of(address: AppPc) -> u64 {
    address.raw() >> PAGE_BITS
}

/// Where a page begins.
pub fn page_start(page: u64) -> AppPc {
    AppPc::from_raw(page << PAGE_BITS)
}

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
    pub fn within(&self, start: AppPc, end: AppPc) -> &[u64] {
        &self.pages[self.indices(start, end)]
    }

    /// Takes out the pages that hold any byte from `start` up to `end`.
    pub fn take(&mut self, start: AppPc, end: AppPc) -> Vec<u64> {
        let indices = self.indices(start, end);
        self.pages.drain(indices).collect()
    }

    fn indices(&self, start: AppPc, end: AppPc) -> core::ops::Range<usize> {
        let first = self.pages.partition_point(|page| *page < page_of(start));
        let behind = self.pages.partition_point(|page| page_start(*page) < end);
        first..behind.max(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(pages: &TrustedPages, start: u64, end: u64) -> &[u64] {
        pages.within(AppPc::from_raw(start), AppPc::from_raw(end))
    }

    #[test]
    fn pages_are_found_by_any_byte() {
        let mut pages = TrustedPages::new();
        for page in [7, 5, 9, 7] {
            pages.insert(page);
        }
        assert_eq!(pages.len(), 3);
        assert!(pages.contains(7) && !pages.contains(6));
        assert_eq!(within(&pages, 0x5fff, 0x7001), [5, 7]);
        assert_eq!(within(&pages, 0x6000, 0x7000), []);
        assert_eq!(within(&pages, 0x9000, 0x5000), []);
        assert_eq!(pages.take(AppPc::from_raw(0x7800), AppPc::HIGHEST), [7, 9]);
        assert_eq!(within(&pages, 0, u64::MAX), [5]);
    }
}
