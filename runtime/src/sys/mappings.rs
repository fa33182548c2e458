//! The process' own mappings, as the kernel lists them, and what the files behind them hold.
//!
//! Opens a descriptor for a moment. Slow: for what is seldom asked.

extern crate alloc;
use super::calls::{check, close, read_start, syscall};
use super::proc_text::{self, FileMapping, Mapping};
use crate::cpu::sys::number;
use core::ops::ControlFlow;

const O_CLOEXEC: u64 = 0x8_0000;

/// A descriptor of the runtime's own, from which the process' mappings are read.
pub fn open_list() -> Option<u64> {
    let path = b"/proc/self/maps\0";
    // SAFETY: reads the path.
    check(unsafe { syscall(number::OPEN, [path.as_ptr() as u64, O_CLOEXEC, 0, 0, 0, 0]) }).ok()
}

/// Shows the mappings that `file` tells of to `visit`, with what follows the addresses in a line, until it breaks off:
/// with what it says then. Closes `file`.
pub fn look_through<T>(file: u64, mut visit: impl FnMut(Mapping, &[u8]) -> ControlFlow<T>) -> Option<T> {
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
        for (mapping, rest) in lines.filter_map(proc_text::parse_mapping) {
            if let ControlFlow::Break(what) = visit(mapping, rest) {
                said = Some(what);
                break;
            }
        }
        text.copy_within(whole..length, 0);
        kept = length - whole;
    }
    close(file);
    said
}

/// Reads what the file that is mapped privately at `address` has there; how many bytes. 0 where that can't be found out.
pub fn read_file_behind(address: u64, bytes: &mut [u8]) -> usize {
    const O_NONBLOCK: u64 = 0x800;
    let Some(list) = open_list() else {
        return 0;
    };
    let found = look_through(list, |mapping, rest| match (mapping.start..mapping.end).contains(&address) {
        true => ControlFlow::Break(proc_text::parse_file(rest).map(|file| (mapping, file))),
        false => ControlFlow::Continue(()),
    });
    let Some((mapping, FileMapping { offset, inode, path })) =
        found.flatten().filter(|(mapping, _)| !mapping.is_shared)
    else {
        return 0;
    };
    // SAFETY: reads the path, which ends with a zero.
    let opened = unsafe { syscall(number::OPEN, [path.as_ptr() as u64, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0]) };
    let Ok(file) = check(opened) else {
        return 0;
    };
    let mut about = [0u64; 18];
    let place = offset + (address - mapping.start);
    // SAFETY: writes struct stat, of which the second word is the inode, and at most the bytes.
    let n = unsafe {
        syscall(number::FSTAT, [file, about.as_mut_ptr() as u64, 0, 0, 0, 0]);
        syscall(number::PREAD64, [file, bytes.as_mut_ptr() as u64, bytes.len() as u64, place, 0, 0])
    };
    close(file);
    if about[1] == inode {
        check(n).unwrap_or(0) as usize
    } else {
        0
    }
}

/// Who traces the calling thread; 0: nobody.
pub fn tracer() -> u32 {
    let mut text = [0u8; 512];
    let n = read_start(b"/proc/thread-self/status\0", &mut text).unwrap_or(0);
    proc_text::tracer_of(&text[..n]).unwrap_or(0)
}
