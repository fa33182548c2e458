//! Addresses of the code cache, of a type of their own: they are never the program's.
//!
//! Assembly, and words that the kernel or the processor gave, have them raw.

use core::ops::{Add, Sub};

/// Where code runs in the cache.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct CachePc(u64);

impl CachePc {
    /// There is none.
    pub const NOWHERE: CachePc = CachePc(0);

    pub const fn from_raw(raw: u64) -> CachePc {
        CachePc(raw)
    }

    pub const fn raw(self) -> u64 {
        self.0
    }

    pub const fn abs_diff(self, other: CachePc) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// How far a branch leads that ends here, to `target`.
    pub const fn distance_to(self, target: CachePc) -> i64 {
        target.0.wrapping_sub(self.0) as i64
    }
}

impl Add<u64> for CachePc {
    type Output = CachePc;

    fn add(self, bytes: u64) -> CachePc {
        CachePc(self.0 + bytes)
    }
}

impl Sub<u64> for CachePc {
    type Output = CachePc;

    fn sub(self, bytes: u64) -> CachePc {
        CachePc(self.0 - bytes)
    }
}

impl Sub for CachePc {
    type Output = u64;

    fn sub(self, start: CachePc) -> u64 {
        self.0 - start.0
    }
}
