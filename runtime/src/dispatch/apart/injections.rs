//! Calls that go another way than the program has it: a result without the call, a delay, a signal.
//!
//! Runs in the target on the runtime's stack: system calls come to the dispatcher anyway (captured_system_calls.rs), functions at which
//! something is injected leave for it always (captures.rs). What is decided is decided once, by the thread itself, when the call begins. A thread
//! that is delayed waits in `resume`, its state complete and without a lock, so it can be stopped and left meanwhile; signals come behind that.

extern crate alloc;
use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::cpu::sys::number;
use crate::dispatch::calls::memory::descriptor_link;
use crate::dispatch::signals::handler_edges::note_handler;
use crate::dispatch::signals::masks;
use crate::instrument::captures::evaluate::{evaluate, Asked, Value};
use crate::instrument::captures::injections::{Decision, Injection, N_FIELDS};
use crate::instrument::captures::layout::{Action, Program};
use crate::instrument::captures::places::Place;
use crate::instrument::ENGINE;
use crate::protocol::{edge_kind, injected};
use crate::sys::calls::{check, futex_wait, getpid, monotonic_ns, syscall};
use core::sync::atomic::Ordering;

/// A thread that is delayed looks so often whether it is to do something else.
const LOOK_NS: u64 = 10_000_000;

/// What is done to the call that the thread begins at a place, by those of its captures that inject; `asked` is about the thread.
pub fn decide(context: &mut ThreadContext, place: &Place, asked: &impl Asked) -> Decision {
    let mut decision = Decision::default();
    for program in place.programs.iter().filter(|program| program.action == Action::Inject) {
        let found = masks::with_faults(context, |_| work_out(program, asked));
        if let Some(injection) = found {
            if injection.is_for(count(context, program.number)) {
                decision.add(&injection);
            }
        }
    }
    decision
}

/// What one of them says of the call; `None`: nothing.
fn work_out(program: &Program, asked: &impl Asked) -> Option<Injection> {
    let (mut fields, mut is_whole) = ([0; N_FIELDS], true);
    let holds = evaluate(program, asked, |index, value| match value {
        Value::Number(number) if index < N_FIELDS => fields[index] = *number,
        _ => is_whole = false,
    });
    (holds && is_whole).then(|| Injection::of(fields))
}

/// Which of the thread's calls this is that an injection is about.
fn count(context: &mut ThreadContext, capture: u32) -> u64 {
    let mut engine = ENGINE.lock();
    if context.capture.counting_tid != context.tid {
        // The block was another thread's, or the process is a copy of its parent.
        context.capture.counting_tid = context.tid;
        engine.captures.injected_calls.forget(context.self_address);
    }
    engine.captures.injected_calls.count(context.self_address, capture)
}

/// Sends the thread what is to come with the call.
pub fn send_signals(context: &ThreadContext, decision: &Decision) {
    for signal in (1..=64).filter(|signal| decision.signals >> (signal - 1) & 1 != 0) {
        // SAFETY: sends a signal to the calling thread, which takes it as any other; no memory.
        unsafe { syscall(number::TGKILL, [u64::from(getpid()), u64::from(context.tid), signal, 0, 0, 0]) };
    }
}

/// Has the thread wait so long before it executes anything more.
pub fn delay(context: &mut ThreadContext, delay_ns: u64) {
    if delay_ns != 0 {
        context.capture.delayed_until_ns = monotonic_ns().saturating_add(delay_ns);
    }
}

/// Waits a while, if the thread is delayed; whether it waited, and is to see what else there is to do. No lock held, the context complete.
pub fn wait(context: &mut ThreadContext) -> bool {
    let until_ns = context.capture.delayed_until_ns;
    if until_ns == 0 {
        return false;
    }
    let now_ns = monotonic_ns();
    // A filter may forbid the clock (0).
    if now_ns == 0 || now_ns >= until_ns {
        context.capture.delayed_until_ns = 0;
        return false;
    }
    // A signal may wait for the end of the delay; one more ends this wait by itself.
    let pending = context.pending_word().load(Ordering::Relaxed);
    futex_wait(context.pending_word().as_ptr(), pending, (until_ns - now_ns).min(LOOK_NS), false);
    true
}

/// Has the function in front of which the thread is return, without having been executed, as was decided; and delays it.
pub fn carry_out_at_function(context: &mut ThreadContext, decision: &Decision) {
    send_signals(context, decision);
    delay(context, decision.delay_enter_ns);
    if decision.what & injected::RESULT == 0 {
        return;
    }
    // Where a call returns to is on top of the stack.
    let Some(return_pc) = masks::with_faults(context, |context| guarded::read_word(context.registers.sp())) else {
        // It faults by itself when it returns.
        return;
    };
    if decision.errno_address != 0 {
        let errno = decision.errno.to_le_bytes();
        // SAFETY: whoever calls the function expects its error number there.
        masks::with_faults(context, |_| unsafe { guarded::write_program(decision.errno_address, &errno) });
    }
    let function = context.registers.pc;
    context.registers.return_with(decision.result, AppPc::from_raw(return_pc));
    context.capture.passed_pc = AppPc::NOWHERE;
    // Who was to see it called sees nothing: it is not.
    context.capture.stops = 0;
    note_handler(context, edge_kind::SIGNAL, FragmentId::NONE, function);
}

/// Where a descriptor of the process leads to, so many bytes at most.
pub fn descriptor_path(descriptor: i32, limit: usize) -> Value {
    let Ok(number) = u32::try_from(descriptor) else { return Value::Missing };
    let link = descriptor_link(number);
    let mut text = alloc::vec![0; limit];
    // SAFETY: reads the name, which ends with a zero, and writes inside `text`.
    let size = unsafe {
        syscall(number::READLINK, [link.as_ptr() as u64, text.as_mut_ptr() as u64, text.len() as u64, 0, 0, 0])
    };
    match check(size) {
        Ok(size) => {
            text.truncate(size as usize);
            Value::Bytes(text)
        }
        Err(_) => Value::Missing,
    }
}
