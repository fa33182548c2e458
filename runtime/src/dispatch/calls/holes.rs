//! Calls that name memory and change nothing that is known of code, where a part of that is hidden.

use super::locks;
use super::mappings::page_end;
use super::memory::is_place;
use crate::context::ThreadContext;
use crate::cpu::sys::kernel::USER_END;
use crate::cpu::sys::number;
use crate::dispatch::life::{hidden, room};
use crate::instrument::ENGINE;
use crate::protocol::PAGE_BYTES;
use crate::sys::calls::{program_call, EFAULT, EINVAL, ENOMEM};
use crate::thread::registry::writer_of;

/// Calls that name memory by address and size, and change nothing that is known of code. `None`: the gate makes it. Where a part is
/// hidden nothing is mapped natively: they do what they do up to there, or to all the rest, and say so.
pub fn name(call: u64, arguments: [u64; 6]) -> Option<i64> {
    let range = arguments[0]..page_end(arguments[0], arguments[1]);
    if !is_place(&range) || !hidden::is_within(&range) {
        return None;
    }
    // The kernel sees to it before it does anything (mm/mincore.c, mm/mseal.c, mm/mempolicy.c, mm/mmap.c).
    let refused = match call {
        number::MINCORE | number::MSEAL => ENOMEM,
        number::MBIND => EFAULT,
        number::REMAP_FILE_PAGES => EINVAL,
        _ => 0,
    };
    if refused != 0 {
        return Some(-i64::from(refused));
    }
    let mut parts = hidden::visible_parts(&range);
    if call != number::MSYNC {
        parts.retain(|part| part.start == range.start);
    }
    for part in parts {
        let mut arguments = arguments;
        arguments[..2].copy_from_slice(&[part.start, part.end - part.start]);
        // SAFETY: the program's own call.
        let result = unsafe { program_call(call, arguments) };
        if result != 0 && result != -i64::from(ENOMEM) {
            return Some(result);
        }
    }
    Some(-i64::from(ENOMEM))
}

/// brk: what the code cache has in the way of memory that grows gives way.
pub fn move_break(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    // SAFETY: asks where the break is.
    let now = unsafe { program_call(number::BRK, [0; 6]) } as u64;
    let wanted = now & !(PAGE_BYTES - 1)..arguments[0];
    if wanted.start < wanted.end && wanted.end <= USER_END && hidden::is_within(&wanted) {
        let mut engine = ENGINE.lock();
        let writer = writer_of(context, engine.shared);
        room::make(&mut engine, &writer, context, wanted.clone());
    }
    if wanted.start < wanted.end && !locks::may_lock(wanted.end - wanted.start) {
        return now as i64;
    }
    // SAFETY: the program's own call.
    let result = unsafe { program_call(number::BRK, arguments) };
    if result as u64 > now {
        locks::cover(wanted.start as i64, wanted.end - wanted.start);
    }
    result
}
