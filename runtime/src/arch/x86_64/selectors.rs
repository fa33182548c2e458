//! Segment registers: the selectors that user code has, and the base of gs, which is the runtime's while the thread is in its hands.
//!
//! Runs in the target. The selector in gs is always the program's; so are fs, ds and es, which the runtime never touches.

use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::context::Registers;
use crate::cpu::sys::kernel::SigContext;
use crate::cpu::sys::kernel::ARCH_GET_FS;
use crate::cpu::sys::kernel::ARCH_GET_GS;
use crate::cpu::sys::kernel::ARCH_SET_GS;
use crate::cpu::sys::number;
use crate::sys::calls::syscall;
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

/// User code and stack selectors (arch/x86/include/asm/segment.h).
pub const USER_CS: u16 = 0x33;
pub const USER_SS: u16 = 0x2b;
/// The privilege of user code, in a selector.
pub const USER_PRIVILEGE: u16 = 3;

/// rdgsbase and wrgsbase work.
static HAS_BASE_INSTRUCTIONS: AtomicBool = AtomicBool::new(false);

/// Says whether rdgsbase and wrgsbase work. Once, at the start.
pub fn initialize(has_base_instructions: bool) {
    HAS_BASE_INSTRUCTIONS.store(has_base_instructions, Ordering::Relaxed);
}

/// Whether gs has a base and a selector that do not depend on each other: without the instructions the kernel loads the base anew
/// from the selector where that is not null (arch/x86/kernel/process_64.c).
pub fn has_base_instructions() -> bool {
    HAS_BASE_INSTRUCTIONS.load(Ordering::Relaxed)
}

impl Registers {
    /// Whether the thread is to go on with selectors that 64-bit code does not have.
    pub fn are_foreign(&self) -> bool {
        self.code_selector != 0 || self.stack_selector != 0 && !is_stack(self.stack_selector)
    }

    /// Whether selectors are those that 64-bit programs have.
    pub fn are_usual(&self) -> bool {
        self.code_selector == 0 && self.stack_selector == 0
    }

    /// Notes the selectors that translated code left in the processor.
    pub fn note_modes(&mut self) {
        self.stack_selector = stack_selector();
    }

    /// Takes over what native code has left, as a signal's frame has it; the runtime goes on with the usual selectors.
    pub fn take_native(&mut self, machine: &mut SigContext) {
        self.general = machine.registers();
        self.flags = machine.rflags;
        self.pc = AppPc::from_raw(machine.rip);
        self.code_selector = own_selector(machine.cs, USER_CS);
        self.stack_selector = own_selector(machine.ss, USER_SS);
        (machine.cs, machine.ss) = (USER_CS, USER_SS);
    }

    /// Loads those that translated code is to have.
    pub fn load_modes(&self) {
        if self.stack_selector != 0 {
            load_stack_selector(self.stack_selector);
        }
    }
}

/// The calling thread's fs base, which is the program's at all times: its thread-local variables are found from there.
pub fn thread_pointer() -> u64 {
    let mut base = 0u64;
    if has_base_instructions() {
        // SAFETY: reads the base.
        unsafe { asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    } else {
        // SAFETY: writes `base`.
        unsafe { syscall(number::ARCH_PRCTL, [ARCH_GET_FS, &raw mut base as u64, 0, 0, 0, 0]) };
    }
    base
}

/// Gives the program its own gs base: nothing may use the context through gs until `take_gs`. Callable from the signal handler.
pub fn give_gs(context: &ThreadContext) {
    set_gs_base(context.registers.gs_base);
}

/// Takes the gs base back after native code, and notes what the program's is by now. Callable from the signal handler.
pub fn take_gs(context: &mut ThreadContext) {
    let mut base = 0u64;
    if has_base_instructions() {
        // SAFETY: reads the base.
        unsafe { asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
    } else {
        // SAFETY: writes `base`.
        unsafe { syscall(number::ARCH_PRCTL, [ARCH_GET_GS, &raw mut base as u64, 0, 0, 0, 0]) };
    }
    context.registers.gs_base = base;
    set_gs_base(context.self_address);
}

/// The program's arch_prctl(ARCH_SET_GS): the selector is null after it (do_arch_prctl_64).
pub fn forget_gs_selector(context: &ThreadContext) {
    let selector: u16;
    // SAFETY: reads the selector.
    unsafe { asm!("mov {:x}, gs", out(reg) selector, options(nomem, nostack, preserves_flags)) };
    if selector != 0 {
        set_gs_base_alone(context.self_address);
    }
}

/// Has translated code and gates find this context, whose thread calls.
pub fn enter_block(context: &ThreadContext) {
    set_gs_base(context.self_address);
}

/// Sets the calling thread's gs base, and keeps its selector where that can be.
pub fn set_gs_base(base: u64) {
    if has_base_instructions() {
        // SAFETY: the runtime's code does not use gs but through contexts; the caller says who uses it from here on.
        unsafe { asm!("wrgsbase {}", in(reg) base, options(nostack, preserves_flags)) };
    } else {
        set_gs_base_alone(base);
    }
}

/// As above, by the kernel, which makes the selector null.
fn set_gs_base_alone(base: u64) {
    // SAFETY: as above.
    unsafe { syscall(number::ARCH_PRCTL, [ARCH_SET_GS, base, 0, 0, 0, 0]) };
}

/// The stack selector in use: one of the program's own, or 0 for the one that all programs have.
pub fn stack_selector() -> u16 {
    let selector: u16;
    // SAFETY: reads the selector.
    unsafe { asm!("mov {:x}, ss", out(reg) selector, options(nomem, nostack, preserves_flags)) };
    own_selector(selector, USER_SS)
}

/// Loads a stack selector that `is_stack` knows. It lasts until a system call.
pub fn load_stack_selector(selector: u16) {
    // SAFETY: bases and limits of ss mean nothing in 64-bit code, and the caller asked whether it can be loaded.
    unsafe { asm!("mov ss, {:x}", in(reg) selector, options(nostack, preserves_flags)) };
}

/// A selector as contexts hold it: 0 stands for `usual`.
pub fn own_selector(selector: u16, usual: u16) -> u16 {
    if selector == usual {
        0
    } else {
        selector
    }
}

/// Whether ss can hold a selector in user code: writable data of the user's, present (arch/x86/kernel/signal.c,
/// force_valid_ss).
pub fn is_stack(selector: u16) -> bool {
    const TYPE: u32 = 0xfe00;
    /// Present, of privilege 3, data that is writable.
    const WRITABLE_DATA: u32 = 0xf200;
    const GROWS_DOWN: u32 = 0x400;
    rights_of(selector).is_some_and(|rights| rights & TYPE & !GROWS_DOWN == WRITABLE_DATA)
}

/// How many bits operands have in a code segment; `None` if it is none.
pub fn code_bits(selector: u16) -> Option<u32> {
    const CODE: u32 = 0x1800;
    const DEFAULT_SIZE: u32 = 1 << 22;
    rights_of(selector)
        .filter(|rights| rights & CODE == CODE)
        .map(|rights| if rights & DEFAULT_SIZE != 0 { 32 } else { 16 })
}

/// What LAR tells of a selector; `None`: nothing, so it can't be loaded.
fn rights_of(selector: u16) -> Option<u32> {
    let (rights, is_known): (u32, u8);
    // SAFETY: reads a descriptor's rights; a selector that is none faults in no case (Intel SDM, LAR).
    unsafe {
        asm!("lar {0:e}, {1:e}", "setz {2}", out(reg) rights, in(reg) u32::from(selector), out(reg_byte) is_known,
            options(nostack));
    }
    (is_known != 0).then_some(rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_segments_are_known() {
        assert!(is_stack(USER_SS));
        assert!(!is_stack(USER_CS), "code is no stack");
        assert!(!is_stack(0) && !is_stack(3), "a null selector is none");
        assert!(!is_stack(0x1b), "the kernel's");
        assert_eq!(code_bits(USER_SS), None);
    }

    #[test]
    fn the_usual_selector_is_stored_as_none() {
        assert_eq!(own_selector(USER_SS, USER_SS), 0);
        assert_eq!(own_selector(7, USER_SS), 7);
    }
}
