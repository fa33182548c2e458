//! Nobody puts breakpoints into code.

pub fn is_known(_: u64) -> bool {
    false
}

pub fn instruction_at(_: u64) -> Option<([u8; 16], usize)> {
    None
}

pub fn forget_gone(_: u64, _: u64) -> bool {
    false
}
