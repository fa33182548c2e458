//! Events: what a path cannot imply, and where in it that is.

/// What an event does to the path.
pub mod action {
    /// Nothing: it says something about this place.
    pub const NOTE: u8 = 0;
    /// The thread goes on at block `value` instead: a signal, a fault, a return from a handler.
    pub const RESUME: u8 = 1;
    /// The return or indirect branch that comes next leads to block `value`.
    pub const ELSEWHERE: u8 = 2;
    /// From here on the conditional branch at the end of `block` is expected to be taken (`value` 1) or not (0), or the return
    /// there takes a symbol (1) or none (0).
    pub const EXPECT: u8 = 3;
    /// The path ends.
    pub const END: u8 = 4;
    /// From here on the slot `subject` holds block `value`.
    pub const CODE: u8 = 5;
}

/// Where in a path. With the block that would run next it is there once only: whatever comes back to a block has moved one of these.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes of surprises read.
    pub surprise_bytes: u64,
    /// Decisions since the last surprise.
    pub decisions: u64,
    /// Bytes of symbols read.
    pub symbol_bytes: u64,
    /// Open calls, those that were forgotten among them.
    pub depth: u64,
}

/// 48 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Position,
    /// The block that would run next.
    pub block: u32,
    /// The block that `action` is about, if that is not the one where it is.
    pub subject: u32,
    pub value: u32,
    /// `action`
    pub action: u8,
    pub reserved: [u8; 3],
}

const _: () = assert!(size_of::<Event>() == 48);
