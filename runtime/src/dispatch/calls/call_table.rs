//! Which system calls come to the dispatcher.

use crate::cpu::sys::number;
use crate::cpu::{dispatcher, probe_points};
use crate::dispatch::apart::captured_rings;
use crate::dispatch::proc::watched;
use crate::dispatch::proc::watched::WATCHED_CALLS;
use crate::instrument::Engine;

/// The calls that come to the dispatcher.
pub const HANDLED: &[u64] = &[
    number::BRK,
    number::MLOCK,
    number::MLOCK2,
    number::MUNLOCK,
    number::MSYNC,
    number::MINCORE,
    number::MBIND,
    number::MSEAL,
    number::REMAP_FILE_PAGES,
    number::GETPPID,
    number::OPEN,
    number::OPENAT,
    number::OPENAT2,
    number::RSEQ,
    number::MLOCKALL,
    number::MUNLOCKALL,
    number::PTRACE,
    number::MMAP,
    number::MPROTECT,
    number::MUNMAP,
    number::RT_SIGACTION,
    number::RT_SIGRETURN,
    number::MREMAP,
    number::MADVISE,
    number::PROCESS_MADVISE,
    number::PROCESS_VM_WRITEV,
    number::CLONE,
    number::FORK,
    number::VFORK,
    number::EXECVE,
    number::EXIT,
    number::SIGALTSTACK,
    number::PRCTL,
    number::ARCH_PRCTL,
    number::EXIT_GROUP,
    number::SECCOMP,
    number::EXECVEAT,
    number::PERF_EVENT_OPEN,
    number::PKEY_MPROTECT,
    number::CLONE3,
    number::RT_SIGPROCMASK,
    number::SHMAT,
    number::SHMDT,
    number::WAIT4,
    number::WAITID,
];

/// Tells the gate which calls come here: all that path and tags have the time of, where these are recorded, and
/// those at which something is captured.
pub fn handle_what(engine: &Engine) {
    let handles_all = engine.sees_all_calls();
    let handles_rings = engine.captures.takes_rings();
    for call in 0..size_of::<dispatcher::CallTable>() as u64 {
        let is_of_rings = handles_rings && captured_rings::HANDLED.contains(&call);
        tell_gate(call, handles_all || is_of_rings || HANDLED.contains(&call) || engine.captures.takes_call(call));
    }
    handle_watched(engine);
}

/// The same of those that come here only while what they may read tells of the runtime.
pub fn handle_watched(engine: &Engine) {
    let is_handled = engine.sees_all_calls() || watched::is_any_watched();
    for call in WATCHED_CALLS {
        let is_used = *call == number::IOCTL && probe_points::is_any_used();
        tell_gate(*call, is_handled || is_used || engine.captures.takes_call(*call));
    }
}

pub fn tell_gate(call: u64, is_handled: bool) {
    let table = (&raw mut dispatcher::HANDLED_SYSCALLS).cast::<u8>();
    // SAFETY: inside the table. Other threads read single bytes of it, and those of calls that must come here stay as they are.
    unsafe { table.add(call as usize).write_volatile(u8::from(is_handled)) };
}
