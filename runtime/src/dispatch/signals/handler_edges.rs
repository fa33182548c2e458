//! Ways that no instruction takes: to handlers, and back from functions that are not executed.

use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::dispatch::apart::away;
use crate::instrument::indirect::pads::DynamicEdge;
use crate::instrument::ENGINE;
use crate::protocol::path_event_kind;
use crate::thread::path_words;
use crate::thread::registry::writer_of;

/// Counts, and tells in the thread's path, that the thread went to a handler, where the context is now; out of `fault`, if an
/// instruction of that caused it.
pub fn note_handler(context: &mut ThreadContext, kind: u8, fault: FragmentId, interrupted_pc: AppPc) {
    away::abandon(context);
    if context.native.is_away != 0 {
        return;
    }
    let mut engine = ENGINE.lock();
    // The instruction's address alone would not tell which version of code that changes it was.
    let source_fragment = match fault {
        FragmentId::NONE => FragmentId::NONE,
        fault => engine.cache.holder(fault, interrupted_pc),
    };
    let edge = DynamicEdge { kind, source_fragment, source_pc: interrupted_pc, target_pc: context.registers.pc };
    let writer = writer_of(context, engine.shared);
    engine.count_edge(&writer, context, edge);
    if context.path.is_on {
        let target = context.registers.pc.raw();
        path_words::write_event(context, &writer, path_event_kind::RESUME, interrupted_pc, target);
    }
}
