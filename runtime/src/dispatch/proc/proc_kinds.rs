//! Which files of /proc tell of the runtime.

extern crate alloc;
use crate::cpu::sys::number;
use crate::sys::calls::{check, getpid, syscall};
use crate::sys::proc_text;
use alloc::vec::Vec;

/// What a path's last component may stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// maps: lines that start with a mapping. Programs look there for addresses that are free.
    Mappings,
    /// smaps: such lines, and what belongs to each.
    Details,
    /// numa_maps: lines that start with a mapping's address.
    Addresses,
    /// status: which signals are blocked, ignored and caught, in a line each.
    Status,
    /// stat: the same among the numbers of its one line.
    Numbers,
    /// status and stat of another process: whether it sleeps.
    OthersStatus,
    OthersNumbers,
    /// mem: by which the program writes to its own code, or to another process'.
    Memory,
    OthersMemory,
}

impl Kind {
    /// What is shown of another process; `None`: all that the kernel says.
    fn of_another(self) -> Option<Kind> {
        match self {
            Kind::Status => Some(Kind::OthersStatus),
            Kind::Numbers => Some(Kind::OthersNumbers),
            Kind::Memory => Some(Kind::OthersMemory),
            _ => None,
        }
    }
}

pub fn kind_of(name: &[u8]) -> Option<Kind> {
    match name {
        b"maps" => Some(Kind::Mappings),
        b"smaps" => Some(Kind::Details),
        b"numa_maps" => Some(Kind::Addresses),
        b"status" => Some(Kind::Status),
        b"stat" => Some(Kind::Numbers),
        b"mem" => Some(Kind::Memory),
        _ => None,
    }
}

/// What an open file tells of this process, of a thread in it, or of another one; `None`: nothing that concerns the runtime.
pub fn shown_by(file: u64) -> Option<Kind> {
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    let mut about = [0u64; 15];
    // SAFETY: writes struct statfs, 120 bytes, of which the type comes first.
    let result = unsafe { syscall(number::FSTATFS, [file, about.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    if result != 0 || about[0] != PROC_SUPER_MAGIC {
        return None;
    }
    let path = path_of(file);
    let process = proc_text::process_of(&path)?;
    let kind = path.rsplit(|byte| *byte == b'/').next().and_then(kind_of)?;
    if process == getpid() {
        Some(kind)
    } else {
        kind.of_another()
    }
}

/// The path of an open file, as far as it fits.
pub fn path_of(file: u64) -> Vec<u8> {
    let mut path = alloc::vec![0u8; 256];
    let link = crate::dispatch::calls::memory::descriptor_link(file as u32);
    let call = [link.as_ptr() as u64, path.as_mut_ptr() as u64, path.len() as u64, 0, 0, 0];
    // SAFETY: reads the name, writes at most the buffer.
    let length = check(unsafe { syscall(number::READLINK, call) }).unwrap_or(0) as usize;
    path.truncate(length);
    path
}
