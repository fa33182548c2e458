//! Addresses of code, each of both kinds of a type of its own: one of the cache is never one of the program's.
//!
//! Assembly, decoders, records, and words that the kernel or the processor gave have them raw. Addresses of data are plain numbers,
//! and so are those that system calls name: what is mapped there becomes code where the engine is told of it.

use core::ops::{Add, AddAssign, Sub};

/// What addresses of both kinds can do.
macro_rules! address {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
        pub struct $name(u64);

        const _: () = assert!(size_of::<$name>() == 8 && align_of::<$name>() == 8);

        impl $name {
            pub const fn from_raw(raw: u64) -> $name {
                $name(raw)
            }

            pub const fn raw(self) -> u64 {
                self.0
            }

            pub const fn abs_diff(self, other: $name) -> u64 {
                self.0.abs_diff(other.0)
            }
        }

        impl Add<u64> for $name {
            type Output = $name;

            fn add(self, bytes: u64) -> $name {
                $name(self.0 + bytes)
            }
        }

        impl Sub<u64> for $name {
            type Output = $name;

            fn sub(self, bytes: u64) -> $name {
                $name(self.0 - bytes)
            }
        }

        impl Sub for $name {
            type Output = u64;

            fn sub(self, start: $name) -> u64 {
                self.0 - start.0
            }
        }
    };
}

address! {
    /// Where code runs in the cache.
    CachePc
}

impl CachePc {
    /// There is none.
    pub const NOWHERE: CachePc = CachePc(0);

    /// How far a branch leads that ends here, to `target`.
    pub const fn distance_to(self, target: CachePc) -> i64 {
        target.0.wrapping_sub(self.0) as i64
    }
}

address! {
    /// Where code of the program is, or where the program goes on: any number, as it may branch to any.
    AppPc
}

impl AppPc {
    /// What a field has that names no place; where it may name any, another one says whether it does.
    pub const NOWHERE: AppPc = AppPc(0);
    pub const LOWEST: AppPc = AppPc(0);
    pub const HIGHEST: AppPc = AppPc(u64::MAX);

    /// So many bytes behind it, around the end of all addresses.
    pub const fn wrapping_add(self, bytes: u64) -> AppPc {
        AppPc(self.0.wrapping_add(bytes))
    }

    /// So many bytes in front of it, around the end of all addresses.
    pub const fn wrapping_sub(self, bytes: u64) -> AppPc {
        AppPc(self.0.wrapping_sub(bytes))
    }

    /// So many bytes behind it, at most the last address.
    pub const fn saturating_add(self, bytes: u64) -> AppPc {
        AppPc(self.0.saturating_add(bytes))
    }

    /// So many bytes in front of it, at least the first address.
    pub const fn saturating_sub(self, bytes: u64) -> AppPc {
        AppPc(self.0.saturating_sub(bytes))
    }

    /// How many bytes it is behind `start`, around the end of all addresses.
    pub const fn bytes_behind(self, start: AppPc) -> u64 {
        self.0.wrapping_sub(start.0)
    }
}

impl AddAssign<u64> for AppPc {
    fn add_assign(&mut self, bytes: u64) {
        *self = *self + bytes;
    }
}
