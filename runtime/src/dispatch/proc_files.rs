//! Files in /proc that tell of this process: the program sees them without the runtime.
//!
//! Runs on the runtime's stack, no lock held. Paths are told apart by their last component, so an ordinary open costs a
//! look at its name. What the program opens is opened as it asked, so that errors and numbers are the kernel's; where the
//! kernel's text would show the runtime, a copy of the text without it takes the file's place.

extern crate alloc;
use super::{delivery, hidden};
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

const O_ACCMODE: u64 = 3;
const O_CLOEXEC: u64 = 0x8_0000;

/// What a path's last component may stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// maps: lines that start with a mapping. Programs look there for addresses that are free.
    Mappings,
    /// smaps: such lines, and what belongs to each.
    Details,
    /// numa_maps: lines that start with a mapping's address.
    Addresses,
    Status,
    /// mem: by which the program writes to its own code.
    Memory,
}

fn kind_of(name: &[u8]) -> Option<Kind> {
    match name {
        b"maps" => Some(Kind::Mappings),
        b"smaps" => Some(Kind::Details),
        b"numa_maps" => Some(Kind::Addresses),
        b"status" => Some(Kind::Status),
        b"mem" => Some(Kind::Memory),
        _ => None,
    }
}

/// open, openat and openat2. `None`: nothing that concerns the runtime, and not made yet.
pub fn open(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> Option<i64> {
    let path = if call == number::OPEN { arguments[0] } else { arguments[1] };
    let kind = delivery::with_faults(context, |_| kind_at(path))?;
    // SAFETY: the program's own call.
    let result = unsafe { program_call(call, arguments) };
    if let Ok(file) = check(result) {
        if tells_of_this_process(file) {
            replace(context, kind, file);
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

/// Whether an open file lies in a /proc's folder of this process, or of a thread in it.
fn tells_of_this_process(file: u64) -> bool {
    const FSTATFS: u64 = 138;
    const PROC_SUPER_MAGIC: u64 = 0x9fa0;
    let mut about = [0u64; 15];
    // SAFETY: writes struct statfs, 120 bytes, of which the type comes first.
    let result = unsafe { syscall(FSTATFS, [file, about.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    if result != 0 || about[0] != PROC_SUPER_MAGIC {
        return false;
    }
    let mut path = [0u8; 256];
    let link = super::memory::descriptor_link(file as u32);
    let call = [link.as_ptr() as u64, path.as_mut_ptr() as u64, path.len() as u64, 0, 0, 0];
    // SAFETY: reads the name, writes at most the buffer.
    let length = check(unsafe { syscall(number::READLINK, call) }).unwrap_or(0) as usize;
    proc_text::process_of(&path[..length]) == Some(getpid())
}

fn replace(context: &ThreadContext, kind: Kind, file: u64) {
    if kind == Kind::Memory {
        distrust_code(context, file);
        return;
    }
    let Some(text) = read_all(context, kind, file) else {
        return;
    };
    let shown = match kind {
        Kind::Mappings => {
            proc_text::with_reserved(&proc_text::without_mappings(&text, &hidden::ranges()), &hidden::fixed())
        }
        Kind::Details => proc_text::without_mappings(&text, &hidden::ranges()),
        Kind::Addresses => proc_text::without_addresses(&text, &hidden::ranges()),
        Kind::Status | Kind::Memory => {
            let (ignored, caught) = dispositions(context);
            proc_text::with_signals(&text, hidden_block(&text), ignored, caught)
        }
    };
    put_in_place(file, &shown);
}

/// The program can write to its code although it may not: whether code changed is asked each time it is entered, from now on.
fn distrust_code(context: &ThreadContext, file: u64) {
    const FCNTL: u64 = 72;
    const F_GETFL: u64 = 3;
    // SAFETY: no memory.
    let flags = unsafe { syscall(FCNTL, [file, F_GETFL, 0, 0, 0, 0]) } as u64;
    if flags & O_ACCMODE != 0 {
        let mut engine = ENGINE.lock();
        let writer = writer_of(context, engine.shared);
        engine.distrust(&writer);
    }
}

/// What the file says; `None` if it can't be read. Its position stays.
fn read_all(context: &ThreadContext, kind: Kind, file: u64) -> Option<Vec<u8>> {
    const PREAD: u64 = 17;
    const STEP: usize = 0x4000;
    let mut text = Vec::new();
    if kind != Kind::Status {
        // Mappings are as the program made them.
        let mut engine = ENGINE.lock();
        let writer = writer_of(context, engine.shared);
        engine.end_trust(&writer, 0, u64::MAX, false);
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

/// What the thread that a status tells of blocks besides what the kernel knows, as a mask.
fn hidden_block(text: &[u8]) -> u64 {
    let tid = proc_text::thread_of(text).unwrap_or(0);
    let threads = THREADS.lock();
    // SAFETY: the contexts of used places are mapped; their threads write these fields, and either value is right.
    let mut contexts = threads.contexts().map(|context| unsafe { &*context });
    contexts.find(|context| context.tid == tid).map_or(0, |context| context.program_mask(0))
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

/// Makes the descriptor `file` lead to a file that holds `text`. If that can't be had, all stays as it is.
fn put_in_place(file: u64, text: &[u8]) {
    const FCHMOD: u64 = 91;
    const MEMFD_CREATE: u64 = 319;
    const DUP3: u64 = 292;
    const FCNTL: u64 = 72;
    const F_GETFD: u64 = 1;
    const MFD_CLOEXEC: u64 = 1;
    let name = b"proc\0";
    // SAFETY: reads the name.
    let Ok(copy) = check(unsafe { syscall(MEMFD_CREATE, [name.as_ptr() as u64, MFD_CLOEXEC, 0, 0, 0, 0]) }) else {
        return;
    };
    let mut rest = text;
    while !rest.is_empty() {
        // SAFETY: reads the text.
        let n = check(unsafe { syscall(number::WRITE, [copy, rest.as_ptr() as u64, rest.len() as u64, 0, 0, 0]) });
        match n {
            Ok(n) if n != 0 => rest = &rest[n as usize..],
            _ => break,
        }
    }
    let link = super::memory::descriptor_link(copy as u32);
    // SAFETY: reads the link; all descriptors but `file` are the runtime's own, and that one is replaced by what is to be in
    // its place.
    unsafe {
        syscall(FCHMOD, [copy, 0o444, 0, 0, 0, 0]);
        if let Ok(shown) = check(syscall(number::OPEN, [link.as_ptr() as u64, O_CLOEXEC, 0, 0, 0, 0])) {
            if rest.is_empty() {
                let is_closed_on_exec = syscall(FCNTL, [file, F_GETFD, 0, 0, 0, 0]) & 1 != 0;
                syscall(DUP3, [shown, file, if is_closed_on_exec { O_CLOEXEC } else { 0 }, 0, 0, 0]);
            }
            syscall(number::CLOSE, [shown, 0, 0, 0, 0, 0]);
        }
        syscall(number::CLOSE, [copy, 0, 0, 0, 0, 0]);
    }
}
