//! What was written over the program's code, where nobody is left to write it back.
//!
//! Runs in the runtime's task. Copies and handlers stay, for threads that are there; from then on none comes there any more.

use crate::buffer::Shared;
use crate::cpu::probe::trap::TRAP;
use crate::cpu::sys::number;
use crate::protocol::{PatchRow, MAX_PATCHES};
use crate::sys::calls::{check, close, syscall};
use core::sync::atomic::{AtomicU32, Ordering};

const O_RDWR: u64 = 2;
const MEMORY: &[u8; 15] = b"/proc/self/mem\0";
/// Commands of membarrier(2): all processors that execute the process' code see what was written before they go on.
const SYNC_CORE: u64 = 1 << 5;
const REGISTER_SYNC_CORE: u64 = 1 << 6;

/// Has the code be as it was while threads execute it: each first byte traps until what is behind it is written, and such threads go on in
/// the copies (`traps`).
pub fn take_back(shared: Shared) {
    // SAFETY: reads the path.
    let file = unsafe { syscall(number::OPEN, [MEMORY.as_ptr() as u64, O_RDWR, 0, 0, 0, 0]) };
    let Ok(file) = check(file) else { return };
    barrier(REGISTER_SYNC_CORE);
    for_each(shared, |row| write(file, row.address, &[TRAP]));
    barrier(SYNC_CORE);
    for_each(shared, |row| write(file, row.address + 1, content(row).get(1..).unwrap_or_default()));
    barrier(SYNC_CORE);
    for_each(shared, |row| write(file, row.address, content(row).get(..1).unwrap_or_default()));
    close(file);
}

/// What was written over.
pub fn content(row: &PatchRow) -> &[u8] {
    &row.content[..(row.size as usize).min(row.content.len())]
}

/// Does something with each row of the table.
pub fn for_each(shared: Shared, mut change: impl FnMut(&PatchRow)) {
    // SAFETY: the status page is mapped; the field is an aligned u32.
    let count = unsafe { AtomicU32::from_ptr(&raw mut (*shared.status()).patch_count) }.load(Ordering::Acquire);
    for index in 0..u64::from(count).min(MAX_PATCHES) {
        // SAFETY: inside the table, which is mapped; copied before anything of it is believed.
        change(&unsafe { shared.patches().add(index as usize).read_volatile() });
    }
}

fn write(file: u64, address: u64, bytes: &[u8]) {
    // SAFETY: by this file what protects the page is of no account (proc(5)); what is written is the program's own code.
    unsafe { syscall(number::PWRITE64, [file, bytes.as_ptr() as u64, bytes.len() as u64, address, 0, 0]) };
}

fn barrier(command: u64) {
    // SAFETY: no memory.
    unsafe { syscall(number::MEMBARRIER, [command, 0, 0, 0, 0, 0]) };
}
