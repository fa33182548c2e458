//! Threads that trap for the sake of a probe: at a place that has room for nothing else, or that came into the middle of what a jump replaced.
//!
//! Runs in the target, as a handler of the program's own would: the controller has it be the process' action for SIGTRAP and SIGILL. What
//! is none of the probes' is done as the program's own action has it.

use crate::cpu::probe::trap::{go_on_at, restorer as frame_restorer, trapped_at};
use crate::cpu::sys::kernel::UContext;
use crate::cpu::sys::number;
use crate::instrument::ENGINE;
use crate::protocol::{StatusPage, TrapRow, MAX_TRAPS};
use crate::sys::calls::{getpid, gettid, set_signal_mask, syscall};
use crate::sys::kernel::{SigInfo, SA_NODEFER, SIGTRAP};
use core::mem::transmute;
use core::sync::atomic::{fence, AtomicU64, Ordering};

const SIG_DFL: u64 = 0;
const SIG_IGN: u64 = 1;
const SA_RESETHAND: u64 = 0x8000_0000;
const SA_RESTORER: u64 = 0x0400_0000;
const MASK_BYTES: u64 = 8;
/// Of the word that tells of the table, behind its lowest bit.
const COUNT_MASK: u64 = (1 << 31) - 1;

type Handler = extern "C" fn(i32, &mut SigInfo, &mut UContext);

/// As rt_sigaction has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: u64,
    flags: u64,
    restorer: u64,
    mask: u64,
}

/// The address of the handler.
pub fn handler() -> u64 {
    on_trap as *const () as u64
}

pub fn restorer() -> u64 {
    frame_restorer()
}

extern "C" fn on_trap(signal: i32, info: &mut SigInfo, frame: &mut UContext) {
    let is_own = info.is_caused_by_instruction(signal as u32);
    if let Some(target) = is_own.then(|| find(trapped_at(frame, signal as u32))).flatten() {
        go_on_at(frame, target);
        return;
    }
    do_as_program(signal, info, frame);
}

/// Where a thread goes on that trapped at an address; `None`: that is none of the probes'. Of the two tables the one that is not read is
/// written, and is read then: whoever has taken long may have looked in one that was written meanwhile, and looks again.
fn find(address: u64) -> Option<u64> {
    // SAFETY: `shared` is set before any code traps, and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    // SAFETY: the status page is mapped, the field aligned.
    let table = unsafe { AtomicU64::from_ptr(&raw mut (*shared.status()).trap_table) };
    loop {
        let word = table.load(Ordering::Acquire);
        let count = (word >> 1 & COUNT_MASK).min(MAX_TRAPS) as usize;
        let found = search(shared.traps(word), count, address);
        // What was read comes before this.
        fence(Ordering::Acquire);
        if table.load(Ordering::Relaxed) == word {
            return found;
        }
    }
}

/// Where the row of an address leads, of so many that are sorted.
fn search(rows: *const TrapRow, count: usize, address: u64) -> Option<u64> {
    let (mut first, mut end) = (0, count);
    while first < end {
        let middle = first.midpoint(end);
        // SAFETY: inside the table, which is mapped.
        let row = unsafe { rows.add(middle).read_volatile() };
        match row.address.cmp(&address) {
            core::cmp::Ordering::Equal => return Some(row.target),
            core::cmp::Ordering::Less => first = middle + 1,
            core::cmp::Ordering::Greater => end = middle,
        }
    }
    None
}

/// What the program itself has done about the signal.
fn do_as_program(signal: i32, info: &mut SigInfo, frame: &mut UContext) {
    // SAFETY: as above.
    let status: *mut StatusPage = unsafe { ENGINE.peek() }.shared.status();
    // SAFETY: the status page is mapped; there are two actions in these words.
    let known =
        unsafe { (&raw mut (*status).trap_actions).cast::<Action>().add(usize::from(signal as u32 != SIGTRAP)) };
    // SAFETY: as above.
    let mut action = unsafe { known.read_volatile() };
    if action.flags & SA_RESETHAND != 0 && action.handler > SIG_IGN {
        // Once for all threads (kernel/signal.c, get_signal, SA_ONESHOT).
        // SAFETY: the word is aligned, and mapped as above.
        let handler = unsafe { AtomicU64::from_ptr(&raw mut (*known).handler) };
        let taken = handler.compare_exchange(action.handler, SIG_DFL, Ordering::Relaxed, Ordering::Relaxed);
        action.handler = taken.unwrap_or_else(|other| other);
    }
    let is_forced = info.is_caused_by_instruction(signal as u32);
    match action.handler {
        SIG_IGN if !is_forced => {}
        // What the kernel raises can't be ignored (kernel/signal.c, force_sig_info_to_task).
        SIG_DFL | SIG_IGN => end_by(signal, frame),
        address => {
            // All but traps are blocked here. The mask is taken back by the return from here.
            let own = if action.flags & SA_NODEFER == 0 { bit(signal) } else { 0 };
            set_signal_mask(frame.sigmask | action.mask | own);
            // SAFETY: the program's own handler, called as the kernel would.
            unsafe { transmute::<u64, Handler>(address)(signal, info, frame) };
        }
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The signal has its usual effect once this handler is over.
fn end_by(signal: i32, frame: &UContext) {
    set_signal_mask(frame.sigmask | bit(signal));
    let action = Action { handler: SIG_DFL, flags: SA_RESTORER, restorer: restorer(), mask: 0 };
    // SAFETY: the action is read; the signal is blocked, and comes behind this.
    unsafe {
        syscall(number::RT_SIGACTION, [signal as u64, &raw const action as u64, 0, MASK_BYTES, 0, 0]);
        syscall(number::TGKILL, [getpid().into(), gettid().into(), signal as u64, 0, 0, 0]);
    }
}
