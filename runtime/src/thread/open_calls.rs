//! The calls that are open in a thread's path (mode `full`): its shadow stack, as the dispatcher and the signal handler see it.
//!
//! Translated code pushes and pops (cpu::shadow, instrument/indirect/strays.rs); the rules are the crate `pathcodec`'s.

use super::path_words::write_event;
use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::layout::{SHADOW_BYTES, SHADOW_OFFSET};
use crate::context::ThreadContext;
use crate::protocol::path_event_kind;
use clew_pathcodec::shadow::depth_after;

/// A return to `target` that no landing compared: it pops, or says with an event that it went elsewhere.
pub fn return_to(context: &mut ThreadContext, writer: &RingWriter, return_pc: AppPc, target: AppPc) {
    if open_calls(context).last() == Some(&target.raw()) {
        pop(context, 1);
    } else {
        return_elsewhere(context, writer, return_pc, target);
    }
}

/// A return to `target` that says with an event that it went there.
pub fn return_elsewhere(context: &mut ThreadContext, writer: &RingWriter, return_pc: AppPc, target: AppPc) {
    let left = depth_after(open_calls(context), target.raw()) as u64;
    write_event(context, writer, path_event_kind::ELSEWHERE, return_pc, target.raw());
    set_depth(context, left);
}

/// How deep in the open calls `target` is expected to be returned to, 1 being the topmost; `None`: in none of the `most` topmost.
pub fn find_open(context: &ThreadContext, target: AppPc, most: usize) -> Option<usize> {
    open_calls(context).iter().rev().take(most).position(|address| *address == target.raw()).map(|index| index + 1)
}

/// Pops open calls, if there are as many.
pub fn pop(context: &ThreadContext, n: usize) {
    set_depth(context, context.path.shadow_depth.saturating_sub(n as u64));
}

/// Pushes a call that no translated code made.
pub fn push(context: &mut ThreadContext, return_pc: AppPc) {
    if context.path.shadow_depth == SHADOW_BYTES / 8 {
        context.path.shadow_forgotten += context.path.shadow_depth;
        set_depth(context, 0);
    }
    let place = context.self_address + SHADOW_OFFSET + context.path.shadow_depth * 8;
    // SAFETY: the shadow stack has room for it, and is the thread's own.
    unsafe { (place as *mut u64).write_volatile(return_pc.raw()) };
    set_depth(context, context.path.shadow_depth + 1);
}

/// Takes back the call that was pushed last.
pub fn unpush(context: &ThreadContext) {
    pop(context, 1);
}

/// None is open that is known.
pub fn forget_calls(context: &mut ThreadContext) {
    context.path.shadow_forgotten = 0;
    set_depth(context, 0);
}

/// Return addresses of the open calls, the outermost first, without those that were forgotten.
pub fn open_calls(context: &ThreadContext) -> &[u64] {
    let depth = context.path.shadow_depth.min(SHADOW_BYTES / 8) as usize;
    // SAFETY: the thread's own stack, mapped as a whole, which only this thread writes.
    unsafe { core::slice::from_raw_parts((context.self_address + SHADOW_OFFSET) as *const u64, depth) }
}

fn set_depth(context: &ThreadContext, depth: u64) {
    // SAFETY: a field of a live context that only the thread itself writes, here and in translated code.
    unsafe { (&raw const context.path.shadow_depth as *mut u64).write_volatile(depth) };
}
