//! System calls about signals: actions, masks, stacks, and the return from a handler.

use super::{calling, masks, raise};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::ExitId;
use crate::context::ThreadContext;
use crate::cpu::decode::addresses::is_in_kernel_page;
use crate::cpu::decode::placed;
use crate::cpu::signal::deliver;
use crate::cpu::signal::returning::{self};
use crate::cpu::sys::number;
use crate::decode::places::is_beyond;
use crate::dispatch::apart::{away, hold};
use crate::dispatch::apart::{captured_system_calls, captures};
use crate::dispatch::calls::results::{read_program, result_of, write_program};
use crate::dispatch::life::{detach, room};
use crate::instrument::indirect::pads::DynamicEdge;
use crate::instrument::ENGINE;
use crate::protocol::{edge_kind, path_event_kind};
use crate::signal::table::table_of;
use crate::sys::calls::{set_signal_mask, Error, EINVAL};
use crate::sys::kernel::{SigAction, SigStack, UNBLOCKABLE};
use crate::thread::path_words;
use crate::thread::registry::writer_of;

pub fn set_action(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
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
pub fn set_mask(context: &mut ThreadContext, arguments: [u64; 6]) -> Option<i64> {
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
    if context.registers.result() as i64 != -EINTR {
        return;
    }
    let arguments = context.registers.call_arguments();
    let address = match context.call.number {
        number::RT_SIGSUSPEND => arguments[0],
        number::PPOLL => arguments[3],
        number::EPOLL_PWAIT | number::EPOLL_PWAIT2 => arguments[4],
        number::PSELECT6 | number::IO_PGETEVENTS if arguments[5] != 0 => read_program::<u64>(arguments[5]).unwrap_or(0),
        _ => 0,
    };
    if address != 0 {
        if let Ok(mask) = read_program::<u64>(address) {
            context.signals.temporary_mask = mask;
            context.signals.has_temporary_mask = 1;
        }
    }
}

/// sigaltstack acts on the program's own stack; the kernel knows the runtime's.
pub fn set_stack(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
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
pub fn return_from_handler(context: &mut ThreadContext) -> i64 {
    let Some(frame) = masks::with_faults(context, |context| returning::read_frame(context)) else {
        raise::raise_forced(context);
        return 0;
    };
    let target = frame.pc;
    captured_system_calls::forget_begun(context);
    if context.native.call_pc != AppPc::NOWHERE {
        return return_natively(context, target);
    }
    let mut counted = None;
    let exit_id = context.gate.exit_id;
    // SAFETY: only arenas are read.
    let source = unsafe { ENGINE.peek() }.cache.exit(exit_id).fragment;
    let is_leaving = frame.is_foreign();
    if is_leaving {
        away::begin(context, exit_id);
    } else if is_beyond(target) {
        crate::dispatch::flow::indirect::blame_branch(context, source);
    } else {
        counted = Some(count_signal_return(context, exit_id, target));
    }
    let frame_address = context.registers.sp().wrapping_sub(8);
    calling::end(context, frame_address);
    captures::come_back(context, frame_address, target);
    let result = returning::return_from_handler(context, find_straight);
    // A filter refused it.
    match counted {
        Some(edge) => {
            let mut engine = ENGINE.lock();
            engine.uncount_edge(context, edge);
            if context.path.is_on {
                let writer = writer_of(context, engine.shared);
                path_words::write_event(context, &writer, path_event_kind::RESUME, target, context.registers.pc.raw());
            }
        }
        None if is_leaving => context.stepping.excursion_exit = 0,
        None => crate::dispatch::flow::indirect::forgive_branch(context, source),
    }
    result
}

/// The same of a thread that is not followed, to `target`: nothing is counted.
fn return_natively(context: &mut ThreadContext, target: AppPc) -> i64 {
    let frame_address = context.registers.sp().wrapping_sub(8);
    calling::end(context, frame_address);
    captures::come_back(context, frame_address, target);
    returning::return_from_handler(context, |_| None)
}

/// Where the program's code at the context's pc is in the cache, if the thread has nothing else to do before it goes on there.
fn find_straight(context: &mut ThreadContext) -> Option<CachePc> {
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let tells = context.path.is_on || context.path.has_tags || context.path.is_due || context.rseq.aborted != 0;
    let is_usual = context.registers.are_usual() && context.stepping.excursion_exit == 0;
    let is_asked = context.hold.step != 0 || context.hold.directives_done != shared.directive_count();
    if tells || !is_usual || is_asked || context.registers.are_stepped() || context.registers.passes_breakpoint() {
        return None;
    }
    if is_in_kernel_page(context.registers.pc)
        || detach::is_asked(context)
        || hold::reason(context, shared).is_some()
        || hold::is_to_leave(context, shared)
        || captures::is_left(context)
        || shared.is_unfollowed(context.slot)
    {
        return None;
    }
    room::note_arrival(context);
    let engine = ENGINE.lock();
    if engine.sees_all_returns() || hold::goes_alone(context, &engine) || placed::is_known(context.registers.pc) {
        return None;
    }
    let id = engine.cache.by_pc.find(context.registers.pc)?;
    Some(engine.cache.fragment(id).plain_entry)
}

/// Counts the return from a handler by the system call of exit `exit_id`, to `target`.
pub fn count_signal_return(context: &mut ThreadContext, exit_id: ExitId, target: AppPc) -> DynamicEdge {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    let exit = *engine.cache.exit(exit_id);
    let fragment = *engine.cache.fragment(exit.fragment);
    let edge = DynamicEdge {
        kind: edge_kind::SIGRETURN,
        source_fragment: exit.fragment,
        source_pc: fragment.branch_pc(),
        target_pc: target,
    };
    engine.count_edge(&writer, context, edge);
    if context.path.is_on {
        path_words::write_event(context, &writer, path_event_kind::RESUME, fragment.end(), target.raw());
    }
    edge
}
