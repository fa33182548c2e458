//! Making room: where the program maps memory the code cache gives way.
//!
//! Slabs lie near the program's code, in what is free for the program, who may take it at any time by a fixed address. All
//! translations go out of use then, every way out of them leads here, and when no thread is left inside the slabs are unmapped.
//! What runs on is translated anew, elsewhere. The engine is held all the while.

extern crate alloc;
use super::hidden;
use crate::buffer::RingWriter;
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::cpu::signal::image::image_range;
use crate::cpu::sys::number;
use crate::cpu::{gate, guarded};
use crate::instrument::Engine;
use crate::sys::calls::{monotonic_ns, read_start, syscall, thread_exists};
use crate::sys::proc_text;
use crate::thread::THREADS;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

/// How often room was made. A thread's `rooms_seen` says whether it has been in the dispatcher since.
static ROOMS: AtomicU32 = AtomicU32::new(0);

/// Room for what the program would like, but can do without, is made so often at most: a program that tries one address after the
/// other would have all its code translated as often.
const MAX_OPTIONAL_ROOMS: u32 = 64;
static OPTIONAL_ROOMS: AtomicU32 = AtomicU32::new(0);

/// The thread is in the dispatcher: where it goes on is looked up under the engine's lock after this.
pub fn note_arrival(context: &mut ThreadContext) {
    // SAFETY: an aligned field that other threads read.
    unsafe { AtomicU32::from_ptr(&raw mut context.rooms_seen) }.store(ROOMS.load(Ordering::Acquire), Ordering::Release);
}

/// Whether no room was made since: code that the thread came from is still there.
pub fn is_none_made_since(context: &ThreadContext) -> bool {
    context.rooms_seen == ROOMS.load(Ordering::Acquire)
}

/// Makes room in `wanted`, which the program is about to map at all events. `false`: there can be none.
pub fn make(engine: &mut Engine, writer: &RingWriter, context: &ThreadContext, wanted: Range<u64>) -> bool {
    if hidden::is_fixed_within(&wanted) {
        return false;
    }
    let left = engine.cache.slabs.leave(wanted);
    if left.is_empty() {
        return true;
    }
    engine.give_up_all(writer);
    THREADS.lock().empty_branch_tables();
    let ticket = ROOMS.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
    if !wait_for_all(context, &left, ticket) {
        engine.cache.slabs.stay();
        return false;
    }
    // Some may have learned from the pair table until they came out.
    THREADS.lock().empty_branch_tables();
    for slab in &left {
        forget_shadows(slab);
        engine.cache.forget_memory(slab);
    }
    // SAFETY: nobody is in the slabs, and no table, link or waiting thread leads there.
    unsafe { engine.cache.slabs.remove_leaving() };
    true
}

/// As `make`, for what the program can do without.
pub fn make_if_seldom(engine: &mut Engine, writer: &RingWriter, context: &ThreadContext, wanted: Range<u64>) {
    let has_slab = engine.cache.slabs.starts().any(|start| hidden::is_slab_within(start, &wanted));
    if has_slab && OPTIONAL_ROOMS.fetch_add(1, Ordering::Relaxed) < MAX_OPTIONAL_ROOMS {
        make(engine, writer, context, wanted);
    }
}

/// Waits until no other thread is in the slabs `left` or comes back to them. `false`: that takes too long.
fn wait_for_all(context: &ThreadContext, left: &[Range<u64>], ticket: u32) -> bool {
    const LIMIT_NS: u64 = 1_000_000_000;
    const PAUSE: [u64; 2] = [0, 50_000];
    let others: Vec<*mut ThreadContext> = {
        let own = context.self_address;
        THREADS.lock().contexts().filter(|other| *other as u64 != own).collect()
    };
    let parent = if context.process.sharing == Sharing::WaitedFor { context.process.parent_tid } else { 0 };
    let until = monotonic_ns() + LIMIT_NS;
    let mut inside = others;
    loop {
        // SAFETY: contexts of slots that are in use; the engine is held, so none is given to a new thread.
        inside.retain(|other| unsafe { !is_out(*other, left, ticket, parent) });
        if inside.is_empty() {
            return true;
        }
        if monotonic_ns() > until {
            return false;
        }
        // SAFETY: sleeps; reads the time.
        unsafe { syscall(number::NANOSLEEP, [PAUSE.as_ptr() as u64, 0, 0, 0, 0, 0]) };
    }
}

/// Whether a thread is out of the slabs: it has been in the dispatcher since, runs natively, is no more, or waits in a system call
/// of the runtime's or of the gate's, which it leaves for the dispatcher then.
///
/// # Safety
/// `context` is that of a slot in use.
unsafe fn is_out(context: *mut ThreadContext, left: &[Range<u64>], ticket: u32, parent: u32) -> bool {
    // SAFETY: mapped, the fields aligned; their thread writes them, and any value that was there is right.
    let (seen, tid, is_released) = unsafe {
        (
            AtomicU32::from_ptr(&raw mut (*context).rooms_seen).load(Ordering::Acquire),
            (&raw const (*context).tid).read_volatile(),
            (&raw const (*context).is_released).read_volatile(),
        )
    };
    // The parent of a process that shares this memory waits for it inside a call of the runtime's.
    // One without a number has not begun.
    if seen == ticket || is_released != 0 || tid == 0 || tid == parent {
        return true;
    }
    match waiting_call(tid) {
        Waiting::Gone => true,
        Waiting::No => false,
        // SAFETY: as above.
        Waiting::Yes => unsafe {
            lead_out(&raw mut (*context).gate.jump, left);
            lead_out(&raw mut (*context).call.goes_on_at, left);
            // It may have gone on meanwhile, back into a slab and into the next call.
            let is_led = |field: *const u64| !left.iter().any(|slab| slab.contains(&field.read_volatile()));
            waiting_call(tid) == Waiting::Yes
                && is_led(&raw const (*context).gate.jump)
                && is_led(&raw const (*context).call.goes_on_at)
        },
    }
}

/// Makes a place that a thread which waits jumps to next, if it is in a slab, the one where a signal leads it.
///
/// # Safety
/// An aligned field of a mapped context.
unsafe fn lead_out(field: *mut u64, left: &[Range<u64>]) {
    // SAFETY: as the caller says.
    unsafe {
        if left.iter().any(|slab| slab.contains(&field.read_volatile())) {
            field.write_volatile(gate::clew_syscall_done_pending as *const () as u64);
        }
    }
}

#[derive(PartialEq, Eq)]
enum Waiting {
    /// There is no such thread.
    Gone,
    /// It runs, or waits elsewhere.
    No,
    /// In a system call made in the runtime's image.
    Yes,
}

/// Whether thread `tid` waits in a system call, as the kernel says.
fn waiting_call(tid: u32) -> Waiting {
    const ENOENT: i32 = 2;
    let mut text = [0u8; 256];
    let n = match read_start(&proc_text::task_path(tid, b"syscall"), &mut text) {
        Ok(n) => n,
        Err(error) if error.0 == ENOENT && !thread_exists(tid) => return Waiting::Gone,
        Err(_) => return Waiting::No,
    };
    // Those that the dispatcher makes when it knows already where the thread goes on; it waits in none of them.
    let is_passing =
        |call: u64| matches!(call, number::RT_SIGPROCMASK | number::RT_TGSIGQUEUEINFO | number::RT_SIGRETURN);
    match proc_text::blocked_call(&text[..n]) {
        Some((call, pc)) if image_range().contains(&pc) && !is_passing(call) => Waiting::Yes,
        _ => Waiting::No,
    }
}

/// No thread's rseq_cs names a shadow in `left` any more: the kernel would read there. None is inside a critical section now.
fn forget_shadows(left: &Range<u64>) {
    for context in THREADS.lock().contexts() {
        // SAFETY: contexts of slots in use. What is at the word's address is the program's and may be gone: a guarded access.
        let address = unsafe { (&raw const (*context).rseq.word).read_volatile() };
        if guarded::read_word(address).is_some_and(|word| left.contains(&word)) {
            // SAFETY: the kernel clears this word itself where a thread is in no critical section.
            unsafe { guarded::write_word(address, 0) };
        }
    }
}
