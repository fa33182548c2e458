//! The private block of a thread: what translated code and the gates reach.
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
//! | `CAPTURE_VALUES_OFFSET` | values of captures while they are worked out |
//! | `OPEN_CALLS_OFFSET` | calls that are open and whose returns are captured |
//! | `THREAD_COUNTERS_OFFSET` | the window onto this thread's counters in the shared memory |

pub mod addresses;
pub mod call;
pub mod capture;
pub mod hold;
pub mod layout;
pub mod native;
pub mod numbers;
pub mod path;
pub mod probe;
pub mod process;
pub mod rseq;
pub mod signals;
pub mod stepping;

use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::cpu::context::{shown_details, FaultDetails, Gate, Registers, Vector};
use crate::sys::kernel::{MEMORY_FAULTS, SEGV_BIT};
use call::Call;
use capture::Capture;
use core::sync::atomic::{AtomicU32, Ordering};
use hold::Hold;
use layout::{branch_table_offset, counter_offset, heat_offset};
use native::Native;
use numbers::{CounterId, SiteId};
use path::Path;
use probe::Probe;
use process::Process;
use rseq::Rseq;
use signals::{Signals, PENDING_SIGNAL};
use stepping::Stepping;

/// What a thread's translated code, gates and dispatcher share. Only the thread itself writes it, from translated code,
/// gates, dispatcher and its own signal handler.
#[repr(C)]
pub struct ThreadContext {
    pub self_address: u64,
    pub registers: Registers,
    pub gate: Gate,
    pub vector: Vector,
    pub signals: Signals,
    pub stepping: Stepping,
    pub call: Call,
    pub rseq: Rseq,
    pub path: Path,
    pub process: Process,
    pub tid: u32,
    pub slot: u32,
    pub is_released: u32,
    /// How often room had been made in the address space when the thread came to the dispatcher last (dispatch/life/room.rs).
    pub rooms_seen: u32,
    /// What the controller has the thread do (dispatch/apart/hold.rs).
    pub hold: Hold,
    /// Where it is not followed (dispatch/apart/unfollowed.rs).
    pub native: Native,
    /// What is captured in front of a block (dispatch/apart/captures.rs).
    pub capture: Capture,
    /// Where it executes the program's own code, and comes to probes.
    pub probe: Probe,
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

impl ThreadContext {
    /// Whether a signal waits to be delivered: read anew each time, because the signal handler sets it.
    pub fn is_signal_waiting(&self) -> bool {
        self.pending_word().load(Ordering::Relaxed) & PENDING_SIGNAL != 0
    }

    /// `pending`, which signal handler and controller change between any two instructions of the thread.
    pub fn pending_word(&self) -> &AtomicU32 {
        // SAFETY: an aligned field of a live context; it is written by this thread, or while this thread is stopped.
        unsafe { AtomicU32::from_ptr(&raw const self.signals.pending as *mut u32) }
    }

    /// Notes what the program's mask is from now on, and says which one the kernel is to have. Every place that gives the program
    /// a mask asks here.
    ///
    /// The kernel never blocks SIGSEGV: a write to code that is protected must come to the handler (instrument/change/trust.rs), and
    /// what the kernel does with a fault that the program blocks, the dispatcher does (dispatch/signals/delivery.rs).
    pub fn note_mask(&mut self, mask: u64) -> u64 {
        self.signals.blocks_faults = u32::from(mask & MEMORY_FAULTS != 0);
        (self.native.is_barred, self.native.is_mask_known) = (0, 0);
        // SAFETY: fields of a live context, which the signal handler reads and writes.
        unsafe {
            (&raw mut self.signals.hides_block).write_volatile(u32::from(mask & SEGV_BIT != 0));
            (&raw mut self.signals.is_segv_blocked).write_volatile(0);
        }
        mask & !SEGV_BIT
    }

    /// The program's mask where the kernel's is `mask`.
    pub fn program_mask(&self, mask: u64) -> u64 {
        // SAFETY: a field of a live context.
        let is_hidden = unsafe { (&raw const self.signals.hides_block).read_volatile() != 0 };
        mask | if is_hidden { SEGV_BIT } else { 0 }
    }

    /// The frame by which the thread is about to return out of a handler, or has just done so; 0: none.
    pub fn returning(&self) -> u64 {
        // SAFETY: a field of a live context, which the signal handler reads.
        unsafe { (&raw const self.signals.return_frame).read_volatile() }
    }

    /// Notes it.
    pub fn set_returning(&mut self, frame: u64) {
        // SAFETY: as above.
        unsafe { (&raw mut self.signals.return_frame).write_volatile(frame) };
    }

    /// The thread has the mask that the frame in its block gave it, or got none.
    pub fn end_return(&mut self) {
        self.set_returning(0);
        // SAFETY: as above.
        unsafe { (&raw mut self.signals.gives_mask_by_frame).write_volatile(0) };
    }

    /// Notes the details of a fault of the program's.
    pub fn note_fault(&mut self, details: FaultDetails) {
        self.signals.details_before = self.signals.fault_details;
        self.signals.fault_details = shown_details(details, self.signals.fault_details);
    }

    /// Notes that the instruction at which the program goes on is not done yet, should it step through itself.
    pub fn note_step(&mut self) {
        self.stepping.is_fresh = u32::from(self.registers.are_stepped());
    }

    /// Whether the program steps through itself and has just done an instruction, for which no trap came yet.
    pub fn is_step_due(&self) -> bool {
        self.registers.are_stepped() && self.stepping.is_fresh == 0
    }

    /// The counter's address in this thread's window.
    pub fn counter(&self, counter: CounterId) -> *mut u64 {
        (self.self_address + counter_offset(counter) as u64) as *mut u64
    }

    /// The cell that tells how hot a fragment is: it comes to zero when that is enough.
    pub fn heat(&self, fragment: FragmentId) -> *mut u16 {
        (self.self_address + u64::from(heat_offset(fragment))) as *mut u16
    }

    /// The branch table entry of a target at a site.
    pub fn branch_entry(&self, site: SiteId, target: AppPc) -> *mut u64 {
        (self.self_address + branch_table_offset(site) as u64 + (target.raw() & 0xffff) * 8) as *mut u64
    }
}
