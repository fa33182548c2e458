//! The program's memory, read by the kernel.

use crate::cpu::sys::number;
use crate::sys::calls::{getpid, syscall};

/// Reads the program's memory by the kernel: pages may be missing, or not be there yet, and no handler of faults is the runtime's. How many
/// bytes of it could be read.
pub fn read_memory(address: u64, target: &mut [u8]) -> usize {
    let local = [target.as_mut_ptr() as u64, target.len() as u64];
    let remote = [address, target.len() as u64];
    let arguments = [u64::from(getpid()), local.as_ptr() as u64, 1, remote.as_ptr() as u64, 1, 0];
    // SAFETY: writes no more than the target holds.
    let n = unsafe { syscall(number::PROCESS_VM_READV, arguments) };
    usize::try_from(n).unwrap_or(0)
}
