//! System calls that the runtime has a part in. All others are made by the gate itself.

use super::{
    advice, delivery, ends, excursion, execute, hardware, holes, locks, memory, proc_files, proc_query, proc_reads,
};
use super::{process, process_control, seccomp, segments, sequences, user_dispatch, written};
use crate::arch::x86_64::context::ThreadContext;
use crate::arch::x86_64::{gate, probe_points, selectors};
use crate::decode::places::is_beyond;
use crate::instrument::pads::DynamicEdge;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{edge_kind, path_event_kind, release_reason};
use crate::signal::deliver;
use crate::signal::table::table_of;
use crate::sys::calls::{program_call, set_signal_mask, Error, EFAULT, EINVAL, EPERM};
use crate::sys::kernel::{SigAction, SigFrame, SigStack, ARCH_GET_GS, ARCH_SET_GS, UNBLOCKABLE};
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
];

/// Tells the gate which calls come here: all that path and tags have the time of, where these are recorded.
pub fn handle_what(engine: &Engine) {
    let handles_all = engine.records_path() || engine.records_regions();
    for call in 0..size_of::<gate::CallTable>() as u64 {
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
    let table = (&raw mut gate::HANDLED_SYSCALLS).cast::<u8>();
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
        number::PTRACE => trace(context, arguments),
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
fn read_program<T: Copy>(address: u64) -> Result<T, Error> {
    if !process::is_readable(address, size_of::<T>() as u64) {
        return Err(Error(EFAULT));
    }
    // SAFETY: the kernel just read the same bytes.
    Ok(unsafe { (address as *const T).read_unaligned() })
}

fn write_program<T: Copy>(address: u64, value: T) -> Result<(), Error> {
    if !process::is_writable(address, size_of::<T>() as u64) {
        return Err(Error(EFAULT));
    }
    // SAFETY: the kernel just wrote the same bytes.
    unsafe { (address as *mut T).write_unaligned(value) };
    Ok(())
}

fn result_of(result: Result<(), Error>) -> i64 {
    match result {
        Ok(()) => 0,
        Err(Error(number)) => -i64::from(number),
    }
}

fn set_action(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    let [signal, new, old, size, ..] = arguments;
    if size != 8 {
        return -i64::from(EINVAL);
    }
    result_of((|| {
        let new = if new == 0 { None } else { Some(read_program::<SigAction>(new)?) };
        let before = table_of(context).lock().change(signal as u32, new)?;
        if old != 0 {
            write_program(old, before)?;
        }
        Ok(())
    })())
}

/// rt_sigprocmask. `None`: a signal waits, and its handler runs before the call is made.
fn set_mask(context: &mut ThreadContext, arguments: [u64; 6]) -> Option<i64> {
    let [how, set, old, size, ..] = arguments;
    // While nothing can come, the thread's mask is the program's own, unless a signal came just before.
    let mask = set_signal_mask(u64::MAX);
    if context.is_signal_waiting() {
        set_signal_mask(mask);
        return None;
    }
    let mask = context.program_mask(mask);
    let mut new_mask = mask;
    let result = result_of((|| {
        if size != 8 {
            return Err(Error(EINVAL));
        }
        if set != 0 {
            let set = read_program::<u64>(set)?;
            new_mask = match how as u32 {
                0 => mask | set,
                1 => mask & !set,
                2 => set,
                _ => return Err(Error(EINVAL)),
            } & !UNBLOCKABLE;
        }
        if old != 0 {
            write_program(old, mask)?;
        }
        Ok(())
    })());
    deliver::raise_held(context);
    set_signal_mask(context.note_mask(new_mask));
    Some(result)
}

/// A plain system call was interrupted: if it waits with a mask of its own (sigsuspend and the like), the handler runs
/// with that mask, and the one before it comes back after the handler.
pub fn note_temporary_mask(context: &mut ThreadContext) {
    const EINTR: i64 = 4;
    if context.registers[0] as i64 != -EINTR {
        return;
    }
    let r = &context.registers;
    let (rdi, r8, r9, r10) = (r[7], r[8], r[9], r[10]);
    let address = match context.syscall_number {
        number::RT_SIGSUSPEND => rdi,
        number::PPOLL => r10,
        number::EPOLL_PWAIT | number::EPOLL_PWAIT2 => r8,
        number::PSELECT6 | number::IO_PGETEVENTS if r9 != 0 => read_program::<u64>(r9).unwrap_or(0),
        _ => 0,
    };
    if address != 0 {
        if let Ok(mask) = read_program::<u64>(address) {
            context.temporary_mask = mask;
            context.has_temporary_mask = 1;
        }
    }
}

/// sigaltstack acts on the program's own stack; the kernel knows the runtime's.
fn set_stack(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    let [new, old, ..] = arguments;
    let shown = deliver::shown_stack(context);
    result_of((|| {
        if new != 0 {
            deliver::change_stack(context, &read_program::<SigStack>(new)?)?;
        }
        if old != 0 {
            write_program(old, shown)?;
        }
        Ok(())
    })())
}

/// rt_sigreturn. Comes back if there is no frame: the call returns, and the kernel sends SIGSEGV (signal_fault in
/// arch/x86/kernel/signal.c).
fn return_from_handler(context: &mut ThreadContext) -> i64 {
    let Some(frame) = delivery::with_faults(context, |context| deliver::read_frame(context)) else {
        delivery::raise_forced(context);
        return 0;
    };
    let target = frame.ucontext.mcontext.rip;
    let mut counted = None;
    let exit_id = context.exit_id;
    let source = ENGINE.lock().cache.exit(exit_id).fragment;
    let is_leaving = is_foreign(&frame);
    if is_leaving {
        excursion::begin(context, exit_id);
    } else if is_beyond(target) {
        super::indirect::blame_branch(context, source);
    } else {
        counted = Some(count_signal_return(context, exit_id, target));
    }
    let result = deliver::return_from_handler(context, frame);
    // A filter refused it.
    match counted {
        Some(edge) => {
            let mut engine = ENGINE.lock();
            engine.uncount_edge(context, edge);
            if context.has_path {
                let writer = writer_of(context, engine.shared);
                path::write_event(context, &writer, path_event_kind::RESUME, target, context.rip);
            }
        }
        None if is_leaving => context.excursion_exit = 0,
        None => super::indirect::forgive_branch(context, source),
    }
    result
}

/// Whether what a frame says of selectors is not of 64-bit code.
fn is_foreign(frame: &SigFrame) -> bool {
    let (code, stack) = deliver::selectors_of(frame);
    code != 0 || stack != 0 && !selectors::is_stack(stack)
}

/// Counts the return from a handler by the system call of exit `exit_id`, to `target`.
pub fn count_signal_return(context: &mut ThreadContext, exit_id: u32, target: u64) -> DynamicEdge {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    let exit = *engine.cache.exit(exit_id);
    let fragment = *engine.cache.fragment(exit.fragment);
    let edge = DynamicEdge {
        kind: edge_kind::SIGRETURN,
        source_fragment: exit.fragment,
        source_pc: fragment.app_pc + u64::from(fragment.last_offset),
        target_pc: target,
    };
    engine.count_edge(&writer, context, edge);
    if context.has_path {
        path::write_event(context, &writer, path_event_kind::RESUME, fragment.end(), target);
    }
    edge
}

/// ptrace: a task that asks to be traced goes on natively, because its tracer is to see the program's own code.
fn trace(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    const TRACEME: u64 = 0;
    // SAFETY: the program's own call.
    let result = unsafe { program_call(number::PTRACE, arguments) };
    if arguments[0] == TRACEME && result == 0 {
        context.registers[0] = 0;
        delivery::release_all(context, release_reason::TRACED);
    }
    result
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
