//! What a thread does otherwise than the program has it, at a probe that asks for that.
//!
//! Runs in the thread that came to the probe, all its registers in its context, all signals blocked. Fields come out of what the
//! program can write to: what makes no sense changes nothing.

use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::instrument::captures::open_calls::RETURN_ADDRESS_BYTES;
use crate::instrument::captures::taken::Taken;
use crate::protocol::{change, change_field};
use crate::sys::calls::{check, getpid, monotonic_ns, syscall};

use super::program_memory::read_memory;

const CLOCK_MONOTONIC: u64 = 1;
const TIMER_ABSTIME: u64 = 1;
const NS_IN_SECOND: u64 = 1_000_000_000;

/// Carries out one change. Where the thread goes on, if that is not behind the probe.
pub fn carry_out(context: &mut ThreadContext, taken: &Taken) -> Option<AppPc> {
    if taken.missing != 0 {
        return None;
    }
    let field = |number: u32| taken.words.get(number as usize).copied().unwrap_or(0);
    let (place, value) = (field(change_field::WHERE), field(change_field::VALUE));
    match u32::try_from(field(change_field::WHAT)).ok()? {
        change::REGISTER => context.registers.set_general(place, value),
        change::RESULT => return end_call(context, value),
        change::DELAY => wait(value),
        what @ change::POKE8..=change::POKE64 => {
            let size = 1 << (what - change::POKE8);
            write_memory(place, &value.to_le_bytes()[..size]);
        }
        _ => {}
    }
    None
}

/// The function in front of whose first instruction the thread is returns, without having been executed.
fn end_call(context: &mut ThreadContext, value: u64) -> Option<AppPc> {
    let stack_pointer = context.registers.sp();
    let mut word = [0; RETURN_ADDRESS_BYTES as usize];
    if read_memory(stack_pointer, &mut word) < word.len() {
        return None;
    }
    context.registers.set_sp(stack_pointer + RETURN_ADDRESS_BYTES);
    context.registers.set_result(value);
    Some(AppPc::from_raw(u64::from_le_bytes(word)))
}

/// Waits for so many nanoseconds. Signals come behind that, but those that end the process.
fn wait(ns: u64) {
    let end = monotonic_ns().saturating_add(ns);
    let time = [end / NS_IN_SECOND, end % NS_IN_SECOND];
    // SAFETY: the time is read.
    unsafe { syscall(number::CLOCK_NANOSLEEP, [CLOCK_MONOTONIC, TIMER_ABSTIME, time.as_ptr() as u64, 0, 0, 0]) };
}

/// Writes the program's memory by the kernel, as far as the program could: pages may be missing.
fn write_memory(address: u64, source: &[u8]) {
    let local = [source.as_ptr() as u64, source.len() as u64];
    let remote = [address, source.len() as u64];
    let arguments = [u64::from(getpid()), local.as_ptr() as u64, 1, remote.as_ptr() as u64, 1, 0];
    // SAFETY: the program's memory is written as somebody who may do that asked for.
    let _ = check(unsafe { syscall(number::PROCESS_VM_WRITEV, arguments) });
}
