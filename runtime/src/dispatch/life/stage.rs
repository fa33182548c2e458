//! Entering a process and leaving it are all or nothing, also if the controller is killed on the way: the control block
//! says which, and whoever goes on without the controller does what it would have done.

use crate::context::ThreadContext;
use crate::cpu::parking;
use crate::cpu::signal::deliver;
use crate::cpu::sys::number;
use crate::protocol::{stage, ControlBlock};
use crate::signal::table::SIGNALS;
use crate::sys::calls::syscall;
use crate::sys::calls::{futex_wait, futex_wake};
use crate::sys::kernel::SIGTRAP;
use crate::sys::kernel::{SigStack, SS_AUTODISARM, SS_DISABLE};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const WAIT_NS: u64 = 10_000_000;

static WORD: AtomicPtr<u32> = AtomicPtr::new(core::ptr::null_mut());

/// Says where the control block is. Once, at the start: a process that was launched is entered with that.
pub fn set_block(block: &mut ControlBlock) {
    if block.thread_count == 0 {
        block.stage = stage::ENTERED;
    }
    WORD.store(&raw mut block.stage, Ordering::Relaxed);
}

fn word() -> &'static AtomicU32 {
    // SAFETY: an aligned u32 of the control block, which stays mapped for as long as anything of the runtime runs.
    unsafe { AtomicU32::from_ptr(WORD.load(Ordering::Relaxed)) }
}

/// Whether the controller sent every thread into the runtime.
pub fn is_entered() -> bool {
    word().load(Ordering::Acquire) != stage::ENTERING
}

/// Lets a thread that was to enter go on as it came: the controller was killed before it could send all of them.
pub fn abandon(context: &mut ThreadContext) -> ! {
    SIGNALS.lock().restore(SIGTRAP);
    deliver::go_native(context, context.process.start_mask, program_signal_stack())
}

/// What a thread does that has parked and goes on: comes back if the process was not left, in which the controller gave up or
/// was killed. Otherwise the controller was killed as it left, and the thread goes on as it would have made it, with the
/// mask `mask`. One of them does for the process what `give_back` does. The context is complete, no lock held, all signals
/// blocked.
pub fn follow(context: &mut ThreadContext, mask: u64, give_back: fn()) {
    loop {
        match word().load(Ordering::Acquire) {
            stage::LEAVING => {
                let taken =
                    word().compare_exchange(stage::LEAVING, stage::GIVING_BACK, Ordering::AcqRel, Ordering::Acquire);
                if taken.is_ok() {
                    give_back();
                    // The controller takes over here, if there is one.
                    parking::park_bare();
                    SIGNALS.lock().restore(SIGTRAP);
                    word().store(stage::LEFT, Ordering::Release);
                    futex_wake(word().as_ptr(), u32::MAX >> 1, false);
                }
            }
            stage::GIVING_BACK => {
                futex_wait(word().as_ptr(), stage::GIVING_BACK, WAIT_NS, false);
            }
            stage::LEFT => deliver::go_native(context, mask, deliver::shown_stack(context)),
            _ => return,
        }
    }
}

/// The alternate stack that the kernel knows for this thread, as the program set it.
pub fn program_signal_stack() -> SigStack {
    let mut stack = SigStack::DISABLED;
    // SAFETY: writes `stack`.
    unsafe { syscall(number::SIGALTSTACK, [0, &raw mut stack as u64, 0, 0, 0, 0]) };
    // Whether the thread is on it is told by its stack pointer, which is not the kernel's any more.
    stack.flags &= SS_AUTODISARM | SS_DISABLE;
    stack
}
