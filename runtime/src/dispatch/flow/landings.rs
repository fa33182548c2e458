//! Where returns land: behind the call that the processor called from.

use crate::cache::exit::ExitType;
use crate::cache::pairs::{Insertion, PairWay};
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{ExitId, FragmentId, SiteId};
use crate::context::ThreadContext;
use crate::cpu::spill::SpillState;
use crate::instrument::Engine;
use crate::protocol::error_code;
use crate::thread::THREADS;

/// Where a call's return lands in the cache: right after the processor's call.
pub fn landing_address(engine: &Engine, caller: FragmentId) -> CachePc {
    let fragment = engine.cache.fragment(caller);
    let start = fragment.map_start as usize;
    let entries = &engine.cache.map.as_slice()[start..start + fragment.map_length as usize];
    let landing = entries.iter().find(|entry| entry.state == SpillState::Landing);
    landing.map_or(CachePc::NOWHERE, |entry| fragment.cache_start + u64::from(entry.cache_offset))
}

/// Makes returns to what follows the call at the end of fragment `id`, which is new, come to its landing, if they are to: the processor
/// predicts that they come to where it called from.
pub fn lead_returns_to(engine: &mut Engine, id: FragmentId) {
    let fragment = *engine.cache.fragment(id);
    let target = fragment.end();
    if !fragment.ends_with_call() || engine.cache.landings.find(target) != Some(id) {
        return;
    }
    let Some(before) = engine.cache.pairs.find(SiteId::RETURNS, target).filter(|entry| entry.pad != CachePc::NOWHERE)
    else {
        return;
    };
    let address = landing_address(engine, id);
    if address != CachePc::NOWHERE {
        // Replacing an entry never moves the table.
        engine.cache.pairs.insert(SiteId::RETURNS, target, address, PairWay::Landing);
        THREADS.lock().change_branch(SiteId::RETURNS, target, before.pad, address);
    }
}

/// Where returns to `return_pc` land: behind a call that is in use. `None`: the call is to be translated again.
pub fn find_landing(engine: &mut Engine, return_pc: AppPc) -> Option<CachePc> {
    let known = engine.cache.landings.find(return_pc).filter(|id| engine.cache.fragment(*id).is_valid);
    let caller = known.or_else(|| find_call_before(engine, return_pc))?;
    Some(landing_address(engine, caller))
}

/// A fragment in use that ends with the call in front of `return_pc`; its landing is the one from now on.
pub fn find_call_before(engine: &mut Engine, return_pc: AppPc) -> Option<FragmentId> {
    let holders = engine.fragments_within(return_pc.saturating_sub(1), return_pc);
    let id = holders.into_iter().find(|id| {
        let fragment = engine.cache.fragment(*id);
        fragment.is_valid && fragment.ends_with_call() && fragment.end() == return_pc
    })?;
    engine.cache.landings.insert(return_pc, id);
    Some(id)
}

/// A return came to the landing of a call that was dropped: the next ones find the landing of its next copy, if there is one.
pub fn follow_landing(engine: &mut Engine, context: &ThreadContext, exit_id: ExitId) {
    let exit = *engine.cache.exit(exit_id);
    if exit.kind != ExitType::Landing || engine.cache.fragment(exit.fragment).is_valid {
        return;
    }
    if let Some(address) = find_landing(engine, exit.target) {
        insert_pair(engine, context, SiteId::RETURNS, exit.target, address, PairWay::Landing);
    }
}

/// Forgets all ways: returns are not to find landings that keep the shadow stack in another way. All threads are stopped.
pub fn forget_ways(engine: &mut Engine) {
    engine.cache.pairs.clear();
    THREADS.lock().empty_branch_tables();
}

/// Puts a way into the pair table and this thread's branch table.
pub fn insert_pair(
    engine: &mut Engine,
    context: &ThreadContext,
    site: SiteId,
    target: AppPc,
    address: CachePc,
    way: PairWay,
) {
    if address == CachePc::NOWHERE {
        return;
    }
    match engine.cache.pairs.insert(site, target, address, way) {
        Insertion::TableMoved => {
            let (table, mask) = engine.cache.pairs.location();
            THREADS.lock().set_pair_table(table, mask);
        }
        Insertion::InPlace => {}
        Insertion::NoMemory => engine.shared.report_error(error_code::OUT_OF_MEMORY, [3, 0, 0, 0]),
    }
    // SAFETY: the entry of a site that runs is inside this thread's branch table.
    unsafe { context.branch_entry(site, target).write_volatile(address.raw()) };
}
