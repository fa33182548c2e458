//! How blocks end, and why there are none.

use crate::context::addresses::AppPc;

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The size limit, or the end of what is known to be executable.
    Limit,
    /// A direct jump.
    Jump(AppPc),
    /// A conditional branch: target when taken.
    Conditional(AppPc),
    /// A direct call.
    Call(AppPc),
    IndirectJump,
    IndirectCall,
    /// A return, with the bytes of arguments it drops.
    Return(u16),
    Syscall,
    /// A transaction begins: where it goes on when it is aborted.
    TransactionBegin(AppPc),
    /// An instruction that faults always.
    Fault,
    /// An instruction that only the processor itself does in place: the dispatcher has it execute the program's own.
    Native,
    /// As Native, where the instruction is a branch, of which kind.
    NativeBranch(u8),
    /// An instruction that this runtime hands back to native.
    Unsupported,
}

/// Why there is nothing to translate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoCode {
    /// There is no whole instruction: this is the first address that can't be executed, or can't be read.
    Missing(AppPc),
    /// The decoder does not know the instruction. The processor refuses it in its own way, or knows better.
    Unknown,
}
