//! Jumps that are changed while other threads may run them: each by one store over an aligned word.

use core::sync::atomic::{AtomicU64, Ordering};

/// How far in front of a linkable branch's displacement the aligned word begins that it ends.
pub const WORD_OFFSET: u64 = 4;

/// Makes the linkable jump, call or conditional branch with its displacement at `patch` lead to `target`; a jump to what
/// follows it becomes a no-op.
/// # Safety
/// `word` must be the writable alias of the aligned word of the cache that ends at `patch + 4`.
pub unsafe fn set_displacement(word: *mut u64, patch: u64, target: u64) {
    // SAFETY: the jump is the end of that word (Emitter::jump_linkable); the bytes before it never change.
    let word = unsafe { AtomicU64::from_ptr(word) };
    word.store(with_displacement(word.load(Ordering::Relaxed), patch, target), Ordering::SeqCst);
}

/// Whether it leads to `target`.
/// # Safety
/// As `set_displacement`.
pub unsafe fn leads_to(word: *mut u64, patch: u64, target: u64) -> bool {
    // SAFETY: as above.
    let bytes = unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Relaxed);
    bytes == with_displacement(bytes, patch, target)
}

/// The word, with the jump that is its end leading to `target`.
fn with_displacement(word: u64, patch: u64, target: u64) -> u64 {
    let distance = target.wrapping_sub(patch + 4) as u32;
    let mut bytes = word.to_le_bytes();
    if bytes[3] & 0xf0 == 0x80 || bytes[3] == 0xe8 {
        // A conditional branch, 0f 8x, or a call.
        bytes[4..].copy_from_slice(&distance.to_le_bytes());
    } else if distance == 0 {
        bytes[3..].copy_from_slice(&[0x0f, 0x1f, 0x44, 0x00, 0x00]);
    } else {
        bytes[3] = 0xe9;
        bytes[4..].copy_from_slice(&distance.to_le_bytes());
    }
    u64::from_le_bytes(bytes)
}

/// The eight bytes at `address` as they are, and with a jump to `stub` at their start.
pub fn interrupt_words(address: u64, stub: u64) -> (u64, u64) {
    // SAFETY: the bytes were just emitted, inside the unit.
    let original = unsafe { (address as *const u64).read() };
    let mut bytes = original.to_le_bytes();
    bytes[0] = 0xe9;
    bytes[1..5].copy_from_slice(&(stub.wrapping_sub(address + 5) as u32).to_le_bytes());
    (original, u64::from_le_bytes(bytes))
}
