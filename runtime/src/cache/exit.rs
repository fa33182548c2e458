//! Ways out of fragments: exits, and the pads of indirect branches.

use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::{number, CounterId, ExitId, FragmentId};

number! {
    /// A pad, by the order in which pads were made.
    PadId
}

/// A linkable way out of a fragment or pad.
#[derive(Clone, Copy)]
pub struct Exit {
    /// Where it leads.
    pub target: AppPc,
    /// Address of the jump's 32-bit displacement.
    pub patch: CachePc,
    /// What the jump leads to while it is not linked.
    pub stub: CachePc,
    /// The fragment it leaves: its own or, of a pad, the source's.
    pub fragment: FragmentId,
    /// Linked to this fragment.
    pub linked_to: FragmentId,
    pub next_incoming: ExitId,
    pub kind: ExitType,
    /// From inside a restartable sequence to its inside.
    pub is_inside: bool,
    /// It goes the way that the thread's path does not expect (mode full).
    pub is_surprise: bool,
    /// What it leads to goes on with the same block, as those see it who tag blocks (mode region).
    pub skips_question: bool,
    /// By which of its entries the jump enters what it is linked to.
    pub entry: Entry,
    /// What counts how often it was taken and did not lead to `follower` past what counts that one; `NONE`: it is no leader.
    pub misses: CounterId,
    /// The fragment whose executions follow from it (instrument/counts/leaders.rs).
    pub follower: FragmentId,
    /// The pad it belongs to.
    pub pad: PadId,
    pub counter: CounterId,
    /// The jump that it was led by to what is out of reach, where that is, and the fragment: made once, for it may be unlinked and linked
    /// again very often.
    pub far_jump: CachePc,
    pub far_target: CachePc,
    pub far_fragment: FragmentId,
}

/// How a fragment is entered.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// All registers are in place.
    Plain,
    /// Registers are lent.
    Lending,
    /// By the processor's call, with registers lent, one with the return address for the return slot.
    Call,
}

/// What an exit stands for.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitType {
    Jump,
    Taken,
    NotTaken,
    FallThrough,
    /// As FallThrough, behind an instruction that stores where the last x87 instruction was. Its jump never leads past the
    /// dispatcher, which corrects that.
    FloatState,
    Call,
    Syscall,
    /// After a call's return: to the return address.
    Landing,
    /// As Landing, where the shadow stack has another address on top; or out of a return's pad, where that pops none of the calls that
    /// it did so far. Never linked.
    Elsewhere,
    /// Out of a pad.
    Pad,
    /// From a hot fragment's verified entry into its code.
    Verified,
    /// An interrupted indirect exit: the branch at the fragment's end was not executed yet. Never linked.
    Interrupted,
    /// From an indirect branch to the pad that is tried first, or straight on to the branch table. Linked to pads only.
    FirstTry,
    /// As FallThrough, in front of an instruction that the processor executes at the program's own address, of which the exit
    /// leads on. Its jump never leads past the dispatcher, which has that done.
    Native,
    /// In front of a branch that is executed so, which is its target. Never linked.
    NativeBranch,
    /// The instruction at the fragment's end is not for translation: release the thread there. Never linked.
    Release,
    /// The code was written since it was translated. Never linked.
    Stale,
    /// At the fragment's start: hot code is to be laid out anew. Never linked.
    Relayout,
    /// In front of a fragment's code: the dispatcher is to decide about its tag (mode region). Never linked.
    Region,
    /// In front of a fragment's code: something was captured there, or the dispatcher is to see to that. Never linked.
    Capture,
    /// There may be no room for what a fragment tells of memory.
    Room,
    /// At the start of a fragment in a restartable sequence, which the thread did not announce so. Never linked.
    RseqEntry,
    /// Out of a restartable sequence by the kernel's hand; belongs to no fragment. Never linked.
    RseqAbort,
}

impl ExitType {
    /// Whether the block in front of which the exit leads was come to, and not begun.
    pub fn is_in_front(self) -> bool {
        matches!(
            self,
            ExitType::Interrupted
                | ExitType::Stale
                | ExitType::Relayout
                | ExitType::Region
                | ExitType::Capture
                | ExitType::Room
        )
    }

    /// Whether the thread did not execute the instruction that the exit leads to, and comes from none before it either.
    pub fn stays_in_front(self) -> bool {
        self.is_in_front() || matches!(self, ExitType::RseqEntry | ExitType::RseqAbort)
    }
}

/// The way from one indirect branch site to one target: verifies the target, counts, goes on.
#[derive(Clone, Copy)]
pub struct Pad {
    pub target: AppPc,
    pub cache_start: CachePc,
    pub source_fragment: FragmentId,
    pub exit: ExitId,
    pub counter: CounterId,
    /// What it writes into the path (mode full).
    pub symbol: Option<u16>,
    /// Which symbols a return's has (instrument/order/symbols.rs).
    pub return_ways: u16,
    /// No longer valid: its target was replaced.
    pub is_dead: bool,
    /// The pad of the same branch that was made before it.
    pub before: PadId,
}
