//! Restartable sequences (rseq(2)): finding them, and the copy that the kernel can abort.

pub mod sequences;
