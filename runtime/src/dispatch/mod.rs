//! The dispatcher: where translated code comes when it has no link, and where everything else of the runtime is decided.
//!
//! Runs in the target on the runtime's stack, the application's state complete in the thread's context.

pub mod advice;
pub mod aliases;
pub mod attach;
pub mod breakpoints;
pub mod delivery;
pub mod detach;
pub mod dumpable;
pub mod ends;
pub mod excursion;
pub mod execute;
pub mod exits;
pub mod far;
pub mod float_state;
pub mod fork;
pub mod hardware;
pub mod hidden;
pub mod hold;
pub mod holes;
pub mod in_place;
pub mod indirect;
pub mod linking;
pub mod locks;
pub mod mappings;
pub mod memory;
pub mod paths;
mod probe_returns;
pub mod proc_files;
pub mod proc_query;
pub mod proc_reads;
pub mod proc_states;
pub mod process;
mod process_control;
pub mod regions;
pub mod returns;
pub mod room;
pub mod seccomp;
pub mod segments;
pub mod sequences;
pub mod signal_calls;
pub mod stage;
pub mod start;
pub mod syscalls;
mod tracing;
pub mod user_dispatch;
mod vectors;
pub mod vsyscall;
pub mod written;

use crate::arch::x86_64::context::{ThreadContext, RESTART_DUE};
use crate::arch::x86_64::dispatcher::{
    REASON_ATTACH, REASON_EXIT, REASON_INDIRECT, REASON_RESUME, REASON_SYSCALL, REASON_SYSCALL_AGAIN,
    REASON_SYSCALL_DONE,
};
use crate::arch::x86_64::selectors;
use crate::buffer::RingWriter;
use crate::cache::fragment::ExitType;
use crate::cache::{Entry, NONE};
use crate::decode::places::is_in_vsyscall_page;
use crate::decode::NoCode;
use crate::instrument::{Arrival, BuildError, Engine, ENGINE};
use crate::protocol::release_reason;
use crate::signal::table::table_of;
use crate::sys::calls::EFAULT;
use crate::sys::mappings::tracer;
use crate::thread::registry::writer_of;
use crate::thread::{path, THREADS};

/// Entered from the gates. Returns the cache address at which the thread goes on.
pub extern "C" fn dispatch(context: &mut ThreadContext, reason: u32) -> u64 {
    let mut link = NONE;
    context.doubtful_pc = 0;
    context.set_returning(0);
    context.returned_to = 0;
    if reason != REASON_RESUME {
        context.stack_selector = selectors::stack_selector();
    }
    path::note_that_it_tells_first(context);
    let is_call_allowed = core::mem::take(&mut context.is_call_allowed) != 0;
    context.sequence_plain = 0;
    if reason == REASON_EXIT && context.has_tags {
        if let Some(address) = regions::decide_alone(context) {
            return address;
        }
    }
    match reason {
        REASON_EXIT => link = exits::take_exit(context),
        REASON_INDIRECT => indirect::take_indirect(context),
        REASON_SYSCALL if context.pending != 0 => rewind_syscall(context),
        REASON_SYSCALL => {
            let exit_id = context.exit_id;
            let next = leave_syscall(context);
            let before = (context.registers[1], context.registers[11]);
            context.call_return = context.jump;
            // The instruction leaves flags and next address there (Intel SDM, SYSCALL).
            context.registers[1] = next;
            context.registers[11] = context.rflags;
            context.rip = next;
            match syscalls::handle(context) {
                syscalls::Outcome::Done => {
                    link = exit_id;
                    context.note_step();
                }
                syscalls::Outcome::ByGate => {
                    (context.registers[1], context.registers[11]) = before;
                    if context.has_path {
                        // Others count on it that the thread tells what changed meanwhile before it executes anything.
                        context.call_return = crate::arch::x86_64::gate::clew_syscall_done_pending as *const () as u64;
                    }
                    // Until the gate is there, a signal makes the thread come back as if it had not been here.
                    context.is_call_allowed = 1;
                    return crate::arch::x86_64::gate::clew_gate_syscall_allowed as *const () as u64;
                }
                syscalls::Outcome::SignalFirst => {
                    (context.registers[1], context.registers[11]) = before;
                    rewind_syscall(context);
                }
            }
        }
        REASON_SYSCALL_DONE
            if context.registers[0] as i64 == -i64::from(EFAULT) && written::is_to_be_made_again(context) =>
        {
            context.registers[0] = context.syscall_number;
            (context.registers[1], context.registers[11]) = (context.spill_rcx, context.spill_r11);
            rewind_syscall(context);
        }
        REASON_SYSCALL_DONE => {
            signal_calls::note_temporary_mask(context);
            context.note_step();
            link = context.exit_id;
            let next = leave_syscall(context);
            context.registers[1] = next;
            context.rip = next;
        }
        REASON_SYSCALL_AGAIN => rewind_call(context),
        REASON_ATTACH => attach::begin(context),
        _ if is_call_allowed => rewind_call(context),
        _ if context.restart == RESTART_DUE => {
            context.restart = 0;
            table_of(context).lock().pass_ignored(false);
            execute::give_up(context);
            rewind_syscall(context);
        }
        _ if context.native_exit != 0 => link = in_place::settle(context),
        _ => {}
    }
    probe_returns::settle(context);
    let is_traced = excursion::settle(context);
    if context.excursion_exit != 0 && context.fault_pending == 0 && !excursion::is_away(context) {
        excursion::come_back(context);
    }
    if is_traced {
        delivery::raise_step(context);
    }
    let address = resume(context, link);
    if context.stack_selector != 0 {
        selectors::load_stack_selector(context.stack_selector);
    }
    address
}

/// Delivers what waits, then finds the fragment at the context's rip. `link` is the exit that may be linked to it.
///
/// Never gives an address of the program's own: where it has no code that is known, the fault comes by `fault_natively`.
fn resume(context: &mut ThreadContext, link: u32) -> u64 {
    let mut link = link;
    room::note_arrival(context);
    breakpoints::count_met(context);
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    paths::tend(context, link);
    if context.sequence_aborted != 0 {
        sequences::count_abort(context);
    }
    loop {
        if syscalls::is_trapped(context) {
            delivery::raise_trap(context);
        }
        if context.fault_pending != 0 || context.is_signal_waiting() && !probe_returns::is_inside(context) {
            linking::note_first_exit(context, link);
            link = NONE;
            sequences::settle(context);
            if context.fault_pending == 0 && context.is_step_due() {
                delivery::raise_step(context);
            }
            delivery::deliver_pending(context);
        }
        if detach::is_asked(context) {
            linking::note_first_exit(context, link);
            link = NONE;
            detach::park(context);
            continue;
        }
        if let Some(reason) = hold::reason(context, shared) {
            linking::note_first_exit(context, link);
            hold::stand(context, shared, reason);
            continue;
        }
        if hold::is_to_leave(context, shared) {
            linking::note_first_exit(context, link);
            delivery::release(context, release_reason::TRACED);
        }
        hold::mind(context, shared);
        if excursion::is_away(context) {
            link = NONE;
            excursion::go_on(context);
            continue;
        }
        if context.path_due {
            paths::go_on_if_between(context, link);
            if context.path_due {
                // Single instructions are none of a sequence.
                sequences::settle(context);
            }
        }
        if is_in_vsyscall_page(context.rip) {
            link = NONE;
            vsyscall::emulate(context);
            if context.fault_pending != 0 {
                continue;
            }
        }
        let mut n_changes = 0;
        let known = find_known(context, link, &mut n_changes);
        let found = known.unwrap_or_else(|| {
            delivery::with_faults(context, |context| find_to_resume(&mut ENGINE.lock(), context, link, &mut n_changes))
        });
        match found {
            Ok(address) if !breakpoints::is_due(context, shared) => return address,
            // Its tracer is to see the program's own code.
            Ok(_) if tracer() != 0 => delivery::release_all(context, release_reason::TRACED),
            Ok(_) => breakpoints::meet(context, n_changes),
            // The kernel may know better: a stack that grew, shared memory, a mapping made executable by another rule.
            Err(BuildError::NoCode(NoCode::Missing(address))) if memory::learn_range(context, address) => {}
            // The trap behind the branch that led there comes first.
            Err(BuildError::NoCode(_)) if context.is_step_due() => delivery::raise_step(context),
            Err(BuildError::NoCode(NoCode::Missing(address))) if hidden::is_hidden(address) => {
                delivery::raise_page_fault(context, address);
            }
            Err(BuildError::NoCode(_)) => delivery::fault_natively(context, n_changes),
            Err(BuildError::OutOfMemory) => delivery::release(context, release_reason::RUNTIME_ERROR),
            Err(BuildError::Breakpoint) => continue,
            Err(BuildError::OtherMode) => {
                hold::follow_mode(context, shared);
                continue;
            }
        }
        link = NONE;
    }
}

/// Where the fragment at the context's rip starts; and how often the ranges had changed that it was looked for in.
fn find_to_resume(
    engine: &mut Engine,
    context: &mut ThreadContext,
    link: u32,
    n_changes: &mut u64,
) -> Result<u64, BuildError> {
    *n_changes = engine.ranges.n_changes;
    if context.has_path != engine.records_path() {
        return Err(BuildError::OtherMode);
    }
    let writer = writer_of(context, engine.shared);
    if engine.cache.by_pc.find(context.rip).is_none() {
        sequences::learn_announced(engine, &writer, context);
    }
    if hold::goes_alone(context, engine) {
        let id = hold::go_alone(engine, &writer, context)?;
        return Ok(enter_alone(engine, &writer, context, link, id));
    }
    let arrival = match link {
        NONE => Arrival::Other,
        _ if engine.cache.exit(link).kind == ExitType::Call => Arrival::Call,
        _ => Arrival::Exit(link),
    };
    let id = find_or_build(engine, &writer, context, context.rip, arrival)?;
    if context.has_path {
        paths::tell_changes(engine, &writer, context);
    }
    if link != NONE {
        linking::link_exit(engine, &writer, context, link, id);
        indirect::follow_landing(engine, context, link);
    }
    if link != NONE && engine.cache.exit(link).skips_question && engine.cache.fragment(id).behind_question != 0 {
        // The same block goes on.
        return engine.cache.entry_behind_question(id, Entry::Plain).ok_or(BuildError::OutOfMemory);
    }
    let fragment = engine.cache.fragment(id);
    let is_plain = context.sequence_plain != 0;
    Ok(fragment.plain_entry + if is_plain { u64::from(fragment.inner_offset) } else { 0 })
}

/// The same where that takes no look at the program's memory, which takes system calls while the program blocks faults.
fn find_known(context: &mut ThreadContext, link: u32, n_changes: &mut u64) -> Option<Result<u64, BuildError>> {
    if context.blocks_faults == 0 {
        return None;
    }
    let mut engine = ENGINE.lock();
    let id = engine.cache.by_pc.find(context.rip)?;
    let is_linked = link == NONE || engine.cache.exit(link).linked_to == id;
    let is_known = is_linked && !hold::goes_alone(context, &engine);
    is_known.then(|| find_to_resume(&mut engine, context, link, n_changes))
}

/// Where fragment `id` is entered, that is for the calling thread alone; exit `link` is not linked to it.
fn enter_alone(engine: &mut Engine, writer: &RingWriter, context: &mut ThreadContext, link: u32, id: u32) -> u64 {
    let site = engine.cache.fragment(id).site;
    if site != NONE {
        THREADS.lock().reach_site(site);
    }
    if context.has_path {
        paths::tell_changes(engine, writer, context);
    }
    if link != NONE && !engine.is_counting() && engine.cache.exit(link).linked_to == NONE {
        engine.write_link(writer, link, id);
    }
    let goes_on = link != NONE && engine.cache.exit(link).skips_question;
    let behind = if goes_on { engine.cache.entry_behind_question(id, Entry::Plain) } else { None };
    behind.unwrap_or(engine.cache.fragment(id).plain_entry)
}

/// The fragment at `pc`, its site known to all threads' branch tables.
fn find_or_build(
    engine: &mut Engine,
    writer: &RingWriter,
    context: &mut ThreadContext,
    pc: u64,
    arrival: Arrival,
) -> Result<u32, BuildError> {
    if let Some(id) = engine.cache.by_pc.find(pc) {
        return Ok(id);
    }
    engine.arrival = arrival;
    let id = engine.build(writer, pc)?;
    let site = engine.cache.fragment(id).site;
    if site != NONE {
        THREADS.lock().reach_site(site);
    }
    engine.begin_heat(context, id);
    engine.cut_other_calls(writer, id);
    indirect::lead_returns_to(engine, id);
    Ok(id)
}

/// The address after the system call that the thread made.
fn leave_syscall(context: &mut ThreadContext) -> u64 {
    // SAFETY: only arenas are read, and `shared`, which is set before any thread runs and never changes.
    let engine = unsafe { ENGINE.peek() };
    engine.shared.add(crate::status_field!(entries_syscall), 1);
    engine.cache.exit(context.exit_id).target
}

/// A system call that the gate was to make and did not: the application is in front of it again.
fn rewind_call(context: &mut ThreadContext) {
    rewind_syscall(context);
    context.call_pc = context.rip;
}

/// A system call that was not made yet: the application is in front of it again.
fn rewind_syscall(context: &mut ThreadContext) {
    let mut engine = ENGINE.lock();
    let exit = *engine.cache.exit(context.exit_id);
    let fragment = *engine.cache.fragment(exit.fragment);
    context.rip = fragment.branch_pc();
    context.note_step();
    let stopped_at = context.rip;
    exits::uncount_block(&mut engine, context, exit.fragment, stopped_at);
}
