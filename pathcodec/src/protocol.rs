//! Generated from protocol/schema.toml by `make generate`; do not edit.

/// no block
pub const NOWHERE: u32 = 0xffffffff;
/// so many calls may be open; one more, and all of them are forgotten first
pub const MAX_DEPTH: u64 = 0x40000;
/// a surprise of first_wide_surprise decisions or more takes so much
pub const WIDE_SURPRISE_BYTES: u64 = 0x3;
/// one of first_long_surprise decisions or more takes so much, none more
pub const MAX_SURPRISE_BYTES: u64 = 0xb;
/// surprises of so many decisions are behind a zero
pub const FIRST_WIDE_SURPRISE: u64 = 0x100;
/// surprises of so many decisions are behind three zeros
pub const FIRST_LONG_SURPRISE: u64 = 0x10000;

/// What a block ends with, as far as its path is concerned. fall_through: goes on behind itself, also behind a system
/// call. jump: a direct one forwards. back_jump: a direct one backwards, or to itself: a decision without a choice, so
/// that no cycle of code is without one. call: a direct one, a decision without a choice, so that two calls of one
/// function are two places. return: to the topmost open call; or, where `is_taken`, as an indirect jump, whose symbol
/// also says what it pops. stop: nothing follows unless an event says what. slot: no block, but an address that held
/// several: the one that it holds now is `target`.
pub mod ending {
    pub const FALL_THROUGH: u8 = 0;
    pub const JUMP: u8 = 1;
    pub const BACK_JUMP: u8 = 2;
    pub const CONDITIONAL: u8 = 3;
    pub const CALL: u8 = 4;
    pub const INDIRECT_CALL: u8 = 5;
    pub const INDIRECT_JUMP: u8 = 6;
    pub const RETURN: u8 = 7;
    pub const STOP: u8 = 8;
    pub const SLOT: u8 = 9;
}

/// What an event does to the path. note: nothing, it says something about this place. resume: the thread goes on at
/// block `value` instead: a signal, a fault, a return from a handler. elsewhere: the return or indirect branch that
/// comes next leads to block `value`. expect: from here on the conditional branch at the end of `subject` is expected
/// to be taken (`value` 1) or not (0), or the return there takes a symbol (1) or none (0). end: the path ends. code:
/// from here on the slot `subject` holds block `value`.
pub mod action {
    pub const NOTE: u8 = 0;
    pub const RESUME: u8 = 1;
    pub const ELSEWHERE: u8 = 2;
    pub const EXPECT: u8 = 3;
    pub const END: u8 = 4;
    pub const CODE: u8 = 5;
}

/// Why a walk stopped. asked: it was asked to, there may be more. end: the path ends. cut: what was recorded is used
/// up. damaged: path and code contradict each other. no_room: nothing was done: the predictor's memory, or the room for
/// what is written, is too small.
pub mod stop {
    pub const ASKED: u32 = 0;
    pub const END: u32 = 1;
    pub const CUT: u32 = 2;
    pub const DAMAGED: u32 = 3;
    pub const NO_ROOM: u32 = 4;
}

/// What it means for the telling of events that a thread comes to a block. opens: what it does from there on is told.
/// closes: nothing is, until it comes to one that opens.
pub mod gate {
    pub const NONE: u8 = 0;
    pub const OPENS: u8 = 1;
    pub const CLOSES: u8 = 2;
}

/// What a thread did, as events tell it. call: an instruction called. ret: one returned. block: the thread left a basic
/// block as it ran: from where the thread came to, up to the instruction that led elsewhere, calls the kernel, or was
/// as far as it came. exec: it executed an instruction. compile: it translated a piece of code, which is executed from
/// then on. syscall: it called the kernel; target is the call's number. signal: it was interrupted in front of address,
/// and a handler begins; target is the signal's number. exception: the same of a signal that the instruction at address
/// caused. thread: it began at address (target 1), or ended in front of it (target 0). image: it mapped executable
/// memory; target is the offset in the file. memory: the instruction at address accessed memory at target.
pub mod flow_kind {
    pub const CALL: u8 = 0;
    pub const RET: u8 = 1;
    pub const BLOCK: u8 = 2;
    pub const EXEC: u8 = 3;
    pub const COMPILE: u8 = 4;
    pub const SYSCALL: u8 = 5;
    pub const SIGNAL: u8 = 6;
    pub const EXCEPTION: u8 = 7;
    pub const THREAD: u8 = 8;
    pub const IMAGE: u8 = 9;
    pub const MEMORY: u8 = 10;
}

/// What an instruction did with memory. update: it read and wrote it.
pub mod access_kind {
    pub const READ: u8 = 1;
    pub const WRITE: u8 = 2;
    pub const UPDATE: u8 = 3;
}

/// A basic block.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// address of its first instruction
    pub pc: u64,
    /// address behind its last one: what a call at its end pushes
    pub end_pc: u64,
    /// where a direct branch leads: the number of a block, or nowhere
    pub target: u32,
    /// the block behind it, or nowhere
    pub next: u32,
    /// the targets of its indirect branch or return, by their symbols, are targets\[first_target..\]\[..n_targets\]
    pub first_target: u32,
    /// how many these are
    pub n_targets: u32,
    /// its instructions
    pub n_instructions: u32,
    /// enum Ending
    pub ending: u8,
    /// of a conditional branch: 1 if it is expected to be taken; of a return: 1 if it takes a symbol
    pub is_taken: u8,
    /// zero
    pub reserved: [u8; 10],
}
const _: () = assert!(core::mem::size_of::<Block>() == 48);
const _: () = assert!(core::mem::offset_of!(Block, pc) == 0);
const _: () = assert!(core::mem::offset_of!(Block, end_pc) == 8);
const _: () = assert!(core::mem::offset_of!(Block, target) == 16);
const _: () = assert!(core::mem::offset_of!(Block, next) == 20);
const _: () = assert!(core::mem::offset_of!(Block, first_target) == 24);
const _: () = assert!(core::mem::offset_of!(Block, n_targets) == 28);
const _: () = assert!(core::mem::offset_of!(Block, n_instructions) == 32);
const _: () = assert!(core::mem::offset_of!(Block, ending) == 36);
const _: () = assert!(core::mem::offset_of!(Block, is_taken) == 37);
const _: () = assert!(core::mem::offset_of!(Block, reserved) == 38);

/// Where in a path. With the block that would run next it is there once only: whatever comes back to a block has moved
/// one of these.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// bytes of surprises read
    pub surprise_bytes: u64,
    /// decisions since the last surprise
    pub decisions: u64,
    /// bytes of symbols read
    pub symbol_bytes: u64,
    /// open calls, those that were forgotten among them
    pub depth: u64,
}
const _: () = assert!(core::mem::size_of::<Position>() == 32);
const _: () = assert!(core::mem::offset_of!(Position, surprise_bytes) == 0);
const _: () = assert!(core::mem::offset_of!(Position, decisions) == 8);
const _: () = assert!(core::mem::offset_of!(Position, symbol_bytes) == 16);
const _: () = assert!(core::mem::offset_of!(Position, depth) == 24);

/// What a path cannot imply, and where in it that is.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// where
    pub at: Position,
    /// the block that would run next
    pub block: u32,
    /// the block that `action` is about, if that is not the one where it is
    pub subject: u32,
    /// see enum Action
    pub value: u32,
    /// enum Action
    pub action: u8,
    /// zero
    pub reserved: [u8; 3],
}
const _: () = assert!(core::mem::size_of::<Event>() == 48);
const _: () = assert!(core::mem::offset_of!(Event, at) == 0);
const _: () = assert!(core::mem::offset_of!(Event, block) == 32);
const _: () = assert!(core::mem::offset_of!(Event, subject) == 36);
const _: () = assert!(core::mem::offset_of!(Event, value) == 40);
const _: () = assert!(core::mem::offset_of!(Event, action) == 44);
const _: () = assert!(core::mem::offset_of!(Event, reserved) == 45);

/// What was executed on the way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// instructions executed
    pub instructions: u64,
    /// executions of blocks
    pub blocks: u64,
    /// executions of the block that is counted
    pub hits: u64,
}
const _: () = assert!(core::mem::size_of::<Progress>() == 24);
const _: () = assert!(core::mem::offset_of!(Progress, instructions) == 0);
const _: () = assert!(core::mem::offset_of!(Progress, blocks) == 8);
const _: () = assert!(core::mem::offset_of!(Progress, hits) == 16);

/// How far to go on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// no more than that
    pub most: Progress,
    /// so many bytes of surprises read, and decisions made behind the last one: the walk stops where it comes to that
    pub surprise_bytes: u64,
    /// these decisions
    pub decisions: u64,
    /// the block that `most.hits` is about; nowhere: none
    pub counted: u32,
    /// zero
    pub reserved: u32,
}
const _: () = assert!(core::mem::size_of::<Limit>() == 48);
const _: () = assert!(core::mem::offset_of!(Limit, most) == 0);
const _: () = assert!(core::mem::offset_of!(Limit, surprise_bytes) == 24);
const _: () = assert!(core::mem::offset_of!(Limit, decisions) == 32);
const _: () = assert!(core::mem::offset_of!(Limit, counted) == 40);
const _: () = assert!(core::mem::offset_of!(Limit, reserved) == 44);

/// What a walk reads. Pointers to nothing are as good as any others where the count is 0, but not null.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tables {
    /// the code
    pub blocks: *mut Block,
    /// so many
    pub n_blocks: u64,
    /// where indirect branches lead
    pub targets: *const u32,
    /// so many
    pub n_targets: u64,
    /// a stream; to decode, room for it
    pub surprises: *mut u8,
    /// so many
    pub n_surprise_bytes: u64,
    /// a stream; to decode, room for it
    pub symbols: *mut u8,
    /// so many
    pub n_symbol_bytes: u64,
    /// in the order of the path
    pub events: *const Event,
    /// so many
    pub n_events: u64,
    /// decisions behind the last surprise
    pub decisions: u64,
    /// the shadow stack's return addresses: room for max_depth, of which the first `depth` are open
    pub addresses: *mut u64,
    /// the blocks at these
    pub numbers: *mut u32,
    /// room for so many
    pub max_depth: u64,
    /// so many are open
    pub depth: u64,
    /// so many others are
    pub forgotten: u64,
    /// where the streams begin
    pub start: Position,
    /// the block that would run next
    pub block: u64,
}
const _: () = assert!(core::mem::size_of::<Tables>() == 168);
const _: () = assert!(core::mem::offset_of!(Tables, blocks) == 0);
const _: () = assert!(core::mem::offset_of!(Tables, n_blocks) == 8);
const _: () = assert!(core::mem::offset_of!(Tables, targets) == 16);
const _: () = assert!(core::mem::offset_of!(Tables, n_targets) == 24);
const _: () = assert!(core::mem::offset_of!(Tables, surprises) == 32);
const _: () = assert!(core::mem::offset_of!(Tables, n_surprise_bytes) == 40);
const _: () = assert!(core::mem::offset_of!(Tables, symbols) == 48);
const _: () = assert!(core::mem::offset_of!(Tables, n_symbol_bytes) == 56);
const _: () = assert!(core::mem::offset_of!(Tables, events) == 64);
const _: () = assert!(core::mem::offset_of!(Tables, n_events) == 72);
const _: () = assert!(core::mem::offset_of!(Tables, decisions) == 80);
const _: () = assert!(core::mem::offset_of!(Tables, addresses) == 88);
const _: () = assert!(core::mem::offset_of!(Tables, numbers) == 96);
const _: () = assert!(core::mem::offset_of!(Tables, max_depth) == 104);
const _: () = assert!(core::mem::offset_of!(Tables, depth) == 112);
const _: () = assert!(core::mem::offset_of!(Tables, forgotten) == 120);
const _: () = assert!(core::mem::offset_of!(Tables, start) == 128);
const _: () = assert!(core::mem::offset_of!(Tables, block) == 160);

/// What an instruction did with memory, in the order in which its thread did it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessRow {
    /// from the lowest bit on: the instruction's address, 48 bits; bytes that were accessed, 10; enum AccessKind, 2; 1
    /// where another access of the same instruction comes before it; 1 of a string instruction, whose `value` is how
    /// many bytes its turns accessed
    pub what: u64,
    /// of the memory
    pub address: u64,
    /// the first eight bytes that were read or, where it was written, that are there now; 0 where that is not known
    pub value: u64,
}
const _: () = assert!(core::mem::size_of::<AccessRow>() == 24);
const _: () = assert!(core::mem::offset_of!(AccessRow, what) == 0);
const _: () = assert!(core::mem::offset_of!(AccessRow, address) == 8);
const _: () = assert!(core::mem::offset_of!(AccessRow, value) == 16);

/// What a thread did, in its own order. What is of one block comes so: its instructions, it, the call or return at its
/// end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowEvent {
    /// the thread's events are numbered from 0 on
    pub sequence: u64,
    /// of the instruction, or of the first one
    pub address: u64,
    /// the address that it leads to, though a signal or the end may come first; 0 where that is not known
    pub target: u64,
    /// the last time stamp that was told before it: of a checkpoint, a system call, a signal
    pub time: u64,
    /// the thread's number (tid)
    pub thread: u32,
    /// calls that were open when it began
    pub depth: u32,
    /// bytes of the instruction, block or piece
    pub size: u32,
    /// 1, or those of the block or piece; more than 65,535 are told as so many
    pub n_instructions: u16,
    /// enum FlowKind
    pub kind: u8,
    /// enum AccessKind of a memory event; 0 of others
    pub access: u8,
}
const _: () = assert!(core::mem::size_of::<FlowEvent>() == 48);
const _: () = assert!(core::mem::offset_of!(FlowEvent, sequence) == 0);
const _: () = assert!(core::mem::offset_of!(FlowEvent, address) == 8);
const _: () = assert!(core::mem::offset_of!(FlowEvent, target) == 16);
const _: () = assert!(core::mem::offset_of!(FlowEvent, time) == 24);
const _: () = assert!(core::mem::offset_of!(FlowEvent, thread) == 32);
const _: () = assert!(core::mem::offset_of!(FlowEvent, depth) == 36);
const _: () = assert!(core::mem::offset_of!(FlowEvent, size) == 40);
const _: () = assert!(core::mem::offset_of!(FlowEvent, n_instructions) == 44);
const _: () = assert!(core::mem::offset_of!(FlowEvent, kind) == 46);
const _: () = assert!(core::mem::offset_of!(FlowEvent, access) == 47);

/// An event where memory events are told: with the value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueEvent {
    /// what it is
    pub event: FlowEvent,
    /// AccessRow.value of a memory event; 0 of others
    pub value: u64,
}
const _: () = assert!(core::mem::size_of::<ValueEvent>() == 56);
const _: () = assert!(core::mem::offset_of!(ValueEvent, event) == 0);
const _: () = assert!(core::mem::offset_of!(ValueEvent, value) == 48);

/// What events say of a block beside what its path says of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockDetail {
    /// address of its last instruction
    pub branch_pc: u64,
    /// its instructions begin at so many bytes behind its first one: starts\[first_start..\]\[..n_instructions\]
    pub first_start: u32,
    /// 1: it is told of
    pub is_wanted: u8,
    /// 1: it was cut where nothing leads elsewhere, so what is behind it is of the same block
    pub goes_on: u8,
    /// enum Gate
    pub gate: u8,
    /// zero
    pub reserved: [u8; 1],
}
const _: () = assert!(core::mem::size_of::<BlockDetail>() == 16);
const _: () = assert!(core::mem::offset_of!(BlockDetail, branch_pc) == 0);
const _: () = assert!(core::mem::offset_of!(BlockDetail, first_start) == 8);
const _: () = assert!(core::mem::offset_of!(BlockDetail, is_wanted) == 12);
const _: () = assert!(core::mem::offset_of!(BlockDetail, goes_on) == 13);
const _: () = assert!(core::mem::offset_of!(BlockDetail, gate) == 14);
const _: () = assert!(core::mem::offset_of!(BlockDetail, reserved) == 15);

/// What is told of one of the path's events.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToldEvent {
    /// FlowEvent.address
    pub address: u64,
    /// FlowEvent.target
    pub target: u64,
    /// 0: nothing is
    pub is_told: u8,
    /// enum FlowKind
    pub kind: u8,
    /// zero
    pub reserved: [u8; 6],
}
const _: () = assert!(core::mem::size_of::<ToldEvent>() == 24);
const _: () = assert!(core::mem::offset_of!(ToldEvent, address) == 0);
const _: () = assert!(core::mem::offset_of!(ToldEvent, target) == 8);
const _: () = assert!(core::mem::offset_of!(ToldEvent, is_told) == 16);
const _: () = assert!(core::mem::offset_of!(ToldEvent, kind) == 17);
const _: () = assert!(core::mem::offset_of!(ToldEvent, reserved) == 18);

/// A block of which the thread executed a part, when there was no more to read.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BegunBlock {
    /// of its first instruction
    pub address: u64,
    /// address behind the part; 0: none was begun
    pub end: u64,
    /// of the part
    pub n_instructions: u64,
    /// calls that were open when it began
    pub depth: u64,
}
const _: () = assert!(core::mem::size_of::<BegunBlock>() == 32);
const _: () = assert!(core::mem::offset_of!(BegunBlock, address) == 0);
const _: () = assert!(core::mem::offset_of!(BegunBlock, end) == 8);
const _: () = assert!(core::mem::offset_of!(BegunBlock, n_instructions) == 16);
const _: () = assert!(core::mem::offset_of!(BegunBlock, depth) == 24);

/// What is read of a path as events, and how far that has come.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FlowReading {
    /// of each block of the code
    pub details: *const BlockDetail,
    /// so many
    pub n_details: u64,
    /// where instructions begin
    pub starts: *const u16,
    /// so many
    pub n_starts: u64,
    /// of each event of the path its time stamp, or 0
    pub times: *const u64,
    /// so many
    pub n_times: u64,
    /// of each event of the path what is told of it; or none
    pub told: *const ToldEvent,
    /// so many
    pub n_told: u64,
    /// where events go: FlowEvent, or ValueEvent where has_values is 1
    pub rows: *mut u8,
    /// so many have room
    pub n_rows: u64,
    /// all that the thread did is known up to so many bytes of surprises, and decisions made behind the last one
    pub surprise_bytes: u64,
    /// these decisions
    pub decisions: u64,
    /// what was begun
    pub begun: BegunBlock,
    /// the next event's number
    pub sequence: u64,
    /// the last time stamp
    pub time: u64,
    /// the thread's number
    pub thread: u32,
    /// which events are told: bits by enum FlowKind
    pub kinds: u32,
    /// what the thread did with memory, from where the reading is
    pub accesses: *const AccessRow,
    /// so many
    pub n_accesses: u64,
    /// so many of them are behind the reading
    pub n_passed: u64,
    /// 1: rows are ValueEvent
    pub has_values: u32,
    /// 1: there are accesses of what the thread executes, or none of it accesses memory; 2: there are more, behind
    /// these
    pub has_accesses: u32,
    /// 0: what the thread does is not told, before it comes to a block whose gate opens
    pub is_open: u32,
    /// zero
    pub reserved: u32,
}
const _: () = assert!(core::mem::size_of::<FlowReading>() == 192);
const _: () = assert!(core::mem::offset_of!(FlowReading, details) == 0);
const _: () = assert!(core::mem::offset_of!(FlowReading, n_details) == 8);
const _: () = assert!(core::mem::offset_of!(FlowReading, starts) == 16);
const _: () = assert!(core::mem::offset_of!(FlowReading, n_starts) == 24);
const _: () = assert!(core::mem::offset_of!(FlowReading, times) == 32);
const _: () = assert!(core::mem::offset_of!(FlowReading, n_times) == 40);
const _: () = assert!(core::mem::offset_of!(FlowReading, told) == 48);
const _: () = assert!(core::mem::offset_of!(FlowReading, n_told) == 56);
const _: () = assert!(core::mem::offset_of!(FlowReading, rows) == 64);
const _: () = assert!(core::mem::offset_of!(FlowReading, n_rows) == 72);
const _: () = assert!(core::mem::offset_of!(FlowReading, surprise_bytes) == 80);
const _: () = assert!(core::mem::offset_of!(FlowReading, decisions) == 88);
const _: () = assert!(core::mem::offset_of!(FlowReading, begun) == 96);
const _: () = assert!(core::mem::offset_of!(FlowReading, sequence) == 128);
const _: () = assert!(core::mem::offset_of!(FlowReading, time) == 136);
const _: () = assert!(core::mem::offset_of!(FlowReading, thread) == 144);
const _: () = assert!(core::mem::offset_of!(FlowReading, kinds) == 148);
const _: () = assert!(core::mem::offset_of!(FlowReading, accesses) == 152);
const _: () = assert!(core::mem::offset_of!(FlowReading, n_accesses) == 160);
const _: () = assert!(core::mem::offset_of!(FlowReading, n_passed) == 168);
const _: () = assert!(core::mem::offset_of!(FlowReading, has_values) == 176);
const _: () = assert!(core::mem::offset_of!(FlowReading, has_accesses) == 180);
const _: () = assert!(core::mem::offset_of!(FlowReading, is_open) == 184);
const _: () = assert!(core::mem::offset_of!(FlowReading, reserved) == 188);

/// What was encoded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// bytes of the coded form
    pub n_bytes: u64,
    /// executions of blocks in it
    pub n_blocks: u64,
    /// conditional and indirect branches in it
    pub n_items: u64,
}
const _: () = assert!(core::mem::size_of::<Encoded>() == 24);
const _: () = assert!(core::mem::offset_of!(Encoded, n_bytes) == 0);
const _: () = assert!(core::mem::offset_of!(Encoded, n_blocks) == 8);
const _: () = assert!(core::mem::offset_of!(Encoded, n_items) == 16);

/// What is decoded, and the predictor's memory for it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Coded {
    /// the coded form
    pub bytes: *const u8,
    /// so many
    pub n_bytes: u64,
    /// executions of blocks in it
    pub n_blocks: u64,
    /// the predictor's memory
    pub words: *mut u32,
    /// so many
    pub n_words: u64,
}
const _: () = assert!(core::mem::size_of::<Coded>() == 40);
const _: () = assert!(core::mem::offset_of!(Coded, bytes) == 0);
const _: () = assert!(core::mem::offset_of!(Coded, n_bytes) == 8);
const _: () = assert!(core::mem::offset_of!(Coded, n_blocks) == 16);
const _: () = assert!(core::mem::offset_of!(Coded, words) == 24);
const _: () = assert!(core::mem::offset_of!(Coded, n_words) == 32);
