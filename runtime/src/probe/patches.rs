//! What was written over the program's code, and what static probes' counters were raised by, where nobody is left to write it back.
//!
//! Runs in the runtime's task. Copies and handlers stay, for threads that are there; from then on none comes there any more.

use super::code_memory::{barrier, CodeMemory, OWN};
use crate::buffer::Shared;
use crate::cpu::probe::trap::TRAP;
use crate::protocol::{PatchRow, MAX_PATCHES};
use core::sync::atomic::{AtomicU32, Ordering};

/// Commands of membarrier(2): all processors that execute the process' code see what was written before they go on.
const SYNC_CORE: u64 = 1 << 5;
const REGISTER_SYNC_CORE: u64 = 1 << 6;

/// Has the code be as it was while threads execute it: each first byte traps until what is behind it is written, and such threads go on in
/// the copies (`traps`).
pub fn take_back(shared: Shared) {
    let Some(memory) = CodeMemory::open(OWN, true) else { return };
    barrier(REGISTER_SYNC_CORE);
    for_each(shared, |row| memory.write(row.address, &[TRAP]));
    barrier(SYNC_CORE);
    for_each(shared, |row| memory.write(row.address + 1, content(row).get(1..).unwrap_or_default()));
    barrier(SYNC_CORE);
    for_each(shared, |row| memory.write(row.address, content(row).get(..1).unwrap_or_default()));
    for_each_counter(shared, |row| {
        if let Some(value) = count_at(&memory, row.address) {
            lower(&memory, row, value);
        }
    });
}

/// What a counter has that static probes look at.
pub fn count_at(memory: &CodeMemory, address: u64) -> Option<u16> {
    let mut bytes = [0; 2];
    memory.read(address, &mut bytes).then(|| u16::from_le_bytes(bytes))
}

/// Has a counter be by so much less as it was raised.
pub fn lower(memory: &CodeMemory, row: &PatchRow, value: u16) {
    let raised = u16::try_from(row.raised).unwrap_or(u16::MAX);
    memory.write(row.address, &value.saturating_sub(raised).to_le_bytes());
}

/// What was written over.
pub fn content(row: &PatchRow) -> &[u8] {
    &row.content[..(row.size as usize).min(row.content.len())]
}

/// Does something with each row of the table that is about code.
pub fn for_each(shared: Shared, mut change: impl FnMut(&PatchRow)) {
    for_each_row(shared, |row| {
        if row.raised == 0 {
            change(row);
        }
    });
}

/// Does something with each that is about a counter.
pub fn for_each_counter(shared: Shared, mut change: impl FnMut(&PatchRow)) {
    for_each_row(shared, |row| {
        if row.raised != 0 {
            change(row);
        }
    });
}

fn for_each_row(shared: Shared, mut change: impl FnMut(&PatchRow)) {
    // SAFETY: the status page is mapped; the field is an aligned u32.
    let count = unsafe { AtomicU32::from_ptr(&raw mut (*shared.status()).patch_count) }.load(Ordering::Acquire);
    for index in 0..u64::from(count).min(MAX_PATCHES) {
        // SAFETY: inside the table, which is mapped; copied before anything of it is believed.
        change(&unsafe { shared.patches().add(index as usize).read_volatile() });
    }
}
