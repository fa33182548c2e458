//! The application's vector registers while a thread is in the dispatcher.

/// What a gate saves of the vector state.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Vector {
    pub mxcsr: u32,
    pub xmm: [[u64; 2]; 16],
}
