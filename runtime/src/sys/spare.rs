//! Spare mappings: a process may have only so many (vm.max_map_count), and one that has them all still wants threads, code and memory,
//! for which the runtime maps some of its own.
//!
//! Once a program maps much, some addresses of the runtime's are split into mappings that nobody needs. Where the kernel has none
//! left for the runtime, some of these are joined again. No lock: a fork may come at any time.

use super::calls::{mprotect, Error, ENOMEM};
use super::kernel::PROT_NONE;
use crate::protocol::PAGE_BYTES;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// So many pages differ from those around them, and so many of these are given up together: two mappings each.
pub(super) const PAGES: u32 = 64;
const STEP: u32 = 4;

pub(super) static BASE: AtomicU64 = AtomicU64::new(0);
pub(super) static LEFT: AtomicU32 = AtomicU32::new(0);

/// Gives some up. `false`: there are none.
fn give_up() -> bool {
    let taken =
        LEFT.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| (left != 0).then(|| left.saturating_sub(STEP)));
    let Ok(before) = taken else {
        return false;
    };
    let first = u64::from(before.saturating_sub(STEP));
    let base = BASE.load(Ordering::Relaxed);
    // SAFETY: as above; others took other pages.
    unsafe { mprotect(base + first * 2 * PAGE_BYTES, (u64::from(before) - first) * 2 * PAGE_BYTES, PROT_NONE) }.is_ok()
}

/// Does what takes a mapping of the runtime's, again where there was none left and spare ones are.
pub fn with_mapping<T>(mut map: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    loop {
        match map() {
            Err(Error(ENOMEM)) if give_up() => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_again_while_there_are_spare_ones() {
        let mut n_tries = 0;
        let mut fail = |n_failures: u32, error: i32| {
            n_tries = 0;
            let result = with_mapping(|| {
                n_tries += 1;
                if n_tries <= n_failures {
                    Err(Error(error))
                } else {
                    Ok(n_tries)
                }
            });
            (result, n_tries)
        };
        // None were laid.
        assert_eq!(fail(3, ENOMEM), (Err(Error(ENOMEM)), 1));
        assert_eq!(fail(0, ENOMEM), (Ok(1), 1));
        assert_eq!(fail(3, 17), (Err(Error(17)), 1));
    }
}
