//! The ways from an indirect branch to its targets: pads, and entries of the tables.

use super::find::find_or_build;
use super::landings::insert_pair;
use super::paths;
use crate::buffer::RingWriter;
use crate::cache::pairs::{PairEntry, PairWay};
use crate::cache::PadId;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{FragmentId, SiteId};
use crate::context::ThreadContext;
use crate::instrument::request::Arrival;
use crate::instrument::Engine;

/// Makes the pad from `source`'s branch to `target`, and has the branch come there. `None`: that needed memory and there was none.
pub fn make_pad(
    engine: &mut Engine,
    writer: &RingWriter,
    context: &mut ThreadContext,
    source: FragmentId,
    target: AppPc,
    is_first_try: bool,
) -> Option<PadId> {
    let site = engine.cache.fragment(source).site;
    let pad_id = engine.build_pad(writer, source, target, is_first_try).ok()?;
    // The target comes right behind the pad if it is new, so that the pad runs straight into it.
    if let Ok(id) = find_or_build(engine, writer, context, target, Arrival::Indirect) {
        engine.cache.fragment_mut(id).is_indirect_target = true;
        let exit = engine.cache.pad(pad_id).exit;
        if paths::may_link_to(engine, id) {
            engine.cache.link(exit, id);
        }
    }
    if is_first_try {
        engine.cache.try_first(source, Some(pad_id));
    } else {
        let address = engine.cache.pad(pad_id).cache_start;
        insert_pair(engine, context, site, target, address, PairWay::Pad(pad_id));
    }
    Some(pad_id)
}

/// The way from a site to a target that the pair table has, if it leads to code in use.
pub fn find_way(engine: &Engine, site: SiteId, target: AppPc) -> Option<PairEntry> {
    let entry = engine.cache.pairs.find(site, target).filter(|entry| entry.pad != CachePc::NOWHERE)?;
    let is_in_use = entry.verified_fragment().is_none_or(|id| engine.cache.fragment(id).is_valid);
    is_in_use.then_some(entry)
}

/// A pad led to code that was laid out anew: if that has a verified entry, the pad is left out from now on.
pub fn leave_out_pad(engine: &mut Engine, context: &ThreadContext, pad_id: PadId) {
    let pad = *engine.cache.pad(pad_id);
    // While a site tries a pad first the table has nothing for it.
    if engine.cache.fragment(pad.source_fragment).first_pad == PadId::NONE {
        enter_verified(engine, context, pad.source_fragment, pad.target);
    }
}

/// Lets `source`'s indirect branch enter the code at `target` by its verified entry, if it has one.
pub fn enter_verified(engine: &mut Engine, context: &ThreadContext, source: FragmentId, target: AppPc) -> bool {
    let Some(id) =
        engine.cache.by_pc.find(target).filter(|id| engine.cache.fragment(*id).verified_entry != CachePc::NOWHERE)
    else {
        return false;
    };
    let (site, address) = (engine.cache.fragment(source).site, engine.cache.fragment(id).verified_entry);
    insert_pair(engine, context, site, target, address, PairWay::Verified(id));
    true
}
