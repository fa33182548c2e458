//! Vectors of the program's: arrays of struct iovec, which system calls take where memory comes in pieces.

extern crate alloc;
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::dispatch::signals::masks;
use alloc::vec::Vec;

/// The kernel takes no more pieces (UIO_MAXIOV in include/uapi/linux/uio.h).
pub const MAX_PIECES: u64 = 1024;
const PIECE_BYTES: usize = 16;

/// Where the first `n` pieces of a vector begin, and their sizes, as far as they can be read.
pub fn read_pieces(context: &mut ThreadContext, vector: u64, n: u64) -> Vec<(u64, u64)> {
    let mut bytes = alloc::vec![0; n.min(MAX_PIECES) as usize * PIECE_BYTES];
    let n_read = masks::with_faults(context, |_| guarded::read_program(&mut bytes, vector));
    let words = |piece: &[u8]| [0, 8].map(|at| u64::from_le_bytes(core::array::from_fn(|i| piece[at + i])));
    bytes[..n_read].chunks_exact(PIECE_BYTES).map(|piece| words(piece).into()).collect()
}
