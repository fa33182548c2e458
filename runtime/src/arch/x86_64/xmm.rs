//! xmm0 to 15 into the thread's context and out of it, as the gates and parking do it.
//!
//! Legacy SSE leaves the upper vector bits alone, and Rust here touches no others: so the rest of the vector state stays in
//! the processor all the time. The text needs an operand `xmm`, the offset in the context that gs holds.

macro_rules! save_xmm {
    () => {
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movups gs:[{xmm} + 16 * \\n], xmm\\n\n .endr"
    };
}

macro_rules! load_xmm {
    () => {
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n movups xmm\\n, gs:[{xmm} + 16 * \\n]\n .endr"
    };
}

pub(super) use {load_xmm, save_xmm};
