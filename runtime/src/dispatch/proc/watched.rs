//! Descriptors that are watched: what is read by them tells of the runtime.

extern crate alloc;
use crate::cpu::sys::number;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The calls that come to the dispatcher while a descriptor is watched.
pub const WATCHED_CALLS: &[u64] = &[
    number::READ,
    number::CLOSE,
    number::IOCTL,
    number::PREAD64,
    number::READV,
    number::DUP,
    number::DUP2,
    number::FCNTL,
    number::DUP3,
    number::PREADV,
    number::PREADV2,
    number::CLOSE_RANGE,
    number::PIDFD_GETFD,
];

pub const N_SINGLE: usize = 1024;

/// A bit for each descriptor that is watched.
pub static WATCHED: [AtomicU64; N_SINGLE / 64] = [const { AtomicU64::new(0) }; N_SINGLE / 64];

/// All that have no bit are, once one of them was.
pub static ARE_OTHERS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Whether calls that read have to come to the dispatcher.
pub fn is_any_watched() -> bool {
    ARE_OTHERS_WATCHED.load(Ordering::Relaxed) || WATCHED.iter().any(|bits| bits.load(Ordering::Relaxed) != 0)
}

pub fn is_watched(file: u64) -> bool {
    // The kernel looks at 32 bits of a descriptor.
    let file = file as u32 as usize;
    match WATCHED.get(file / 64) {
        Some(bits) => bits.load(Ordering::Relaxed) & 1 << (file % 64) != 0,
        None => ARE_OTHERS_WATCHED.load(Ordering::Relaxed),
    }
}

pub fn note_watched(file: u64) {
    let file = file as u32 as usize;
    match WATCHED.get(file / 64) {
        Some(bits) => {
            bits.fetch_or(1 << (file % 64), Ordering::Relaxed);
        }
        None => ARE_OTHERS_WATCHED.store(true, Ordering::Relaxed),
    }
}
