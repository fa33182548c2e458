//! Copies of the program's memory: in host tests all of it is there.

use crate::context::addresses::AppPc;

pub fn read_code(target: &mut [u8], source: AppPc) -> usize {
    read_program(target, source.raw())
}

pub fn read_program(target: &mut [u8], source: u64) -> usize {
    // SAFETY: tests name memory of their own.
    unsafe { core::ptr::copy_nonoverlapping(source as *const u8, target.as_mut_ptr(), target.len()) };
    target.len()
}
