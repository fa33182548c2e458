//! The private block of a thread: what translated code and the gates reach through gs.
//!
//! Layout of a block (`THREAD_STRIDE_BYTES` of address space, one after the other, so that any address inside leads to
//! its start):
//!
//! | offset | what |
//! | --- | --- |
//! | 0 | `ThreadContext` |
//! | `BRANCH_TABLE_OFFSET` | the branch table: for (site index + low 16 bits of the target), where to jump |
//! | `HEAT_OFFSET` | how often fragments ran that may be found to be hot, 16 bits each |
//! | `STACK_OFFSET` | the runtime's stack for this thread, growing down |
//! | `CHILD_STACK_OFFSET` | the stack on which a new process starts (see thread/clone) |
//! | `SIGNAL_STACK_OFFSET` | the kernel's alternate signal stack |
//! | `FRAME_OFFSET` | a signal frame that the runtime builds for itself |
//! | `THREAD_COUNTERS_OFFSET` | the window onto this thread's counters in the shared memory |

use super::layout::UserDispatch;
use super::standing::Standing;
use crate::cpu::layout::{gs_branch_table, gs_counter, gs_heat};
use crate::sys::kernel::{SigInfo, SigStack, MEMORY_FAULTS, SEGV_BIT, TRAP_FLAG, UNDEFERRED_SIGNALS};
use core::sync::atomic::{AtomicU32, Ordering};

/// `pending`: a signal waits to be delivered (see signal/).
pub const PENDING_SIGNAL: u32 = 1;
/// `pending`: the controller is about to detach; set by it, or by the signal that fetches the thread out of the cache.
pub const PENDING_LEAVE: u32 = 2;
/// `pending`: that signal came, and counts in `cache::links::UNDELIVERED`.
pub const PENDING_FETCHED: u32 = 4;

/// `holds_mask`: everything is blocked but what an instruction can cause, and what comes of that is held back.
pub const HOLDS: u32 = 1;
/// `holds_mask`: the same, until the kernel has the program's mask.
pub const GIVES: u32 = 2;

/// `restart`: the thread is in a system call that must not be made with a signal waiting; its context is as before it.
pub const RESTART_ARMED: u32 = 1;
/// `restart`: a signal came, so the call was given up.
pub const RESTART_DUE: u32 = 2;

/// `is_process`: whether its parent waits until it is gone from the memory (vfork).
pub const WAITED_FOR: u32 = 1;
pub const NOT_WAITED_FOR: u32 = 2;

/// `breakpoint_once`.
pub const MEETS_ONCE: u32 = 1;
pub const MET_ONCE: u32 = 2;

/// Bits of `is_stepping`: a native instruction is under way.
pub const STEPPING: u32 = 1;
/// The trap flag was the program's already.
pub const STEPPING_ALREADY: u32 = 2;
/// The engine's lock is held meanwhile.
pub const STEPPING_LOCKED: u32 = 4;
/// The instruction loads the flags: the trap flag that it leaves is the program's.
pub const STEPPING_LOADS_FLAGS: u32 = 8;

/// `foreign_step`: an instruction that is not 64-bit code; one that pushes the flags.
pub const FOREIGN_STEP: u32 = 1;
pub const FOREIGN_PUSH: u32 = 2;

/// What a thread's translated code, gates and dispatcher share. Only the thread itself writes it, from translated code,
/// gates, dispatcher and its own signal handler.
#[repr(C)]
pub struct ThreadContext {
    pub self_address: u64,
    /// The application's registers while the thread is in the runtime, in the processor's numbering.
    pub registers: [u64; 16],
    /// Where the application goes on.
    pub rip: u64,
    pub rflags: u64,
    /// The exit that led into the dispatcher.
    pub exit_id: u32,
    /// The site of the indirect branch under way.
    pub site: u32,
    /// The application's r10 and r11 while an indirect branch has its table index and target there.
    pub spill_index: u64,
    pub spill_target: u64,
    /// The application's register that holds a mangled operand's address.
    pub spill_address: u64,
    /// Another one, and rcx where a pad needs it.
    pub spill_other: u64,
    /// The application's rcx and r11 before a system call.
    pub spill_rcx: u64,
    pub spill_r11: u64,
    pub spill_rax: u64,
    pub spill_rdx: u64,
    pub spill_rbx: u64,
    /// Target of the indirect branch under way, once it missed.
    pub target: u64,
    /// Where a gate jumps last.
    pub jump: u64,
    pub gate_exit: u64,
    pub gate_indirect: u64,
    pub gate_syscall: u64,
    /// One (arch/x86_64/question.rs).
    pub one: u64,
    /// Top of the runtime's stack.
    pub stack_top: u64,
    pub app_gs_base: u64,
    /// The pair table (see cache/pairs): entries, and mask of the index.
    pub pair_table: u64,
    pub pair_mask: u64,
    pub mxcsr: u32,
    /// Not 0: the thread is to leave the gates for the dispatcher; `PENDING_SIGNAL`, `PENDING_LEAVE`.
    pub pending: u32,
    pub xmm: [[u64; 2]; 16],
    pub pending_info: SigInfo,
    /// The application's mask when the pending signal came.
    pub pending_mask: u64,
    /// Exit whose fragment was unlinked for the pending signal; `u32::MAX` none.
    pub unlinked_fragment: u32,
    pub tid: u32,
    pub slot: u32,
    /// What the gate's caller asked of the dispatcher.
    pub reason: u32,
    pub app_signal_stack: SigStack,
    /// Lookups of the indirect gate that the pair table answered, not yet told on the status page.
    pub table_misses: u64,
    pub is_released: u32,
    /// How often room had been made in the address space when the thread came to the dispatcher last (dispatch/life/room.rs).
    pub rooms_seen: u32,
    /// The application's mask at a start, for a thread that was created with all signals blocked.
    pub start_mask: u64,
    /// A fault waits to be delivered; goes before `pending`.
    pub fault_pending: u32,
    pub parent_tid: u32,
    pub fault_info: SigInfo,
    /// 1: the system call under way is to be given up for a signal (`RESTART_ARMED`); 2: it was.
    pub restart: u32,
    /// `temporary_mask` holds the mask that a system call had in place while it waited.
    pub has_temporary_mask: u32,
    pub temporary_mask: u64,
    /// The plain system call made last.
    pub syscall_number: u64,
    /// Where in the runtime a signal came last that may be a fault of the runtime's or may have been sent; 0: nowhere since
    /// the dispatcher was entered.
    pub doubtful_pc: u64,
    /// err, trapno and cr2 of the program's last fault: frames of other signals show them, too.
    pub fault_details: [u64; 3],
    /// What `fault_details` held before the fault that waits to be delivered.
    pub details_before: [u64; 3],
    /// How often pages had been trusted no more when a write was last made again without one (dispatch/apart/written.rs).
    pub trust_ends_seen: u64,
    /// The program's mask is in the dispatcher's hands, the thread's own is not the program's: `HOLDS`, `GIVES`, or 0.
    pub holds_mask: u32,
    /// The frame in the thread's block by which it is about to return out of a handler; 0: it is not.
    pub return_frame: u64,
    /// Where in the cache it returned to straight, unless it has been in the dispatcher since.
    pub returned_to: u64,
    /// When a handler returned last, and how often in a row a timer's signal came soon after that (signal/merging.rs).
    pub returned_tsc: u64,
    pub n_soon: u32,
    /// Not 0: the program steps through itself after the handler that returned last; a timer's signal came since its last step.
    pub returned_to_step: u32,
    pub step_owed: u32,
    /// Not 0: the program's extended state is in the thread's frame area, and the processor's is as it starts (signal/leaving.rs).
    pub has_state_apart: u32,
    /// Not 0: the handler blocks everything, because a signal came while it ran (signal/nested.rs).
    pub is_handler_deaf: u32,
    /// The program's mask blocks a signal that reading its memory can cause, which the kernel answers by killing.
    pub blocks_faults: u32,
    /// The program's mask blocks SIGSEGV, the kernel's does not.
    pub hides_block: u32,
    /// The kernel's does, because one was sent that waits until the program lets it come.
    pub is_segv_blocked: u32,
    /// The processor was sent to an instruction of the program's own, or to where nothing could be executed, with the trap flag
    /// set: `STEPPING` and others.
    pub is_stepping: u32,
    /// Not 0: it was sent to a breakpoint that another put there, to be met, not to execute what is there: where that leads to
    /// (decode/placed.rs), and how many steps it made.
    pub breakpoint_next: u64,
    pub n_breakpoint_steps: u32,
    /// The fragment whose return led into the kernel's code for probes, plus one (dispatch/apart/probe_returns.rs); and whether the thread
    /// executes that code.
    pub probed_return: u32,
    pub is_in_probe: u32,
    /// `MEETS_ONCE` where that is to execute the instruction as well, `MET_ONCE` once it has; and what counts that.
    pub breakpoint_once: u32,
    pub breakpoint_counter: u32,
    /// The program goes on with the trap flag set, and the instruction it comes to is not done yet (signal/stepping.rs).
    pub is_step_fresh: u32,
    /// The thread's mask without that instruction.
    pub step_mask: u64,
    /// The exit in front of that instruction, plus one; 0: it is none that was translated.
    pub native_exit: u32,
    /// What `is_stepping` was until the thread came back from it.
    pub step_kind: u32,
    /// Selectors of code and stack where the program goes on; 0: those that 64-bit programs have.
    pub code_selector: u16,
    pub stack_selector: u16,
    /// The exit by which the thread left for code that is not followed, plus one; 0: it is not there. And how many instructions
    /// it has executed there.
    pub excursion_exit: u32,
    pub excursion_steps: u32,
    /// One is under way: `FOREIGN_STEP` or `FOREIGN_PUSH`.
    pub foreign_step: u32,
    /// The table of signal actions that the thread's are in; 0: the process's own (signal/table.rs).
    pub signal_table: u64,
    /// For the child of a fork under way: its region, the clone's flags, and when the fork was made.
    pub child_region: u32,
    /// Not 0: the thread is a process of its own that shares this one's memory: `WAITED_FOR` or `NOT_WAITED_FOR`.
    pub is_process: u32,
    pub child_flags: u64,
    pub fork_tsc: u64,
    /// Not 0: the thread is still inside the system call at `call_pc`, which controller or dispatcher had to interrupt with
    /// this error (`protocol::ThreadState::call_code`). The gate takes it back once the call is made anew.
    pub call_code: u32,
    pub call_pc: u64,
    /// The branch or return that led to what is no place for code, so that records name it instead, if `has_fault_origin`.
    pub fault_origin: u64,
    pub has_fault_origin: bool,
    /// A seccomp filter answered the program's call with the signal in `fault_info`.
    pub is_trapped: u32,
    /// The gate makes the call under way after all (dispatch/run.rs).
    pub is_call_allowed: u32,
    /// Where in the cache the thread goes on after that call.
    pub call_return: u64,
    /// One byte for each system call that says whether it comes to the dispatcher (arch/x86_64/gate.rs).
    pub handled_calls: u64,
    pub user_dispatch: UserDispatch,
    /// Signals sent meanwhile, one of each kind that an instruction can cause; `signo` 0: none.
    pub held: [SigInfo; UNDEFERRED_SIGNALS.len()],
    /// Restartable sequences (dispatch/flow/sequences.rs): where the thread's rseq_cs is; `no_sequence` if it has none.
    pub sequence_word: u64,
    pub no_sequence: u64,
    /// What rseq_cs held when a sequence was left for the dispatcher, to be gone on with; 0: nothing.
    pub sequence_left: u64,
    /// What the counter was that is being incremented, where `sequence_state` says so.
    pub sequence_count: u64,
    /// Mode `full`: what the path's cells of decisions, both, and of surprises were, where `sequence_state` says so.
    pub sequence_path: [u64; 3],
    /// The fragment of a sequence that was entered last; or, with `SEQUENCE_LEAVING`, the exit that is being counted.
    pub sequence_state: u32,
    /// Which registers are in slots inside a sequence: `UNDO_*`.
    pub sequence_undo: u32,
    /// The kernel aborted a sequence, which is not counted yet.
    pub sequence_aborted: u32,
    /// The fragment to be resumed at runs without the kernel's watch.
    pub sequence_plain: u32,
    /// The instruction that faulted is not the one at `rip`: it is not executed again.
    pub is_fault_past: u32,
    /// Whether the thread's path is recorded now (mode `full`), or the thread has tags (mode `region`).
    pub has_path: bool,
    pub has_tags: bool,
    /// Whether it ever was; if not, where the thread began.
    pub path_began: bool,
    pub start_pc: u64,
    /// The path is to go on in front of the next block.
    pub path_due: bool,
    /// The thread came to new code, or to other code than before, since the path's last checkpoint (thread/thinning.rs).
    pub has_news: bool,
    /// The path may be told up to so many bytes, whatever comes; and where it is left out, so many does the next checkpoint take at
    /// least.
    pub promised_bytes: u64,
    pub least_cost: u64,
    /// Open calls on the shadow stack, and how many were forgotten because there was no room for them.
    pub shadow_depth: u64,
    pub shadow_forgotten: u64,
    /// Checkpoints of the thread's path (thread/checkpoint.rs): when the next one is due, bytes of the streams `counters` and
    /// `calls` so far, and how many open calls were kept at the last one.
    pub checkpoint_due: u64,
    pub counters_written: u64,
    pub calls_written: u64,
    pub calls_kept: u64,
    /// So many changes the path has told (instrument/order/log.rs); and whether the thread is in the dispatcher or a system call,
    /// and tells more before it executes anything.
    pub changes_told: u32,
    pub tells_first: u32,
    /// Where in the path the first record was dropped that is not told yet.
    pub lost_at: [u64; 4],
    /// What the controller has the thread do (dispatch/apart/hold.rs).
    pub standing: Standing,
    /// What the block's next thread finds in it.
    pub left: Left,
}

/// What lies in a block beside its context, from one of its threads to the next.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Left {
    /// There is a shadow stack, and room for what is kept at checkpoints.
    pub has_shadow_stack: bool,
    pub has_kept: bool,
    /// What is kept is not all zeros.
    pub is_kept_used: bool,
}

const _: () = assert!(size_of::<ThreadContext>() <= 4096);

/// The processor's number of page faults (arch/x86/include/asm/trapnr.h).
const PAGE_FAULT: u64 = 14;

impl ThreadContext {
    /// Whether a signal waits to be delivered: read anew each time, because the signal handler sets it.
    pub fn is_signal_waiting(&self) -> bool {
        self.pending_word().load(Ordering::Relaxed) & PENDING_SIGNAL != 0
    }

    /// `pending`, which signal handler and controller change between any two instructions of the thread.
    pub fn pending_word(&self) -> &AtomicU32 {
        // SAFETY: an aligned field of a live context; it is written by this thread, or while this thread is stopped.
        unsafe { AtomicU32::from_ptr(&raw const self.pending as *mut u32) }
    }

    /// Notes what the program's mask is from now on, and says which one the kernel is to have. Every place that gives the program
    /// a mask asks here.
    ///
    /// The kernel never blocks SIGSEGV: a write to code that is protected must come to the handler (instrument/change/trust.rs), and
    /// what the kernel does with a fault that the program blocks, the dispatcher does (dispatch/signals/delivery.rs).
    pub fn note_mask(&mut self, mask: u64) -> u64 {
        self.blocks_faults = u32::from(mask & MEMORY_FAULTS != 0);
        // SAFETY: fields of a live context, which the signal handler reads and writes.
        unsafe {
            (&raw mut self.hides_block).write_volatile(u32::from(mask & SEGV_BIT != 0));
            (&raw mut self.is_segv_blocked).write_volatile(0);
        }
        mask & !SEGV_BIT
    }

    /// The program's mask where the kernel's is `mask`.
    pub fn program_mask(&self, mask: u64) -> u64 {
        // SAFETY: a field of a live context.
        let is_hidden = unsafe { (&raw const self.hides_block).read_volatile() != 0 };
        mask | if is_hidden { SEGV_BIT } else { 0 }
    }

    /// The frame by which the thread is about to return out of a handler, or has just done so; 0: none.
    pub fn returning(&self) -> u64 {
        // SAFETY: a field of a live context, which the signal handler reads.
        unsafe { (&raw const self.return_frame).read_volatile() }
    }

    /// Notes it.
    pub fn set_returning(&mut self, frame: u64) {
        // SAFETY: as above.
        unsafe { (&raw mut self.return_frame).write_volatile(frame) };
    }

    /// Notes err, trapno and cr2 of a fault of the program's; only page faults change the last one, as in the kernel.
    pub fn note_fault(&mut self, details: [u64; 3]) {
        self.details_before = self.fault_details;
        let [err, trapno, cr2] = details;
        self.fault_details = [err, trapno, if trapno == PAGE_FAULT { cr2 } else { self.fault_details[2] }];
    }

    /// Notes that the instruction at which the program goes on is not done yet, should it step through itself.
    pub fn note_step(&mut self) {
        self.is_step_fresh = u32::from(self.rflags & TRAP_FLAG != 0);
    }

    /// Whether the program steps through itself and has just done an instruction, for which no trap came yet.
    pub fn is_step_due(&self) -> bool {
        self.rflags & TRAP_FLAG != 0 && self.is_step_fresh == 0
    }

    /// The counter's address in this thread's window.
    pub fn counter(&self, index: u32) -> *mut u64 {
        (self.self_address + gs_counter(index) as u64) as *mut u64
    }

    /// The cell that tells how hot a fragment is: it comes to zero when that is enough.
    pub fn heat(&self, fragment: u32) -> *mut u16 {
        (self.self_address + u64::from(gs_heat(fragment))) as *mut u16
    }

    /// The branch table entry of a target at a site.
    pub fn branch_entry(&self, site_index: u32, target: u64) -> *mut u64 {
        (self.self_address + gs_branch_table(site_index) as u64 + (target & 0xffff) * 8) as *mut u64
    }
}
