//! A function that the controller has a stopped thread call. It is entered as the handler of a signal is, and left by the program's own
//! code that returns from handlers: so all that the thread had is kept, and counts and order have what they have of a signal.
//!
//! Runs on the runtime's stack, no lock held.

use super::handler_edges::note_handler;
use super::masks::{give_mask, take_mask};
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::cpu::signal::deliver::{self, Delivery};
use crate::decode::places::name_of;
use crate::dispatch::apart::away;
use crate::protocol::{edge_kind, event_kind};
use crate::sys::kernel::{SigAction, SigInfo, SA_NODEFER, SA_RESTORER, SA_SIGINFO};
use crate::thread::registry::write_event;

/// Where the controller's words have the thread's place.
const PC: usize = 16;

/// Has the context go on in the function that the controller wants to be called. `false`: it can't, and nothing was changed.
pub fn begin(context: &mut ThreadContext, writer: &RingWriter) -> bool {
    // A call to the kernel that is to be made again belongs to where the thread is.
    if context.call.code != 0 || context.hold.called_frame != 0 || context.registers.are_foreign() {
        return false;
    }
    let (registers, vectors, restorer) = (writer.told_registers(), writer.told_vectors(), writer.answer()[0]);
    let interrupted_pc = away::origin(context).unwrap_or(name_of(context.registers.pc));
    let action = SigAction { handler: registers[PC], flags: SA_SIGINFO | SA_RESTORER | SA_NODEFER, restorer, mask: 0 };
    // Signal 0 is none: nobody sends it.
    let info = SigInfo::ZERO;
    let captured_pc = context.capture.passed_pc;
    let mask = take_mask(context);
    let entered = deliver::enter(context, &info, &action, (mask, mask), [0; 3]);
    if let Delivery::Handler(_) = entered {
        write_event(writer, event_kind::SIGNAL, interrupted_pc, [0; 3]);
        (context.hold.called_frame, context.hold.captured_pc) = (context.registers.sp(), captured_pc);
        context.capture.passed_pc = AppPc::NOWHERE;
        context.registers.set_for_call(&registers);
        context.vector.set_held(&vectors);
        note_handler(context, edge_kind::SIGNAL, FragmentId::NONE, interrupted_pc);
    }
    give_mask(context, mask);
    matches!(entered, Delivery::Handler(_))
}

/// The thread is about to return by a signal's frame, whose handler began with the stack pointer `sp`: if that was such a function, it is
/// where it was before.
pub fn end(context: &mut ThreadContext, sp: u64) {
    if context.hold.called_frame == sp {
        context.hold.called_frame = 0;
        context.capture.passed_pc = context.hold.captured_pc;
    }
}
