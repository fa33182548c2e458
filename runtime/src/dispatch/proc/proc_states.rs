//! Whether threads sleep, as files of /proc tell: who waits for the controller, or for another thread in the runtime, runs as far as
//! the program knows.
//!
//! Runs on the runtime's stack, no lock held. The thread may be one of any process that is recorded: the image lies at the same place in
//! nearly all of them, and where it does not, the kernel's word stays.

extern crate alloc;
use super::proc_kinds::path_of;
use crate::cpu::signal::image::image_range;
use crate::cpu::signal::image::program_calls;
use crate::instrument::ENGINE;
use crate::sys::calls::read_start;
use crate::sys::proc_state::{as_running, state_of, State};
use crate::sys::proc_text;
use alloc::vec::Vec;

/// The text of stat or status that was read in `file`, with the state that the thread has as far as the program knows, and without the
/// controller as its tracer.
pub fn as_program(file: u64, text: Vec<u8>) -> Vec<u8> {
    let controller = ENGINE.lock().shared.header().controller_pid;
    match state_of(&text) {
        Some(State::Sleeping) if waits_in_runtime(file) => as_running(&text),
        // While a program is executed, or threads are brought in.
        Some(State::Traced) if is_traced_by(file, controller) => as_running(&text),
        _ => text,
    }
}

/// Whether what the thread waits in is no call of the program's. One that goes on meanwhile runs.
fn waits_in_runtime(file: u64) -> bool {
    let mut text = [0; 256];
    let Ok(length) = read_start(&proc_text::sibling_path(&path_of(file), b"syscall"), &mut text) else {
        return false;
    };
    match proc_text::blocked_call(&text[..length]) {
        Some((_, pc)) => image_range().contains(&pc) && !program_calls().contains(&pc),
        None => text.starts_with(b"running"),
    }
}

fn is_traced_by(file: u64, controller: u32) -> bool {
    let mut text = [0; 1024];
    let length = read_start(&proc_text::sibling_path(&path_of(file), b"status"), &mut text).unwrap_or(0);
    proc_text::tracer_of(&text[..length]) == Some(controller)
}
