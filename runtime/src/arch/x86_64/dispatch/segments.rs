//! Segments of shared memory (shmat, shmdt): the size of what they map is the kernel's to know.

use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::sys::number;
use crate::dispatch::calls::locks;
use crate::dispatch::calls::mappings::page_end;
use crate::dispatch::calls::memory::{call_holding, forget, is_place};
use crate::dispatch::life::{hidden, room};
use crate::instrument::ENGINE;
use crate::protocol::PAGE_BYTES;
use crate::sys::calls::{check, syscall, EAGAIN, EINVAL};
use crate::thread::registry::writer_of;

/// shmat: what it replaces is gone. What it maps is asked for when it is run.
pub fn attach(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    const SHM_RND: u64 = 0o20000;
    const SHM_REMAP: u64 = 0o40000;
    let [segment, address, flags, ..] = arguments;
    let start = if flags & SHM_RND != 0 { address & !(PAGE_BYTES - 1) } else { address };
    let wanted = start..page_end(start, segment_bytes(segment)).max(start);
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    if start != 0 && is_place(&wanted) && hidden::is_within(&wanted) {
        room::make(&mut engine, &writer, context, wanted.clone());
        if hidden::is_within(&wanted) {
            return -i64::from(EINVAL);
        }
    }
    let size = wanted.end - wanted.start;
    if !locks::may_lock(size) {
        return -i64::from(EAGAIN);
    }
    let replaces = start != 0 && flags & SHM_REMAP != 0 && is_place(&wanted);
    let replaced = if replaces { [wanted.start, wanted.end] } else { [0; 2] };
    let (result, mut engine) = call_holding(engine, &writer, number::SHMAT, arguments, replaced);
    locks::cover(result, size);
    if replaces && check(result).is_ok() {
        forget(&mut engine, &writer, wanted.start, wanted.end);
    }
    result
}

/// How large a segment of shared memory is; 0: there is none that can be asked for.
fn segment_bytes(segment: u64) -> u64 {
    const SHMCTL: u64 = 31;
    const IPC_STAT: u64 = 2;
    // struct shmid64_ds: the permissions, 48 bytes, come first.
    let mut about = [0u64; 16];
    // SAFETY: writes the structure, 112 bytes.
    let result = unsafe { syscall(SHMCTL, [segment, IPC_STAT, about.as_mut_ptr() as u64, 0, 0, 0]) };
    if result == 0 {
        about[6]
    } else {
        0
    }
}

/// shmdt: code that was there is gone.
pub fn detach(context: &ThreadContext, arguments: [u64; 6]) -> i64 {
    let [start, ..] = arguments;
    let engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    let end = engine.ranges.find(AppPc::from_raw(start)).map_or(start, |range| range.end.raw());
    let (result, mut engine) = call_holding(engine, &writer, number::SHMDT, arguments, [start, end]);
    if result == 0 {
        forget(&mut engine, &writer, start, end);
    }
    result
}
