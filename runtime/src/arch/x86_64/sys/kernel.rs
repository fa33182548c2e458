//! Kernel structures and constants of x86-64, as in the kernel's uapi headers.

use crate::sys::kernel::{SigInfo, SigStack, SIGTRAP, TRAP_BRKPT, TRAP_TRACE};

/// The end of what a program can map (arch/x86/include/asm/page_64_types.h, TASK_SIZE_MAX).
pub const USER_END: u64 = 0x7fff_ffff_f000;
/// AUDIT_ARCH_X86_64 (include/uapi/linux/audit.h).
pub const AUDIT_ARCH: u64 = 0xc000_003e;

pub const ARCH_SET_GS: u64 = 0x1001;
pub const ARCH_GET_FS: u64 = 0x1003;
pub const ARCH_GET_GS: u64 = 0x1004;

/// The processor's number for traps of its own, in a frame's `trapno`.
pub const DEBUG_EXCEPTION: u64 = 1;
/// The trap flag in rflags: a trap behind each instruction.
pub const TRAP_FLAG: u64 = 0x100;
/// RF: no breakpoint in front of the next instruction.
pub const RESUME_FLAG: u64 = 0x1_0000;

impl SigInfo {
    /// Whether it is of the trap behind a single step, if the frame has `trapno`.
    ///
    /// Under a hypervisor the processor now and then leaves nothing in DR6. The kernel takes that for int1, and says so
    /// (arch/x86/kernel/traps.c, exc_debug_user). Where int1 was executed indeed, an instruction is done as well.
    pub fn is_of_step(&self, trapno: u64) -> bool {
        self.signo as u32 == SIGTRAP && trapno == DEBUG_EXCEPTION && matches!(self.code, TRAP_TRACE | TRAP_BRKPT)
    }
}

/// `struct sigcontext`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SigContext {
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub rflags: u64,
    pub cs: u16,
    pub gs: u16,
    pub fs: u16,
    pub ss: u16,
    pub err: u64,
    pub trapno: u64,
    pub oldmask: u64,
    pub cr2: u64,
    pub fpstate: u64,
    pub reserved: [u64; 8],
}

impl SigContext {
    /// The sixteen registers in the processor's numbering (rax rcx rdx rbx rsp rbp rsi rdi r8 to r15).
    pub fn registers(&self) -> [u64; 16] {
        [
            self.rax, self.rcx, self.rdx, self.rbx, self.rsp, self.rbp, self.rsi, self.rdi, self.r8, self.r9, self.r10,
            self.r11, self.r12, self.r13, self.r14, self.r15,
        ]
    }

    pub fn set_registers(&mut self, registers: &[u64; 16]) {
        [
            self.rax, self.rcx, self.rdx, self.rbx, self.rsp, self.rbp, self.rsi, self.rdi, self.r8, self.r9, self.r10,
            self.r11, self.r12, self.r13, self.r14, self.r15,
        ] = *registers;
    }
}

/// `struct ucontext` as the kernel lays it in a signal frame.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UContext {
    pub flags: u64,
    pub link: u64,
    pub stack: SigStack,
    pub mcontext: SigContext,
    pub sigmask: u64,
}

impl UContext {
    /// Where the stack pointer was.
    pub fn sp(&self) -> u64 {
        self.mcontext.rsp
    }
}

/// `struct rt_sigframe`: what lies at the stack pointer when a handler starts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SigFrame {
    pub return_address: u64,
    pub ucontext: UContext,
    pub info: SigInfo,
}

pub const UC_FP_XSTATE: u64 = 1;
pub const UC_SIGCONTEXT_SS: u64 = 2;
pub const UC_STRICT_RESTORE_SS: u64 = 4;
pub const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
pub const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
/// Offset of `struct _fpx_sw_bytes` in the legacy area of a frame's extended state.
pub const FX_SW_BYTES_OFFSET: usize = 464;

const _: () = assert!(core::mem::size_of::<SigContext>() == 256);
const _: () = assert!(core::mem::size_of::<UContext>() == 304);
const _: () = assert!(core::mem::size_of::<SigFrame>() == 440);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::kernel::SI_USER;

    #[test]
    fn debug_exceptions_that_do_not_say_why_are_steps() {
        const BREAKPOINT_EXCEPTION: u64 = 3;
        let trap = |code| SigInfo { signo: SIGTRAP as i32, code, ..SigInfo::ZERO };
        assert!(trap(TRAP_TRACE).is_of_step(DEBUG_EXCEPTION));
        assert!(trap(TRAP_BRKPT).is_of_step(DEBUG_EXCEPTION));
        assert!(!trap(TRAP_BRKPT).is_of_step(BREAKPOINT_EXCEPTION));
        assert!(!trap(SI_USER).is_of_step(DEBUG_EXCEPTION));
    }
}
