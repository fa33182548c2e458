//! The loop: what translated code left for is dealt with, and what waits, until there is code to go on with.

use crate::buffer::{RingWriter, Shared};
use crate::cache::exit::ExitType;
use crate::cache::Entry;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::call::RESTART_DUE;
use crate::context::numbers::{ExitId, FragmentId, SiteId};
use crate::context::ThreadContext;
use crate::cpu::decode::addresses::is_in_kernel_page;
use crate::cpu::dispatch::excursion;
use crate::cpu::dispatch::in_place;
use crate::cpu::dispatch::kernel_page;
use crate::cpu::dispatcher::{
    REASON_ATTACH, REASON_EXIT, REASON_INDIRECT, REASON_RESUME, REASON_SYSCALL, REASON_SYSCALL_AGAIN,
    REASON_SYSCALL_DONE,
};
use crate::decode::NoCode;
use crate::dispatch::apart::{
    breakpoints, captured_system_calls, captures, hold, injections, probe_ends, probe_returns, transforms, unfollowed,
    written,
};
use crate::dispatch::calls::arrivals::{self, Way};
use crate::dispatch::calls::rewind::{rewind_call, rewind_syscall};
use crate::dispatch::calls::{memory, results};
use crate::dispatch::flow::find::find_or_build;
use crate::dispatch::flow::{exits, indirect, landings, linking, paths, regions, rseq};
use crate::dispatch::life::{attach, detach, execute, hidden, release, room};
use crate::dispatch::signals::{delivery, masks, natively, raise};
use crate::instrument::captures::places::are_any;
use crate::instrument::request::Arrival;
use crate::instrument::{BuildError, Engine, ENGINE};
use crate::protocol::release_reason;
use crate::signal::table::table_of;
use crate::sys::calls::EFAULT;
use crate::thread::registry::writer_of;
use crate::thread::{path, THREADS};

/// Entered from the gates. Returns the cache address at which the thread goes on.
pub extern "C" fn dispatch(context: &mut ThreadContext, reason: u32) -> u64 {
    let mut link = ExitId::NONE;
    context.signals.doubtful_pc = 0;
    context.end_return();
    context.signals.returned_to = CachePc::NOWHERE;
    if reason != REASON_SYSCALL_DONE {
        // The call was not made.
        context.call.straight_on = 0;
    }
    if reason != REASON_RESUME {
        context.registers.note_modes();
        context.capture.passed_pc = AppPc::NOWHERE;
        context.capture.left_pc = AppPc::NOWHERE;
    }
    path::note_that_it_tells_first(context);
    let is_call_allowed = core::mem::take(&mut context.call.is_allowed) != 0;
    context.rseq.plain = 0;
    let is_calling = unfollowed::take_call(context);
    if reason == REASON_EXIT && context.path.has_tags {
        if let Some(address) = regions::decide_alone(context) {
            return address.raw();
        }
    }
    if reason == REASON_EXIT {
        if let Some(address) = captures::take_alone(context) {
            context.registers.load_modes();
            return address.raw();
        }
    }
    match reason {
        REASON_RESUME if is_calling && context.signals.pending == 0 => {
            if let Some(gate) = unfollowed::make_call(context) {
                return gate;
            }
        }
        REASON_EXIT => link = exits::take_exit(context),
        REASON_INDIRECT => indirect::take_indirect(context),
        REASON_SYSCALL if context.signals.pending != 0 => rewind_syscall(context),
        REASON_SYSCALL_DONE
            if context.registers.result() as i64 == -i64::from(EFAULT) && written::is_to_be_made_again(context) =>
        {
            context.call.straight_on = 0;
            context.registers.set_result(context.call.number);
            context.registers.put_back(context.gate.overwritten());
            rewind_syscall(context);
        }
        REASON_SYSCALL | REASON_SYSCALL_DONE => {
            let way = if reason == REASON_SYSCALL { arrivals::take(context) } else { arrivals::end(context) };
            match way {
                Way::By(exit) => link = exit,
                Way::Straight(address) => return leave_for(context, address),
                Way::Gate(address) => return address,
            }
        }
        REASON_SYSCALL_AGAIN => {
            rewind_call(context);
            hold::catch_up(context);
            captured_system_calls::resume_late(context);
        }
        REASON_ATTACH => attach::begin(context),
        _ if is_call_allowed => rewind_call(context),
        _ if context.call.restart == RESTART_DUE => {
            context.call.restart = 0;
            table_of(context).lock().pass_ignored(false);
            execute::give_up(context);
            rewind_syscall(context);
        }
        _ if context.stepping.native_exit != 0 => link = in_place::settle(context),
        _ => {}
    }
    probe_ends::settle(context);
    let is_traced = excursion::settle(context);
    if context.stepping.excursion_exit != 0 && context.signals.fault_pending == 0 && !context.registers.are_foreign() {
        excursion::come_back(context);
    }
    if is_traced {
        raise::raise_step(context);
    }
    let address = resume(context, link);
    leave_for(context, address)
}

/// The thread goes on at that cache address.
fn leave_for(context: &mut ThreadContext, address: CachePc) -> u64 {
    context.native.call_pc = AppPc::NOWHERE;
    context.path.has_executed = true;
    context.registers.load_modes();
    address.raw()
}

/// Delivers what waits, then finds the fragment at the context's pc. `link` is the exit that may be linked to it.
///
/// Never gives an address of the program's own: where it has no code that is known, the fault comes by `fault_natively`.
pub fn resume(context: &mut ThreadContext, link: ExitId) -> CachePc {
    let mut link = link;
    room::note_arrival(context);
    breakpoints::count_met(context);
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    paths::flush_due(context, link);
    if context.rseq.aborted != 0 {
        rseq::count_abort(context);
    }
    loop {
        if results::is_trapped(context) {
            raise::raise_trap(context);
        }
        let is_late = || probe_returns::is_inside(context) || captures::is_past(context);
        if context.signals.fault_pending != 0 || context.is_signal_waiting() && !is_late() {
            context.capture.passed_pc = AppPc::NOWHERE;
            if are_any() {
                captures::note_fault(context);
            }
            linking::note_first_exit(context, link);
            link = ExitId::NONE;
            rseq::settle(context);
            if context.signals.fault_pending == 0 && context.is_step_due() {
                raise::raise_step(context);
            }
            delivery::deliver_pending(context);
        }
        match wait_or_go_on(context, shared, link) {
            Next::Code => {}
            Next::CodeAlone => link = ExitId::NONE,
            Next::Again => continue,
            Next::AgainAlone => {
                link = ExitId::NONE;
                continue;
            }
        }
        let mut n_changes = 0;
        let known = find_known(context, link, &mut n_changes);
        let found = known.unwrap_or_else(|| {
            masks::with_faults(context, |context| find_to_resume(&mut ENGINE.lock(), context, link, &mut n_changes))
        });
        match found {
            Ok(address) if !breakpoints::is_due(context, shared) => return address,
            // Its tracer is to see the program's own code.
            Ok(_) if breakpoints::has_tracer(shared) => release::release_all(context, release_reason::TRACED),
            Ok(_) => breakpoints::meet(context, n_changes),
            // The kernel may know better: a stack that grew, shared memory, a mapping made executable by another rule.
            Err(BuildError::NoCode(NoCode::Missing(address))) if memory::learn_range(context, address.raw()) => {}
            // The trap behind the branch that led there comes first.
            Err(BuildError::NoCode(_)) if context.is_step_due() => raise::raise_step(context),
            Err(BuildError::NoCode(NoCode::Missing(address))) if hidden::is_hidden(address.raw()) => {
                raise::raise_page_fault(context, address.raw());
            }
            Err(BuildError::NoCode(_)) => natively::fault_natively(context, n_changes),
            Err(BuildError::OutOfMemory) => release::release(context, release_reason::RUNTIME_ERROR),
            Err(BuildError::Breakpoint) => continue,
            Err(BuildError::Untransformed(size_bytes)) => {
                transforms::ask(context, shared, size_bytes);
                continue;
            }
            Err(BuildError::OtherMode) => {
                hold::follow_mode(context, shared);
                continue;
            }
        }
        link = ExitId::NONE;
    }
}

/// What comes of what is asked of a thread that is about to go on.
pub enum Next {
    /// The code at its pc: the exit that it came by may be linked to it; or may not.
    Code,
    CodeAlone,
    /// The thread was stopped: all is to be asked again.
    Again,
    /// It was somewhere else meanwhile.
    AgainAlone,
}

/// Does what is asked of the thread by others before it executes code again: it parks, stops, is released, goes on where no code is
/// translated.
pub fn wait_or_go_on(context: &mut ThreadContext, shared: Shared, link: ExitId) -> Next {
    if detach::is_asked(context) {
        linking::note_first_exit(context, link);
        detach::park(context);
        return Next::AgainAlone;
    }
    if let Some(reason) = hold::reason(context, shared) {
        linking::note_first_exit(context, link);
        hold::stop(context, shared, reason);
        return Next::Again;
    }
    if hold::is_to_leave(context, shared) {
        linking::note_first_exit(context, link);
        release::release(context, release_reason::TRACED);
    }
    hold::carry_out(context, shared);
    if injections::wait(context) {
        return Next::Again;
    }
    if unfollowed::go_on(context, shared, link) {
        return Next::AgainAlone;
    }
    if context.registers.are_foreign() {
        excursion::go_on(context);
        return Next::AgainAlone;
    }
    if context.path.is_due {
        paths::go_on_if_between(context, link);
        if context.path.is_due {
            // Single instructions are none of a critical section.
            rseq::settle(context);
        }
    }
    if !is_in_kernel_page(context.registers.pc) {
        return Next::Code;
    }
    kernel_page::emulate(context);
    if context.signals.fault_pending != 0 {
        Next::AgainAlone
    } else {
        Next::CodeAlone
    }
}

/// Where the fragment at the context's pc starts; and how often the ranges had changed that it was looked for in.
pub fn find_to_resume(
    engine: &mut Engine,
    context: &mut ThreadContext,
    link: ExitId,
    n_changes: &mut u64,
) -> Result<CachePc, BuildError> {
    *n_changes = engine.ranges.n_changes;
    if !paths::is_of_mode(engine, context) {
        return Err(BuildError::OtherMode);
    }
    let writer = writer_of(context, engine.shared);
    // What was translated ahead may be of a critical section that nobody had announced then.
    if engine.directives.n_prefetched != 0 || engine.cache.by_pc.find(context.registers.pc).is_none() {
        rseq::learn_announced(engine, &writer, context);
    }
    if hold::goes_alone(context, engine) {
        let id = hold::go_alone(engine, &writer, context)?;
        let entry = enter_alone(engine, &writer, context, link, id);
        return Ok(captures::entry_behind(engine, context, id).unwrap_or(entry));
    }
    let arrival = match link {
        ExitId::NONE => Arrival::Other,
        _ if engine.cache.exit(link).kind == ExitType::Call => Arrival::Call,
        _ => Arrival::Exit(link),
    };
    let id = find_or_build(engine, &writer, context, context.registers.pc, arrival)?;
    if context.path.is_on {
        paths::tell_changes(engine, &writer, context);
    }
    if link != ExitId::NONE {
        linking::link_exit(engine, &writer, context, link, id);
        landings::follow_landing(engine, context, link);
    }
    if let Some(entry) = captures::entry_behind(engine, context, id) {
        return Ok(entry);
    }
    if link != ExitId::NONE
        && engine.cache.exit(link).skips_question
        && engine.cache.fragment(id).behind_question != CachePc::NOWHERE
    {
        // The same block goes on.
        return engine.cache.entry_behind_question(id, Entry::Plain).ok_or(BuildError::OutOfMemory);
    }
    let fragment = engine.cache.fragment(id);
    let is_plain = context.rseq.plain != 0;
    Ok(fragment.plain_entry + if is_plain { u64::from(fragment.inner_offset) } else { 0 })
}

/// The same where that takes no look at the program's memory, which takes system calls while the program blocks faults.
pub fn find_known(
    context: &mut ThreadContext,
    link: ExitId,
    n_changes: &mut u64,
) -> Option<Result<CachePc, BuildError>> {
    if context.signals.blocks_faults == 0 {
        return None;
    }
    let mut engine = ENGINE.lock();
    let id = engine.cache.by_pc.find(context.registers.pc)?;
    let is_linked = link == ExitId::NONE || engine.cache.exit(link).linked_to == id;
    let is_known = is_linked && !hold::goes_alone(context, &engine);
    is_known.then(|| find_to_resume(&mut engine, context, link, n_changes))
}

/// Where fragment `id` is entered, that is for the calling thread alone; exit `link` is not linked to it.
pub fn enter_alone(
    engine: &mut Engine,
    writer: &RingWriter,
    context: &mut ThreadContext,
    link: ExitId,
    id: FragmentId,
) -> CachePc {
    let site = engine.cache.fragment(id).site;
    if site != SiteId::NONE {
        THREADS.lock().reach_site(site);
    }
    if context.path.is_on {
        paths::tell_changes(engine, writer, context);
    }
    if link != ExitId::NONE && engine.tells_links() && engine.cache.exit(link).linked_to == FragmentId::NONE {
        engine.write_link(writer, link, id);
    }
    let goes_on = link != ExitId::NONE && engine.cache.exit(link).skips_question;
    let behind = if goes_on { engine.cache.entry_behind_question(id, Entry::Plain) } else { None };
    behind.unwrap_or(engine.cache.fragment(id).plain_entry)
}
