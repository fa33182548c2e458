//! Files in /proc that tell of this process: the program sees them without the runtime; and those that tell whether another one runs.
//!
//! Runs on the runtime's stack, no lock held. Paths are told apart by their last component, so an ordinary open costs a
//! look at its name. What the program opens is opened as it asked and stays what it is, so that everything that can be asked of a
//! descriptor is the kernel's answer. Of files whose text would show the runtime, what is read is another text
//! (dispatch/proc_reads.rs), which this file makes.

extern crate alloc;
use super::{delivery, hidden, proc_reads, proc_states, tracing};
use crate::arch::x86_64::context::ThreadContext;
use crate::arch::x86_64::guarded;
use crate::instrument::ENGINE;
use crate::signal::table::table_of;
use crate::sys::calls::{check, getpid, program_call, syscall};
use crate::sys::kernel::{N_SIGNALS, SIG_DFL, SIG_IGN};
use crate::sys::{number, proc_text};
use crate::thread::registry::writer_of;
use crate::thread::THREADS;
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

fn kind_of(name: &[u8]) -> Option<Kind> {
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

/// open, openat and openat2. `None`: nothing that concerns the runtime, and not made yet.
pub fn open(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> Option<i64> {
    let path = if call == number::OPEN { arguments[0] } else { arguments[1] };
    delivery::with_faults(context, |_| kind_at(path))?;
    // SAFETY: the program's own call.
    let result = unsafe { program_call(call, arguments) };
    if let Ok(file) = check(result) {
        match shown_by(file) {
            Some(Kind::Memory) if may_write(file) => distrust_code(context),
            Some(Kind::OthersMemory) if may_write(file) => tracing::tell_writing(context, &path_of(file)),
            Some(Kind::Memory | Kind::OthersMemory) => {}
            Some(_) => proc_reads::watch(file),
            None => {}
        }
    }
    Some(result)
}

/// What the path at `address` may lead to, by its last component. A guarded copy may fault.
fn kind_at(address: u64) -> Option<Kind> {
    const MAX_PATH_BYTES: u64 = 4096;
    let mut name = [0; 16];
    let mut length = 0;
    let mut at = 0;
    while at < MAX_PATH_BYTES {
        let mut bytes = [0; 128];
        let n = guarded::read_program(&mut bytes, address.wrapping_add(at));
        for byte in &bytes[..n] {
            match byte {
                0 => return kind_of(name.get(..length)?),
                b'/' => length = 0,
                _ => {
                    if let Some(place) = name.get_mut(length) {
                        *place = *byte;
                    }
                    length += 1;
                }
            }
        }
        if n < bytes.len() {
            return None;
        }
        at += n as u64;
    }
    None
}

/// What an open file tells of this process, of a thread in it, or of another one; `None`: nothing that concerns the runtime.
pub fn shown_by(file: u64) -> Option<Kind> {
    const FSTATFS: u64 = 138;
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    let mut about = [0u64; 15];
    // SAFETY: writes struct statfs, 120 bytes, of which the type comes first.
    let result = unsafe { syscall(FSTATFS, [file, about.as_mut_ptr() as u64, 0, 0, 0, 0]) };
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
    let link = super::memory::descriptor_link(file as u32);
    let call = [link.as_ptr() as u64, path.as_mut_ptr() as u64, path.len() as u64, 0, 0, 0];
    // SAFETY: reads the name, writes at most the buffer.
    let length = check(unsafe { syscall(number::READLINK, call) }).unwrap_or(0) as usize;
    path.truncate(length);
    path
}

/// What the program is to read in a file of this kind, whole; `None` if it can't be read. The file's position stays.
pub fn shown_text(context: &ThreadContext, kind: Kind, file: u64) -> Option<Vec<u8>> {
    let text = read_all(context, kind, file)?;
    if text.is_empty() {
        // Of memory that is gone: the program's before an execve.
        return Some(text);
    }
    Some(match kind {
        Kind::Mappings => {
            proc_text::with_reserved(&proc_text::without_mappings(&text, &hidden::ranges()), &hidden::fixed())
        }
        Kind::Details => proc_text::without_mappings(&text, &hidden::ranges()),
        Kind::Addresses => proc_text::without_addresses(&text, &hidden::ranges()),
        Kind::Status => {
            let (ignored, caught) = dispositions(context);
            let tid = proc_text::thread_of(&text);
            proc_states::as_program(file, proc_text::with_signals(&text, hidden_block(tid), ignored, caught))
        }
        Kind::Numbers => {
            let (ignored, caught) = dispositions(context);
            let tid = proc_text::thread_of_numbers(&text);
            proc_states::as_program(file, proc_text::with_signal_numbers(&text, hidden_block(tid), ignored, caught))
        }
        Kind::OthersStatus | Kind::OthersNumbers => proc_states::as_program(file, text),
        Kind::Memory | Kind::OthersMemory => return None,
    })
}

fn may_write(file: u64) -> bool {
    const FCNTL: u64 = 72;
    const F_GETFL: u64 = 3;
    const O_ACCMODE: u64 = 3;
    // SAFETY: no memory.
    let flags = unsafe { syscall(FCNTL, [file, F_GETFL, 0, 0, 0, 0]) } as u64;
    flags & O_ACCMODE != 0
}

/// The program can write to its code although it may not: whether code changed is asked each time it is entered, from now on.
fn distrust_code(context: &ThreadContext) {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    engine.distrust(&writer);
}

/// Mappings are as the program made them until code is trusted again.
pub fn show_mappings_as_made(context: &ThreadContext) {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    engine.end_trust(&writer, 0, u64::MAX, false);
}

/// What the file says; `None` if it can't be read. Its position stays.
fn read_all(context: &ThreadContext, kind: Kind, file: u64) -> Option<Vec<u8>> {
    const PREAD: u64 = 17;
    const STEP: usize = 0x4000;
    let mut text = Vec::new();
    if matches!(kind, Kind::Mappings | Kind::Details | Kind::Addresses) {
        show_mappings_as_made(context);
    }
    loop {
        let length = text.len();
        text.resize(length + STEP, 0);
        let call = [file, text[length..].as_mut_ptr() as u64, STEP as u64, length as u64, 0, 0];
        // SAFETY: writes at most `STEP` bytes behind what is there.
        let n = check(unsafe { syscall(PREAD, call) }).ok()?;
        text.truncate(length + n as usize);
        if n == 0 {
            return Some(text);
        }
    }
}

/// What thread `tid` blocks besides what the kernel knows, as a mask.
fn hidden_block(tid: Option<u32>) -> u64 {
    let threads = THREADS.lock();
    // SAFETY: the contexts of used places are mapped; their threads write these fields, and either value is right.
    let mut contexts = threads.contexts().map(|context| unsafe { &*context });
    contexts.find(|context| Some(context.tid) == tid).map_or(0, |context| context.program_mask(0))
}

/// As masks: which signals the program ignores, and for which it has handlers.
fn dispositions(context: &ThreadContext) -> (u64, u64) {
    let table = table_of(context).lock();
    let mut masks = (0, 0);
    for signal in 1..=N_SIGNALS as u32 {
        let bit = 1 << (signal - 1);
        match table.action(signal).handler {
            SIG_DFL => {}
            SIG_IGN => masks.0 |= bit,
            _ => masks.1 |= bit,
        }
    }
    masks
}
