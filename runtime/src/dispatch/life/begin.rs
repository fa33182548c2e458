//! A thread begins: its slot, its first event, its path.

use crate::context::addresses::AppPc;
use crate::context::hold::Hold;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::dispatch::flow::paths;
use crate::instrument::indirect::pads::DynamicEdge;
use crate::instrument::ENGINE;
use crate::protocol::{edge_kind, event_kind, release_reason};
use crate::thread::registry::{begin_slot, write_event, writer_of};

/// Records a thread's start: its slot, an event, and the edge into its first block.
pub fn begin(context: &mut ThreadContext, parent: u32) {
    let mut engine = ENGINE.lock();
    let shared = engine.shared;
    begin_slot(context, shared);
    context.hold =
        Hold { directives_done: engine.directives.count(), filters_seen: shared.filter_count(), ..Hold::default() };
    let writer = writer_of(context, shared);
    write_event(
        &writer,
        event_kind::THREAD_START,
        context.registers.pc,
        [u64::from(parent), u64::from(context.slot), 0],
    );
    let edge = DynamicEdge {
        kind: edge_kind::START,
        source_fragment: FragmentId::NONE,
        source_pc: AppPc::NOWHERE,
        target_pc: context.registers.pc,
    };
    engine.count_edge(&writer, context, edge);
    if !paths::begin(&engine, &writer, context) {
        drop(engine);
        give_up(context);
    }
}

/// Releases the calling thread because the runtime cannot go on with it.
pub fn give_up(context: &mut ThreadContext) -> ! {
    super::release::release(context, release_reason::RUNTIME_ERROR)
}
