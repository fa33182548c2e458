//! Kernel structures and constants that all processors have, as in the kernel's uapi headers.

pub const PROT_NONE: u64 = 0;
pub const PROT_READ: u64 = 1;
pub const PROT_WRITE: u64 = 2;
pub const PROT_EXEC: u64 = 4;
pub const MAP_SHARED: u64 = 1;
pub const MAP_PRIVATE: u64 = 2;
pub const MAP_FIXED: u64 = 0x10;
pub const MAP_ANONYMOUS: u64 = 0x20;
pub const MAP_NORESERVE: u64 = 0x4000;
pub const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
/// Advice to madvise that throws pages away.
pub const MADV_DONTNEED: u32 = 4;
pub const MADV_FREE: u32 = 8;
pub const MADV_REMOVE: u32 = 9;
pub const MADV_DONTNEED_LOCKED: u32 = 24;
pub const MADV_HWPOISON: u32 = 100;
pub const MADV_GUARD_INSTALL: u32 = 102;
/// Advice about what a fork's child gets: nothing, or zeros.
pub const MADV_DONTFORK: u32 = 10;
pub const MADV_WIPEONFORK: u32 = 18;
pub const MREMAP_MAYMOVE: u64 = 1;
pub const MREMAP_FIXED: u64 = 2;

pub const CLONE_VM: u64 = 0x100;
pub const CLONE_SIGHAND: u64 = 0x800;
pub const CLONE_VFORK: u64 = 0x4000;
pub const CLONE_THREAD: u64 = 0x10000;
pub const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

pub const SIGILL: u32 = 4;
pub const SIGTRAP: u32 = 5;
pub const SIGBUS: u32 = 7;
pub const SIGFPE: u32 = 8;
pub const SIGKILL: u32 = 9;
pub const SIGSEGV: u32 = 11;
pub const SIGALRM: u32 = 14;
pub const SIGCHLD: u32 = 17;
pub const SIGSTOP: u32 = 19;
pub const SIGVTALRM: u32 = 26;
pub const SIGPROF: u32 = 27;
pub const SIGSYS: u32 = 31;
pub const N_SIGNALS: usize = 64;

/// si_code of what the kernel sends by itself, interval timers too, and of what timers of timer_create send.
pub const SI_KERNEL: i32 = 128;
pub const SI_TIMER: i32 = -2;

/// Signals that an instruction of the program can cause.
pub const FAULT_SIGNALS: [u32; 5] = [SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV];

/// Signals that may come while one waits to be delivered: those, and what a seccomp filter answers a call with.
pub const UNDEFERRED_SIGNALS: [u32; 6] = [SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS];

/// What the kernel never has in a mask.
pub const UNBLOCKABLE: u64 = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1);
/// SIGSEGV in a mask.
pub const SEGV_BIT: u64 = 1 << (SIGSEGV - 1);
/// As a mask, what a copy from or to the program's memory can cause.
pub const MEMORY_FAULTS: u64 = SEGV_BIT | 1 << (SIGBUS - 1);

pub const SA_NOCLDSTOP: u64 = 1;
pub const SA_NOCLDWAIT: u64 = 2;
pub const SA_SIGINFO: u64 = 4;
pub const SA_RESTORER: u64 = 0x0400_0000;
pub const SA_ONSTACK: u64 = 0x0800_0000;
pub const SA_RESTART: u64 = 0x1000_0000;
pub const SA_NODEFER: u64 = 0x4000_0000;
pub const SA_RESETHAND: u64 = 0x8000_0000;
pub const SIG_DFL: u64 = 0;
pub const SIG_IGN: u64 = 1;

/// si_code of SIGSYS: a seccomp filter's answer to a call; user dispatch.
pub const SYS_SECCOMP: i32 = 1;
pub const SYS_USER_DISPATCH: i32 = 2;
/// si_code of a page fault where nothing is mapped.
pub const SEGV_MAPERR: i32 = 1;
pub const SEGV_ACCERR: i32 = 2;
pub const SEGV_PKUERR: i32 = 4;
/// si_code of a single step's trap.
pub const TRAP_TRACE: i32 = 2;
/// si_code of a breakpoint's, and of a debug exception that says nothing of its cause.
pub const TRAP_BRKPT: i32 = 1;
/// si_code of what a process sent.
pub const SI_USER: i32 = 0;
pub const SS_ONSTACK: u32 = 1;
pub const SS_DISABLE: u32 = 2;
pub const SS_AUTODISARM: u32 = 1 << 31;
pub const MINSIGSTKSZ: u64 = 2048;

/// `struct sigaction` of the kernel (not libc's).
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SigAction {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

/// `stack_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SigStack {
    pub sp: u64,
    pub flags: u32,
    pub padding: u32,
    pub size: u64,
}

impl SigStack {
    pub const DISABLED: SigStack = SigStack { sp: 0, flags: SS_DISABLE, padding: 0, size: 0 };
}

/// `siginfo_t`: the fields that the runtime reads, in 128 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SigInfo {
    pub signo: i32,
    pub errno: i32,
    pub code: i32,
    pub padding: i32,
    /// `si_addr` of faults, `si_call_addr` of SIGSYS; part of a union otherwise.
    pub address: u64,
    pub rest: [u64; 13],
}

impl SigInfo {
    pub const ZERO: SigInfo = SigInfo { signo: 0, errno: 0, code: 0, padding: 0, address: 0, rest: [0; 13] };

    /// Whether the kernel raised `signal` for an instruction: its code is positive, but not that of timers and the like, which these
    /// signals never have.
    pub fn is_caused_by_instruction(&self, signal: u32) -> bool {
        FAULT_SIGNALS.contains(&signal) && self.code > 0
    }
}

const _: () = assert!(core::mem::size_of::<SigInfo>() == 128);
