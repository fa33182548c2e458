//! A processor that does not exist, so that what is said to be portable is compiled and tested with a second one.
//!
//! Host tests are built with it by `cargo test --features made-up`; the image never is. All that the portable parts ask of a processor
//! is here in the simplest form that works. `instrument::machine` executes its code, the program's and what is emitted alike.
//!
//! An instruction is four bytes: its code, and a signed operand of 24 bits. Distances are in instructions, from this one. There is an
//! accumulator, a flag that only `LESS` changes, and a stack of return addresses; nothing that the runtime adds changes any of them.

pub mod captured;
pub mod context;
pub mod decode;
pub mod emit;
pub mod features;
pub mod guarded;
pub mod instrument;
pub mod patching;
pub mod probe_points;
pub mod spill;
// The kernel that host tests run on is the host's.
#[path = "../x86_64/sys/mod.rs"]
pub mod sys;
pub mod translate;

/// Codes of the program's instructions.
pub mod code {
    /// Stops with a fault.
    pub const FAULT: u8 = 0;
    pub const NOTHING: u8 = 1;
    /// Adds the operand to the accumulator.
    pub const ADD: u8 = 2;
    /// Sets the flag where the accumulator is less than the operand.
    pub const LESS: u8 = 3;
    pub const JUMP: u8 = 4;
    pub const JUMP_IF: u8 = 5;
    pub const CALL: u8 = 6;
    pub const RETURN: u8 = 7;
    /// To the address in the accumulator.
    pub const JUMP_THERE: u8 = 8;
    pub const CALL_THERE: u8 = 9;
    pub const SYSTEM_CALL: u8 = 10;

    /// Codes that only the runtime emits. Adds one to the counter of the operand's number.
    pub const COUNT: u8 = 0x80;
    /// Leaves by the exit of the operand's number.
    pub const LEAVE: u8 = 0x81;
    pub const JUMP_UNLESS: u8 = 0x82;
    /// Pushes the eight bytes behind it.
    pub const PUSH: u8 = 0x83;
    /// Takes the target of an indirect branch: from the stack, or (operand 1) from the accumulator.
    pub const TAKE: u8 = 0x84;
    /// Leaves for wherever the target is.
    pub const LEAVE_THERE: u8 = 0x85;
    /// Leaves for the target unless it is what the eight bytes behind it say.
    pub const IS_TARGET: u8 = 0x86;
    /// Counts the heat of the fragment whose cell is at the operand; jumps that ask for `ZERO` ask whether it is hot.
    pub const HEAT: u8 = 0x87;
    pub const JUMP_HOT: u8 = 0x88;
    /// Leaves by an exit unless the program's code is as it was: address, bytes and hash are behind it, eight bytes each.
    pub const COMPARE: u8 = 0x89;
    /// Writes the operand into the thread's path.
    pub const TELL: u8 = 0x8a;
}

/// Bytes of an instruction.
pub const WORD: u64 = 4;
