//! Forks' children, which have the process' probes in memory of their own, where nobody is left to take these out.
//!
//! Runs in the runtime's task of the process, while that has its probes: what a child's code is to be like is known by it. Children have no
//! task; they share the memory of the controller, which tells them from everybody else.

use super::code_memory::{barrier, CodeMemory, OWN};
use super::patches::{content, count_at, for_each, for_each_counter, lower};
use crate::buffer::Shared;
use crate::cpu::probe::trap::TRAP;
use crate::protocol::{PatchRow, StatusPage};
use crate::sys::calls::getpid;
use crate::sys::processes;
use core::mem::offset_of;

/// Of membarrier(2): every processor has left what it ran, or was interrupted, before this returns. Children's own barrier (SYNC_CORE) is theirs
/// alone to ask for.
const GLOBAL: u64 = 1;
const ROW_BYTES: usize = 16;
/// When the runtime started, by two clocks: no other process has that.
const STARTED_BYTES: usize = 16;

/// What is written next at each place: as code is written while threads execute it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Trap,
    Rest,
    First,
}

/// Has the code of the children of `process` be as it was, where it is what it is in the process.
pub fn take_back(shared: Shared, process: u32) {
    let Some(own) = CodeMemory::open(OWN, false) else { return };
    for step in [Step::Trap, Step::Rest, Step::First] {
        let mut n_children = 0;
        processes::for_each(|pid| {
            if pid != process && pid != getpid() {
                n_children += usize::from(change(shared, &own, pid, step));
            }
        });
        if n_children == 0 {
            break;
        }
        barrier(GLOBAL);
    }
}

/// Takes a step in a process; whether that is a child.
fn change(shared: Shared, own: &CodeMemory, pid: u32, step: Step) -> bool {
    let Some(memory) = CodeMemory::open(&processes::memory_path(pid), true) else { return false };
    let is_child = shares(shared, own, &memory);
    if is_child {
        for_each(shared, |row| change_row(own, &memory, row, step));
        if step == Step::First {
            for_each_counter(shared, |row| lower_counter(own, &memory, row));
        }
    }
    is_child
}

/// Whether a process has the memory that is shared, where this one has it.
fn shares(shared: Shared, own: &CodeMemory, memory: &CodeMemory) -> bool {
    let started = shared.status() as u64 + offset_of!(StatusPage, start_tsc) as u64;
    let (mut here, mut there) = ([0; STARTED_BYTES], [0; STARTED_BYTES]);
    own.read(started, &mut here) && memory.read(started, &mut there) && here == there
}

/// A child has a counter as the process has it if it was made when that was raised.
fn lower_counter(own: &CodeMemory, memory: &CodeMemory, row: &PatchRow) {
    let (here, there) = (count_at(own, row.address), count_at(memory, row.address));
    if let (Some(value), true) = (there, there == here) {
        lower(memory, row, value);
    }
}

fn change_row(own: &CodeMemory, memory: &CodeMemory, row: &PatchRow, step: Step) {
    let original = content(row);
    let (mut here, mut there) = ([0; ROW_BYTES], [0; ROW_BYTES]);
    let (Some(here), Some(there)) = (here.get_mut(..original.len()), there.get_mut(..original.len())) else {
        return;
    };
    if !own.read(row.address, here) || !memory.read(row.address, there) {
        return;
    }
    let (Some((first, rest)), Some((there_first, there_rest)), Some((_, here_rest))) =
        (original.split_first(), there.split_first(), here.split_first())
    else {
        return;
    };
    let has_trap = *there_first == TRAP;
    match step {
        Step::Trap if there == here => memory.write(row.address, &[TRAP]),
        Step::Rest if has_trap && there_rest == here_rest => memory.write(row.address + 1, rest),
        Step::First if has_trap && there_rest == rest => memory.write(row.address, &[*first]),
        _ => {}
    }
}
