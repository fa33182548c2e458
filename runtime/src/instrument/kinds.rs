//! What a block's code and its end are called in records.

use crate::decode::{Block, Ending};
use crate::protocol::exit_kind;

/// FNV-1a.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The exit kind of the record.
pub fn kind_of(ending: Ending, has_transactions: bool) -> u8 {
    match ending {
        Ending::Limit | Ending::Native => exit_kind::FALL_THROUGH,
        Ending::Jump(_) => exit_kind::JUMP,
        Ending::Conditional(_) => exit_kind::CONDITIONAL,
        Ending::Call(_) => exit_kind::CALL,
        Ending::IndirectJump => exit_kind::INDIRECT_JUMP,
        Ending::NativeBranch(kind) => kind,
        Ending::IndirectCall => exit_kind::INDIRECT_CALL,
        Ending::Return(_) => exit_kind::RETURN,
        Ending::Syscall => exit_kind::SYSCALL,
        Ending::TransactionBegin(_) if has_transactions => exit_kind::JUMP,
        Ending::TransactionBegin(_) | Ending::Fault | Ending::Unsupported => exit_kind::NONE,
    }
}

/// How many of a block's instructions are copied.
pub fn count_copied(block: &Block, ending: Ending, kind: u8) -> usize {
    match ending {
        Ending::Limit | Ending::Fault => block.count(),
        // Where the processor has none it faults.
        Ending::TransactionBegin(_) if kind == exit_kind::NONE => block.count(),
        _ => block.count() - 1,
    }
}
