//! What a thread's context has for captures: what translated code works out in front of a block, and how it leaves for that.

use crate::context::addresses::AppPc;
use crate::protocol::MAX_CAPTURES_AT_PLACE;

/// `Capture::outcome`: nothing was worked out yet, because the dispatcher has to do something before (`Capture::is_prepared`).
pub const UNPREPARED: u32 = 1 << 31;

/// And because it has to look for calls that return there: the rest is done afterwards.
pub const UNFETCHED: u32 = 1 << 30;

/// Of so many handlers at a time it is known what they interrupted.
pub const N_FRAMES: usize = 4;

/// So many places of system calls a thread holds, and as many of what is taken where they return.
pub const N_KNOWN_PLACES: usize = 8;

/// A place that the thread holds (dispatch/apart/known_places.rs); all zeros: none.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct KnownPlace {
    /// The place of a system call, or the kind of calls that return.
    pub key: u64,
    /// Of which state of all captures it is (instrument/captures/places.rs).
    pub state: u64,
    /// Where it is, by `Arc::into_raw`; 0: nothing is captured there.
    pub address: u64,
}

/// What was decided about a system call that has begun.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CallDecision {
    /// Bits of enum Injected.
    pub injected: u32,
    pub answer: u64,
    pub delay_exit_ns: u64,
}

/// All zeros where nothing is captured, but for where the thread's ring is.
#[repr(C, align(16))]
#[derive(Default)]
pub struct Capture {
    /// The program's vector registers that are used.
    pub vectors: [[u64; 2]; 2],
    /// Where a fault goes on while memory of the program's is read; 0: it is not.
    pub landing: u64,
    /// A bit for each capture of the place whose condition holds, or `UNPREPARED`.
    pub outcome: u32,
    /// Not 0: faults come although the program blocks them, the thread's name is there, and the thread leaves in any case.
    pub is_prepared: u32,
    /// The mask that the thread gets back afterwards.
    pub mask: u64,
    /// Not 0: that was taken away.
    pub is_mask_held: u32,
    /// Not 0: the thread is to stop.
    pub stops: u32,
    /// Not 0: what waits to be delivered does so until the thread is behind the block that it is led to.
    pub is_late: u32,
    /// Where everything was captured, and the thread is about to go on; or nowhere.
    pub passed_pc: AppPc,
    /// Where it was left after everything had been captured in front of it, before it was executed; or nowhere.
    pub left_pc: AppPc,
    /// Where handlers that are under way came, by the addresses of their frames, and whether that was left so; the one that is overwritten
    /// next.
    pub left_frames: [u64; N_FRAMES],
    pub left_pcs: [AppPc; N_FRAMES],
    pub are_left: [bool; N_FRAMES],
    pub left_behinds: [u32; N_FRAMES],
    /// The mark of the instruction that was executed last, if it has one and nothing was captured since; and as it was when something was.
    pub behind: u32,
    pub shown_behind: u32,
    pub next_frame: u64,
    /// The program's registers that are used: by the processor (cpu::instrument::captures).
    pub spilled: [u64; 8],
    /// By capture of the place: where in the block the call lies that has returned (instrument/captures/open_calls.rs); 0: none.
    pub matched: [u64; MAX_CAPTURES_AT_PLACE as usize],
    /// System calls whose beginning was captured and that have not returned, by stack pointer and address: one that is made again, as behind
    /// a signal, is the same.
    pub begun_calls: [(u64, AppPc); N_FRAMES],
    pub next_begun: u64,
    /// By the same numbers: the frame of the handler that came before the call was made, as long as that has not returned; 0: none. Where
    /// it never does the call is none that is made again.
    pub begun_frames: [u64; N_FRAMES],
    /// By the same numbers: what was decided about them (dispatch/apart/injections.rs).
    pub decisions: [CallDecision; N_FRAMES],
    /// Not 0: the call that the thread is about to make is not made, and this is its result.
    pub is_answered: u32,
    pub answer: u64,
    /// What is done to the call that begins, bits of enum Injected.
    pub injected: u32,
    /// And how long the thread is held behind it, of functions.
    pub delay_exit_ns: u64,
    /// Whose calls the thread's block has counted.
    pub counting_tid: u32,
    /// The thread executes nothing before that time, CLOCK_MONOTONIC; 0: it is not delayed.
    pub delayed_until_ns: u64,
    /// Not 0: the thread has room for open calls.
    pub has_open_calls: u32,
    /// How many open calls found no room there; not 0: those that return to the place have it (`is_fetched`).
    pub n_other_calls: u32,
    pub is_fetched: u32,
    /// Not 0: only what is taken where calls return is taken once more, for another call that has returned at the same time.
    pub is_again: u32,
    /// Where the thread's slot and its ring are, for what translated code writes by itself.
    pub slot_address: u64,
    pub ring: u64,
    /// The state of its floating-point operations, and the one that captures have.
    pub float_state: u32,
    pub own_float_state: u32,
    /// Not 0: what is captured where the thread begins was, by probes in the program's own code.
    pub begins_captured: u32,
    /// Not 0: calls that are open are in the thread's window of calls, which it has not looked at yet.
    pub has_handed_calls: u32,
    pub known_calls: [KnownPlace; N_KNOWN_PLACES],
    pub known_returns: [KnownPlace; N_KNOWN_PLACES],
}

impl Capture {
    /// Where a fault goes on that has just come; `None`: no memory is being read.
    pub fn take_landing(&mut self) -> Option<u64> {
        // SAFETY: a field of a live context, which translated code writes.
        let landing = unsafe { (&raw const self.landing).read_volatile() };
        // SAFETY: as above.
        unsafe { (&raw mut self.landing).write_volatile(0) };
        (landing != 0).then_some(landing)
    }

    /// What was found; nothing from now on.
    pub fn take_outcome(&mut self) -> u32 {
        core::mem::take(&mut self.outcome)
    }
}
