//! What translated code and the gates write down on their way to the dispatcher.

use crate::context::layout::{SITE_OVERFLOW, SITE_RETURN};
use crate::context::numbers::{ExitId, FragmentId, SiteId};

/// Slots of translated code and of the gates.
#[repr(C)]
pub struct Gate {
    /// The exit that led into the dispatcher.
    pub exit_id: ExitId,
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
    /// The pair table (see cache/pairs): entries, and mask of the index.
    pub pair_table: u64,
    pub pair_mask: u64,
    /// What the gate's caller asked of the dispatcher.
    pub reason: u32,
    /// Lookups of the indirect gate that the pair table answered, not yet told on the status page.
    pub table_misses: u64,
}

/// Where an indirect branch under way comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BranchSource {
    Site(SiteId),
    /// The return at the end of this fragment.
    Return(FragmentId),
    /// A site that got no number of its own: the exit tells.
    Unnumbered,
}

impl Gate {
    /// Where the indirect branch under way comes from.
    pub fn branch_source(&self) -> BranchSource {
        match self.site {
            SITE_OVERFLOW => BranchSource::Unnumbered,
            word if word & SITE_RETURN != 0 => BranchSource::Return(FragmentId::from_raw(word & !SITE_RETURN)),
            word => BranchSource::Site(SiteId::from_raw(word)),
        }
    }

    /// The fragment in which a fault came that waits to be delivered; none where nothing of one was executed.
    pub fn fault_fragment(&self) -> FragmentId {
        FragmentId::from_raw(self.exit_id.raw())
    }

    /// Notes it where the exit is that led into the dispatcher: none did.
    pub fn note_fault_fragment(&mut self, id: FragmentId) {
        self.exit_id = ExitId::from_raw(id.raw());
    }
}
