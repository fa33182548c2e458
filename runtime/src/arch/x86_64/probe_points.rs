//! Where a thread comes by when it is about to execute an instruction that the program has set a hardware breakpoint on.
//!
//! Translated code runs elsewhere, so the processor would never meet the breakpoint. It is set on a point in the runtime instead, of
//! which the thread executes the instruction, once for each time that it executes the program's. Clobbers nothing, uses the return
//! slot of the runtime's stack. The table is read by the signal handler.

use crate::context::addresses::AppPc;
use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering};

/// Debug registers are four for each thread; so many addresses a process may have at the same time.
pub const N_POINTS: usize = 16;
const POINT_BYTES: u64 = 16;

global_asm!(
    ".pushsection .text.clew_probe_points,\"ax\",@progbits",
    ".balign 16",
    ".globl clew_probe_points",
    "clew_probe_points:",
    ".rept {N_POINTS}",
    "nop",
    "ret",
    ".balign {POINT_BYTES}",
    ".endr",
    ".popsection",
    N_POINTS = const N_POINTS,
    POINT_BYTES = const POINT_BYTES,
);

// SAFETY: the assembly above defines them, as they are declared here.
unsafe extern "C" {
    fn clew_probe_points();
}

/// The program's address that each point stands for; 0: none.
static PLACES: [AtomicU64; N_POINTS] = [const { AtomicU64::new(0) }; N_POINTS];

/// Whether any point stands for an address.
pub fn is_any_used() -> bool {
    // They are given out in order.
    PLACES[0].load(Ordering::Relaxed) != 0
}

/// The point that stands for `pc`.
pub fn find(pc: AppPc) -> Option<usize> {
    let places = PLACES.iter().map(|place| place.load(Ordering::Relaxed));
    places.take_while(|place| *place != 0).position(|place| place == pc.raw())
}

/// The point that stands for `pc` from now on; `None`: all stand for others. Under the engine's lock.
pub fn take(pc: AppPc) -> Option<usize> {
    if let Some(point) = find(pc) {
        return Some(point);
    }
    let point = PLACES.iter().position(|place| place.load(Ordering::Relaxed) == 0)?;
    PLACES[point].store(pc.raw(), Ordering::Relaxed);
    Some(point)
}

/// Where the breakpoint is to be set.
pub fn address(point: usize) -> u64 {
    clew_probe_points as *const () as u64 + point as u64 * POINT_BYTES
}

/// The program's address that a point at `address` stands for. Reachable from the signal handler.
pub fn place_of(address: u64) -> Option<AppPc> {
    let offset = address.checked_sub(clew_probe_points as *const () as u64)?;
    let place = PLACES.get((offset / POINT_BYTES) as usize)?.load(Ordering::Relaxed);
    (offset % POINT_BYTES == 0 && place != 0).then_some(AppPc::from_raw(place))
}

/// Executes the instruction of a point.
pub fn come_by(point: usize) {
    // SAFETY: the point is one of those above: an instruction that does nothing, and a return.
    let come: extern "C" fn() = unsafe { core::mem::transmute(address(point.min(N_POINTS - 1))) };
    come();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_for_addresses() {
        assert!(!is_any_used());
        assert_eq!(find(AppPc::from_raw(7)), None);
        let points: alloc::vec::Vec<_> = (1..=N_POINTS as u64 + 1).map(AppPc::from_raw).map(take).collect();
        assert_eq!((points[0], points[N_POINTS - 1], points[N_POINTS]), (Some(0), Some(N_POINTS - 1), None));
        let three = AppPc::from_raw(3);
        assert_eq!((take(three), find(three), find(AppPc::LOWEST)), (Some(2), Some(2), None));
        assert_eq!(place_of(address(2)), Some(three));
        assert_eq!([place_of(address(2) + 1), place_of(address(N_POINTS)), place_of(5)], [None; 3]);
        come_by(2);
    }
    extern crate alloc;
}
