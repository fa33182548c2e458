//! How translated code names what is in its thread's private block: the form of operand that this processor is fast with.
//!
//! A counter is read right behind where it was written. Processors pass a stored value on to such a load at once (memory
//! renaming; one cycle instead of five to seven) only where they know early that both name the same place: some by
//! `gs:[x]`, others by `gs:[eip + x]` and not by `gs:[x]`, because they ask for a base register, and eip counts as one. No
//! manual says which, so both are tried once in each process, for some microseconds. Both are equally long.

use crate::cpu::sys::clock::ticks;
use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, Ordering};

global_asm!(
    ".pushsection .text.clew_forwarding,\"ax\",@progbits",
    // Count edi times in a word of gs; both clobber edi and flags, and use no stack.
    ".globl clew_count_by_eip",
    ".p2align 6",
    "clew_count_by_eip:",
    "inc qword ptr gs:[eip]",
    // What eip is there.
    ".globl clew_counted_by_eip",
    "clew_counted_by_eip:",
    "dec edi",
    "jnz clew_count_by_eip",
    "ret",
    ".globl clew_count_absolute",
    ".p2align 6",
    "clew_count_absolute:",
    "inc qword ptr gs:[0]",
    "dec edi",
    "jnz clew_count_absolute",
    "ret",
    ".popsection",
);

// SAFETY: defined above; what they take and change is said there.
unsafe extern "C" {
    fn clew_count_by_eip(turns: u32);
    fn clew_counted_by_eip();
    fn clew_count_absolute(turns: u32);
}

/// Turns of one trial, and trials of each form: the least time counts, as others disturb.
const TURNS: u32 = 100;
const TRIALS: u32 = 5;

static IS_ABSOLUTE: AtomicBool = AtomicBool::new(false);

/// Whether operands are `gs:[x]` and not `gs:[eip + x]`.
pub fn is_absolute() -> bool {
    IS_ABSOLUTE.load(Ordering::Relaxed)
}

/// Finds out which form this processor is fast with. Once, before anything is translated, with signals blocked; leaves the gs
/// base to its caller.
pub fn choose(set_gs_base: impl Fn(u64)) {
    let mut word = 0u64;
    let address = &raw mut word as u64;
    set_gs_base(address);
    // SAFETY: counts in `word`, which is where gs is.
    let absolute = shortest(|| unsafe { clew_count_absolute(TURNS) });
    // eip is cut to 32 bits.
    set_gs_base(address.wrapping_sub(u64::from(clew_counted_by_eip as *const () as u32)));
    // SAFETY: as above.
    let by_eip = shortest(|| unsafe { clew_count_by_eip(TURNS) });
    IS_ABSOLUTE.store(absolute <= by_eip, Ordering::Relaxed);
}

fn shortest(count: impl Fn()) -> u64 {
    let trial = |_| {
        let start = ticks();
        count();
        ticks().wrapping_sub(start)
    };
    (0..TRIALS).map(trial).min().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::sys::number;
    use crate::sys::calls::syscall;

    fn set_gs_base(base: u64) {
        const ARCH_SET_GS: u64 = 0x1001;
        // SAFETY: neither the test nor what it is linked with uses gs.
        unsafe { syscall(number::ARCH_PRCTL, [ARCH_SET_GS, base, 0, 0, 0, 0]) };
    }

    #[test]
    fn both_forms_count_where_gs_is() {
        let mut word = 0u64;
        let address = &raw mut word as u64;
        set_gs_base(address);
        // SAFETY: counts in `word`.
        unsafe { clew_count_absolute(7) };
        set_gs_base(address.wrapping_sub(u64::from(clew_counted_by_eip as *const () as u32)));
        // SAFETY: as above.
        unsafe { clew_count_by_eip(5) };
        // SAFETY: `word` is alive.
        assert_eq!(unsafe { (address as *const u64).read_volatile() }, 12);
        choose(set_gs_base);
    }
}
