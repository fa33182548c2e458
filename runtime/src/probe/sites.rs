//! The places that lead to handlers: what is taken there, and the machine code for it.
//!
//! Only the worker changes anything here. Threads find a place by its number, without a lock: what they find stays as it is.

extern crate alloc;
use crate::buffer::Shared;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::ExitId;
use crate::cpu::emit::Emitter;
use crate::cpu::instrument::captures::at_probes::can_work_out;
use crate::cpu::probe::claim;
use crate::cpu::probe::handler::{emit, Handler, Ways, FILLER};
use crate::instrument::captures::places::{Outlets, Place};
use crate::instrument::ENGINE;
use crate::protocol::{probe_state, ProbeSite, MAX_PROBES};
use crate::sys::lock::Lock;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// A place as its handler knows it.
pub struct Site {
    pub place: Arc<Place>,
    pub pc: AppPc,
    /// Where a thread goes on in the handler.
    pub ways: Ways,
    /// The handler works out what is taken, and the thread has the values when it comes for what is to be done with them.
    pub is_worked_out: bool,
}

/// By number. Whatever was ever here stays: a thread may be on its way to it.
static SITES: [AtomicPtr<Chunk>; MAX_PROBES as usize / CHUNK_SITES] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; _];

/// Few processes have many.
const CHUNK_SITES: usize = 4096;
type Chunk = [AtomicPtr<Site>; CHUNK_SITES];

/// The code that was made last, until the controller has put it to its place.
static MADE: Lock<Vec<Vec<u8>>> = Lock::new(Vec::new());

/// The place of a number, which a handler gave.
pub fn site_of(number: u32) -> Option<&'static Site> {
    let number = number as usize;
    // SAFETY: what is there was leaked.
    let chunk = unsafe { SITES.get(number / CHUNK_SITES)?.load(Ordering::Acquire).as_ref() }?;
    // SAFETY: as above.
    unsafe { chunk[number % CHUNK_SITES].load(Ordering::Acquire).as_ref() }
}

/// Has the place of a number known; there was none. Only the worker does.
fn set_site(number: u32, site: &'static mut Site) {
    let (slot, number) = (&SITES[number as usize / CHUNK_SITES], number as usize % CHUNK_SITES);
    if slot.load(Ordering::Relaxed).is_null() {
        let chunk: &mut Chunk = Box::leak(Box::new([const { AtomicPtr::new(core::ptr::null_mut()) }; _]));
        slot.store(chunk, Ordering::Release);
    }
    // SAFETY: the chunk was leaked, and is not null.
    let chunk = unsafe { &*slot.load(Ordering::Relaxed) };
    chunk[number].store(site, Ordering::Release);
}

/// Takes over what is captured, and makes the handlers that are asked for.
pub fn make_all(shared: Shared) {
    let (asked, heap) = shared.captures();
    let mut made = MADE.lock();
    made.clear();
    let mut engine = ENGINE.lock();
    let (_, n_refused) = engine.captures.replace(&asked, &heap);
    shared.set_refused_captures(n_refused);
    // SAFETY: the status page is mapped; the field is an aligned u32.
    let count = unsafe { AtomicU32::from_ptr(&raw mut (*shared.status()).probe_count) }.load(Ordering::Acquire);
    for number in 0..count.min(MAX_PROBES as u32) {
        let row = shared.probe_site(number);
        // SAFETY: the row is mapped; the field is an aligned u32.
        let state = unsafe { AtomicU32::from_ptr(&raw mut (*row).state) };
        if state.load(Ordering::Acquire) != probe_state::ASKED {
            continue;
        }
        // SAFETY: the row is mapped; it is copied before anything of it is believed.
        let asked = unsafe { row.read_volatile() };
        let place = engine.captures.at(AppPc::from_raw(asked.place)).cloned();
        let missed = row as u64 + core::mem::offset_of!(ProbeSite, missed) as u64;
        let code = place.and_then(|place| make(shared, &asked, number, place, missed));
        let Some(code) = code else {
            state.store(probe_state::REFUSED, Ordering::Release);
            continue;
        };
        // SAFETY: as above; these are the runtime's fields.
        unsafe {
            (&raw mut (*row).made).write_volatile(code.as_ptr() as u64);
            (&raw mut (*row).size).write_volatile(code.len() as u32);
        }
        made.push(code);
        state.store(probe_state::MADE, Ordering::Release);
    }
}

/// Makes the code of a handler, and has its number known. `None`: there is no room for it.
fn make(shared: Shared, asked: &ProbeSite, number: u32, place: Arc<Place>, missed: u64) -> Option<Vec<u8>> {
    const MAX_ROOM: u32 = 1 << 16;
    let room = asked.room.min(MAX_ROOM) as usize;
    let n_cold = room / 3;
    let mut code = alloc::vec![FILLER; room];
    let (hot, cold) = code.split_at_mut(room - n_cold);
    let cold_base = asked.code.checked_add(hot.len() as u64)?;
    let mut emitter = Emitter::new(hot, asked.code, cold, cold_base);
    let pc = AppPc::from_raw(asked.pc);
    let handler = Handler {
        place: &place,
        pc,
        exit: ExitId::from_raw(number),
        outlets: Outlets { before_return: true, ..shared.outlets() },
        resume: CachePc::from_raw(asked.resume),
        missed,
        claim: claim::entry(),
        skipped_bytes: claim::SKIPPED_BYTES,
    };
    let ways = emit(&mut emitter, &handler);
    let is_worked_out = can_work_out(&place);
    if emitter.overflowed() {
        return None;
    }
    let site = Box::leak(Box::new(Site { place, pc, ways, is_worked_out }));
    set_site(number, site);
    Some(code)
}
