//! What system calls read, write and answer.

use super::access;
use crate::context::ThreadContext;
use crate::sys::calls::{Error, EFAULT};

/// The call is done. One that a filter answered with a signal leaves its number where it was.
pub fn finish(context: &mut ThreadContext, result: i64) {
    if !is_trapped(context) {
        context.registers.set_result(result as u64);
    }
}

/// Whether a filter answered the call with a signal: read anew each time, because the signal handler says so.
pub fn is_trapped(context: &ThreadContext) -> bool {
    // SAFETY: a field of a live context.
    unsafe { (&raw const context.call.is_trapped).read_volatile() != 0 }
}

/// Reads a structure of the program's. The kernel would answer EFAULT for a bad address; a fault here ends the process.
pub fn read_program<T: Copy>(address: u64) -> Result<T, Error> {
    if !access::is_readable(address, size_of::<T>() as u64) {
        return Err(Error(EFAULT));
    }
    // SAFETY: the kernel just read the same bytes.
    Ok(unsafe { (address as *const T).read_unaligned() })
}

pub fn write_program<T: Copy>(address: u64, value: T) -> Result<(), Error> {
    if !access::is_writable(address, size_of::<T>() as u64) {
        return Err(Error(EFAULT));
    }
    // SAFETY: the kernel just wrote the same bytes.
    unsafe { (address as *mut T).write_unaligned(value) };
    Ok(())
}

pub fn result_of(result: Result<(), Error>) -> i64 {
    match result {
        Ok(()) => 0,
        Err(Error(number)) => -i64::from(number),
    }
}
