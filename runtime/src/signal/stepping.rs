//! The program's own trap flag: which of the traps in translated code are the program's.
//!
//! Translated code runs with the program's flags, so with the trap flag set the processor traps behind every instruction of
//! the cache and of the gates. A trap is the program's where one of its instructions has just been done, that is, where
//! the next one's code starts. Called by the signal handler: reads arenas without a lock, allocates nothing.

use crate::cache::{Cache, Fragment};
use crate::context::ThreadContext;
use crate::cpu::gate;
use crate::cpu::signal::interrupt::fragment_at;
use crate::cpu::spill::SpillState;

/// Whether a trap at `pc`, in a gate, is the one behind a system call of the program's: the processor makes none there, but
/// behind the next instruction (its manual, SYSRET: the trap flag it loads takes effect then).
pub fn is_after_syscall(pc: u64) -> bool {
    pc == gate::clew_syscall_done as *const () as u64
}

/// Whether a trap at `pc` comes behind an instruction of the program.
pub fn is_instruction_done(cache: &Cache, context: &mut ThreadContext, pc: u64) -> bool {
    let Some((id, offset)) = fragment_at(cache, pc) else {
        return false;
    };
    if !starts_instruction(cache, cache.fragment(id), offset) {
        return false;
    }
    // Back from a handler or a system call, the first instruction is still to come.
    core::mem::take(&mut context.stepping.is_fresh) == 0
}

/// Whether the code of an instruction starts at a cache offset: at its first entry in the instruction map. What stands in
/// front of the first instruction belongs to that.
fn starts_instruction(cache: &Cache, fragment: &Fragment, offset: u64) -> bool {
    let in_place = if fragment.is_lending { SpillState::Both } else { SpillState::None };
    if offset == fragment.code_offset() {
        return true;
    }
    let start = fragment.map_start as usize;
    let Some(entries) = cache.map.as_slice().get(start..start + fragment.map_length as usize) else {
        return false;
    };
    let mut last = 0;
    for entry in entries {
        let is_first = entry.app_offset != last && entry.app_offset < fragment.app_size;
        if u64::from(entry.cache_offset) == offset && is_first && entry.state == in_place {
            return true;
        }
        last = entry.app_offset;
    }
    false
}
