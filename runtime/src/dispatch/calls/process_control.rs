//! prctl: what of it the runtime has a part in.

use super::{seccomp, user_dispatch};
use crate::context::ThreadContext;
use crate::cpu::call_dispatch::PR_SET_SYSCALL_USER_DISPATCH;
use crate::cpu::sys::clock::{note_refusal, PR_SET_TSC, PR_TSC_SIGSEGV};
use crate::cpu::sys::number;
use crate::dispatch::life::dumpable;
use crate::dispatch::life::dumpable::{PR_GET_DUMPABLE, PR_SET_DUMPABLE};
use crate::instrument::ENGINE;
use crate::sys::calls::program_call;
use crate::thread::registry::writer_of;

/// prctl's operation (linux/prctl.h).
const PR_SET_NAME: u32 = 15;
const PR_SET_MDWE: u32 = 65;

/// prctl(operation, ...).
pub fn control(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    if arguments[0] == PR_SET_SYSCALL_USER_DISPATCH {
        return user_dispatch::change(context, arguments);
    }
    if arguments[0] as u32 == PR_SET_MDWE {
        return refuse_new_code(context, arguments);
    }
    if matches!(arguments[0] as u32, PR_GET_DUMPABLE | PR_SET_DUMPABLE) {
        return dumpable::change(arguments);
    }
    if [arguments[0] as u32, arguments[1] as u32] == [PR_SET_TSC as u32, PR_TSC_SIGSEGV as u32] {
        note_refusal();
        let mut engine = ENGINE.lock();
        let writer = writer_of(context, engine.shared);
        // The dispatcher is asked for the time from now on.
        engine.renew_captures(&writer);
    }
    let result = seccomp::change(context, number::PRCTL, arguments);
    if arguments[0] as u32 == PR_SET_NAME {
        // Who chooses threads by their names looks at it again.
        ENGINE.lock().shared.follow_renamed(context.slot);
    }
    result
}

/// From now on the kernel gives no right to execute where there was none, nor gives one back that was taken (linux/mman.h,
/// map_deny_write_exec): pages that are trusted could never be written again.
fn refuse_new_code(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    let shared = ENGINE.lock().shared;
    ENGINE.lock().suspend_trust(&writer_of(context, shared));
    // SAFETY: the program's own call.
    let result = unsafe { program_call(number::PRCTL, arguments) };
    if result != 0 {
        ENGINE.lock().resume_trust();
    }
    result
}
