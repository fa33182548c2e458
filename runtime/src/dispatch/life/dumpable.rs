//! A process that is not dumpable (PR_SET_DUMPABLE) is looked at by nobody without privileges, and that may be the controller. So it is
//! dumpable for as long as it asks the controller something for which that has to look at it.

use crate::cpu::sys::number;
use crate::sys::calls::{program_call, syscall};
use crate::sys::lock::{Guard, Lock};

/// prctl's operations (linux/prctl.h).
pub const PR_GET_DUMPABLE: u32 = 3;
pub const PR_SET_DUMPABLE: u32 = 4;

/// Held while what the kernel says of it may not be what the program said.
static SHOWN: Lock<()> = Lock::new(());

fn control(operation: u32, value: u64) -> i64 {
    // SAFETY: who may look at the process, nothing else.
    unsafe { syscall(number::PRCTL, [u64::from(operation), value, 0, 0, 0, 0]) }
}

/// Asks while the process may be looked at. The kernel's 2 (privileged processes only, by /proc/sys/fs/suid_dumpable) nobody could set
/// again: it stays.
pub fn while_shown<T>(ask: impl FnOnce() -> T) -> T {
    if control(PR_GET_DUMPABLE, 0) != 0 {
        return ask();
    }
    let guard = SHOWN.lock();
    control(PR_SET_DUMPABLE, 1);
    let answer = ask();
    control(PR_SET_DUMPABLE, 0);
    drop(guard);
    answer
}

/// The program's own call, about what it said itself.
pub fn change(arguments: [u64; 6]) -> i64 {
    let _guard = SHOWN.lock();
    // SAFETY: the program's own call.
    unsafe { program_call(number::PRCTL, arguments) }
}

/// Taken around a fork, so that the child is what the program said.
pub fn hold() -> Guard<'static, ()> {
    SHOWN.lock()
}

/// Gives up in the child what its parent took.
///
/// # Safety
/// The parent's thread held it when it made this one, which is alone.
pub unsafe fn let_go() {
    // SAFETY: as the caller says; nothing drops the guard here.
    unsafe { SHOWN.give_up() };
}
