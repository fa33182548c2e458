//! Signals of timers that come again before the program got on.
//!
//! Delivering a signal takes longer here than natively. Where a timer's interval is no longer than that, one would wait whenever
//! a handler returns, and the program would never come to an instruction of its own. The kernel merges what expires while a
//! signal waits. So does this: what comes too soon counts as merged with the timer's next one, which comes a little later than
//! it would have.
//!
//! Called by the handler, and keeps to its rules.

use crate::context::ThreadContext;
use crate::cpu::sys::clock::ticks;
use crate::cpu::sys::number;
use crate::sys::calls::{check, syscall};
use crate::sys::kernel::{SigInfo, SIGALRM, SIGPROF, SIGVTALRM, SI_KERNEL, SI_TIMER};

/// A handler returned no longer ago: the program hardly got on since.
const SOON_CYCLES: u64 = 60_000;
/// How often in a row that must be so: what comes now and then is delivered at once.
const MANY: u32 = 16;
/// For how long the program runs then.
const TURN_NS: u64 = 50_000;
/// As well where it steps through itself: each step takes a trap for every instruction of the gates. Twice as long for each two
/// signals more that came before a step was done: under a hypervisor a trap may take a tenth of a millisecond.
const STEPPING_TURN_NS: u64 = 2_000_000;
const MAX_DOUBLINGS: u32 = 6;

/// A timer's interval, and when it expires next, as timer_gettime(2) and getitimer(2) have it: seconds and their parts.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Times {
    interval: [u64; 2],
    value: [u64; 2],
}

impl Times {
    const NEVER: Times = Times { interval: [0; 2], value: [0; 2] };
}

/// A timer of the program's: the numbers of the calls, which it is of its kind, and its unit.
struct Timer {
    get: u64,
    set: u64,
    number: u64,
    unit_ns: u64,
}

impl Timer {
    /// The one that sent a signal.
    fn of(signal: u32, info: &SigInfo) -> Option<Timer> {
        let interval_timer =
            |number| Some(Timer { get: number::GETITIMER, set: number::SETITIMER, number, unit_ns: 1000 });
        match (info.code, signal) {
            // struct siginfo, _timer: its number is in front of how often it expired.
            (SI_TIMER, _) => {
                let number = info.address & 0xffff_ffff;
                Some(Timer { get: number::TIMER_GETTIME, set: number::TIMER_SETTIME, number, unit_ns: 1 })
            }
            (SI_KERNEL, SIGALRM) => interval_timer(0),
            (SI_KERNEL, SIGVTALRM) => interval_timer(1),
            (SI_KERNEL, SIGPROF) => interval_timer(2),
            _ => None,
        }
    }

    fn times(&self) -> Times {
        let mut times = Times::NEVER;
        // SAFETY: writes `times`, which has the kernel's layout.
        let result = unsafe { syscall(self.get, [self.number, &raw mut times as u64, 0, 0, 0, 0]) };
        check(result).map_or(Times::NEVER, |_| times)
    }

    /// Sets it, if it can be, and returns how it was set.
    fn set(&self, times: Times) -> Option<Times> {
        let mut before = Times::NEVER;
        let (new, old) = (&raw const times as u64, &raw mut before as u64);
        let arguments = match self.set {
            number::SETITIMER => [self.number, new, old, 0, 0, 0],
            _ => [self.number, 0, new, old, 0, 0],
        };
        // SAFETY: reads `times` and writes `before`, which have the kernel's layout.
        check(unsafe { syscall(self.set, arguments) }).ok().map(|_| before)
    }

    /// Has it expire in `turn_ns`, if it goes on expiring faster than that.
    fn put_off(&self, turn_ns: u64) -> bool {
        let interval = self.times().interval;
        let turn = turn_ns / self.unit_ns;
        if interval[0] != 0 || !(1..=turn).contains(&interval[1]) {
            return false;
        }
        let Some(before) = self.set(Times { interval, value: [0, turn] }) else {
            return false;
        };
        if before.interval == interval {
            return true;
        }
        // Another thread has changed it just now.
        self.set(before);
        false
    }
}

/// A handler returns: the program gets on from now.
pub fn note_return(context: &mut ThreadContext) {
    context.signals.returned_tsc = ticks();
    context.signals.returned_to_step = u32::from(context.registers.are_stepped());
}

/// The program has done a step.
pub fn note_step_done(context: &mut ThreadContext) {
    context.signals.step_owed = 0;
}

/// Whether a signal counts as merged with the next one of its timer, because the program did not get on for so long.
pub fn is_merged(context: &mut ThreadContext, signal: u32, info: &SigInfo) -> bool {
    let Some(timer) = Timer::of(signal, info) else {
        return false;
    };
    let is_step_owed =
        core::mem::replace(&mut context.signals.step_owed, 1) != 0 && context.signals.returned_to_step != 0;
    // What the kernel takes for a timer that has expired again may be longer than all of that.
    let is_soon = context.returning() != 0 || ticks().wrapping_sub(context.signals.returned_tsc) < SOON_CYCLES;
    if !is_soon && !is_step_owed {
        context.signals.n_soon = context.signals.n_soon.saturating_sub(1);
        return false;
    }
    context.signals.n_soon = (context.signals.n_soon + 1).min(2 * MANY);
    let n_more = context.signals.n_soon.saturating_sub(MANY);
    let turn_ns = match context.signals.returned_to_step {
        0 => TURN_NS,
        _ => STEPPING_TURN_NS << (n_more / 2).min(MAX_DOUBLINGS),
    };
    n_more > 0 && timer.put_off(turn_ns)
}
