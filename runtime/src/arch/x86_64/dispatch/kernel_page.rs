//! The vsyscall page: three calls at fixed addresses that old programs make.
//!
//! The page cannot be read, and the kernel emulates what would run there (arch/x86/entry/vsyscall/vsyscall_64.c). If the
//! program called it natively, it would come back natively; so the runtime emulates it the same way.

use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::decode::addresses::VSYSCALL_PAGE;
use crate::cpu::guarded;
use crate::dispatch::calls::results;
use crate::dispatch::signals::{masks, raise};
use crate::instrument::ENGINE;
use crate::sys::calls::{program_call, EFAULT};
use crate::thread::open_calls;
use crate::thread::registry::writer_of;

/// Does what the call at the context's rip does, and returns from it. Addresses that are no call fault natively. Without a
/// stack to return from, and for a bad pointer, a SIGSEGV waits to be delivered (emulate_vsyscall).
pub fn emulate(context: &mut ThreadContext) {
    // gettimeofday, time, getcpu
    let number = match context.registers.pc - VSYSCALL_PAGE {
        0x000 => 96,
        0x400 => 201,
        0x800 => 309,
        _ => return,
    };
    let r = context.registers.general;
    let mut slot = [0; 8];
    let read = masks::with_faults(context, |_| guarded::read_program(&mut slot, r[4]));
    if read != slot.len() {
        raise::raise_forced(context);
        return;
    }
    // SAFETY: the program's own call.
    let result = unsafe { program_call(number, [r[7], r[6], r[2], 0, 0, 0]) };
    if result == -i64::from(EFAULT) && !results::is_trapped(context) {
        raise::raise_forced(context);
        return;
    }
    // A call that a filter answers with a signal leaves its number (emulate_vsyscall).
    context.registers.general[0] = if results::is_trapped(context) { number } else { result as u64 };
    let target = AppPc::from_raw(u64::from_le_bytes(slot));
    let engine = ENGINE.lock();
    if context.path.is_on {
        open_calls::return_to(context, &writer_of(context, engine.shared), context.registers.pc, target);
    }
    drop(engine);
    context.registers.pc = target;
    context.registers.general[4] = r[4].wrapping_add(8);
}
