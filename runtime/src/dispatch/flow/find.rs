//! Where execution goes on: the fragment at an address, made now if there is none.

use super::landings;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::numbers::{FragmentId, SiteId};
use crate::context::ThreadContext;
use crate::instrument::request::{Arrival, Request};
use crate::instrument::{BuildError, Engine};
use crate::thread::THREADS;

/// The fragment at `pc`, its site known to all threads' branch tables.
pub fn find_or_build(
    engine: &mut Engine,
    writer: &RingWriter,
    context: &mut ThreadContext,
    pc: AppPc,
    arrival: Arrival,
) -> Result<FragmentId, BuildError> {
    if let Some(id) = engine.cache.by_pc.find(pc) {
        return Ok(id);
    }
    let id = engine.build(writer, Request::new(pc, arrival))?;
    let site = engine.cache.fragment(id).site;
    if site != SiteId::NONE {
        THREADS.lock().reach_site(site);
    }
    engine.begin_heat(context, id);
    engine.cut_other_calls(writer, id);
    landings::lead_returns_to(engine, id);
    Ok(id)
}
