//! Processes' code, written from outside of it: what protects the pages is of no account then (/proc/PID/mem, proc(5)).
//!
//! Runs in the runtime's task.

use crate::cpu::sys::number;
use crate::sys::calls::{check, close, syscall};

const O_RDONLY: u64 = 0;
const O_RDWR: u64 = 2;

/// The memory of this process.
pub const OWN: &[u8; 15] = b"/proc/self/mem\0";

/// Memory that is open.
pub struct CodeMemory(u64);

impl CodeMemory {
    /// Opens that of a process by the path of its file, which ends with a zero byte. `None`: it is gone, or not this user's.
    pub fn open(path: &[u8], writes: bool) -> Option<CodeMemory> {
        debug_assert!(path.contains(&0));
        let how = if writes { O_RDWR } else { O_RDONLY };
        // SAFETY: reads the path.
        check(unsafe { syscall(number::OPEN, [path.as_ptr() as u64, how, 0, 0, 0, 0]) }).ok().map(CodeMemory)
    }

    /// Whether all of that could be read.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        // SAFETY: writes at most the buffer.
        let n =
            unsafe { syscall(number::PREAD64, [self.0, bytes.as_mut_ptr() as u64, bytes.len() as u64, address, 0, 0]) };
        check(n) == Ok(bytes.len() as u64)
    }

    pub fn write(&self, address: u64, bytes: &[u8]) {
        // SAFETY: what is written is the program's own code, or a counter of its, as it was.
        unsafe { syscall(number::PWRITE64, [self.0, bytes.as_ptr() as u64, bytes.len() as u64, address, 0, 0]) };
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// membarrier(2): processors see what was written before they go on.
pub fn barrier(command: u64) {
    // SAFETY: no memory.
    unsafe { syscall(number::MEMBARRIER, [command, 0, 0, 0, 0, 0]) };
}
