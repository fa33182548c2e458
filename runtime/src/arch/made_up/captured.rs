//! Which registers captures can name.

pub const N_REGISTERS: u32 = 16;

/// There are no vector registers.
pub const N_VECTORS: u32 = 0;
