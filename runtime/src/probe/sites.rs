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

/// What literals in code are aligned to.
const LITERAL_BYTES: usize = 8;

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
    let mut sizes = Sizes { place: core::ptr::null(), n_hot: 0, n_cold: 0 };
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
        let emitted = place.as_ref().and_then(|place| Emitted::of(shared, &asked, number, place, missed, &mut sizes));
        let size = emitted.as_ref().map_or(0, |emitted| emitted.code.len());
        // SAFETY: as above; this is the runtime's field.
        unsafe { (&raw mut (*row).size).write_volatile(size as u32) };
        let (Some(place), Some(emitted)) = (place, emitted.filter(|_| size <= asked.room as usize)) else {
            state.store(probe_state::REFUSED, Ordering::Release);
            continue;
        };
        // SAFETY: as above.
        unsafe { (&raw mut (*row).made).write_volatile(emitted.code.as_ptr() as u64) };
        let is_worked_out = can_work_out(&place);
        let pc = AppPc::from_raw(asked.pc);
        set_site(number, Box::leak(Box::new(Site { place, pc, ways: emitted.ways, is_worked_out })));
        made.push(emitted.code);
        state.store(probe_state::MADE, Ordering::Release);
    }
}

/// How many bytes the sections of a handler had that was made before, and for which place: those of one place have about as many.
struct Sizes {
    place: *const Place,
    n_hot: usize,
    n_cold: usize,
}

/// A handler's code, which has as many bytes as it takes: the cold section is right behind the hot one.
struct Emitted {
    code: Vec<u8>,
    ways: Ways,
}

impl Emitted {
    /// Emits a handler. `None`: it is longer than any may be.
    fn of(
        shared: Shared,
        asked: &ProbeSite,
        number: u32,
        place: &Arc<Place>,
        missed: u64,
        known: &mut Sizes,
    ) -> Option<Emitted> {
        const MAX_HOT: usize = 1 << 15;
        const MAX_COLD: usize = 1 << 14;
        let handler = Handler {
            place,
            pc: AppPc::from_raw(asked.pc),
            exit: ExitId::from_raw(number),
            outlets: Outlets { before_return: true, ..shared.outlets() },
            resume: CachePc::from_raw(asked.resume),
            missed,
            claim: claim::entry(),
            skipped_bytes: claim::SKIPPED_BYTES,
        };
        if known.place != Arc::as_ptr(place) {
            let (_, sizes) = Emitted::within(asked.code, &handler, MAX_HOT, MAX_COLD)?;
            *known = Sizes { place: Arc::as_ptr(place), n_hot: sizes.0, n_cold: sizes.1 };
        }
        if let Some((emitted, _)) = Emitted::within(asked.code, &handler, known.n_hot, known.n_cold) {
            return Some(emitted);
        }
        // An address in it may take more bytes than that of another place.
        let (_, (n_hot, n_cold)) = Emitted::within(asked.code, &handler, MAX_HOT, MAX_COLD)?;
        (known.n_hot, known.n_cold) = (n_hot, n_cold);
        Some(Emitted::within(asked.code, &handler, n_hot, n_cold)?.0)
    }

    /// Emits it with so much room for each section; and how many bytes they took. `None`: they have no room there.
    fn within(code: u64, handler: &Handler, n_hot: usize, n_cold: usize) -> Option<(Emitted, (usize, usize))> {
        let mut bytes = alloc::vec![FILLER; n_hot + n_cold];
        let (hot, cold) = bytes.split_at_mut(n_hot);
        let cold_base = code.checked_add(n_hot as u64)?;
        let mut emitter = Emitter::new(hot, code, cold, cold_base);
        let ways = emit(&mut emitter, handler);
        // Literals are aligned: where the cold section begins at another distance it may take more.
        let taken = (emitter.position().next_multiple_of(LITERAL_BYTES), emitter.cold_position());
        let has_room = !emitter.overflowed();
        has_room.then_some((Emitted { code: bytes, ways }, taken))
    }
}
