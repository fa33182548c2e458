//! Code that is translated before anybody executes it, because the controller says so: children of a fork server's have it
//! from their parent then.

use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::dispatch::flow::find;
use crate::instrument::request::Arrival;
use crate::instrument::{BuildError, Engine};
use crate::protocol::MAX_PREFETCHED;

/// Translates the blocks at the addresses that were told since this was done last. An address may be any number.
pub fn translate(engine: &mut Engine, writer: &RingWriter, context: &mut ThreadContext) {
    let count = engine.shared.prefetch_count();
    let before = core::mem::replace(&mut engine.directives.n_prefetched, count);
    // Of more than the table holds the first are gone: the controller waits for that, unless it was damaged.
    let n_new = count.wrapping_sub(before).min(MAX_PREFETCHED as u32);
    for number in 0..n_new {
        let pc = AppPc::from_raw(engine.shared.prefetch_address(count.wrapping_sub(n_new - number)));
        if engine.cache.by_pc.find(pc).is_some() {
            continue;
        }
        if engine.may_announce(pc) {
            engine.shared.add(crate::status_field!(prefetch_refused), 1);
            continue;
        }
        match find::find_or_build(engine, writer, context, pc, Arrival::Other) {
            Ok(_) => engine.shared.add(crate::status_field!(prefetched), 1),
            Err(BuildError::OutOfMemory) => break,
            // Nothing is there, or it is to be executed alone, or somebody is to be asked about it when it is executed.
            Err(_) => engine.shared.add(crate::status_field!(prefetch_refused), 1),
        }
    }
    engine.shared.set_prefetch_done(count);
}
