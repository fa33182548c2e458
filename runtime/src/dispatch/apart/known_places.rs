//! Places that a thread holds, so that it looks them up without the engine's lock: what is captured at system calls, and where they return.
//!
//! Runs in the target on the runtime's stack. A thread holds the few that it met last, each by a count of its own; of another state of
//! all captures than now they are looked up anew.

extern crate alloc;
use crate::context::capture::{KnownPlace, N_KNOWN_PLACES};
use crate::context::ThreadContext;
use crate::instrument::captures::places::{call_place, state, Captures, Place};
use crate::instrument::ENGINE;
use alloc::sync::Arc;

/// What is captured at the system calls of a number.
///
/// # Safety
/// The place is used no more when the thread looks for the next one of calls, or ends.
pub unsafe fn at_call<'p>(context: &mut ThreadContext, number: u64) -> Option<&'p Place> {
    let known = &mut context.capture.known_calls[number as usize % N_KNOWN_PLACES];
    let key = call_place(number).raw();
    // SAFETY: as the caller says; the cell is the calling thread's.
    unsafe { held(known, key, |captures| captures.at_call(number).cloned()) }
}

/// What is taken where calls of a kind return.
///
/// # Safety
/// The same of places of returns.
pub unsafe fn returned<'p>(context: &mut ThreadContext, kind: u32) -> Option<&'p Place> {
    let known = &mut context.capture.known_returns[kind as usize % N_KNOWN_PLACES];
    // SAFETY: as above.
    unsafe { held(known, kind.into(), |captures| captures.returned_place(kind).cloned()) }
}

/// The thread holds none any more.
pub fn forget(context: &mut ThreadContext) {
    let capture = &mut context.capture;
    for known in capture.known_calls.iter_mut().chain(&mut capture.known_returns) {
        // SAFETY: the cell is the calling thread's, which uses no place here.
        unsafe { give_up(known) };
    }
}

/// The place in a cell, once it is the one of the key.
///
/// # Safety
/// The cell's thread calls, and uses the place no more when something else is looked for by that cell.
unsafe fn held<'p>(
    known: &mut KnownPlace,
    key: u64,
    find: impl FnOnce(&mut Captures) -> Option<Arc<Place>>,
) -> Option<&'p Place> {
    if known.key != key || known.state != state() {
        // SAFETY: as the caller says.
        unsafe { give_up(known) };
        let mut engine = ENGINE.lock();
        let place = find(&mut engine.captures);
        *known = KnownPlace { key, state: state(), address: place.map_or(0, |place| Arc::into_raw(place) as u64) };
    }
    // SAFETY: 0, or held by the cell.
    unsafe { (known.address as *const Place).as_ref() }
}

/// # Safety
/// Nobody uses the place in that cell.
unsafe fn give_up(known: &mut KnownPlace) {
    let address = core::mem::take(known).address;
    if address != 0 {
        // SAFETY: from `Arc::into_raw`, once.
        drop(unsafe { Arc::from_raw(address as *const Place) });
    }
}
