//! Returns that take a symbol, where their pads have none for what they do, or there is no pad yet (mode `full`).
//!
//! Runs in the target on the runtime's stack, in the dispatcher.

use super::paths;
use super::ways::{find_way, make_pad};
use crate::buffer::RingWriter;
use crate::cache::exit::Exit;
use crate::cache::pairs::{PairEntry, PairWay};
use crate::cache::PadId;
use crate::context::addresses::AppPc;
use crate::context::numbers::{CounterId, FragmentId, SiteId};
use crate::context::ThreadContext;
use crate::instrument::indirect::pads::add_to_counter;
use crate::instrument::order::symbols::MAX_POPS;
use crate::instrument::Engine;
use crate::thread::{open_calls, path};

/// The return at the end of `source` led to `target`: writes that into the path, counts it, and makes its way known.
pub fn take(engine: &mut Engine, writer: &RingWriter, context: &mut ThreadContext, source: FragmentId, target: AppPc) {
    let branch = engine.cache.fragment(source).branch_pc();
    let found = open_calls::find_open(context, target, MAX_POPS);
    let added = if may_have_pad(engine, context, source, target) {
        engine.symbols.add_return(branch, target, found)
    } else {
        None
    };
    let pad = match added {
        Some((symbol, is_new)) => {
            if is_new {
                engine.announce_return(writer, source, target, symbol);
            }
            if context.path.is_on {
                open_calls::pop(context, found.unwrap_or(1));
                path::write_symbol(context, symbol);
            }
            find_pad(engine, writer, context, source, target)
        }
        None => {
            if context.path.is_on {
                open_calls::return_elsewhere(context, writer, branch, target);
            }
            None
        }
    };
    match pad.map(|pad| engine.cache.pad(pad).counter) {
        Some(CounterId::NONE) => {}
        Some(counter) => add_to_counter(context, counter, 1),
        None => count(engine, writer, context, source, target),
    }
}

/// A return's pad led to code that was replaced: the return is made and told, but counts anew, to what is there now.
pub fn take_dead_pad(engine: &mut Engine, writer: &RingWriter, context: &mut ThreadContext, exit: &Exit) {
    if exit.counter != CounterId::NONE {
        add_to_counter(context, exit.counter, -1);
        count(engine, writer, context, exit.fragment, exit.target);
    }
    if may_have_pad(engine, context, exit.fragment, exit.target) {
        find_pad(engine, writer, context, exit.fragment, exit.target);
    }
}

fn may_have_pad(engine: &Engine, context: &ThreadContext, source: FragmentId, target: AppPc) -> bool {
    // Zeros lie below the open calls.
    target != AppPc::LOWEST
        && engine.cache.fragment(source).site != SiteId::NONE
        && engine.ranges.find(target).is_some()
        && paths::is_of_mode(engine, context)
        && !engine.stops_at(target)
}

/// The pad from `source` to `target` with all its symbols, made now if there is none, and known to the thread.
fn find_pad(
    engine: &mut Engine,
    writer: &RingWriter,
    context: &mut ThreadContext,
    source: FragmentId,
    target: AppPc,
) -> Option<PadId> {
    let fragment = engine.cache.fragment(source);
    let (site, ways) = (fragment.site, engine.symbols.of_return(fragment.branch_pc(), target).set());
    if let Some(PairEntry { pad: address, way: PairWay::Pad(id), .. }) = find_way(engine, site, target) {
        let pad = engine.cache.pad(id);
        if pad.return_ways == ways && !pad.is_dead {
            // Another thread made it meanwhile.
            // SAFETY: the entry of a site that runs is inside this thread's branch table.
            unsafe { context.branch_entry(site, target).write_volatile(address.raw()) };
            return Some(id);
        }
    }
    make_pad(engine, writer, context, source, target, false)
}

/// Counts the edge where no call announced the return.
fn count(engine: &mut Engine, writer: &RingWriter, context: &ThreadContext, source: FragmentId, target: AppPc) {
    if engine.cache.landings.find(target).is_none() {
        let edge = engine.edge_of_branch(source, target);
        engine.count_edge(writer, context, edge);
    }
}
