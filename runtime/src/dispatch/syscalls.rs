//! System calls that the runtime has a part in. All others are made by the gate itself.

use super::signal_calls::{return_from_handler, set_action, set_mask, set_stack};
use super::{advice, ends, execute, fork, hardware, holes, locks, memory, proc_files, proc_query, proc_reads};
use super::{process, process_control, seccomp, segments, sequences, tracing, user_dispatch, written};
use crate::arch::x86_64::context::ThreadContext;
use crate::arch::x86_64::{dispatcher, probe_points, selectors};
use crate::instrument::{Engine, ENGINE};
use crate::protocol::path_event_kind;
use crate::sys::calls::{program_call, Error, EFAULT, EPERM};
use crate::sys::kernel::{ARCH_GET_GS, ARCH_SET_GS};
use crate::sys::number;
use crate::thread::registry::writer_of;
use crate::thread::{path, region};
use proc_reads::WATCHED_CALLS;

/// The calls that come to the dispatcher.
const HANDLED: &[u64] = &[
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

/// Tells the gate which calls come here: all that path and tags have the time of, where these are recorded.
pub fn handle_what(engine: &Engine) {
    let handles_all = engine.records_path() || engine.records_regions();
    for call in 0..size_of::<dispatcher::CallTable>() as u64 {
        tell_gate(call, handles_all || HANDLED.contains(&call));
    }
    handle_watched(engine);
}

/// The same of those that come here only while what they may read tells of the runtime.
pub fn handle_watched(engine: &Engine) {
    let is_handled = engine.records_path() || engine.records_regions() || proc_reads::is_any_watched();
    for call in WATCHED_CALLS {
        tell_gate(*call, is_handled || (*call == number::IOCTL && probe_points::is_any_used()));
    }
}

fn tell_gate(call: u64, is_handled: bool) {
    let table = (&raw mut dispatcher::HANDLED_SYSCALLS).cast::<u8>();
    // SAFETY: inside the table. Other threads read single bytes of it, and those of calls that must come here stay as they are.
    unsafe { table.add(call as usize).write_volatile(u8::from(is_handled)) };
}

/// What became of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was made; the context has its result.
    Done,
    /// The gate makes it.
    ByGate,
    /// It was not made: a signal came just before, whose handler runs first.
    SignalFirst,
}

/// Makes the call that the context is about to make.
pub fn handle(context: &mut ThreadContext) -> Outcome {
    let r = &context.registers;
    let arguments = [r[7], r[6], r[2], r[10], r[8], r[9]];
    // The kernel looks at eax alone.
    let call = r[0] & 0xffff_ffff;
    if user_dispatch::intercept(context) {
        return Outcome::Done;
    }
    note_in_path(context, call);
    written::note_arguments(context, call, arguments);
    if let Some(result) = seccomp::refusal(context, call, arguments) {
        finish(context, result);
        return Outcome::Done;
    }
    let result = match call {
        number::MMAP => memory::map(context, arguments),
        number::MUNMAP => memory::unmap(context, arguments),
        number::MPROTECT | number::PKEY_MPROTECT => memory::protect(context, call, arguments),
        number::MREMAP => memory::remap(context, arguments),
        number::MADVISE => advice::advise(context, arguments),
        number::PROCESS_MADVISE => advice::advise_pieces(context, arguments),
        number::SHMAT => segments::attach(context, arguments),
        number::SHMDT => segments::detach(context, arguments),
        number::BRK => holes::move_break(context, arguments),
        number::MLOCK
        | number::MLOCK2
        | number::MUNLOCK
        | number::MSYNC
        | number::MINCORE
        | number::MBIND
        | number::MSEAL
        | number::REMAP_FILE_PAGES => match holes::name(call, arguments) {
            Some(result) => result,
            None => return Outcome::ByGate,
        },
        number::MLOCKALL => locks::lock_all(context, arguments),
        number::MUNLOCKALL => locks::unlock_all(arguments),
        number::RSEQ => sequences::register(context, arguments),
        number::RT_SIGACTION => set_action(context, arguments),
        number::SIGALTSTACK => set_stack(context, arguments),
        number::RT_SIGRETURN => return_from_handler(context),
        number::RT_SIGPROCMASK => match set_mask(context, arguments) {
            Some(result) => result,
            None => return Outcome::SignalFirst,
        },
        number::EXECVE | number::EXECVEAT => execute::execute(context, call, arguments),
        number::CLONE => process::clone(context, arguments),
        number::CLONE3 => process::clone3(context, arguments),
        number::FORK | number::VFORK => process::fork(context, call),
        number::PTRACE => tracing::trace(context, arguments),
        number::PROCESS_VM_WRITEV => tracing::write_memory(context, arguments),
        number::EXIT => {
            ends::exit_thread(context, arguments);
            return Outcome::SignalFirst;
        }
        number::EXIT_GROUP => ends::exit_group(context, arguments),
        number::ARCH_PRCTL => arch_control(context, arguments),
        number::PRCTL => process_control::control(context, arguments),
        number::SECCOMP => seccomp::change(context, call, arguments),
        number::OPEN
        | number::OPENAT
        | number::OPENAT2
        | number::PERF_EVENT_OPEN
        | number::READ
        | number::PREAD64
        | number::READV
        | number::PREADV
        | number::PREADV2
        | number::IOCTL
        | number::DUP
        | number::DUP2
        | number::DUP3
        | number::FCNTL
        | number::PIDFD_GETFD
        | number::CLOSE
        | number::CLOSE_RANGE => match with_descriptor(context, call, arguments) {
            Some(result) => result,
            None => return Outcome::ByGate,
        },
        number::GETPPID => parent(arguments),
        number::WAIT4 | number::WAITID => {
            fork::await_births(context);
            return Outcome::ByGate;
        }
        _ => return Outcome::ByGate,
    };
    finish(context, result);
    Outcome::Done
}

/// A call about a descriptor. `None`: the runtime has no part in this one, and it was not made yet.
fn with_descriptor(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> Option<i64> {
    match call {
        number::OPEN | number::OPENAT | number::OPENAT2 => proc_files::open(context, call, arguments),
        number::PERF_EVENT_OPEN => hardware::open(context, arguments),
        number::IOCTL => hardware::change(context, arguments).or_else(|| proc_query::query(context, arguments)),
        number::DUP | number::DUP2 | number::DUP3 | number::FCNTL | number::PIDFD_GETFD => {
            proc_reads::duplicate(call, arguments)
        }
        number::CLOSE | number::CLOSE_RANGE => {
            proc_reads::note_closing(context, call, arguments);
            None
        }
        _ => proc_reads::read(context, call, arguments),
    }
}

/// Modes full and region: says in the path, or with a tag, that the call is about to be made.
fn note_in_path(context: &mut ThreadContext, call: u64) {
    if !context.has_path && !context.has_tags {
        return;
    }
    let engine = ENGINE.lock();
    if context.has_path {
        path::write_event(context, &writer_of(context, engine.shared), path_event_kind::NOTE, context.rip, call);
    }
    if engine.records_regions() {
        region::note_call(context, &writer_of(context, engine.shared), call);
    }
}

/// getppid. An orphan's parent is not the controller, which would not be there natively.
fn parent(arguments: [u64; 6]) -> i64 {
    let shared = ENGINE.lock().shared;
    let (controller, reaper) = (shared.header().controller_pid, shared.header().reaper_pid);
    // SAFETY: no memory.
    let result = unsafe { program_call(number::GETPPID, arguments) };
    if reaper != 0 && result == i64::from(controller) {
        i64::from(reaper)
    } else {
        result
    }
}

/// The call is done. One that a filter answered with a signal leaves its number where it was.
pub fn finish(context: &mut ThreadContext, result: i64) {
    if !is_trapped(context) {
        context.registers[0] = result as u64;
    }
}

/// Whether a filter answered the call with a signal: read anew each time, because the signal handler says so.
pub fn is_trapped(context: &ThreadContext) -> bool {
    // SAFETY: a field of a live context.
    unsafe { (&raw const context.is_trapped).read_volatile() != 0 }
}

/// Reads a structure of the program's. The kernel would answer EFAULT for a bad address; a fault here ends the process.
pub fn read_program<T: Copy>(address: u64) -> Result<T, Error> {
    if !process::is_readable(address, size_of::<T>() as u64) {
        return Err(Error(EFAULT));
    }
    // SAFETY: the kernel just read the same bytes.
    Ok(unsafe { (address as *const T).read_unaligned() })
}

pub fn write_program<T: Copy>(address: u64, value: T) -> Result<(), Error> {
    if !process::is_writable(address, size_of::<T>() as u64) {
        return Err(Error(EFAULT));
    }
    // SAFETY: the kernel just wrote the same bytes.
    unsafe { (address as *mut T).write_unaligned(value) };
    Ok(())
}

pub fn result_of(result: Result<(), Error>) -> i64 {
    match result {
        Ok(()) => 0,
        Err(Error(number)) => -i64::from(number),
    }
}

/// The gs base that the program sees is its own; the processor's is the runtime's.
fn arch_control(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    match arguments[0] {
        ARCH_SET_GS => {
            if arguments[1] >= 0x7fff_ffff_f000 {
                return -i64::from(EPERM);
            }
            context.app_gs_base = arguments[1];
            selectors::forget_gs_selector(context);
            0
        }
        ARCH_GET_GS => result_of(write_program(arguments[1], context.app_gs_base)),
        // SAFETY: the program's own call.
        _ => unsafe { program_call(number::ARCH_PRCTL, arguments) },
    }
}
