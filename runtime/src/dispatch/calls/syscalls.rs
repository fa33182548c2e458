//! System calls that the runtime has a part in. All others are made by the gate itself.

use super::results::finish;
use super::{advice, holes, locks, memory, process_control, seccomp, tracing, user_dispatch};
use crate::context::ThreadContext;
use crate::cpu::dispatch::arch_control::arch_control;
use crate::cpu::dispatch::segments;
use crate::cpu::sys::number;
use crate::dispatch::apart::{hardware, written};
use crate::dispatch::flow::rseq;
use crate::dispatch::life::{ends, execute, fork, process};
use crate::dispatch::proc::{proc_open, proc_query, proc_reads};
use crate::dispatch::signals::signal_calls::{return_from_handler, set_action, set_mask, set_stack};
use crate::instrument::ENGINE;
use crate::protocol::path_event_kind;
use crate::sys::calls::program_call;
use crate::thread::path_words;
use crate::thread::region;
use crate::thread::registry::writer_of;

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
    let (call, arguments) = (context.registers.call_number(), context.registers.call_arguments());
    if user_dispatch::intercept(context) {
        return Outcome::Done;
    }
    note_in_path(context, call);
    if core::mem::take(&mut context.capture.is_answered) != 0 {
        finish(context, context.capture.answer.cast_signed());
        return Outcome::Done;
    }
    written::note_arguments(context, call, arguments);
    if let Some(result) = seccomp::refusal(context, call, arguments) {
        finish(context, result);
        return Outcome::Done;
    }
    match answer(context, call, arguments) {
        Ok(result) => {
            finish(context, result);
            Outcome::Done
        }
        Err(outcome) => outcome,
    }
}

/// What the dispatcher does in the kernel's place: the result, or what else is to be done about the call.
fn answer(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> Result<i64, Outcome> {
    Ok(match call {
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
            None => return Err(Outcome::ByGate),
        },
        number::MLOCKALL => locks::lock_all(context, arguments),
        number::MUNLOCKALL => locks::unlock_all(arguments),
        number::RSEQ => rseq::register(context, arguments),
        number::RT_SIGACTION => set_action(context, arguments),
        number::SIGALTSTACK => set_stack(context, arguments),
        number::RT_SIGRETURN => return_from_handler(context),
        number::RT_SIGPROCMASK => match set_mask(context, arguments) {
            Some(result) => result,
            None => return Err(Outcome::SignalFirst),
        },
        number::EXECVE | number::EXECVEAT => execute::execute(context, call, arguments),
        number::CLONE => process::clone(context, arguments),
        number::CLONE3 => process::clone3(context, arguments),
        number::FORK | number::VFORK => process::fork(context, call),
        number::PTRACE => tracing::trace(context, arguments),
        number::PROCESS_VM_WRITEV => tracing::write_memory(context, arguments),
        number::EXIT => {
            ends::exit_thread(context, arguments);
            return Err(Outcome::SignalFirst);
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
            None => return Err(Outcome::ByGate),
        },
        number::GETPPID => parent(arguments),
        number::WAIT4 | number::WAITID => {
            fork::await_births(context);
            return Err(Outcome::ByGate);
        }
        _ => return Err(Outcome::ByGate),
    })
}

/// A call about a descriptor. `None`: the runtime has no part in this one, and it was not made yet.
fn with_descriptor(context: &mut ThreadContext, call: u64, arguments: [u64; 6]) -> Option<i64> {
    match call {
        number::OPEN | number::OPENAT | number::OPENAT2 => proc_open::open(context, call, arguments),
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
    if !context.path.is_on && !context.path.has_tags {
        return;
    }
    let engine = ENGINE.lock();
    if context.path.is_on {
        path_words::write_event(
            context,
            &writer_of(context, engine.shared),
            path_event_kind::NOTE,
            context.registers.pc,
            call,
        );
    }
    if context.path.has_tags {
        region::note_call(context, &writer_of(context, engine.shared), call);
    }
}

/// getppid. An orphan's parent is not the controller, which would not be there natively.
fn parent(arguments: [u64; 6]) -> i64 {
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let (controller, reaper) = (shared.header().controller_pid, shared.header().reaper_pid);
    // SAFETY: no memory.
    let result = unsafe { program_call(number::GETPPID, arguments) };
    if reaper != 0 && result == i64::from(controller) {
        i64::from(reaper)
    } else {
        result
    }
}
