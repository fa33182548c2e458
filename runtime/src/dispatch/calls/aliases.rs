//! Memory that may be written where it is not mapped to be: shared mappings, and private ones of a file that the program may
//! write. Code in it counts as code that the program may write.
//!
//! Known from the calls that map. Changed under the engine's lock.

use crate::context::addresses::AppPc;
use crate::cpu::sys::number;
use crate::instrument::Engine;
use crate::sys::calls::{check, syscall};
use crate::sys::kernel::{MAP_ANONYMOUS, MAP_SHARED, PROT_EXEC, PROT_WRITE};

/// Whether a mapping made so can be written elsewhere. A file that is not mapped to be executed is not asked for: who maps
/// it to change it first, and to run it then, does not map it private.
pub fn is_alias(protection: u64, flags: u64, descriptor: u64) -> bool {
    flags & MAP_SHARED != 0 || protection & PROT_EXEC != 0 && flags & MAP_ANONYMOUS == 0 && is_open_to_write(descriptor)
}

fn is_open_to_write(descriptor: u64) -> bool {
    const F_GETFL: u64 = 3;
    const O_ACCMODE: u64 = 3;
    // SAFETY: asks for the flags of a descriptor, if there is one.
    let flags = check(unsafe { syscall(number::FCNTL, [descriptor, F_GETFL, 0, 0, 0, 0]) });
    flags.is_ok_and(|flags| flags & O_ACCMODE != 0)
}

/// The memory from `start` up to `end` was mapped anew.
pub fn note_mapping(engine: &mut Engine, start: u64, end: u64, is_alias: bool) {
    engine.aliases.insert(AppPc::from_raw(start), AppPc::from_raw(end), 0, is_alias);
}

/// Code from `start` up to `end` is known from now on.
pub fn insert_code(engine: &mut Engine, start: u64, end: u64, protection: u64) {
    let [start, end] = [start, end].map(AppPc::from_raw);
    engine.ranges.insert(start, end, protection, true);
    let mut from = start;
    while let Some(alias) = engine.aliases.next_from(from, end) {
        let (first, last) = (alias.start.max(start), alias.end.min(end));
        engine.ranges.insert(first, last, protection | PROT_WRITE, true);
        from = alias.end;
    }
    engine.note_candidate(start, end, protection);
}
