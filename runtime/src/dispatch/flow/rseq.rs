//! Restartable sequences (rseq(2)) at run time: which threads have them, where they come in, and how they are aborted.
//!
//! The kernel aborts a thread that it finds in an enclosure's covered part while the thread's rseq_cs holds the shadow. Everywhere
//! else it only clears that word, as it does natively outside a critical section. So where a thread is on its way between two
//! fragments of a critical section and comes through the runtime, or runs a call in it, the word tells afterwards whether the kernel
//! would have aborted it, and the dispatcher does it then.

use crate::buffer::RingWriter;
use crate::context::addresses::AppPc;
use crate::context::numbers::{CounterId, ExitId, FragmentId};
use crate::context::ThreadContext;
use crate::cpu::guarded;
use crate::cpu::rseq::{RSEQ_LEAVING, RSEQ_WRITES_PATH};
use crate::cpu::sys::number;
use crate::dispatch::signals::masks;
use crate::instrument::indirect::pads::{add_to_counter, DynamicEdge};
use crate::instrument::rseq::{may_be_descriptor, read_descriptor};
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{edge_kind, path_event_kind};
use crate::sys::calls::program_call;
use crate::thread::path_words;
use crate::thread::registry::writer_of;

/// Offset of rseq_cs in `struct rseq`.
const WORD_OFFSET: u64 = 8;

/// rseq: the kernel keeps what the program asked for.
pub fn register(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    const UNREGISTER: u32 = 1;
    let [address, _, flags, signature, ..] = arguments;
    // SAFETY: the program's own call.
    let result = unsafe { program_call(number::RSEQ, arguments) };
    if result == 0 && flags as u32 & UNREGISTER != 0 {
        context.rseq.word = &raw const context.rseq.no_word as u64;
    } else if result == 0 {
        note_area(context, address);
        note_signature(signature as u32);
    }
    result
}

/// The thread's `struct rseq` is at `address`.
pub fn note_area(context: &mut ThreadContext, address: u64) {
    context.rseq.word = address + WORD_OFFSET;
}

/// Aborts go to addresses behind `signature`.
pub fn note_signature(signature: u32) {
    ENGINE.lock().cache.rseqs.signature = Some(signature);
}

fn is_registered(context: &ThreadContext) -> bool {
    context.rseq.word != &raw const context.rseq.no_word as u64
}

/// The thread's rseq_cs, as a whole: the kernel clears it wherever the thread is interrupted. The access may fault.
fn read_word(context: &ThreadContext) -> u64 {
    guarded::read_word(context.rseq.word).unwrap_or(0)
}

/// As a whole, too: for a descriptor that can't be read the kernel kills (kernel/rseq.c, rseq_get_rseq_cs).
fn write_word(context: &ThreadContext, value: u64) {
    // SAFETY: the program gave the word to the kernel, which writes it too.
    unsafe { guarded::write_word(context.rseq.word, value) };
}

/// Before code is translated at the context's pc: a critical section that the thread has announced is known from now on.
/// Guarded copies may fault.
pub fn learn_announced(engine: &mut Engine, writer: &RingWriter, context: &ThreadContext) {
    if !is_registered(context) {
        return;
    }
    let word = read_word(context);
    if word != 0 && !engine.cache.slabs.contains(word) {
        engine.learn_rseq(writer, word, false);
    }
}

/// Before the first block of a thread that ran already: it may be about to announce a critical section that the code it comes to
/// names no more, because a register does. Guarded copies may fault, and make a call that the kernel made a note for fail.
pub fn learn_named(context: &mut ThreadContext) {
    if !is_registered(context) {
        return;
    }
    masks::with_faults(context, |context| {
        let mut engine = ENGINE.lock();
        let writer = writer_of(context, engine.shared);
        for address in
            context.registers.general.into_iter().filter(|value| may_be_descriptor(*value, context.registers.pc))
        {
            engine.learn_rseq(&writer, address, false);
        }
    });
}

/// A thread came to a critical section's code, at the context's pc, and rseq_cs holds neither its descriptor nor the shadow.
pub fn enter(context: &mut ThreadContext) {
    let left = core::mem::take(&mut context.rseq.left);
    if !is_registered(context) {
        context.rseq.plain = 1;
        return;
    }
    let what = masks::with_faults(context, |context| decide(context, left));
    match what {
        Entry::Plain => context.rseq.plain = 1,
        Entry::Announced => {}
        Entry::Aborted(target) => abort(context, target),
    }
}

/// How a thread goes on that came to a critical section.
enum Entry {
    /// As in any code: it did not announce the critical section.
    Plain,
    /// Through the entry, with the program's descriptor in place.
    Announced,
    /// To this address.
    Aborted(AppPc),
}

fn decide(context: &ThreadContext, left: u64) -> Entry {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    let pc = context.registers.pc;
    let Some(index) = engine.cache.rseqs.find(pc) else {
        return Entry::Announced;
    };
    let enclosure = *engine.cache.rseqs.enclosure(index);
    let mut word = read_word(context);
    if word == 0 {
        if engine.cache.rseqs.is_shadow_of(left, index) {
            return Entry::Aborted(enclosure.descriptor.abort);
        }
        if pc != enclosure.descriptor.start {
            return Entry::Plain;
        }
        // It was announced right before, and the kernel cleared the word in between: as if it had before that.
        word = find_announced(&engine, context, index).0;
        write_word(context, word);
    }
    if word == enclosure.address {
        return Entry::Announced;
    }
    if engine.cache.rseqs.is_shadow_of(word, index) {
        // Of an enclosure that another one replaced. The kernel may clear the word before the other shadow is there, so
        // that would be lost; an abort is right at any time.
        write_word(context, 0);
        return Entry::Aborted(enclosure.descriptor.abort);
    }
    // Another descriptor: of a critical section that shares code with this one, or of one that was left long ago.
    let is_other = read_descriptor(word).is_some_and(|descriptor| descriptor.contains(pc))
        && engine.learn_rseq(&writer, word, true);
    if is_other {
        Entry::Announced
    } else {
        Entry::Plain
    }
}

/// Where the descriptor is that a thread announced at the start of critical section `index` and the kernel took away since, and what
/// that says of aborts. One piece of code may have several; as a rule a register still names the one. Guarded copies may fault.
fn find_announced(engine: &Engine, context: &ThreadContext, index: u32) -> (u64, AppPc) {
    let last = engine.cache.rseqs.enclosure(index);
    let of_last = (last.address, last.descriptor.abort);
    if context.registers.general.contains(&last.address) {
        return of_last;
    }
    let start = last.descriptor.start;
    let named = context.registers.general.iter().find_map(|value| {
        let descriptor = may_be_descriptor(*value, start).then(|| read_descriptor(*value)).flatten()?;
        (descriptor.start == start && engine.is_rseq(&descriptor)).then_some((*value, descriptor.abort))
    });
    named.unwrap_or(of_last)
}

/// Before a signal's frame is built at the context's pc, as the kernel does it: in a critical section the thread is aborted, and
/// anyway none is announced any more.
pub fn settle(context: &mut ThreadContext) {
    settle_for(context, false);
}

/// Before the thread goes on natively at the context's pc: in a critical section that it ran in an enclosure it is aborted. Of one
/// that has none the program's own descriptor stays, by which the kernel aborts it: the thread was stopped. What the cache
/// holds is announced no more.
pub fn leave(context: &mut ThreadContext) {
    settle_for(context, true);
}

fn settle_for(context: &mut ThreadContext, is_leaving: bool) {
    if context.rseq.aborted != 0 {
        count_abort(context);
    }
    let left = core::mem::take(&mut context.rseq.left);
    // SAFETY: only an arena is read.
    let is_any = !unsafe { ENGINE.peek() }.cache.rseqs.enclosures.is_empty();
    if !is_registered(context) || !(is_any || is_leaving) {
        return;
    }
    let is_fault = context.signals.fault_pending == 1;
    let target = masks::with_faults(context, |context| {
        let engine = ENGINE.lock();
        let rseqs = &engine.cache.rseqs;
        if rseqs.is_empty() && !is_leaving {
            return None;
        }
        let word = read_word(context);
        let found = rseqs.find(context.registers.pc);
        let is_the_kernels = is_leaving && found.is_none() && !engine.cache.slabs.contains(word);
        if word != 0 && !is_the_kernels {
            write_word(context, 0);
        }
        let index = found?;
        let enclosure = rseqs.enclosure(index);
        let is_announced = word == enclosure.address || rseqs.is_shadow_of(word, index);
        let is_left = rseqs.is_shadow_of(left, index);
        if is_announced || is_left {
            return Some(enclosure.descriptor.abort);
        }
        let is_cleared = word == 0 && context.registers.pc == enclosure.descriptor.start && !is_fault;
        is_cleared.then(|| find_announced(&engine, context, index).1)
    });
    if let Some(target) = target {
        // A call or a jump beside an enclosure: it stands alone, so no part of it was counted.
        context.gate.note_fault_fragment(FragmentId::NONE);
        context.signals.is_fault_past = u32::from(is_fault);
        abort(context, target);
    }
}

/// The kernel aborted a thread, which goes on at the context's pc now: counts it as stopped at the start of the fragment
/// that it had entered last.
pub fn count_abort(context: &mut ThreadContext) {
    context.rseq.aborted = 0;
    context.rseq.left = 0;
    let engine = ENGINE.lock();
    let state = context.rseq.state;
    let id = if state & RSEQ_LEAVING == 0 {
        FragmentId::from_raw(state)
    } else {
        let exit = *engine.cache.exit(ExitId::from_raw(state & !(RSEQ_LEAVING | RSEQ_WRITES_PATH)));
        // SAFETY: counters that were given out are inside the thread's mapped window.
        let is_different = || unsafe { context.counter(exit.counter).read_volatile() } != context.rseq.count;
        if exit.counter != CounterId::NONE && is_different() {
            add_to_counter(context, exit.counter, -1);
        }
        exit.fragment
    };
    let source_pc = engine.cache.fragment(id).app_pc;
    drop(engine);
    count_edge(context, source_pc);
}

/// Aborts the thread in front of the context's pc.
fn abort(context: &mut ThreadContext, target: AppPc) {
    let source_pc = core::mem::replace(&mut context.registers.pc, target);
    context.note_step();
    count_edge(context, source_pc);
}

/// Counts the way from where a critical section was aborted to the context's pc, as that of a signal.
fn count_edge(context: &mut ThreadContext, source_pc: AppPc) {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    let edge = DynamicEdge {
        kind: edge_kind::SIGNAL,
        source_fragment: FragmentId::NONE,
        source_pc,
        target_pc: context.registers.pc,
    };
    engine.count_edge(&writer, context, edge);
    if context.path.is_on {
        path_words::write_event(context, &writer, path_event_kind::RESUME, source_pc, context.registers.pc.raw());
    }
}
