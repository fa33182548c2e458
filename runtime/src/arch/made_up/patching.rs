//! Branches that are changed by one store.

use super::{code, WORD};
use core::sync::atomic::{AtomicU32, Ordering};

/// Makes the linkable branch at `patch` lead to `target`.
///
/// # Safety
/// `word` must be the writable alias of `patch`.
pub unsafe fn set_displacement(word: *mut u64, patch: u64, target: u64) {
    // SAFETY: as the caller promises: an instruction is one aligned word.
    let word = unsafe { AtomicU32::from_ptr(word.cast()) };
    word.store(with_distance(word.load(Ordering::Relaxed), patch, target), Ordering::SeqCst);
}

/// Whether it leads to `target`.
///
/// # Safety
/// As `set_displacement`.
pub unsafe fn leads_to(word: *mut u64, patch: u64, target: u64) -> bool {
    // SAFETY: as above.
    let word = unsafe { AtomicU32::from_ptr(word.cast()) }.load(Ordering::Relaxed);
    word == with_distance(word, patch, target)
}

fn with_distance(word: u32, patch: u64, target: u64) -> u32 {
    let distance = target.wrapping_sub(patch) as i64 / WORD as i64;
    (distance as u32) << 8 | word & 0xff
}

/// A linkable branch is a word.
pub const WORD_OFFSET: u64 = 0;

/// The eight bytes at `address` as they are, and with a jump to `stub` at their start.
pub fn interrupt_words(address: u64, stub: u64) -> (u64, u64) {
    // SAFETY: the bytes were just emitted.
    let original = unsafe { (address as *const u64).read_unaligned() };
    let distance = stub.wrapping_sub(address) as i64 / WORD as i64;
    let jump = u64::from((distance as u32) << 8 | u32::from(code::JUMP));
    (original, original & !0xffff_ffff | jump)
}
