//! Indirect branches and returns that no table knew: where they lead, and the way there for the next time.
//!
//! Runs in the target on the runtime's stack, in the dispatcher.

use super::landings::{find_landing, insert_pair};
use super::parts::{partial_edge, uncount_block};
use super::ways::enter_verified;
use super::ways::{find_way, make_pad};
use super::{paths, returns};
use crate::cache::exit::ExitType;
use crate::cache::pairs::PairWay;
use crate::cache::{Exit, Fragment, PadId, COUNTED_AT_EXITS};
use crate::context::addresses::AppPc;
use crate::context::numbers::{CounterId, ExitId, FragmentId, SiteId};
use crate::context::ThreadContext;
use crate::cpu::context::BranchSource;
use crate::cpu::context::BRANCH_FAULT;
use crate::cpu::decode::addresses::is_canonical;
use crate::decode::places::is_beyond;
use crate::dispatch::apart::probe_returns;
use crate::dispatch::signals::{masks, raise};
use crate::instrument::indirect::pads::{add_to_counter, correct_early_counts};
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{exit_kind, NOWHERE_PC};
use crate::thread::registry::writer_of;
use crate::thread::{open_calls, path, trust};

/// Counts an indirect branch or return that no table knew, and makes its way known; the thread resumes at its target.
pub fn take_indirect(context: &mut ThreadContext) {
    let engine = ENGINE.lock();
    engine.shared.add(crate::status_field!(entries_indirect), 1);
    let target = AppPc::from_raw(context.gate.target);
    context.registers.pc = target;
    let from = context.gate.branch_source();
    let source = match from {
        BranchSource::Return(id) => id,
        BranchSource::Unnumbered => engine.cache.exit(context.gate.exit_id).fragment,
        BranchSource::Site(_) => source_of_site(&engine, context),
    };
    drop(engine);
    if matches!(from, BranchSource::Return(_)) {
        // The return slot, just popped, shows what the program put there.
        let slot = context.registers.sp().wrapping_sub(8);
        // SAFETY: the fragment's return just read and wrote this slot, unless another thread took it away meanwhile.
        masks::with_faults(context, |context| unsafe {
            trust::write_program(context, slot, &target.raw().to_le_bytes());
        });
    }
    if source != FragmentId::NONE && probe_returns::begin(context, source, target) {
        return;
    }
    if source != FragmentId::NONE && !is_canonical(target) {
        fault_at_branch(context, source);
    } else if source != FragmentId::NONE && is_beyond(target) {
        blame_branch(context, source);
    } else if source != FragmentId::NONE {
        masks::with_faults(context, |context| follow_indirect(context, source, target));
    }
}

/// The fragment whose indirect branch the thread came by last; `NONE` if it is not known.
pub fn source_of_site(engine: &Engine, context: &ThreadContext) -> FragmentId {
    match context.gate.branch_source() {
        BranchSource::Site(site) => engine.cache.sites.find(u64::from(site.raw())).unwrap_or(FragmentId::NONE),
        BranchSource::Return(_) | BranchSource::Unnumbered => FragmentId::NONE,
    }
}

/// The branch or signal return at the end of `source` led to where no program has code. The fault is to come at the target,
/// but for the records it is this instruction that was not executed.
pub fn blame_branch(context: &mut ThreadContext, source: FragmentId) {
    let mut engine = ENGINE.lock();
    let fragment = *engine.cache.fragment(source);
    let branch = fragment.branch_pc();
    uncount_block(&mut engine, context, source, branch);
    forget_call(context, &fragment);
    (context.signals.fault_origin, context.signals.has_fault_origin) = (branch, true);
}

/// Undoes `blame_branch`: the signal return was refused, so what follows it runs.
pub fn forgive_branch(context: &mut ThreadContext, source: FragmentId) {
    let mut engine = ENGINE.lock();
    let fragment = *engine.cache.fragment(source);
    context.signals.has_fault_origin = false;
    let branch = context.signals.fault_origin;
    correct_early_counts(&engine.cache, context, &fragment, branch, 1);
    engine.uncount_edge(context, partial_edge(&fragment, source, branch));
}

/// A direct branch leads to what is no address: as below. A conditional one was taken all the same, for the records.
pub fn refuse_direct(context: &mut ThreadContext, exit: &Exit) {
    let engine = ENGINE.lock();
    let fragment = *engine.cache.fragment(exit.fragment);
    drop(engine);
    if exit.kind != ExitType::Taken {
        if fragment.count_before == COUNTED_AT_EXITS && exit.counter != CounterId::NONE {
            add_to_counter(context, exit.counter, -1);
        }
        fault_at_branch(context, exit.fragment);
        return;
    }
    context.registers.pc = fragment.branch_pc();
    (context.signals.fault_origin, context.signals.has_fault_origin) = (AppPc::from_raw(NOWHERE_PC), true);
    context.gate.note_fault_fragment(FragmentId::NONE);
    raise::raise_fault(context, BRANCH_FAULT);
}

/// A branch to what is no address faults at the branch, before it is made.
fn fault_at_branch(context: &mut ThreadContext, source: FragmentId) {
    let engine = ENGINE.lock();
    let fragment = *engine.cache.fragment(source);
    context.registers.pc = fragment.branch_pc();
    if fragment.exit_kind == exit_kind::RETURN || fragment.ends_with_call() {
        let dropped = 8 + i64::from(fragment.dropped_bytes);
        let pushed = if fragment.exit_kind == exit_kind::RETURN { -dropped } else { 8 };
        let sp = context.registers.sp();
        context.registers.set_sp(sp.wrapping_add_signed(pushed));
    }
    correct_early_counts(&engine.cache, context, &fragment, context.registers.pc, -1);
    forget_call(context, &fragment);
    drop(engine);
    context.gate.note_fault_fragment(source);
    raise::raise_fault(context, BRANCH_FAULT);
}

/// Mode full: a call at a fragment's end that is not made was pushed already.
fn forget_call(context: &ThreadContext, fragment: &Fragment) {
    if context.path.is_on && fragment.ends_with_call() {
        open_calls::unpush(context);
    }
}

/// Makes the way from `source`'s indirect branch to `target` known, and counts this execution of it.
pub fn follow_indirect(context: &mut ThreadContext, source: FragmentId, target: AppPc) {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    let fragment = *engine.cache.fragment(source);
    let is_return = fragment.exit_kind == exit_kind::RETURN;
    if is_return && fragment.takes_symbol {
        returns::take(&mut engine, &writer, context, source, target);
        return;
    }
    let landing = engine.cache.landings.find(target);
    if context.path.is_on && is_return {
        open_calls::return_to(context, &writer, fragment.branch_pc(), target);
    }
    if is_return
        && (landing.is_none() && fragment.site == SiteId::NONE || context.path.is_on && fragment.site != SiteId::NONE)
    {
        engine.note_stray(&writer, context, source);
    }
    let is_executable = engine.ranges.find(target).is_some();
    if is_return && fragment.site == SiteId::NONE {
        if landing.is_some() {
            if let Some(address) = find_landing(&mut engine, target) {
                insert_pair(&mut engine, context, SiteId::RETURNS, target, address, PairWay::Landing);
            }
            return;
        }
    } else if is_executable
        && fragment.site != SiteId::NONE
        && !(context.path.is_on && is_return)
        && paths::is_of_mode(&engine, context)
        && !engine.stops_at(target)
    {
        let first = fragment.first_pad;
        if first != PadId::NONE && engine.cache.pad(first).target == target && !engine.cache.pad(first).is_dead {
            // Another thread made it meanwhile.
            count_pad(&engine, context, first);
            return;
        }
        if let Some(entry) = find_way(&engine, fragment.site, target) {
            // Another thread made it meanwhile, or this thread's table held a dead pad.
            // SAFETY: the entry of a site that runs is inside this thread's branch table.
            unsafe { context.branch_entry(fragment.site, target).write_volatile(entry.pad.raw()) };
            if let PairWay::Pad(id) = entry.way {
                count_pad(&engine, context, id);
            }
            return;
        }
        let is_first_try = is_tried_first(&mut engine, source, target);
        if !is_first_try && enter_verified(&mut engine, context, source, target) {
            engine.take_pair(&writer, source, target);
            return;
        }
        if let Some(pad_id) = make_pad(&mut engine, &writer, context, source, target, is_first_try) {
            count_pad(&engine, context, pad_id);
            return;
        }
    }
    // Nothing to jump through: counted here.
    if context.path.is_on && !is_return {
        let is_call = fragment.exit_kind == exit_kind::INDIRECT_CALL;
        path::branch_elsewhere(context, &writer, fragment.branch_pc(), target, is_call);
    }
    if is_return && landing.is_some() {
        return;
    }
    let edge = engine.edge_of_branch(source, target);
    engine.count_edge(&writer, context, edge);
}

/// Whether the pad from `source` to `target` is to be tried before the branch table is asked.
///
/// Most indirect branches have one target, and a pad that is tried first costs them no indirect jump. A second target
/// takes the place of the first, because the first may have been the dynamic linker's; with a third one the table decides.
fn is_tried_first(engine: &mut Engine, source: FragmentId, target: AppPc) -> bool {
    const MAX_TRIES: u32 = 2;
    const REACH: u64 = 0x7000_0000;
    let fragment = *engine.cache.fragment(source);
    let room = engine.cache.slabs.room_near(fragment.app_pc);
    let is_in_reach = room.is_some_and(|room| room.hot.abs_diff(fragment.cache_start) < REACH);
    if fragment.first_try == ExitId::NONE {
        return false;
    }
    let is_replaced = fragment.first_pad != PadId::NONE
        && engine.cache.pad(fragment.first_pad).is_dead
        && engine.cache.pad(fragment.first_pad).target == target;
    // Where a pad is tried first, the table has none for the site: a miss leads to the gate, which sees a waiting signal.
    if !is_in_reach {
        engine.cache.fragment_mut(source).n_tries = MAX_TRIES + 1;
    } else if !is_replaced {
        engine.cache.fragment_mut(source).n_tries += 1;
    }
    if engine.cache.fragment(source).n_tries > MAX_TRIES {
        engine.cache.try_first(source, None);
        return false;
    }
    true
}

/// The dispatcher goes to the target itself, so it counts what the pad would have.
fn count_pad(engine: &Engine, context: &ThreadContext, pad_id: PadId) {
    let pad = engine.cache.pad(pad_id);
    if pad.counter != CounterId::NONE {
        add_to_counter(context, pad.counter, 1);
    }
    if let Some(symbol) = pad.symbol.filter(|_| context.path.is_on) {
        path::write_symbol(context, symbol);
    }
}
