//! The application's vector registers while a thread is in the dispatcher.

/// xmm and MXCSR. The rest of the vector state stays in the processor all the time.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub struct Vector {
    pub xmm: [[u64; 2]; 16],
    pub mxcsr: u32,
}

/// As it was when a thread entered the image. Written by the entry, once.
pub static mut AT_ENTRY: Vector = Vector { xmm: [[0; 2]; 16], mxcsr: 0 };

impl Vector {
    /// As a new program finds the processor (Intel SDM, MXCSR).
    pub const INITIAL: Vector = Vector { xmm: [[0; 2]; 16], mxcsr: 0x1f80 };

    /// As a controller is told of them: the low halves of the first ones.
    pub fn held(&self) -> [u64; 8] {
        core::array::from_fn(|number| self.xmm[number][0])
    }

    /// The first ones are as a controller wants them.
    pub fn set_held(&mut self, held: &[u64; 8]) {
        for (register, low) in self.xmm.iter_mut().zip(held) {
            *register = [*low, 0];
        }
    }
}
