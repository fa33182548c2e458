//! Which registers captures can name.

/// The general ones, where the thread is, its flags.
pub const N_REGISTERS: u32 = 18;

/// Vector registers, of which the lower half is taken.
pub const N_VECTORS: u32 = 16;
