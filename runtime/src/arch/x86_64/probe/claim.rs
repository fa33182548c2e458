//! A thread that comes to a probe without a block of its own: it is given one, on a stack that all such threads share.
//!
//! Runs in the target, called by a handler (`handler`), with the program's registers and flags, below its red zone. Signals are
//! blocked meanwhile: a handler of the program's that came to a probe would wait for the stack that its own thread has. Those of traps
//! are not, which nothing here raises: who writes code live looks at whether threads can trap.

use crate::cpu::sys::number;
use core::arch::global_asm;
use core::mem::transmute;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const STACK_BYTES: usize = 0x8000;
/// As many bytes behind the call are left out, times what the claim says (`handler`).
pub const SKIPPED_BYTES: usize = 13;
const SET_MASK: u32 = 2;
const MASK: i32 = !(1 << 3 | 1 << 4);

#[repr(C, align(64))]
struct Stack([u8; STACK_BYTES]);

static mut STACK: Stack = Stack([0; STACK_BYTES]);

/// What gives the calling thread a block: 0, it has one; 1: it has none; 2: it has one, and will ask for it again next time.
pub type Claim = extern "C" fn() -> u32;

/// The probes' floor is above this one: it says which function that is.
static CLAIM: AtomicUsize = AtomicUsize::new(0);

/// Where the word is that is not 0 while a thread is on the stack: in memory that is zeros in a fork's child, for the thread that is there
/// in its parent will not leave it in the child.
static LOCK: AtomicU64 = AtomicU64::new(0);

/// Says what gives a thread a block, and where the stack's lock is. Once, before any code leads to a handler.
pub fn set_claim(claim: Claim, lock: u64) {
    CLAIM.store(claim as usize, Ordering::Relaxed);
    LOCK.store(lock, Ordering::Relaxed);
}

extern "C" fn claim_entry() -> u32 {
    let address = CLAIM.load(Ordering::Relaxed);
    // SAFETY: `set_claim` stored a function of this type before the first handler was reached.
    let claim: Claim = unsafe { transmute(address) };
    claim()
}

global_asm!(
    ".pushsection .text.clew_probe_claim,\"ax\",@progbits",
    ".balign 16",
    ".globl clew_probe_claim",
    "clew_probe_claim:",
    "pushfq",
    ".irp register, rax,rcx,rdx,rbx,rbp,rsi,rdi,r8,r9,r10,r11,r12,r13,r14,r15",
    "push \\register",
    ".endr",
    "cld",
    // The mask as it was, and that of all signals but SIGILL and SIGTRAP.
    "sub rsp, 16",
    "mov qword ptr [rsp + 8], {MASK}",
    "mov eax, {sigprocmask}",
    "mov edi, {SET_MASK}",
    "lea rsi, [rsp + 8]",
    "mov rdx, rsp",
    "mov r10d, 8",
    "syscall",
    "mov rbx, rsp",
    "2:",
    "mov rdx, [rip + {lock}]",
    "mov eax, 1",
    "xchg eax, [rdx]",
    "test eax, eax",
    "jz 3f",
    "mov eax, {sched_yield}",
    "syscall",
    "jmp 2b",
    "3:",
    "lea rsp, [rip + {stack} + {STACK_BYTES} - 288]",
    ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "movups [rsp + 16 * \\n], xmm\\n",
    ".endr",
    "stmxcsr [rsp + 256]",
    "ldmxcsr [rip + clew_default_mxcsr]",
    "call {claim}",
    "mov ebp, eax",
    "ldmxcsr [rsp + 256]",
    ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "movups xmm\\n, [rsp + 16 * \\n]",
    ".endr",
    "mov rsp, rbx",
    "mov rdx, [rip + {lock}]",
    "mov dword ptr [rdx], 0",
    "mov eax, {sigprocmask}",
    "mov edi, {SET_MASK}",
    "mov rsi, rsp",
    "xor edx, edx",
    "mov r10d, 8",
    "syscall",
    "add rsp, 16",
    // The return address, behind fifteen registers and the flags.
    "imul ebp, ebp, {SKIPPED_BYTES}",
    "add [rsp + 128], rbp",
    ".irp register, r15,r14,r13,r12,r11,r10,r9,r8,rdi,rsi,rbp,rbx,rdx,rcx,rax",
    "pop \\register",
    ".endr",
    "popfq",
    "ret",
    ".popsection",
    sigprocmask = const number::RT_SIGPROCMASK,
    sched_yield = const number::SCHED_YIELD,
    SET_MASK = const SET_MASK,
    MASK = const MASK,
    SKIPPED_BYTES = const SKIPPED_BYTES,
    STACK_BYTES = const STACK_BYTES,
    stack = sym STACK,
    claim = sym claim_entry,
    lock = sym LOCK,
);

// SAFETY: the assembly above defines it. It is only ever called by handlers.
unsafe extern "C" {
    fn clew_probe_claim();
}

/// Where handlers call.
pub fn entry() -> u64 {
    clew_probe_claim as *const () as u64
}
