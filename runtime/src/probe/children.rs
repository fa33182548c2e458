//! Forks' children, which have the process' probes in memory of their own, where nobody is left to take these out.
//!
//! Runs in the runtime's task of the process, while that has its probes: what a child's code is to be like is known by it. Children have no
//! task; they share the memory of the controller, which tells them from everybody else.

use super::patches::{content, for_each};
use crate::buffer::Shared;
use crate::cpu::probe::trap::TRAP;
use crate::cpu::sys::number;
use crate::protocol::{PatchRow, StatusPage};
use crate::sys::calls::{check, close, getpid, syscall};
use crate::sys::processes;
use core::mem::offset_of;

const O_RDONLY: u64 = 0;
const O_RDWR: u64 = 2;
const OWN_MEMORY: &[u8; 15] = b"/proc/self/mem\0";
/// Of membarrier(2): every processor has left what it ran, or was interrupted, before this returns.
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
    // SAFETY: reads the path.
    let own = unsafe { syscall(number::OPEN, [OWN_MEMORY.as_ptr() as u64, O_RDONLY, 0, 0, 0, 0]) };
    let Ok(own) = check(own) else { return };
    for step in [Step::Trap, Step::Rest, Step::First] {
        let mut n_children = 0;
        processes::for_each(|pid| {
            if pid != process && pid != getpid() {
                n_children += usize::from(change(shared, own, pid, step));
            }
        });
        if n_children == 0 {
            break;
        }
        // SAFETY: no memory. Children's own barrier (SYNC_CORE) is theirs alone to ask for.
        unsafe { syscall(number::MEMBARRIER, [GLOBAL, 0, 0, 0, 0, 0]) };
    }
    close(own);
}

/// Takes a step in a process; whether that is a child.
fn change(shared: Shared, own: u64, pid: u32, step: Step) -> bool {
    let path = processes::memory_path(pid);
    // SAFETY: reads the path.
    let Ok(file) = check(unsafe { syscall(number::OPEN, [path.as_ptr() as u64, O_RDWR, 0, 0, 0, 0]) }) else {
        return false;
    };
    let is_child = shares(shared, own, file);
    if is_child {
        for_each(shared, |row| change_row(own, file, row, step));
    }
    close(file);
    is_child
}

/// Whether a process has the memory that is shared, where this one has it.
fn shares(shared: Shared, own: u64, file: u64) -> bool {
    let started = shared.status() as u64 + offset_of!(StatusPage, start_tsc) as u64;
    let (mut here, mut there) = ([0; STARTED_BYTES], [0; STARTED_BYTES]);
    read(own, started, &mut here) && read(file, started, &mut there) && here == there
}

fn change_row(own: u64, file: u64, row: &PatchRow, step: Step) {
    let original = content(row);
    let (mut here, mut there) = ([0; ROW_BYTES], [0; ROW_BYTES]);
    let (Some(here), Some(there)) = (here.get_mut(..original.len()), there.get_mut(..original.len())) else {
        return;
    };
    if !read(own, row.address, here) || !read(file, row.address, there) {
        return;
    }
    let (Some((first, rest)), Some((there_first, there_rest)), Some((_, here_rest))) =
        (original.split_first(), there.split_first(), here.split_first())
    else {
        return;
    };
    let has_trap = *there_first == TRAP;
    match step {
        Step::Trap if there == here => write(file, row.address, &[TRAP]),
        Step::Rest if has_trap && there_rest == here_rest => write(file, row.address + 1, rest),
        Step::First if has_trap && there_rest == rest => write(file, row.address, &[*first]),
        _ => {}
    }
}

fn read(file: u64, address: u64, bytes: &mut [u8]) -> bool {
    // SAFETY: writes at most the buffer.
    let n = unsafe { syscall(number::PREAD64, [file, bytes.as_mut_ptr() as u64, bytes.len() as u64, address, 0, 0]) };
    check(n) == Ok(bytes.len() as u64)
}

fn write(file: u64, address: u64, bytes: &[u8]) {
    // SAFETY: what is written is the child's own code; by this file what protects the page is of no account (proc(5)).
    unsafe { syscall(number::PWRITE64, [file, bytes.as_ptr() as u64, bytes.len() as u64, address, 0, 0]) };
}
