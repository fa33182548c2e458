//! The task that serves probes: it has the program's memory, and nothing else of it.
//!
//! Runs in the target, on the boot stack, all signals blocked. One of the program's threads has cloned it for the controller (CLONE_VM, and
//! no signal at its end), with descriptors of its own, which it closes at once. It makes what the controller asks for, and ends
//! with the process, or when it is told to.

use super::{children, hits, patches, sites, threads, traps};
use crate::buffer::{Shared, WaitLimit};
use crate::cpu::features::{self, Features};
use crate::cpu::private_range::set_private_range;
use crate::cpu::probe::task;
use crate::cpu::sys::clock::ticks;
use crate::cpu::sys::number;
use crate::cpu::unwinding::set_tables;
use crate::instrument::captures::layout::{take_backtraces, take_changes};
use crate::instrument::ENGINE;
use crate::protocol::{error_code, runtime_state, StartBlock, StatusPage};
use crate::sys::calls::{futex_wait, futex_wake, getpid, monotonic_ns, set_signal_mask, syscall};
use crate::sys::heap;
use crate::thread::captured_calls::measure_ticks;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering};

/// The process whose memory this is.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// How long it is until it looks whether the process is there.
const LOOK_NS: u64 = 100_000_000;
const PR_SET_NAME: u64 = 15;
const NAME: &[u8; 12] = b"clew-probes\0";

/// Serves probes until nobody needs that any more.
///
/// # Safety
/// `block` must be the start block that the controller filled for this very process, and the caller a task that was made for this.
pub unsafe fn start(block: &'static StartBlock) -> ! {
    set_signal_mask(u64::MAX);
    // SAFETY: the descriptors are this task's own copies; the name is read.
    unsafe {
        syscall(number::CLOSE_RANGE, [0, u64::from(u32::MAX), 0, 0, 0, 0]);
        syscall(number::PRCTL, [PR_SET_NAME, NAME.as_ptr() as u64, 0, 0, 0, 0]);
    }
    // SAFETY: the controller mapped the shared memory there.
    let Some(shared) = (unsafe { Shared::open(block.shared_base, block.shared_bytes, block.anchor_base) }) else {
        end(120 + error_code::BAD_HEADER as u64);
    };
    PROCESS.store(parent(), Ordering::Relaxed);
    heap::initialize(block.heap_base, block.heap_bytes);
    set_private_range(block.private_base, block.private_base + block.private_bytes);
    features::initialize(block, hits::dispatch);
    {
        let mut engine = ENGINE.lock();
        engine.shared = shared;
        engine.features = Features::of_processor();
    }
    if !threads::initialize() {
        end(120 + error_code::OUT_OF_MEMORY as u64);
    }
    take_changes();
    take_backtraces();
    set_tables(shared.base() + shared.header().unwind_offset, unwind_state(shared));
    shared.set(crate::status_field!(start_ns), monotonic_ns());
    shared.set(crate::status_field!(start_tsc), ticks());
    shared.stamp_last();
    shared.look_for_controller();
    task::set_serve(serve);
    let status = shared.status();
    // SAFETY: the status page is mapped, the fields aligned.
    unsafe {
        (&raw mut (*status).probe_task).write_volatile(getpid());
        (&raw mut (*status).task_call).write_volatile(task::call_address());
        (&raw mut (*status).trap_handler).write_volatile(traps::handler());
        (&raw mut (*status).trap_restorer).write_volatile(traps::restorer());
        AtomicU32::from_ptr(&raw mut (*status).state).store(runtime_state::RUNNING, Ordering::Release);
    }
    serve();
}

/// Makes what is asked for, each time that the ticket is another one.
extern "C" fn serve() -> ! {
    let process = PROCESS.load(Ordering::Relaxed);
    // SAFETY: `shared` is set before this, and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    let status = shared.status();
    // SAFETY: the status page is mapped for the life of the runtime, the fields aligned.
    let (ticket, done, leaves) = unsafe {
        (
            AtomicU32::from_ptr(&raw mut (*status).probe_ticket),
            AtomicU32::from_ptr(&raw mut (*status).probe_done),
            AtomicU32::from_ptr(&raw mut (*status).probes_leave),
        )
    };
    let mut seen = 0;
    let mut wait_limit = WaitLimit::new(shared);
    while parent() == process {
        if wait_limit.is_abandoned() {
            children::take_back(shared, process);
            patches::take_back(shared);
            break;
        }
        let asked = ticket.load(Ordering::Acquire);
        if asked == seen {
            futex_wait(ticket.as_ptr(), seen, LOOK_NS, true);
            continue;
        }
        if leaves.load(Ordering::Acquire) != 0 {
            break;
        }
        measure_ticks(shared);
        sites::make_all(shared);
        seen = asked;
        done.store(asked, Ordering::Release);
        futex_wake(done.as_ptr(), u32::MAX, true);
    }
    end(0)
}

/// Where the word is that says which tables for unwinding there are.
fn unwind_state(shared: Shared) -> u64 {
    shared.status() as u64 + offset_of!(StatusPage, unwind_state) as u64
}

/// The process whose memory this is: it made this task.
fn parent() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { syscall(number::GETPPID, [0; 6]) as u32 }
}

fn end(status: u64) -> ! {
    loop {
        // SAFETY: ends this task alone, which is a process of its own.
        unsafe { syscall(number::EXIT_GROUP, [status, 0, 0, 0, 0, 0]) };
    }
}
