//! Files of /proc that the program opens: those that tell of this process, or whether another one runs.
//!
//! Runs on the runtime's stack, no lock held. Paths are told apart by their last component, so an ordinary open costs a
//! look at its name. What the program opens is opened as it asked and stays what it is, so that everything that can be asked of a
//! descriptor is the kernel's answer. Of files whose text would show the runtime, what is read is another text
//! (dispatch/proc/proc_reads.rs, dispatch/proc/proc_files.rs).

extern crate alloc;
use super::proc_files::distrust_code;
use super::proc_kinds::{kind_of, path_of, shown_by, Kind};
use super::proc_reads;
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::cpu::sys::number;
use crate::dispatch::calls::tracing;
use crate::dispatch::signals::masks;
use crate::sys::calls::{check, program_call, syscall};

/// open, openat and openat2. `None`: nothing that concerns the runtime, and not made yet.
pub fn open(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> Option<i64> {
    let path = if call == number::OPEN { arguments[0] } else { arguments[1] };
    masks::with_faults(context, |_| kind_at(path))?;
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
pub fn kind_at(address: u64) -> Option<Kind> {
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

pub fn may_write(file: u64) -> bool {
    const F_GETFL: u64 = 3;
    const O_ACCMODE: u64 = 3;
    // SAFETY: no memory.
    let flags = unsafe { syscall(number::FCNTL, [file, F_GETFL, 0, 0, 0, 0]) } as u64;
    flags & O_ACCMODE != 0
}
