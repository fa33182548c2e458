//! What is mapped in the process, as the kernel tells: by /proc; and where the process can't open that (a root without /proc, no
//! descriptor left, a rule against it), by the controller, which reads it from outside.
//!
//! Runs on the runtime's stack, no lock held.

extern crate alloc;
use super::dumpable::while_shown;
use crate::arch::x86_64::context::ThreadContext;
use crate::instrument::ENGINE;
use crate::protocol::request_kind;
use crate::sys::calls::{check, syscall};
use crate::sys::{number, proc_text};
use crate::thread::registry::writer_of;
use core::ops::ControlFlow;

pub use crate::sys::proc_text::Mapping;

/// The mapping that holds `address`.
pub fn find_mapping(context: &ThreadContext, address: u64) -> Option<Mapping> {
    let Some(file) = open_list() else {
        return ask_for(context, address).filter(|mapping| mapping.start <= address);
    };
    look_through(file, |mapping| match (mapping.start..mapping.end).contains(&address) {
        true => ControlFlow::Break(mapping),
        false => ControlFlow::Continue(()),
    })
}

/// Shows all mappings of the process to `visit`, by address.
pub fn visit_mappings(context: &ThreadContext, mut visit: impl FnMut(Mapping)) {
    if let Some(file) = open_list() {
        look_through(file, |mapping| {
            visit(mapping);
            ControlFlow::<()>::Continue(())
        });
        return;
    }
    let mut from = 0;
    while let Some(mapping) = ask_for(context, from).filter(|mapping| mapping.end > from) {
        from = mapping.end;
        visit(mapping);
    }
}

/// What the controller says is mapped at `address`, or is the first above.
fn ask_for(context: &ThreadContext, address: u64) -> Option<Mapping> {
    let shared = ENGINE.lock().shared;
    let writer = writer_of(context, shared);
    let is_there = while_shown(|| writer.request(request_kind::MAPPING, [address, 0, 0, 0])) == Some(1);
    let [start, end, protection, is_shared] = writer.answer();
    is_there.then_some(Mapping { start, end, protection, is_shared: is_shared != 0 })
}

/// A descriptor of the runtime's own, from which the process' mappings are read.
fn open_list() -> Option<u64> {
    const O_CLOEXEC: u64 = 0x8_0000;
    let path = b"/proc/self/maps\0";
    // SAFETY: reads the path.
    check(unsafe { syscall(number::OPEN, [path.as_ptr() as u64, O_CLOEXEC, 0, 0, 0, 0]) }).ok()
}

/// Shows the mappings that `file` tells of to `visit`, until it breaks off: with what it says then. Closes `file`.
fn look_through<T>(file: u64, mut visit: impl FnMut(Mapping) -> ControlFlow<T>) -> Option<T> {
    let mut text = alloc::vec![0u8; 0x1_0000];
    let mut kept = 0;
    let mut said = None;
    while said.is_none() && kept < text.len() {
        let room = (text.len() - kept) as u64;
        // SAFETY: writes at most `room` bytes behind what is kept.
        let read = unsafe { syscall(number::READ, [file, text.as_mut_ptr() as u64 + kept as u64, room, 0, 0, 0]) };
        if read <= 0 {
            break;
        }
        let length = kept + read as usize;
        let whole = text[..length].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines = text[..whole].split(|byte| *byte == b'\n');
        for (mapping, _) in lines.filter_map(proc_text::parse_mapping) {
            if let ControlFlow::Break(what) = visit(mapping) {
                said = Some(what);
                break;
            }
        }
        text.copy_within(whole..length, 0);
        kept = length - whole;
    }
    // SAFETY: closes the runtime's own descriptor.
    unsafe { syscall(number::CLOSE, [file, 0, 0, 0, 0, 0]) };
    said
}
