//! Generated from protocol/schema.toml by `make generate`; do not edit.

pub const VERSION: u32 = 1;
pub const MAGIC: u64 = 0x314d485357454c43;
pub const NOTE_NAME: &[u8; 5] = b"clew\0";
pub const NOTE_TYPE: u32 = 1;
pub const SCHEMA_HASH: [u8; 32] = [
    0xd7, 0xe2, 0x42, 0x7f, 0xfb, 0xd9, 0x45, 0xf4, 0xc3, 0xd5, 0x83, 0xd3, 0xc4, 0xbd, 0x68, 0x9e, 0xae, 0x9e, 0xdd,
    0x1d, 0x32, 0xec, 0xd7, 0x48, 0xad, 0xad, 0x7c, 0x55, 0xbb, 0x72, 0x9a, 0x1f,
];
/// the least that is mapped at once
pub const PAGE_BYTES: u64 = 0x1000;

/// every record, and every continuation of one, is one unit of this size
pub const RECORD_BYTES: u64 = 0x40;
/// bytes of payload in one continuation record
pub const CONTINUATION_PAYLOAD_BYTES: u64 = 0x3c;
/// application bytes in one fragment at most; a limit makes no basic block
pub const MAX_FRAGMENT_BYTES: u64 = 0x800;
/// application instructions in one fragment at most
pub const MAX_FRAGMENT_INSTRUCTIONS: u64 = 0x100;
/// address space of one thread's private block, counters window included
pub const THREAD_STRIDE_BYTES: u64 = 0x4000000;
/// where the counters window starts inside a thread's private block (and from gs)
pub const THREAD_COUNTERS_OFFSET: u64 = 0x800000;
/// largest counters window of one thread
pub const MAX_COUNTER_BYTES: u64 = 0x3800000;
/// longest path in an image record
pub const MAX_PATH_BYTES: u64 = 0x1000;
/// entries of StatusPage.breakpoints
pub const MAX_BREAKPOINTS: u64 = 0x20;
/// entries of the table of captures (CapturePlace)
pub const MAX_CAPTURES: u64 = 0x10000;
/// bytes of the forms of all captures, behind the table
pub const MAX_CAPTURE_BYTES: u64 = 0x200000;
/// entries of the table of probes (ProbeSite)
pub const MAX_PROBES: u64 = 0x80000;
/// entries of the table of patches (PatchRow)
pub const MAX_PATCHES: u64 = 0x100000;
/// entries of a table of traps (TrapRow)
pub const MAX_TRAPS: u64 = 0x200000;
/// entries of each of the two directories of tables for unwinding (UnwindImage)
pub const MAX_UNWIND_IMAGES: u64 = 0x1000;
/// bytes of these directories, and of the tables behind them (UnwindTable)
pub const UNWIND_BYTES: u64 = 0x4000000;
/// frames of a backtrace
pub const MAX_BACKTRACE_FRAMES: u64 = 0x80;
/// bytes of a stack that the controller gets where it is asked what is behind a frame
pub const BACKTRACE_STACK_BYTES: u64 = 0x1000;
/// captures at one address
pub const MAX_CAPTURES_AT_PLACE: u64 = 0x10;
/// ranges of code of StatusPage.invalidated_ranges
pub const MAX_INVALIDATED_RANGES: u64 = 0x10;
/// addresses that may wait to be translated (SessionHeader.prefetch_offset)
pub const MAX_PREFETCHED: u64 = 0x2000;
/// ranges of code whose blocks are asked about
pub const MAX_TRANSFORM_RANGES: u64 = 0x80;
/// bytes of all tables of aggregates
pub const AGGREGATES_BYTES: u64 = 0x20000000;
/// the binary logarithm of the most rows that a table of aggregates has, beside aggregate_probes
pub const MAX_AGGREGATE_ROWS_LOG2: u64 = 0x10;
/// rows in which a key may be, from the one that its hash tells
pub const AGGREGATE_PROBES: u64 = 0x8;
/// words of a row's keys
pub const AGGREGATE_KEY_WORDS: u64 = 0x8;
/// buckets of a histogram: of 0, 1, 2, 3; from there on four to each power of two
pub const AGGREGATE_BUCKETS: u64 = 0xfc;
/// of keys' words the hash is ((((0 rotated left by 29) xor first) * factor rotated left by 29) xor second) * factor;
/// its highest bits are the row
pub const AGGREGATE_HASH_FACTOR: u64 = 0x9e3779b97f4a7c15;
/// registers that an inline piece changes (InlinePiece)
pub const MAX_INLINE_REGISTERS: u64 = 0x6;
/// bytes of what is changed in one block
pub const MAX_BLOCK_CHANGES_BYTES: u64 = 0x4000;
/// operations of one form
pub const MAX_CAPTURE_OPERATIONS: u64 = 0xc0;
/// fields of one form
pub const MAX_CAPTURE_FIELDS: u64 = 0x20;
/// fields of a CaptureRecord that are in the record itself
pub const CAPTURE_RECORD_VALUES: u64 = 0x4;
/// operations of all forms at one address
pub const MAX_CAPTURE_VALUES: u64 = 0xc0;
/// bytes of one value that is bytes, and of the data of all forms at one address
pub const MAX_CAPTURE_TEXT: u64 = 0x1000;
/// bytes of the values that are bytes, of all forms at one address
pub const MAX_CAPTURE_TEXTS: u64 = 0x10000;
/// calls of a thread that may be open in its window of calls: OpenCall\[open_calls\], where it begins
pub const OPEN_CALLS: u64 = 0x800;
/// where the CallsHead is in such a window, and behind it, up to call_texts_offset, u64\[open_calls\]: the tsc of the
/// call in each place that was told already; 0: none
pub const CALL_HEADS_OFFSET: u64 = 0x80000;
/// where the bytes are that calls keep, in cells
pub const CALL_TEXTS_OFFSET: u64 = 0x85000;
/// how many cells that are
pub const CALL_TEXT_CELLS: u64 = 0xec0;
/// size of one
pub const CALL_TEXT_CELL_BYTES: u64 = 0x40;
/// size of a thread's window of calls
pub const CALL_WINDOW_BYTES: u64 = 0xc0000;
/// fields of a capture that opens a call: what is kept until it returns
pub const MAX_KEPT_VALUES: u64 = 0x1a;
/// CapturePlace.pc: from here on it is taken at system calls, whose number is the rest; no code lies there
pub const CALL_PLACES: u64 = 0xfff0000000000000;
/// CaptureRecord.number has this bit: of a call that is over and has not returned; of its fields only those are there
/// that were kept, and when it began
pub const CAPTURE_LEFT: u64 = 0x40000000;
/// the same: of a call that is over if the process executes the program that it is about to execute; with capture_left:
/// it has not, and the call goes on
pub const CAPTURE_EXECUTING: u64 = 0x80000000;
/// CapturePlace.pc: numbers of system calls from here on are operations of io_uring; what registers are is there the
/// words of their entries (instrument/captures/ring.rs)
pub const RING_OPERATIONS: u64 = 0x800;
/// CapturePlace.call_kind: the greatest
pub const MAX_CALL_KINDS: u64 = 0xffff;
/// bytes of a thread's name, as the kernel keeps it
pub const CAPTURE_NAME_BYTES: u64 = 0x10;
/// CaptureForm.condition: there is none
pub const NO_CONDITION: u16 = 0xffff;
/// entries of StatusPage.changed_pages
pub const MAX_CHANGED_PAGES: u64 = 0x20;
/// entries in the filter table
pub const MAX_FILTER_RANGES: u64 = 0x1000;
/// -si_code, and si_value, of the SIGTRAP that fetches a thread out of the code cache when the controller detaches
pub const DETACH_CODE: u64 = 0x434c57;
/// no heartbeat of the controller for so long ends waiting for it; what finds no room then is dropped and counted
pub const FULL_WAIT_SECONDS: u64 = 0x5;
/// mode full: which of a thread's counters holds its decisions since the last surprise, with path_other_decisions_cell
pub const PATH_DECISIONS_CELL: u64 = 0x0;
/// mode full: the number of decisions is the sum of both cells, of 64 bits
pub const PATH_OTHER_DECISIONS_CELL: u64 = 0x6;
/// mode full: where the next surprise goes, counted from the end of its buffer: -path_buffer_bytes up to 0, or a little
/// beyond
pub const PATH_SURPRISES_CELL: u64 = 0x1;
/// mode full: where the next symbol goes, in the same way
pub const PATH_SYMBOLS_CELL: u64 = 0x2;
/// mode full: bytes of surprises that left the buffer so far
pub const PATH_SURPRISES_LEFT_CELL: u64 = 0x3;
/// mode full: bytes of symbols that did
pub const PATH_SYMBOLS_LEFT_CELL: u64 = 0x4;
/// mode full: stands for the address in front of a path's first instruction
pub const PATH_START: u64 = 0xffffffffffffffff;
/// mode full: a PathGap; unless it is none, what is in the buffers belongs to nothing
pub const PATH_LOST_CELL: u64 = 0x5;
/// in records: every address at which no program can have code, the vsyscall page's apart
pub const NOWHERE_PC: u64 = 0x7fffffffffff;
/// mode full: StatusPage.budget that leaves out nothing
pub const PATH_UNLIMITED: u64 = 0xffffffffffffffff;
/// mode full: where the buffer of surprises starts in a thread's counters window
pub const PATH_SURPRISES_OFFSET: u64 = 0x1000;
/// mode full: where the buffer of symbols starts
pub const PATH_SYMBOLS_OFFSET: u64 = 0x12000;
/// size of either; path_slack_bytes more may be in it
pub const PATH_BUFFER_BYTES: u64 = 0x10000;
/// mode full: what is written last into a buffer ends at most so far behind it
pub const PATH_SLACK_BYTES: u64 = 0x10;
/// mode full: where the next AccessRow goes, counted from the end of its buffer
pub const PATH_ACCESSES_CELL: u64 = 0x8;
/// mode full: bytes of them that left the buffer; with path_accesses_leave while some do
pub const PATH_ACCESSES_LEFT_CELL: u64 = 0x9;
/// mode full: a bit of the cell path_accesses_left_cell
pub const PATH_ACCESSES_LEAVE: u64 = 0x8000000000000000;
/// mode full: where the buffer of accesses to memory starts
pub const PATH_ACCESSES_OFFSET: u64 = 0x23000;
/// mode full: its size; path_accesses_slack_bytes more may be in it
pub const PATH_ACCESSES_BUFFER_BYTES: u64 = 0x40000;
/// mode full: the rows of one fragment, more than which no fragment writes
pub const PATH_ACCESSES_SLACK_BYTES: u64 = 0xa000;
/// modes counts and full: what a path takes of a thread's counters window; the first counter comes behind it
pub const PATH_WINDOW_BYTES: u64 = 0x6d000;
/// mode region: blocks that a thread can have levels for; of what is translated later executions are counted and not
/// tagged
pub const REGION_BLOCKS: u64 = 0x100000;
/// mode region: which of a thread's counters holds where its next word goes, counted in bytes from the end of their
/// buffer: -region_buffer_bytes up to 0, or a little beyond
pub const REGION_WORDS_CELL: u64 = 0x0;
/// mode region: where the next number goes, in the same way
pub const REGION_NUMBERS_CELL: u64 = 0x1;
/// mode region: bytes of words that left the buffer so far
pub const REGION_WORDS_LEFT_CELL: u64 = 0x2;
/// mode region: bytes of numbers that did
pub const REGION_NUMBERS_LEFT_CELL: u64 = 0x3;
/// mode region: where the buffer of words starts in a thread's counters window
pub const REGION_WORDS_OFFSET: u64 = 0x1000;
/// mode region: where the buffer of numbers starts
pub const REGION_NUMBERS_OFFSET: u64 = 0x12000;
/// size of either; what is written last may end behind it, within buffer_guard_bytes
pub const REGION_BUFFER_BYTES: u64 = 0x10000;
/// modes full and region: so much behind each buffer of a path or of tags belongs to nothing else
pub const BUFFER_GUARD_BYTES: u64 = 0x1000;
/// mode region: what tags take of a thread's counters window; the first counter comes behind it
pub const REGION_WINDOW_BYTES: u64 = 0x23000;
/// the bits of a word from this one on are enum RegionWord, those below its value
pub const REGION_KIND_SHIFT: u64 = 0x1c;
/// in records: no fragment, no counter, no block of mode region
pub const NO_INDEX: u32 = 0xffffffff;
/// in records: paths have no number for this target
pub const NO_SYMBOL: u16 = 0xffff;
/// largest SessionHeader.busy_limit
pub const MAX_BUSY_LIMIT: u64 = 0xfe;
/// heartbeats for so long, and nothing else that was waited for: as if there were none, from then on
pub const LONGEST_WAIT_SECONDS: u64 = 0x14;

/// What a 64-byte record in a ring is.
pub mod record_kind {
    pub const PADDING: u16 = 0;
    pub const FRAGMENT: u16 = 1;
    pub const CONTINUATION: u16 = 2;
    pub const DYNAMIC_EDGE: u16 = 3;
    pub const LINK: u16 = 4;
    pub const IMAGE: u16 = 5;
    pub const UNMAP: u16 = 6;
    pub const EVENT: u16 = 7;
    pub const INVALIDATE: u16 = 8;
    pub const PATH_CHUNK: u16 = 9;
    pub const PATH_EVENT: u16 = 10;
    pub const REGION_CHUNK: u16 = 14;
    pub const CAPTURE: u16 = 15;
}

/// How a fragment ends. Says what its counters mean: see FragmentRecord.counter_index.
pub mod exit_kind {
    pub const FALL_THROUGH: u8 = 0;
    pub const JUMP: u8 = 1;
    pub const CONDITIONAL: u8 = 2;
    pub const CALL: u8 = 3;
    pub const INDIRECT_JUMP: u8 = 4;
    pub const INDIRECT_CALL: u8 = 5;
    pub const RETURN: u8 = 6;
    pub const SYSCALL: u8 = 7;
    pub const NONE: u8 = 8;
}

/// Bits of a fragment's flags. excluded: by a filter; its executions are not counted, and of its counters only those of
/// edges into recorded code. limit: it was ended by a size limit. first_edge, second_edge: of what is excluded the
/// taken, or only, edge leads into recorded code, or the one not taken. first_counts_both: of a conditional, \[i\]
/// counts taken and not taken together; second_counts_both: \[i+1\] does. later_code: its code may have come in the
/// place of other code, and paths tell when (mode full). counted: excluded, and counted all the same, since paths lead
/// there (mode full).
pub mod fragment_flag {
    pub const EXCLUDED: u8 = 1;
    pub const LIMIT: u8 = 2;
    pub const FIRST_EDGE: u8 = 4;
    pub const SECOND_EDGE: u8 = 8;
    pub const FIRST_COUNTS_BOTH: u8 = 16;
    pub const SECOND_COUNTS_BOTH: u8 = 32;
    pub const LATER_CODE: u8 = 64;
    pub const COUNTED: u8 = 128;
}

/// Edge kinds of the trace; also `kind` of dynamic_edge and link records. `partial` is no edge of the trace: it says
/// how often a fragment was left in its middle, before the instruction at target_pc (which faulted). A dynamic_edge
/// record of kind `return` is no edge, it announces the symbol of a return (mode full).
pub mod edge_kind {
    pub const JUMP: u8 = 0;
    pub const TAKEN: u8 = 1;
    pub const NOT_TAKEN: u8 = 2;
    pub const FALL_THROUGH: u8 = 3;
    pub const CALL: u8 = 4;
    pub const INDIRECT_CALL: u8 = 5;
    pub const INDIRECT_JUMP: u8 = 6;
    pub const RETURN: u8 = 7;
    pub const SYSCALL: u8 = 8;
    pub const SIGNAL: u8 = 9;
    pub const SIGRETURN: u8 = 10;
    pub const FAULT: u8 = 11;
    pub const START: u8 = 12;
    pub const PARTIAL: u8 = 13;
}

/// What an event record tells.
pub mod event_kind {
    pub const THREAD_START: u16 = 1;
    pub const THREAD_END: u16 = 2;
    pub const SIGNAL: u16 = 3;
    pub const FAULT: u16 = 4;
    pub const FORK: u16 = 5;
    pub const EXECVE: u16 = 6;
    pub const RELEASED: u16 = 7;
    pub const EXIT_GROUP: u16 = 8;
    pub const WRITABLE_CODE: u16 = 9;
    pub const EXECVE_FAILED: u16 = 10;
    pub const SECCOMP: u16 = 11;
    pub const RECORDING_CHANGED: u16 = 12;
}

/// What a path_event record tells of a thread's path (mode full); pc and value as each one says. note: nothing changes;
/// value: number of the system call made at pc. resume: in front of pc the thread went to value: start (pc is
/// path_start), signal, fault, return from a handler. elsewhere: the return or indirect branch at pc led to value.
/// unlike: from now on the conditional branch at value is expected to go the other way than before; or the return at
/// value takes a symbol, which it did not, or the other way round. code: from now on the code of fragment value is what
/// runs. end: the path ends in front of pc, unless more of it follows: the call that was to end the thread was refused.
/// checkpoint: where the thread is in front of pc, and what it did since the last one: streams counters and calls go
/// with it; of the open calls the outermost `value` are as at the last one. lost: records of the path were dropped
/// since the position before; the checkpoint behind it is where it goes on. thinned: as lost, but left out on purpose,
/// to stay within StatusPage.budget or while no order was recorded; what the path told of code and branches holds on.
pub mod path_event_kind {
    pub const NOTE: u16 = 0;
    pub const RESUME: u16 = 1;
    pub const ELSEWHERE: u16 = 2;
    pub const UNLIKE: u16 = 3;
    pub const CODE: u16 = 4;
    pub const END: u16 = 5;
    pub const CHECKPOINT: u16 = 6;
    pub const LOST: u16 = 7;
    pub const THINNED: u16 = 8;
}

/// What of a thread's path is missing where it is (mode full). lost: something was dropped, and not told yet. left_out:
/// it is left out, to stay within StatusPage.budget or because no order is recorded.
pub mod path_gap {
    pub const NONE: u64 = 0;
    pub const LOST: u64 = 1;
    pub const LEFT_OUT: u64 = 2;
}

/// The streams of a thread's path (mode full). surprises, symbols: see docs/format/paths.md. counters: pairs of a
/// counter's index (u32) and how much it rose (u64), 12 bytes each. calls: return addresses (u64) of open calls,
/// outermost first. few: as counters, of those that rose by less than 65,536; each chunk begins with an index (u32),
/// and has 3 bytes for each counter: its index less the one before (u8), and how much it rose (u16); if that is 0 there
/// is no counter, and the index is 256 times as much higher. Counters, few and calls belong to the next checkpoint.
/// accesses: rows of AccessRow, in the order in which they were made.
pub mod path_stream {
    pub const SURPRISES: u16 = 0;
    pub const SYMBOLS: u16 = 1;
    pub const COUNTERS: u16 = 2;
    pub const CALLS: u16 = 3;
    pub const FEW: u16 = 4;
    pub const ACCESSES: u16 = 5;
}

/// What a word of a thread's tags tells (mode region), 32 bits; behind each kind: its value; the numbers that go with
/// it, 64 bits each. executed: FragmentRecord.region_block, whose execution begins; none. became_busy: that block,
/// which is counted from here on; time stamp, executions so far. counts: that block; executions while it was busy.
/// counts_target: nothing; of these to an address, and how many. left_busy: nothing; time stamp. stopped: nothing; the
/// execution that began last got as far as this address, whose instruction was not executed. signal, fault: signal
/// number; time stamp, address of the instruction that waits or faulted. syscall: nothing; time stamp, number of the
/// call, which is about to be made. end: nothing; time stamp, address of the instruction that waits.
pub mod region_word {
    pub const EXECUTED: u32 = 0;
    pub const BECAME_BUSY: u32 = 1;
    pub const COUNTS: u32 = 2;
    pub const COUNTS_TARGET: u32 = 3;
    pub const LEFT_BUSY: u32 = 4;
    pub const STOPPED: u32 = 5;
    pub const SIGNAL: u32 = 6;
    pub const FAULT: u32 = 7;
    pub const SYSCALL: u32 = 8;
    pub const END: u32 = 9;
}

/// Why a task was released to native: `a` of a `released` event.
pub mod release_reason {
    pub const FORK_CHILD: u16 = 1;
    pub const NO_SLOT: u16 = 4;
    pub const UNSUPPORTED: u16 = 5;
    pub const RUNTIME_ERROR: u16 = 6;
    pub const FATAL_FAULT: u16 = 7;
    pub const DETACH: u16 = 8;
    pub const SECCOMP_STRICT: u16 = 9;
    pub const TRACED: u16 = 10;
    pub const SECCOMP_FILTER: u16 = 12;
    pub const OTHER_CODE: u16 = 13;
    pub const WRITTEN: u16 = 14;
}

/// The recorder in use.
pub mod mode {
    pub const COVERAGE: u32 = 0;
    pub const COUNTS: u32 = 1;
    pub const REGION: u32 = 2;
    pub const FULL: u32 = 3;
}

/// A thread slot's life. free -> running (runtime, compare-and-swap) -> ended (runtime:thread, its last act) -> free
/// (controller, after it kept the counters, zeroed them and drained the ring). Role probes: free -> taken (runtime,
/// compare-and-swap) -> running -> free (controller, when the thread is gone).
pub mod slot_state {
    pub const FREE: u32 = 0;
    pub const RUNNING: u32 = 1;
    pub const ENDED: u32 = 2;
    pub const TAKEN: u32 = 3;
}

/// How a thread ended, as far as the runtime knows.
pub mod end_kind {
    pub const UNKNOWN: u32 = 0;
    pub const EXIT: u32 = 1;
    pub const EXIT_GROUP: u32 = 2;
    pub const RELEASED: u32 = 3;
    pub const EXECVE: u32 = 4;
}

/// What the runtime does in a process. engine: it executes the program's code, translated. probes: the program executes
/// its own, and comes here at probes only.
pub mod role {
    pub const ENGINE: u32 = 0;
    pub const PROBES: u32 = 1;
}

/// How far a probe's handler is. none: there is none. asked: its code is to be made. made: it is. refused: there is no
/// capture at its place, or no room for its code.
pub mod probe_state {
    pub const NONE: u32 = 0;
    pub const ASKED: u32 = 1;
    pub const MADE: u32 = 2;
    pub const REFUSED: u32 = 3;
}

/// Where the runtime stands.
pub mod runtime_state {
    pub const INJECTED: u32 = 0;
    pub const RUNNING: u32 = 1;
    pub const FAILED: u32 = 2;
}

/// How far a process is in the runtime's hands: it is entered and left as a whole, also if the controller is killed
/// meanwhile. A thread that enters or has parked and goes on looks here. entering: it goes back to where it came from.
/// entered (controller, or the runtime of a launched program) and leaving (controller): the points of no return.
/// giving_back: one thread does what leave_pc does; left: nothing of the process depends on the runtime any more.
pub mod stage {
    pub const ENTERING: u32 = 0;
    pub const ENTERED: u32 = 1;
    pub const LEAVING: u32 = 2;
    pub const GIVING_BACK: u32 = 3;
    pub const LEFT: u32 = 4;
}

/// What a thread asks of the controller and waits for. The thread writes the arguments, then request_kind with release
/// order; the controller answers, then sets request_kind back to none. image_filters: start, end and file offset of new
/// code. fork: a region for a child, or 0 (with an argument: that region was not used); adopt, of the child: process id
/// and the time stamp of the fork, 1 if it is followed. execve: path, directory (AT_FDCWD), flags; 1 if the controller
/// waits for the program. execve_failed: it waits no longer. child: a region and the process id of who begins in it;
/// answered when that has executed a program or ended. hold: enum HoldReason; the thread is stopped at the slot's
/// held_registers, in front of the instruction at rip; enum HoldReply. mapping: an address; 1 if something is mapped
/// from there on, the first of which is in request_answer: start, end, PROT_* bits, 1 if it is shared. trace: the
/// number of a thread that the asking one is about to trace; and why that is to run natively, enum ReleaseReason; 1 if
/// its process was left for it. write: the number of a process to whose memory the asking thread may write from now on,
/// whatever is protected there; 1 if it takes that into account. born: a slot; answered when its born_child is 0.
pub mod request_kind {
    pub const NONE: u32 = 0;
    pub const IMAGE_FILTERS: u32 = 1;
    pub const FORK: u32 = 2;
    pub const EXECVE: u32 = 3;
    pub const ADOPT: u32 = 4;
    pub const EXECVE_FAILED: u32 = 5;
    pub const HOLD: u32 = 6;
    pub const CHILD: u32 = 7;
    pub const MAPPING: u32 = 8;
    pub const TRACE: u32 = 9;
    pub const BORN: u32 = 10;
    pub const WRITE: u32 = 11;
}

/// What a value of a capture is: an integer, with a sign or without, of 8 to 64 bits; a floating-point number; bytes.
pub mod capture_type {
    pub const I8: u8 = 0;
    pub const U8: u8 = 1;
    pub const I16: u8 = 2;
    pub const U16: u8 = 3;
    pub const I32: u8 = 4;
    pub const U32: u8 = 5;
    pub const I64: u8 = 6;
    pub const U64: u8 = 7;
    pub const F32: u8 = 8;
    pub const F64: u8 = 9;
    pub const TEXT: u8 = 10;
}

/// What an instruction of a capture does with its operands a and b, values of instructions before it. A value may be
/// missing: of memory that can't be read, of a division by 0, and of what is made of a missing one. constant:
/// immediate. register, vector: number immediate of the architecture's; of a vector register the low half, or, for an
/// f32, the lower half of that. context: CaptureContext. load: memory at a. string: bytes at a up to a zero byte,
/// immediate at most. bytes: b bytes at a, immediate at most. words: words of 8 bytes at a up to one that is 0,
/// immediate bytes at most, a multiple of 8. literal: bytes of the program's data, from the immediate's lower half on,
/// as many as its upper half says. convert: a, which is of type immediate. add to complement: arithmetic of type, which
/// both operands are of. equal to less_equal: 1 or 0, an i32, of operands of type. logical_and, logical_or,
/// logical_not: of i32; what the left one decides does not ask the right one. text_equal: 1 or 0. kept: of a call that
/// has returned, the field that was kept when it began, of the number that the immediate's lower half is; of bytes as
/// many as its upper half says, at most; missing elsewhere. text_match: 1 or 0, whether a is as the pattern b: * stands
/// for any bytes, ? for one, \[abc\], \[a-z\] and \[!a\] for one of some, or of all others; descriptor_path: where the
/// process' descriptor a, an i32, leads to, as /proc tells it, immediate bytes at most. These two are for action inject
/// only. backtrace: the calls that are open, bytes: a BacktraceHead, and the addresses of immediate frames at most, the
/// first of them where the thread is; where the controller is asked what is behind it, more (BacktraceEnd). At probes
/// only; no operation has it as its operand, and it is worked out behind the condition.
pub mod capture_operation {
    pub const CONSTANT: u8 = 0;
    pub const REGISTER: u8 = 1;
    pub const VECTOR: u8 = 2;
    pub const CONTEXT: u8 = 3;
    pub const LOAD: u8 = 4;
    pub const STRING: u8 = 5;
    pub const BYTES: u8 = 6;
    pub const LITERAL: u8 = 7;
    pub const CONVERT: u8 = 8;
    pub const ADD: u8 = 9;
    pub const SUBTRACT: u8 = 10;
    pub const MULTIPLY: u8 = 11;
    pub const DIVIDE: u8 = 12;
    pub const REMAINDER: u8 = 13;
    pub const BIT_AND: u8 = 14;
    pub const BIT_OR: u8 = 15;
    pub const BIT_XOR: u8 = 16;
    pub const SHIFT_LEFT: u8 = 17;
    pub const SHIFT_RIGHT: u8 = 18;
    pub const NEGATE: u8 = 19;
    pub const COMPLEMENT: u8 = 20;
    pub const EQUAL: u8 = 21;
    pub const NOT_EQUAL: u8 = 22;
    pub const LESS: u8 = 23;
    pub const LESS_EQUAL: u8 = 24;
    pub const LOGICAL_AND: u8 = 25;
    pub const LOGICAL_OR: u8 = 26;
    pub const LOGICAL_NOT: u8 = 27;
    pub const TEXT_EQUAL: u8 = 28;
    pub const KEPT: u8 = 29;
    pub const WORDS: u8 = 30;
    pub const TEXT_MATCH: u8 = 31;
    pub const DESCRIPTOR_PATH: u8 = 32;
    pub const BACKTRACE: u8 = 33;
}

/// What a capture may ask about the place beside registers and memory: thread, process, processor, nanoseconds of
/// CLOCK_MONOTONIC, how many calls are open, the thread's name; and its thread pointer, from which its thread-local
/// variables are found: the word that it points at, which by the ABI is itself. duration: of a call that has returned,
/// nanoseconds since it began; missing elsewhere, and where a thread may be refused the time stamp counter. began: of
/// such a call, and of one that is over otherwise, the time stamp counter when it began. frame: of such calls, the
/// stack pointer in front of the function, or 8 below that of the system call. behind: the mark of the instruction that
/// the thread comes from (PieceKind), if it has one, or something else. injected: where a call begins, what is done to
/// it, bits of Injected; delay_exit: and how many nanoseconds the thread is to be held when it has returned, of
/// functions.
pub mod capture_context {
    pub const TID: u8 = 0;
    pub const PID: u8 = 1;
    pub const CPU: u8 = 2;
    pub const TIME: u8 = 3;
    pub const DEPTH: u8 = 4;
    pub const COMM: u8 = 5;
    pub const THREAD_POINTER: u8 = 6;
    pub const DURATION: u8 = 7;
    pub const BEHIND: u8 = 8;
    pub const BEGAN: u8 = 9;
    pub const FRAME: u8 = 10;
    pub const INJECTED: u8 = 11;
    pub const DELAY_EXIT: u8 = 12;
}

/// What is done where a capture's condition holds: a CaptureRecord is written; or the thread stops (RequestKind.hold);
/// or the fields are added to a row of a table: its keys, and behind them, if the table has values, what is added up;
/// or a call begins there, in front of the function's first instruction, and the fields are kept until it returns to
/// where its return address says: then the capture whose place is nowhere (pc 0) and whose call_kind is the same is
/// taken there. inject: the call that begins there goes another way than the program has it; the fields say which
/// (InjectField), and nothing is done where one of them is missing. delay: where a call has returned, the thread is
/// held for so many nanoseconds as its only field says. change: the thread goes on otherwise than the program has it;
/// the fields say how (ChangeField), and nothing is done where one of them is missing. Of probes only.
pub mod capture_action {
    pub const RECORD: u32 = 0;
    pub const STOP: u32 = 1;
    pub const AGGREGATE: u32 = 2;
    pub const CALL: u32 = 3;
    pub const INJECT: u32 = 4;
    pub const DELAY: u32 = 5;
    pub const CHANGE: u32 = 6;
}

/// The fields of a capture of action change, integers of 64 bits, by their numbers. what: enum Change. where: the
/// number of a register, or an address. value: what is to be there; of delay nanoseconds.
pub mod change_field {
    pub const WHAT: u32 = 0;
    pub const WHERE: u32 = 1;
    pub const VALUE: u32 = 2;
}

/// What a thread does at a probe. register: a general register is another one, the stack pointer not. result: the
/// function in front of which the thread is returns that, without having been executed. delay: the thread waits. poke:
/// the low bytes of the value are written to memory, as many as the name says in bits; what can't be written stays as
/// it is.
pub mod change {
    pub const REGISTER: u32 = 0;
    pub const RESULT: u32 = 1;
    pub const DELAY: u32 = 2;
    pub const POKE8: u32 = 3;
    pub const POKE16: u32 = 4;
    pub const POKE32: u32 = 5;
    pub const POKE64: u32 = 6;
}

/// The fields of a capture of action inject, integers of 64 bits, by their numbers. what: bits of Injected. result:
/// what the call gives, which is not made then. errno_address, errno: where an i32 is to be besides, 0: nowhere; of
/// functions. delay_enter, delay_exit: how many nanoseconds the thread is held before the call is made and when it has
/// returned. signal: what the thread is sent. first, last, step: of the calls of a thread at which the condition holds,
/// counted from 1, which: from the first to the last one, each step.
pub mod inject_field {
    pub const WHAT: u32 = 0;
    pub const RESULT: u32 = 1;
    pub const ERRNO_ADDRESS: u32 = 2;
    pub const ERRNO: u32 = 3;
    pub const DELAY_ENTER: u32 = 4;
    pub const DELAY_EXIT: u32 = 5;
    pub const SIGNAL: u32 = 6;
    pub const FIRST: u32 = 7;
    pub const LAST: u32 = 8;
    pub const STEP: u32 = 9;
}

/// Bits: what is done to a call.
pub mod injected {
    pub const RESULT: u32 = 1;
    pub const DELAY_ENTER: u32 = 2;
    pub const DELAY_EXIT: u32 = 4;
    pub const SIGNAL: u32 = 8;
}

/// What a thread does that finds its ring full: it waits; or what it has is dropped, and counted; or it writes over the
/// oldest records, and nobody takes any out but up to the moment of a snapshot.
pub mod on_full {
    pub const WAIT: u32 = 0;
    pub const DROP: u32 = 1;
    pub const OVERWRITE: u32 = 2;
}

/// Why a thread is stopped in the dispatcher: the controller holds the process, the thread has made the one step that
/// it was to make, it came to a breakpoint, or to a capture that stops; or it is about to translate a block of
/// transform_ranges: the request's arguments are then the block's size, where in the target max_block_changes_bytes of
/// BlockChange may be written, and the block's address; nothing is shown of the thread.
pub mod hold_reason {
    pub const ASKED: u32 = 1;
    pub const STEPPED: u32 = 2;
    pub const BREAKPOINT: u32 = 3;
    pub const CAPTURE: u32 = 4;
    pub const BLOCK: u32 = 5;
}

/// What a thread that was stopped does next: it goes on, or executes one instruction and stops again. go_on_changed,
/// step_changed: it does so with the registers that the slot has now. changed_block: the block is translated with the
/// changes that were written, so many bytes of them as request_answer says first. call: it goes to the address that
/// held_registers has as its pc, as if a signal came whose handler begins there and is left by the code at the address
/// in request_answer; with the registers of held_registers, all but the stack pointer, and held_vectors. Where it can't
/// it stops again where it is.
pub mod hold_reply {
    pub const GO_ON: u32 = 0;
    pub const STEP: u32 = 1;
    pub const GO_ON_CHANGED: u32 = 2;
    pub const STEP_CHANGED: u32 = 3;
    pub const CHANGED_BLOCK: u32 = 4;
    pub const CALL: u32 = 5;
}

/// Where code that is added to a block stands: in front of the instruction, or behind it.
pub mod piece_place {
    pub const BEFORE: u8 = 0;
    pub const AFTER: u8 = 1;
}

/// Why a backtrace ends. outermost: there is no caller. full: it has as many frames as were asked for. asks: its last
/// frame's rule is not known to the runtime, or may not be known any more: behind the frames there are the stack
/// pointer and the frame pointer there, then the general registers and the instruction's address where the thread is,
/// then two numbers, u32, and as many bytes of the stack from the thread's stack pointer on, and from the last frame's,
/// unless the first reach so far.
pub mod backtrace_end {
    pub const OUTERMOST: u8 = 0;
    pub const FULL: u8 = 1;
    pub const ASKS: u8 = 2;
}

/// What is known of code for unwinding. table: there is one. nothing: there is none, it is taken to have frame
/// pointers. asks: the controller has to be asked.
pub mod unwind_kind {
    pub const TABLE: u32 = 0;
    pub const NOTHING: u32 = 1;
    pub const ASKS: u32 = 2;
}

/// What is added: instructions of the program's kind, as if they were at the instruction's address, or right behind it;
/// or machine code that means the same everywhere and is executed as it is: verbatim keeps what the program needs, and
/// runs on the runtime's stack, the program's stack pointer on top; inline uses no stack, and what it changes is kept
/// by the runtime (InlinePiece). mark: no code, but a u32; the thread has that for CaptureContext.behind until
/// something is captured.
pub mod piece_kind {
    pub const CODE: u8 = 0;
    pub const VERBATIM: u8 = 1;
    pub const INLINE: u8 = 2;
    pub const MARK: u8 = 3;
}

/// Numbered errors on the status page; error_detail says more as each one tells.
pub mod error_code {
    pub const NONE: u32 = 0;
    pub const BAD_HEADER: u32 = 1;
    pub const BAD_START_BLOCK: u32 = 2;
    pub const OUT_OF_MEMORY: u32 = 3;
    pub const NO_SLAB: u32 = 4;
    pub const PANIC: u32 = 5;
    pub const COUNTERS_FULL: u32 = 6;
    pub const THREADS_FULL: u32 = 7;
    pub const FRAGMENTS_FULL: u32 = 8;
    pub const MAPPING_FAILED: u32 = 9;
    pub const BAD_FAULT: u32 = 10;
    pub const GS_BASE: u32 = 11;
}

/// Offset 0 of the shared memory, a region of a file that a process and its forks' children share. The runtime refuses
/// a magic, version or hash that is not its own.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionHeader {
    /// protocol.magic (written by: controller)
    pub magic: u64,
    /// protocol.version (written by: controller)
    pub version: u32,
    /// size of this struct (written by: controller)
    pub header_bytes: u32,
    /// SHA-256 of the schema, as the generator computes it (written by: controller)
    pub schema_hash: [u8; 32],
    /// size of the shared memory (written by: controller)
    pub total_bytes: u64,
    /// where the StatusPage is (written by: controller)
    pub status_offset: u64,
    /// where ThreadSlot\[max_threads\] is (written by: controller)
    pub slots_offset: u64,
    /// where the rings are: ring_bytes each, in slot order (written by: controller)
    pub rings_offset: u64,
    /// where the counters are: counter_bytes each, in slot order; page aligned (written by: controller)
    pub counters_offset: u64,
    /// where FilterRange\[max_filter_ranges\] is (written by: controller)
    pub filters_offset: u64,
    /// counters of one thread; a multiple of the page size (written by: controller)
    pub counter_bytes: u64,
    /// one thread's ring; a power of two (written by: controller)
    pub ring_bytes: u32,
    /// how many slots, rings and counter regions there are (written by: controller)
    pub max_threads: u32,
    /// enum Mode (written by: controller)
    pub mode: u32,
    /// enum OnFull (written by: controller)
    pub on_full: u32,
    /// process id of the controller (written by: controller)
    pub controller_pid: u32,
    /// 1: images mapped later are asked about (request image_filters) (written by: controller:live)
    pub filters_active: u32,
    /// 1: code outside every filter range is recorded (written by: controller)
    pub default_included: u32,
    /// how many filter ranges are valid; grows only (written by: controller:live)
    pub filter_count: u32,
    /// executions by one thread that make code hot, which is laid out anew then; below 65,536; 0: never (written by:
    /// controller)
    pub relayout_executions: u32,
    /// 1: child processes and the programs that processes go on with are followed (written by: controller)
    pub follows: u32,
    /// which region of its file this is: it starts at region * total_bytes (written by: controller)
    pub region: u32,
    /// who adopts orphans natively, where the controller does now: their parent as they are told; 0: tell the truth
    /// (written by: controller)
    pub reaper_pid: u32,
    /// mode region: from this level on a thread is busy (written by: controller)
    pub busy_limit: u32,
    /// the thread of the controller's that traces the program's now and then, to stop them (written by: controller)
    pub controller_tid: u32,
    /// where CapturePlace\[max_captures\] is, and behind it max_capture_bytes of forms (written by: controller)
    pub captures_offset: u64,
    /// where u64\[max_prefetched\] is, addresses of code that is to be translated before it is executed: number N at
    /// index N modulo max_prefetched (StatusPage.prefetch_count) (written by: controller)
    pub prefetch_offset: u64,
    /// where aggregates_bytes of tables of aggregates are: an AggregateHead each, and its rows (written by: controller)
    pub aggregates_offset: u64,
    /// where the windows of open calls are: call_window_bytes each, in slot order; page aligned (written by:
    /// controller)
    pub calls_offset: u64,
    /// where ProbeSite\[max_probes\] is (written by: controller)
    pub probes_offset: u64,
    /// where two tables of TrapRow\[max_traps\] are (written by: controller)
    pub traps_offset: u64,
    /// where PatchRow\[max_patches\] is (written by: controller)
    pub patches_offset: u64,
    /// where unwind_bytes are for unwinding: two directories of UnwindImage\[max_unwind_images\], then tables (written
    /// by: controller)
    pub unwind_offset: u64,
    /// zero (written by: controller)
    pub reserved: [u8; 32],
}
const _: () = assert!(core::mem::size_of::<SessionHeader>() == 256);
const _: () = assert!(core::mem::offset_of!(SessionHeader, magic) == 0);
const _: () = assert!(core::mem::offset_of!(SessionHeader, version) == 8);
const _: () = assert!(core::mem::offset_of!(SessionHeader, header_bytes) == 12);
const _: () = assert!(core::mem::offset_of!(SessionHeader, schema_hash) == 16);
const _: () = assert!(core::mem::offset_of!(SessionHeader, total_bytes) == 48);
const _: () = assert!(core::mem::offset_of!(SessionHeader, status_offset) == 56);
const _: () = assert!(core::mem::offset_of!(SessionHeader, slots_offset) == 64);
const _: () = assert!(core::mem::offset_of!(SessionHeader, rings_offset) == 72);
const _: () = assert!(core::mem::offset_of!(SessionHeader, counters_offset) == 80);
const _: () = assert!(core::mem::offset_of!(SessionHeader, filters_offset) == 88);
const _: () = assert!(core::mem::offset_of!(SessionHeader, counter_bytes) == 96);
const _: () = assert!(core::mem::offset_of!(SessionHeader, ring_bytes) == 104);
const _: () = assert!(core::mem::offset_of!(SessionHeader, max_threads) == 108);
const _: () = assert!(core::mem::offset_of!(SessionHeader, mode) == 112);
const _: () = assert!(core::mem::offset_of!(SessionHeader, on_full) == 116);
const _: () = assert!(core::mem::offset_of!(SessionHeader, controller_pid) == 120);
const _: () = assert!(core::mem::offset_of!(SessionHeader, filters_active) == 124);
const _: () = assert!(core::mem::offset_of!(SessionHeader, default_included) == 128);
const _: () = assert!(core::mem::offset_of!(SessionHeader, filter_count) == 132);
const _: () = assert!(core::mem::offset_of!(SessionHeader, relayout_executions) == 136);
const _: () = assert!(core::mem::offset_of!(SessionHeader, follows) == 140);
const _: () = assert!(core::mem::offset_of!(SessionHeader, region) == 144);
const _: () = assert!(core::mem::offset_of!(SessionHeader, reaper_pid) == 148);
const _: () = assert!(core::mem::offset_of!(SessionHeader, busy_limit) == 152);
const _: () = assert!(core::mem::offset_of!(SessionHeader, controller_tid) == 156);
const _: () = assert!(core::mem::offset_of!(SessionHeader, captures_offset) == 160);
const _: () = assert!(core::mem::offset_of!(SessionHeader, prefetch_offset) == 168);
const _: () = assert!(core::mem::offset_of!(SessionHeader, aggregates_offset) == 176);
const _: () = assert!(core::mem::offset_of!(SessionHeader, calls_offset) == 184);
const _: () = assert!(core::mem::offset_of!(SessionHeader, probes_offset) == 192);
const _: () = assert!(core::mem::offset_of!(SessionHeader, traps_offset) == 200);
const _: () = assert!(core::mem::offset_of!(SessionHeader, patches_offset) == 208);
const _: () = assert!(core::mem::offset_of!(SessionHeader, unwind_offset) == 216);
const _: () = assert!(core::mem::offset_of!(SessionHeader, reserved) == 224);

/// Code that is mapped, and where its table for unwinding is. Sorted by address.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UnwindImage {
    /// address of the first byte (written by: controller:live)
    pub start: u64,
    /// and behind the last (written by: controller:live)
    pub end: u64,
    /// from where places in the table are counted (written by: controller:live)
    pub base: u64,
    /// enum UnwindKind (written by: controller:live)
    pub kind: u32,
    /// where the UnwindTable is, from unwind_offset on (written by: controller:live)
    pub table: u32,
}
const _: () = assert!(core::mem::size_of::<UnwindImage>() == 32);
const _: () = assert!(core::mem::offset_of!(UnwindImage, start) == 0);
const _: () = assert!(core::mem::offset_of!(UnwindImage, end) == 8);
const _: () = assert!(core::mem::offset_of!(UnwindImage, base) == 16);
const _: () = assert!(core::mem::offset_of!(UnwindImage, kind) == 24);
const _: () = assert!(core::mem::offset_of!(UnwindImage, table) == 28);

/// A table for unwinding. Behind it: u32\[n_buckets + 1\], for each piece of code of 1 << bucket_log2 bytes, from first
/// on, the number of the first row of it or behind it; up to the next multiple of 8 bytes; then u64\[n_rows\], sorted:
/// a place in the upper half, in the lower one the rule from there on, up to the next one's place
/// (pathcodec/src/frame_rules.rs).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UnwindTable {
    /// the first row's place (written by: controller:live)
    pub first: u32,
    /// binary logarithm of a bucket's bytes of code (written by: controller:live)
    pub bucket_log2: u32,
    /// how many rows (written by: controller:live)
    pub n_rows: u32,
    /// how many buckets (written by: controller:live)
    pub n_buckets: u32,
}
const _: () = assert!(core::mem::size_of::<UnwindTable>() == 16);
const _: () = assert!(core::mem::offset_of!(UnwindTable, first) == 0);
const _: () = assert!(core::mem::offset_of!(UnwindTable, bucket_log2) == 4);
const _: () = assert!(core::mem::offset_of!(UnwindTable, n_rows) == 8);
const _: () = assert!(core::mem::offset_of!(UnwindTable, n_buckets) == 12);

/// What a backtrace begins with, as it is captured.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BacktraceHead {
    /// enum BacktraceEnd (written by: runtime:thread)
    pub end: u8,
    /// 1: the last frame was interrupted where it is; else it goes on there behind a call (written by: runtime:thread)
    pub is_place: u8,
    /// 1: the last frame's frame pointer is known (written by: runtime:thread)
    pub has_frame_pointer: u8,
    /// zero (written by: runtime:thread)
    pub reserved: u8,
    /// how many addresses there are (written by: runtime:thread)
    pub n_frames: u32,
}
const _: () = assert!(core::mem::size_of::<BacktraceHead>() == 8);
const _: () = assert!(core::mem::offset_of!(BacktraceHead, end) == 0);
const _: () = assert!(core::mem::offset_of!(BacktraceHead, is_place) == 1);
const _: () = assert!(core::mem::offset_of!(BacktraceHead, has_frame_pointer) == 2);
const _: () = assert!(core::mem::offset_of!(BacktraceHead, reserved) == 3);
const _: () = assert!(core::mem::offset_of!(BacktraceHead, n_frames) == 4);

/// What the program's code held where the controller has written over it for probes, and counters that it has raised
/// for them: the runtime's task writes that back, should the controller be gone.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PatchRow {
    /// of the first byte (written by: controller:live)
    pub address: u64,
    /// how many bytes; 0 of a counter (written by: controller:live)
    pub size: u32,
    /// by how much the 16 bits there were raised; 0 of code (written by: controller:live)
    pub raised: u32,
    /// the bytes (written by: controller:live)
    pub content: [u8; 16],
}
const _: () = assert!(core::mem::size_of::<PatchRow>() == 32);
const _: () = assert!(core::mem::offset_of!(PatchRow, address) == 0);
const _: () = assert!(core::mem::offset_of!(PatchRow, size) == 8);
const _: () = assert!(core::mem::offset_of!(PatchRow, raised) == 12);
const _: () = assert!(core::mem::offset_of!(PatchRow, content) == 16);

/// Where a thread goes on that traps at an address, for the sake of a probe. Sorted by address.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TrapRow {
    /// of the byte that traps (written by: controller:live)
    pub address: u64,
    /// where the thread goes on (written by: controller:live)
    pub target: u64,
}
const _: () = assert!(core::mem::size_of::<TrapRow>() == 16);
const _: () = assert!(core::mem::offset_of!(TrapRow, address) == 0);
const _: () = assert!(core::mem::offset_of!(TrapRow, target) == 8);

/// A place of the program's own code that leads to a handler of its own while the process is probed, and is not
/// followed. The controller puts the handler to its place, and leads the code there; the runtime makes its code.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProbeSite {
    /// address of the instruction that is probed, as events have it (written by: controller:live)
    pub pc: u64,
    /// where the handler will be (written by: controller:live)
    pub code: u64,
    /// where the thread goes on behind it: within 2 GiB of code (written by: controller:live)
    pub resume: u64,
    /// how many bytes the handler may have (written by: controller:live)
    pub room: u32,
    /// enum ProbeState (written by: both)
    pub state: u32,
    /// where its code lies, in the runtime's own memory, as long as the table is not changed again (written by:
    /// runtime)
    pub made: u64,
    /// bytes of it, or that it would have, where these are more than it may have (written by: runtime)
    pub size: u32,
    /// zero (written by: runtime)
    pub reserved: u32,
    /// how often a thread came there and took nothing: a probe of its own was interrupted by a signal's handler, or
    /// there was no slot for it (written by: runtime)
    pub missed: u64,
    /// what is taken there: the captures whose CapturePlace has that as its pc. Many places where the same is taken
    /// have one (written by: controller:live)
    pub place: u64,
}
const _: () = assert!(core::mem::size_of::<ProbeSite>() == 64);
const _: () = assert!(core::mem::offset_of!(ProbeSite, pc) == 0);
const _: () = assert!(core::mem::offset_of!(ProbeSite, code) == 8);
const _: () = assert!(core::mem::offset_of!(ProbeSite, resume) == 16);
const _: () = assert!(core::mem::offset_of!(ProbeSite, room) == 24);
const _: () = assert!(core::mem::offset_of!(ProbeSite, state) == 28);
const _: () = assert!(core::mem::offset_of!(ProbeSite, made) == 32);
const _: () = assert!(core::mem::offset_of!(ProbeSite, size) == 40);
const _: () = assert!(core::mem::offset_of!(ProbeSite, reserved) == 44);
const _: () = assert!(core::mem::offset_of!(ProbeSite, missed) == 48);
const _: () = assert!(core::mem::offset_of!(ProbeSite, place) == 56);

/// Code from start up to end is recorded or not; of several ranges that hold an address the last counts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FilterRange {
    /// first address (written by: controller:live)
    pub start: u64,
    /// first address past the range (written by: controller:live)
    pub end: u64,
    /// 1 recorded, 0 followed only (written by: controller:live)
    pub included: u64,
}
const _: () = assert!(core::mem::size_of::<FilterRange>() == 24);
const _: () = assert!(core::mem::offset_of!(FilterRange, start) == 0);
const _: () = assert!(core::mem::offset_of!(FilterRange, end) == 8);
const _: () = assert!(core::mem::offset_of!(FilterRange, included) == 16);

/// What a form begins with. Behind it: n_operations CaptureInstruction, n_fields u16, data_bytes of data.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CaptureForm {
    /// how many operations there are (written by: controller:live)
    pub n_operations: u16,
    /// how many values are taken: each is the number of an operation (written by: controller:live)
    pub n_fields: u16,
    /// the operation where whose value is 0 or missing nothing is taken; no_condition: always (written by:
    /// controller:live)
    pub condition: u16,
    /// bytes of literals (written by: controller:live)
    pub data_bytes: u16,
}
const _: () = assert!(core::mem::size_of::<CaptureForm>() == 8);
const _: () = assert!(core::mem::offset_of!(CaptureForm, n_operations) == 0);
const _: () = assert!(core::mem::offset_of!(CaptureForm, n_fields) == 2);
const _: () = assert!(core::mem::offset_of!(CaptureForm, condition) == 4);
const _: () = assert!(core::mem::offset_of!(CaptureForm, data_bytes) == 6);

/// One operation of a form.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CaptureInstruction {
    /// enum CaptureOperation (written by: controller:live)
    pub operation: u8,
    /// enum CaptureType: what it works on (written by: controller:live)
    pub value_type: u8,
    /// the number of an operation before it (written by: controller:live)
    pub a: u16,
    /// the number of another one (written by: controller:live)
    pub b: u16,
    /// zero (written by: controller:live)
    pub reserved: u16,
    /// see enum CaptureOperation (written by: controller:live)
    pub immediate: u64,
}
const _: () = assert!(core::mem::size_of::<CaptureInstruction>() == 16);
const _: () = assert!(core::mem::offset_of!(CaptureInstruction, operation) == 0);
const _: () = assert!(core::mem::offset_of!(CaptureInstruction, value_type) == 1);
const _: () = assert!(core::mem::offset_of!(CaptureInstruction, a) == 2);
const _: () = assert!(core::mem::offset_of!(CaptureInstruction, b) == 4);
const _: () = assert!(core::mem::offset_of!(CaptureInstruction, reserved) == 6);
const _: () = assert!(core::mem::offset_of!(CaptureInstruction, immediate) == 8);

/// What is captured in front of the instruction at pc. Appended to while threads run, moved only while all are stopped;
/// told with a directive.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CapturePlace {
    /// address of the instruction; 0: it is taken where calls of call_kind return; call_places and a number: at that
    /// system call, before it is made (written by: controller:live)
    pub pc: u64,
    /// what a CaptureRecord calls it (written by: controller:live)
    pub number: u32,
    /// enum CaptureAction (written by: controller:live)
    pub action: u32,
    /// where its form is, counted from the end of the table (written by: controller:live)
    pub form_start: u32,
    /// the form's size (written by: controller:live)
    pub form_bytes: u32,
    /// action aggregate: where the table is, counted from SessionHeader.aggregates_offset; a multiple of 128 (written
    /// by: controller:live)
    pub table_start: u32,
    /// how many fields are keys (written by: controller:live)
    pub table_keys: u8,
    /// the binary logarithm of its rows, beside aggregate_probes (written by: controller:live)
    pub table_rows_log2: u8,
    /// 1: a field behind the keys is added up (written by: controller:live)
    pub table_has_values: u8,
    /// 1: u64\[aggregate_buckets\], filled up to a multiple of 128 bytes, are behind each row (written by:
    /// controller:live)
    pub table_has_histograms: u8,
    /// action call: of which kind the call is; any other: 0, or the kind of the calls behind which it is taken. A
    /// number is never used for another form (written by: controller:live)
    pub call_kind: u32,
    /// 1: of calls of call_kind, and they are recorded: those, too, that are over without having returned
    /// (capture_left) (written by: controller:live)
    pub tells_left: u32,
}
const _: () = assert!(core::mem::size_of::<CapturePlace>() == 40);
const _: () = assert!(core::mem::offset_of!(CapturePlace, pc) == 0);
const _: () = assert!(core::mem::offset_of!(CapturePlace, number) == 8);
const _: () = assert!(core::mem::offset_of!(CapturePlace, action) == 12);
const _: () = assert!(core::mem::offset_of!(CapturePlace, form_start) == 16);
const _: () = assert!(core::mem::offset_of!(CapturePlace, form_bytes) == 20);
const _: () = assert!(core::mem::offset_of!(CapturePlace, table_start) == 24);
const _: () = assert!(core::mem::offset_of!(CapturePlace, table_keys) == 28);
const _: () = assert!(core::mem::offset_of!(CapturePlace, table_rows_log2) == 29);
const _: () = assert!(core::mem::offset_of!(CapturePlace, table_has_values) == 30);
const _: () = assert!(core::mem::offset_of!(CapturePlace, table_has_histograms) == 31);
const _: () = assert!(core::mem::offset_of!(CapturePlace, call_kind) == 32);
const _: () = assert!(core::mem::offset_of!(CapturePlace, tells_left) == 36);

/// In front of the rows of a table of aggregates.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AggregateHead {
    /// how often a key found no room (written by: runtime)
    pub n_left_out: u64,
    /// zero (written by: runtime)
    pub reserved: [u8; 120],
}
const _: () = assert!(core::mem::size_of::<AggregateHead>() == 128);
const _: () = assert!(core::mem::offset_of!(AggregateHead, n_left_out) == 0);
const _: () = assert!(core::mem::offset_of!(AggregateHead, reserved) == 8);

/// What was added up of one key. A free one is all zeros.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AggregateRow {
    /// 0: free; 1: a thread is about to write keys; 2, and from bit 2 on a bit for each key that is missing: ready
    /// (written by: runtime)
    pub state: u64,
    /// a word for each key, which is how many bytes there are where the key is bytes; then the bytes of all that are,
    /// as far as there is room (written by: runtime)
    pub keys: [u64; 8],
    /// how often (written by: runtime)
    pub count: u64,
    /// the sum of the values; of floating-point numbers an f64 (written by: runtime)
    pub sum_low: u64,
    /// the upper half of the sum of integers (written by: runtime)
    pub sum_high: u64,
    /// the least value, of its type; of floating-point numbers an f64 (written by: runtime)
    pub least: u64,
    /// the greatest one (written by: runtime)
    pub most: u64,
    /// how often the value was missing (written by: runtime)
    pub n_missing: u64,
    /// zero (written by: runtime)
    pub reserved: u64,
}
const _: () = assert!(core::mem::size_of::<AggregateRow>() == 128);
const _: () = assert!(core::mem::offset_of!(AggregateRow, state) == 0);
const _: () = assert!(core::mem::offset_of!(AggregateRow, keys) == 8);
const _: () = assert!(core::mem::offset_of!(AggregateRow, count) == 72);
const _: () = assert!(core::mem::offset_of!(AggregateRow, sum_low) == 80);
const _: () = assert!(core::mem::offset_of!(AggregateRow, sum_high) == 88);
const _: () = assert!(core::mem::offset_of!(AggregateRow, least) == 96);
const _: () = assert!(core::mem::offset_of!(AggregateRow, most) == 104);
const _: () = assert!(core::mem::offset_of!(AggregateRow, n_missing) == 112);
const _: () = assert!(core::mem::offset_of!(AggregateRow, reserved) == 120);

/// What is changed at one instruction of a block, in the order of their addresses. Behind it: n_pieces BlockPiece, each
/// with its bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BlockChange {
    /// where the instruction is, counted from the block's start (written by: controller:live)
    pub offset: u16,
    /// 1: it is not executed (written by: controller:live)
    pub is_dropped: u8,
    /// how many pieces of code are added (written by: controller:live)
    pub n_pieces: u8,
}
const _: () = assert!(core::mem::size_of::<BlockChange>() == 4);
const _: () = assert!(core::mem::offset_of!(BlockChange, offset) == 0);
const _: () = assert!(core::mem::offset_of!(BlockChange, is_dropped) == 2);
const _: () = assert!(core::mem::offset_of!(BlockChange, n_pieces) == 3);

/// Code that is added at an instruction. Behind it: its bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BlockPiece {
    /// enum PiecePlace (written by: controller:live)
    pub place: u8,
    /// enum PieceKind (written by: controller:live)
    pub kind: u8,
    /// bytes of code (written by: controller:live)
    pub size_bytes: u16,
}
const _: () = assert!(core::mem::size_of::<BlockPiece>() == 4);
const _: () = assert!(core::mem::offset_of!(BlockPiece, place) == 0);
const _: () = assert!(core::mem::offset_of!(BlockPiece, kind) == 1);
const _: () = assert!(core::mem::offset_of!(BlockPiece, size_bytes) == 2);

/// In front of the machine code of an inline piece: what is kept around it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InlinePiece {
    /// the general registers that it changes, a bit each by the architecture's numbers, MAX_INLINE_REGISTERS at most,
    /// none of them the stack pointer (written by: controller:live)
    pub registers: u16,
    /// 1: it changes flags that may be asked for (written by: controller:live)
    pub keeps_flags: u8,
    /// 0 (written by: controller:live)
    pub reserved: u8,
}
const _: () = assert!(core::mem::size_of::<InlinePiece>() == 4);
const _: () = assert!(core::mem::offset_of!(InlinePiece, registers) == 0);
const _: () = assert!(core::mem::offset_of!(InlinePiece, keeps_flags) == 2);
const _: () = assert!(core::mem::offset_of!(InlinePiece, reserved) == 3);

/// What the runtime says of itself. Read by the controller as untrusted input.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StatusPage {
    /// enum RuntimeState (written by: runtime)
    pub state: u32,
    /// first ErrorCode (written by: runtime)
    pub error: u32,
    /// what the error is about (written by: runtime)
    pub error_detail: [u64; 4],
    /// how many counters are given out: the part of each counter region that holds something (written by: runtime)
    pub counters_used: u64,
    /// time stamp counter when the runtime started (written by: runtime)
    pub start_tsc: u64,
    /// CLOCK_MONOTONIC at start_tsc, nanoseconds (written by: runtime)
    pub start_ns: u64,
    /// time stamp counter at the latest thread end (written by: runtime)
    pub last_tsc: u64,
    /// CLOCK_MONOTONIC at last_tsc, nanoseconds (written by: runtime)
    pub last_ns: u64,
    /// records dropped (written by: runtime)
    pub lost_records: u64,
    /// threads refused (EAGAIN): no slot was free, or no memory for it (written by: runtime)
    pub lost_threads: u64,
    /// fragments made after the counters were used up (written by: runtime)
    pub uncounted_fragments: u64,
    /// times a thread waited for room in its ring (written by: runtime)
    pub waits: u64,
    /// fragments translated (written by: runtime)
    pub fragments: u64,
    /// application instructions in them (written by: runtime)
    pub instructions_translated: u64,
    /// code cache in use (written by: runtime)
    pub cache_bytes: u64,
    /// exits linked (written by: runtime)
    pub links: u64,
    /// exits unlinked (written by: runtime)
    pub unlinks: u64,
    /// fragments dropped because their code went or changed (written by: runtime)
    pub invalidated: u64,
    /// dispatcher entries by an unlinked direct exit (written by: runtime)
    pub entries_exit: u64,
    /// dispatcher entries by an indirect branch that no table knew (written by: runtime)
    pub entries_indirect: u64,
    /// system calls handled by the dispatcher (written by: runtime)
    pub entries_syscall: u64,
    /// signals delivered (written by: runtime)
    pub entries_signal: u64,
    /// pairs of source and target found at run time (written by: runtime)
    pub dynamic_edges: u64,
    /// the runtime's own memory (written by: runtime)
    pub heap_bytes: u64,
    /// pieces of the code cache (written by: runtime)
    pub slabs: u64,
    /// while 1 the first thread waits (futex) before its first instruction (written by: controller:live)
    pub pause_ticket: u32,
    /// while not 0 threads that come to the dispatcher park for the controller, which holds them by ptrace; another
    /// number each time: who goes on takes that one for given up (written by: controller:live)
    pub detach_ticket: u32,
    /// hot fragments that went out of use to be translated again (written by: runtime)
    pub relaid: u64,
    /// one more each time a thread begins to wait for the controller, which waits for that (futex) (written by:
    /// runtime)
    pub doorbell: u32,
    /// one more each second: threads wait for the controller as long as it goes on (written by: controller:live)
    pub heartbeat: u32,
    /// requests that got no answer in time: a child, a program or an image that may not be followed (written by:
    /// runtime)
    pub unanswered: u64,
    /// slots from this one on were never used: nobody looks at them, so they take no memory (written by: runtime)
    pub slots_used: u64,
    /// pages of code that may be written, protected instead of compared each time (written by: runtime)
    pub trusted_pages: u64,
    /// writes to such pages (written by: runtime)
    pub trust_ends: u64,
    /// lookups of an indirect branch in its thread's table that missed, and that the table of all threads answered
    /// (written by: runtime)
    pub table_misses: u64,
    /// mode region: fragments made after the numbers of blocks were used up (written by: runtime)
    pub untagged_fragments: u64,
    /// while not 0 threads that come to the dispatcher are stopped there (RequestKind.hold) (written by:
    /// controller:live)
    pub hold_ticket: u32,
    /// one more each time that breakpoints, filters, records_order or code were changed; every thread carries that out
    /// before it executes anything more (written by: controller:live)
    pub directive_count: u32,
    /// how many breakpoints are valid (written by: controller:live)
    pub breakpoint_count: u32,
    /// modes counts and full: 1: the order of execution is recorded from now on; 3: accesses to memory are as well; 0:
    /// neither. Changed while all threads are stopped, with a directive (written by: controller:live)
    pub records_order: u32,
    /// addresses of instructions in front of which threads stop (RequestKind.hold) (written by: controller:live)
    pub breakpoints: [u64; 32],
    /// mode full: bytes of paths a second that the process may record; 2^64 - 1: all of them (written by:
    /// controller:live)
    pub budget: u64,
    /// mode full: times that a thread's path was left out from then on (written by: runtime)
    pub thinned: u64,
    /// times that a thread went to code that is not 64-bit code (written by: runtime)
    pub excursions: u64,
    /// instructions executed there, which are not counted (written by: runtime)
    pub uncounted_instructions: u64,
    /// enum ReleaseReason: why the controller detaches; 0: because it was told to (written by: controller:live)
    pub detach_reason: u32,
    /// 1: another process may write to the code whatever is protected, so all of it counts as writable; told with a
    /// directive (written by: controller:live)
    pub is_written: u32,
    /// addresses of pages of code that changed behind the process' back: the last ones told, page number N at index N
    /// modulo 32 (written by: controller:live)
    pub changed_pages: [u64; 32],
    /// how many were ever told; told with a directive (written by: controller:live)
    pub changed_count: u32,
    /// the number of a task that shares the memory and is no thread of the process, which is to go on natively; 0:
    /// none; told with a directive (written by: controller:live)
    pub released_task: u32,
    /// how many entries of the table of captures are valid; told with a directive (written by: controller:live)
    pub capture_count: u32,
    /// entries that the runtime could not read as captures (written by: runtime)
    pub refused_captures: u32,
    /// one more each time a thread stops at a capture, while hears_visits is 1 (futex); it rings no doorbell then
    /// (written by: runtime)
    pub visit_bell: u32,
    /// 1: somebody waits for visit_bell (written by: controller:live)
    pub hears_visits: u32,
    /// another number each time that transform_ranges are others, or blocks are to be asked about anew; told with a
    /// directive (written by: controller:live)
    pub transform_ticket: u32,
    /// how many transform_ranges are valid (written by: controller:live)
    pub transform_count: u32,
    /// start and end, in turn, of code whose blocks are asked about before they are translated (HoldReason.block)
    /// (written by: controller:live)
    pub transform_ranges: [u64; 256],
    /// blocks that were asked about (written by: runtime)
    pub blocks_asked: u64,
    /// blocks whose changes the runtime could not take: they are translated as they are (written by: runtime)
    pub blocks_refused: u64,
    /// start and end, in turn, of code that is to be translated anew: the last ones told, range number N at index N
    /// modulo max_invalidated_ranges (written by: controller:live)
    pub invalidated_ranges: [u64; 32],
    /// how many were ever told; told with a directive (written by: controller:live)
    pub invalidated_count: u32,
    /// how many addresses were ever told that are to be translated; told with a directive (written by: controller:live)
    pub prefetch_count: u32,
    /// how many of them were looked at (written by: runtime)
    pub prefetch_done: u32,
    /// zero (written by: runtime)
    pub reserved_prefetch: u32,
    /// blocks that were translated because of that (written by: runtime)
    pub prefetched: u64,
    /// addresses of them that hold no code which could be translated (written by: runtime)
    pub prefetch_refused: u64,
    /// times that a thread was no longer followed, and went on natively (written by: runtime)
    pub native_runs: u64,
    /// system calls of such threads, each of which comes to the dispatcher (written by: runtime)
    pub native_calls: u64,
    /// 1: threads that begin are not followed (written by: controller:live)
    pub unfollows_new: u32,
    /// zero (written by: runtime)
    pub reserved_calls: u32,
    /// calls whose returns were to be captured, and are not: there is no room for it where they return, or a signal
    /// came where several returned at once; the controller adds those that were open at the end, and lost
    /// (CallsHead.others) (written by: runtime)
    pub calls_forgotten: u64,
    /// operations of io_uring that were submitted where nobody looked, as a thread of the kernel's takes them, or of
    /// which only a result was seen (written by: runtime)
    pub ring_submissions_unseen: u64,
    /// results of io_uring that were overwritten before anybody looked (written by: runtime)
    pub ring_completions_unseen: u64,
    /// the time stamp counter when the table of captures was written: calls that threads were in then are taken to
    /// begin there (written by: controller:live)
    pub captures_tsc: u64,
    /// role probes: another number each time that captures or probes are others, or is_leaving is set (futex) (written
    /// by: controller:live)
    pub probe_ticket: u32,
    /// role probes: up to which of them all was done (futex) (written by: runtime)
    pub probe_done: u32,
    /// role probes: how many entries of the table of probes are valid (written by: controller:live)
    pub probe_count: u32,
    /// role probes: 1: no code leads here any more, the runtime's own task ends (written by: controller:live)
    pub probes_leave: u32,
    /// role probes: the number of that task (written by: runtime)
    pub probe_task: u32,
    /// zero (written by: runtime)
    pub reserved_probes: u32,
    /// role probes: the handler that the controller has the process have for SIGTRAP and SIGILL while code traps for
    /// the sake of probes (written by: runtime)
    pub trap_handler: u64,
    /// role probes: and what that returns to (written by: runtime)
    pub trap_restorer: u64,
    /// role probes: which table of traps is the one, in the lowest bit; above it how many entries it has, in 31 bits;
    /// and how many tables were written (written by: controller:live)
    pub trap_table: u64,
    /// role probes: the program's own actions for SIGTRAP and for SIGILL, as rt_sigaction has them: handler, flags,
    /// restorer, mask (written by: controller:live)
    pub trap_actions: [u64; 8],
    /// role probes: how many entries of the table of patches are valid (written by: controller:live)
    pub patch_count: u32,
    /// zero (written by: runtime)
    pub reserved_patches: u32,
    /// role probes: a system call instruction for the controller's use in the runtime's task, behind which that serves
    /// anew (written by: runtime)
    pub task_call: u64,
    /// role probes: which directory of tables for unwinding is the one, in the lowest bit; in 15 bits above it how many
    /// entries it has; above that a number that is another one each time (written by: controller:live)
    pub unwind_state: u64,
    /// zero (written by: runtime)
    pub reserved: [u8; 664],
}
const _: () = assert!(core::mem::size_of::<StatusPage>() == 4096);
const _: () = assert!(core::mem::offset_of!(StatusPage, state) == 0);
const _: () = assert!(core::mem::offset_of!(StatusPage, error) == 4);
const _: () = assert!(core::mem::offset_of!(StatusPage, error_detail) == 8);
const _: () = assert!(core::mem::offset_of!(StatusPage, counters_used) == 40);
const _: () = assert!(core::mem::offset_of!(StatusPage, start_tsc) == 48);
const _: () = assert!(core::mem::offset_of!(StatusPage, start_ns) == 56);
const _: () = assert!(core::mem::offset_of!(StatusPage, last_tsc) == 64);
const _: () = assert!(core::mem::offset_of!(StatusPage, last_ns) == 72);
const _: () = assert!(core::mem::offset_of!(StatusPage, lost_records) == 80);
const _: () = assert!(core::mem::offset_of!(StatusPage, lost_threads) == 88);
const _: () = assert!(core::mem::offset_of!(StatusPage, uncounted_fragments) == 96);
const _: () = assert!(core::mem::offset_of!(StatusPage, waits) == 104);
const _: () = assert!(core::mem::offset_of!(StatusPage, fragments) == 112);
const _: () = assert!(core::mem::offset_of!(StatusPage, instructions_translated) == 120);
const _: () = assert!(core::mem::offset_of!(StatusPage, cache_bytes) == 128);
const _: () = assert!(core::mem::offset_of!(StatusPage, links) == 136);
const _: () = assert!(core::mem::offset_of!(StatusPage, unlinks) == 144);
const _: () = assert!(core::mem::offset_of!(StatusPage, invalidated) == 152);
const _: () = assert!(core::mem::offset_of!(StatusPage, entries_exit) == 160);
const _: () = assert!(core::mem::offset_of!(StatusPage, entries_indirect) == 168);
const _: () = assert!(core::mem::offset_of!(StatusPage, entries_syscall) == 176);
const _: () = assert!(core::mem::offset_of!(StatusPage, entries_signal) == 184);
const _: () = assert!(core::mem::offset_of!(StatusPage, dynamic_edges) == 192);
const _: () = assert!(core::mem::offset_of!(StatusPage, heap_bytes) == 200);
const _: () = assert!(core::mem::offset_of!(StatusPage, slabs) == 208);
const _: () = assert!(core::mem::offset_of!(StatusPage, pause_ticket) == 216);
const _: () = assert!(core::mem::offset_of!(StatusPage, detach_ticket) == 220);
const _: () = assert!(core::mem::offset_of!(StatusPage, relaid) == 224);
const _: () = assert!(core::mem::offset_of!(StatusPage, doorbell) == 232);
const _: () = assert!(core::mem::offset_of!(StatusPage, heartbeat) == 236);
const _: () = assert!(core::mem::offset_of!(StatusPage, unanswered) == 240);
const _: () = assert!(core::mem::offset_of!(StatusPage, slots_used) == 248);
const _: () = assert!(core::mem::offset_of!(StatusPage, trusted_pages) == 256);
const _: () = assert!(core::mem::offset_of!(StatusPage, trust_ends) == 264);
const _: () = assert!(core::mem::offset_of!(StatusPage, table_misses) == 272);
const _: () = assert!(core::mem::offset_of!(StatusPage, untagged_fragments) == 280);
const _: () = assert!(core::mem::offset_of!(StatusPage, hold_ticket) == 288);
const _: () = assert!(core::mem::offset_of!(StatusPage, directive_count) == 292);
const _: () = assert!(core::mem::offset_of!(StatusPage, breakpoint_count) == 296);
const _: () = assert!(core::mem::offset_of!(StatusPage, records_order) == 300);
const _: () = assert!(core::mem::offset_of!(StatusPage, breakpoints) == 304);
const _: () = assert!(core::mem::offset_of!(StatusPage, budget) == 560);
const _: () = assert!(core::mem::offset_of!(StatusPage, thinned) == 568);
const _: () = assert!(core::mem::offset_of!(StatusPage, excursions) == 576);
const _: () = assert!(core::mem::offset_of!(StatusPage, uncounted_instructions) == 584);
const _: () = assert!(core::mem::offset_of!(StatusPage, detach_reason) == 592);
const _: () = assert!(core::mem::offset_of!(StatusPage, is_written) == 596);
const _: () = assert!(core::mem::offset_of!(StatusPage, changed_pages) == 600);
const _: () = assert!(core::mem::offset_of!(StatusPage, changed_count) == 856);
const _: () = assert!(core::mem::offset_of!(StatusPage, released_task) == 860);
const _: () = assert!(core::mem::offset_of!(StatusPage, capture_count) == 864);
const _: () = assert!(core::mem::offset_of!(StatusPage, refused_captures) == 868);
const _: () = assert!(core::mem::offset_of!(StatusPage, visit_bell) == 872);
const _: () = assert!(core::mem::offset_of!(StatusPage, hears_visits) == 876);
const _: () = assert!(core::mem::offset_of!(StatusPage, transform_ticket) == 880);
const _: () = assert!(core::mem::offset_of!(StatusPage, transform_count) == 884);
const _: () = assert!(core::mem::offset_of!(StatusPage, transform_ranges) == 888);
const _: () = assert!(core::mem::offset_of!(StatusPage, blocks_asked) == 2936);
const _: () = assert!(core::mem::offset_of!(StatusPage, blocks_refused) == 2944);
const _: () = assert!(core::mem::offset_of!(StatusPage, invalidated_ranges) == 2952);
const _: () = assert!(core::mem::offset_of!(StatusPage, invalidated_count) == 3208);
const _: () = assert!(core::mem::offset_of!(StatusPage, prefetch_count) == 3212);
const _: () = assert!(core::mem::offset_of!(StatusPage, prefetch_done) == 3216);
const _: () = assert!(core::mem::offset_of!(StatusPage, reserved_prefetch) == 3220);
const _: () = assert!(core::mem::offset_of!(StatusPage, prefetched) == 3224);
const _: () = assert!(core::mem::offset_of!(StatusPage, prefetch_refused) == 3232);
const _: () = assert!(core::mem::offset_of!(StatusPage, native_runs) == 3240);
const _: () = assert!(core::mem::offset_of!(StatusPage, native_calls) == 3248);
const _: () = assert!(core::mem::offset_of!(StatusPage, unfollows_new) == 3256);
const _: () = assert!(core::mem::offset_of!(StatusPage, reserved_calls) == 3260);
const _: () = assert!(core::mem::offset_of!(StatusPage, calls_forgotten) == 3264);
const _: () = assert!(core::mem::offset_of!(StatusPage, ring_submissions_unseen) == 3272);
const _: () = assert!(core::mem::offset_of!(StatusPage, ring_completions_unseen) == 3280);
const _: () = assert!(core::mem::offset_of!(StatusPage, captures_tsc) == 3288);
const _: () = assert!(core::mem::offset_of!(StatusPage, probe_ticket) == 3296);
const _: () = assert!(core::mem::offset_of!(StatusPage, probe_done) == 3300);
const _: () = assert!(core::mem::offset_of!(StatusPage, probe_count) == 3304);
const _: () = assert!(core::mem::offset_of!(StatusPage, probes_leave) == 3308);
const _: () = assert!(core::mem::offset_of!(StatusPage, probe_task) == 3312);
const _: () = assert!(core::mem::offset_of!(StatusPage, reserved_probes) == 3316);
const _: () = assert!(core::mem::offset_of!(StatusPage, trap_handler) == 3320);
const _: () = assert!(core::mem::offset_of!(StatusPage, trap_restorer) == 3328);
const _: () = assert!(core::mem::offset_of!(StatusPage, trap_table) == 3336);
const _: () = assert!(core::mem::offset_of!(StatusPage, trap_actions) == 3344);
const _: () = assert!(core::mem::offset_of!(StatusPage, patch_count) == 3408);
const _: () = assert!(core::mem::offset_of!(StatusPage, reserved_patches) == 3412);
const _: () = assert!(core::mem::offset_of!(StatusPage, task_call) == 3416);
const _: () = assert!(core::mem::offset_of!(StatusPage, unwind_state) == 3424);
const _: () = assert!(core::mem::offset_of!(StatusPage, reserved) == 3432);

/// One thread's row. The ring's bytes from ring_tail up to ring_head (both count all bytes ever, modulo ring_bytes they
/// are places) are whole records.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ThreadSlot {
    /// enum SlotState (written by: both)
    pub state: u32,
    /// thread id (written by: runtime:thread)
    pub tid: u32,
    /// bytes ever written (written by: runtime:thread)
    pub ring_head: u64,
    /// time stamp counter at its start (written by: runtime:thread)
    pub start_tsc: u64,
    /// time stamp counter at its end; 0 while it runs (written by: runtime:thread)
    pub end_tsc: u64,
    /// enum EndKind (written by: runtime:thread)
    pub end_kind: u32,
    /// who created it; 0 for the first (written by: runtime:thread)
    pub parent_tid: u32,
    /// records of this thread dropped (written by: runtime:thread)
    pub lost_records: u64,
    /// its name at its end, zero padded; empty while it runs (written by: runtime:thread)
    pub name: [u8; 16],
    /// bytes ever read (written by: controller:live)
    pub ring_tail: u64,
    /// 1 while the thread waits for ring_tail to move (written by: runtime:thread)
    pub ring_waiters: u32,
    /// 1: the thread is not followed, and runs natively where it can; told with a directive. As unfollows_new has it
    /// for a thread that begins (written by: both)
    pub is_unfollowed: u32,
    /// what the controller answered, where that is more than a number (enum RequestKind) (written by: controller:live)
    pub request_answer: [u64; 4],
    /// zero (written by: controller:live)
    pub reserved_answer: [u8; 16],
    /// enum RequestKind (written by: both)
    pub request_kind: u32,
    /// what the controller answered (written by: controller:live)
    pub request_reply: u32,
    /// what is asked about (written by: runtime:thread)
    pub request_arguments: [u64; 4],
    /// the process id of the child that the thread made last, and, in the upper half, the region in which that is to
    /// begin; the controller sets it back to 0 when it has taken note (written by: both)
    pub born_child: u64,
    /// role probes: the process whose thread it is, one of forks' children perhaps (written by: runtime:thread)
    pub process: u32,
    /// zero (written by: runtime:thread)
    pub reserved: [u8; 76],
    /// request hold: the program's rax rcx rdx rbx rsp rbp rsi rdi r8 to r15, rip and flags (written by:
    /// runtime:thread)
    pub held_registers: [u64; 18],
    /// request hold: the low halves of the first vector registers, where functions have floating-point arguments and
    /// results (written by: runtime:thread)
    pub held_vectors: [u64; 8],
    /// request hold: the thread pointer, from which thread-local variables are found (written by: runtime:thread)
    pub held_thread_pointer: u64,
    /// request hold: CaptureContext.behind (written by: runtime:thread)
    pub held_behind: u64,
    /// zero (written by: runtime:thread)
    pub reserved_more: [u8; 32],
}
const _: () = assert!(core::mem::size_of::<ThreadSlot>() == 512);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, state) == 0);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, tid) == 4);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, ring_head) == 8);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, start_tsc) == 16);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, end_tsc) == 24);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, end_kind) == 32);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, parent_tid) == 36);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, lost_records) == 40);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, name) == 48);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, ring_tail) == 64);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, ring_waiters) == 72);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, is_unfollowed) == 76);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, request_answer) == 80);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, reserved_answer) == 112);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, request_kind) == 128);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, request_reply) == 132);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, request_arguments) == 136);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, born_child) == 168);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, process) == 176);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, reserved) == 180);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, held_registers) == 256);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, held_vectors) == 400);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, held_thread_pointer) == 464);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, held_behind) == 472);
const _: () = assert!(core::mem::offset_of!(ThreadSlot, reserved_more) == 480);

/// A call that is open and whose return is captured. What is still there when its thread is no more never returned.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpenCall {
    /// in front of the function's first instruction, written last; 0: no call is here (written by: runtime:thread)
    pub stack_pointer: u64,
    /// where it returns to (written by: runtime:thread)
    pub return_pc: u64,
    /// the function's first instruction; of a system call where it was made (written by: runtime:thread)
    pub function: u64,
    /// time stamp counter when it began (written by: runtime:thread)
    pub tsc: u64,
    /// CapturePlace.call_kind (written by: runtime:thread)
    pub kind: u32,
    /// a bit for each value: it is missing (written by: runtime:thread)
    pub missing: u32,
    /// the bytes that it keeps: the lowest 16 bits are how many cells they take, the next 16 the first of these; 0:
    /// there are none. In there each value's field and size, u16, then its bytes, one behind the other, up to a field
    /// of 0xffff (written by: runtime:thread)
    pub texts: u64,
    /// what is kept; of bytes how many there are. Anything behind the last (written by: runtime:thread)
    pub values: [u64; 26],
}
const _: () = assert!(core::mem::size_of::<OpenCall>() == 256);
const _: () = assert!(core::mem::offset_of!(OpenCall, stack_pointer) == 0);
const _: () = assert!(core::mem::offset_of!(OpenCall, return_pc) == 8);
const _: () = assert!(core::mem::offset_of!(OpenCall, function) == 16);
const _: () = assert!(core::mem::offset_of!(OpenCall, tsc) == 24);
const _: () = assert!(core::mem::offset_of!(OpenCall, kind) == 32);
const _: () = assert!(core::mem::offset_of!(OpenCall, missing) == 36);
const _: () = assert!(core::mem::offset_of!(OpenCall, texts) == 40);
const _: () = assert!(core::mem::offset_of!(OpenCall, values) == 48);

/// Of a thread's window of open calls.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CallsHead {
    /// calls that are open, and for which there is no place in the window (written by: runtime)
    pub others: u64,
    /// zero (written by: runtime)
    pub reserved: [u8; 4088],
}
const _: () = assert!(core::mem::size_of::<CallsHead>() == 4096);
const _: () = assert!(core::mem::offset_of!(CallsHead, others) == 0);
const _: () = assert!(core::mem::offset_of!(CallsHead, reserved) == 8);

/// Written by the controller into the target's private memory before the runtime runs; its address is in rdi at the
/// image's entry.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct StartBlock {
    /// where the shared memory is mapped
    pub shared_base: u64,
    /// its size
    pub shared_bytes: u64,
    /// where the runtime image is mapped
    pub image_base: u64,
    /// its size in memory
    pub image_bytes: u64,
    /// address space reserved (PROT_NONE) for threads' private blocks: max_threads * thread_stride_bytes
    pub private_base: u64,
    /// its size
    pub private_bytes: u64,
    /// address space reserved (PROT_NONE) for the runtime's own tables
    pub heap_base: u64,
    /// its size
    pub heap_bytes: u64,
    /// the application's rax rcx rdx rbx rsp rbp rsi rdi r8 to r15
    pub registers: [u64; 16],
    /// where the application starts
    pub rip: u64,
    /// its flags
    pub rflags: u64,
    /// its fs base
    pub fs_base: u64,
    /// its gs base
    pub gs_base: u64,
    /// how many ranges follow
    pub range_count: u32,
    /// 1: the wrgsbase instruction may be used (AT_HWCAP2 bit 1)
    pub has_fsgsbase: u32,
    /// where the first page of the file of the shared memory is mapped: a fork's child reaches its region from there
    pub anchor_base: u64,
    /// where the ControlBlock is; without threads in it the program was launched, and the registers above are its first
    /// thread's
    pub control_block: u64,
    /// enum Role
    pub role: u32,
    /// zero
    pub reserved: [u8; 4],
    /// executable memory at start: start, end, protection (PROT_*) of each of up to 160 ranges
    pub ranges: [u64; 480],
}
const _: () = assert!(core::mem::size_of::<StartBlock>() == 4096);
const _: () = assert!(core::mem::offset_of!(StartBlock, shared_base) == 0);
const _: () = assert!(core::mem::offset_of!(StartBlock, shared_bytes) == 8);
const _: () = assert!(core::mem::offset_of!(StartBlock, image_base) == 16);
const _: () = assert!(core::mem::offset_of!(StartBlock, image_bytes) == 24);
const _: () = assert!(core::mem::offset_of!(StartBlock, private_base) == 32);
const _: () = assert!(core::mem::offset_of!(StartBlock, private_bytes) == 40);
const _: () = assert!(core::mem::offset_of!(StartBlock, heap_base) == 48);
const _: () = assert!(core::mem::offset_of!(StartBlock, heap_bytes) == 56);
const _: () = assert!(core::mem::offset_of!(StartBlock, registers) == 64);
const _: () = assert!(core::mem::offset_of!(StartBlock, rip) == 192);
const _: () = assert!(core::mem::offset_of!(StartBlock, rflags) == 200);
const _: () = assert!(core::mem::offset_of!(StartBlock, fs_base) == 208);
const _: () = assert!(core::mem::offset_of!(StartBlock, gs_base) == 216);
const _: () = assert!(core::mem::offset_of!(StartBlock, range_count) == 224);
const _: () = assert!(core::mem::offset_of!(StartBlock, has_fsgsbase) == 228);
const _: () = assert!(core::mem::offset_of!(StartBlock, anchor_base) == 232);
const _: () = assert!(core::mem::offset_of!(StartBlock, control_block) == 240);
const _: () = assert!(core::mem::offset_of!(StartBlock, role) == 248);
const _: () = assert!(core::mem::offset_of!(StartBlock, reserved) == 252);
const _: () = assert!(core::mem::offset_of!(StartBlock, ranges) == 256);

/// What entering a process that runs already, and leaving any, takes. In the target's private memory: the controller
/// writes the threads, the runtime adds the fields from attach_pc on before any thread enters it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ControlBlock {
    /// where ThreadState\[thread_count\] is
    pub threads: u64,
    /// how many threads there are; 0: the program was launched
    pub thread_count: u32,
    /// enum Stage
    pub stage: u32,
    /// where a thread enters the runtime, with gs base at its context and rsp at its stack_top
    pub attach_pc: u64,
    /// the pc of what parks: behind an int3, rdi holding the address of a ThreadState
    pub parked_pc: u64,
    /// where a thread restores the signal actions and gives the code cache back, then parks once more; one that has
    /// parked in stage leaving gets there by itself
    pub leave_pc: u64,
    /// behind the gate's system call instruction
    pub syscall_return_pc: u64,
    /// where a thread that is sent there from syscall_return_pc makes its system call anew
    pub syscall_again_pc: u64,
    /// the gates: first address
    pub gates_start: u64,
    /// first address past the gates
    pub gates_end: u64,
    /// in a context: u32, 2 set: the thread is to leave the gates for the dispatcher
    pub pending_offset: u32,
    /// in a context: u32, see ThreadState.call_code
    pub call_code_offset: u32,
    /// in a context: the program's alternate stack, a stack_t
    pub signal_stack_offset: u32,
    /// in a context: u32, the thread's id, once the context is its own
    pub tid_offset: u32,
    /// a system call instruction for the controller's use: no seccomp filter that came under the runtime decides about
    /// it
    pub call_pc: u64,
    /// where the program's action for SIGTRAP is, as rt_sigaction takes it: the runtime's own is in place for as long
    /// as threads may park
    pub trap_action: u64,
    /// the pc of what has parked: behind the system call, the next after parked_pc, that makes the program's alternate
    /// stack the kernel's
    pub handover_pc: u64,
    /// in a context: u32, not 0: the thread runs the program's own code, or is about to, since it is not followed
    pub native_offset: u32,
    /// zero
    pub reserved_more: [u8; 12],
}
const _: () = assert!(core::mem::size_of::<ControlBlock>() == 128);
const _: () = assert!(core::mem::offset_of!(ControlBlock, threads) == 0);
const _: () = assert!(core::mem::offset_of!(ControlBlock, thread_count) == 8);
const _: () = assert!(core::mem::offset_of!(ControlBlock, stage) == 12);
const _: () = assert!(core::mem::offset_of!(ControlBlock, attach_pc) == 16);
const _: () = assert!(core::mem::offset_of!(ControlBlock, parked_pc) == 24);
const _: () = assert!(core::mem::offset_of!(ControlBlock, leave_pc) == 32);
const _: () = assert!(core::mem::offset_of!(ControlBlock, syscall_return_pc) == 40);
const _: () = assert!(core::mem::offset_of!(ControlBlock, syscall_again_pc) == 48);
const _: () = assert!(core::mem::offset_of!(ControlBlock, gates_start) == 56);
const _: () = assert!(core::mem::offset_of!(ControlBlock, gates_end) == 64);
const _: () = assert!(core::mem::offset_of!(ControlBlock, pending_offset) == 72);
const _: () = assert!(core::mem::offset_of!(ControlBlock, call_code_offset) == 76);
const _: () = assert!(core::mem::offset_of!(ControlBlock, signal_stack_offset) == 80);
const _: () = assert!(core::mem::offset_of!(ControlBlock, tid_offset) == 84);
const _: () = assert!(core::mem::offset_of!(ControlBlock, call_pc) == 88);
const _: () = assert!(core::mem::offset_of!(ControlBlock, trap_action) == 96);
const _: () = assert!(core::mem::offset_of!(ControlBlock, handover_pc) == 104);
const _: () = assert!(core::mem::offset_of!(ControlBlock, native_offset) == 112);
const _: () = assert!(core::mem::offset_of!(ControlBlock, reserved_more) == 116);

/// A thread's own state outside the runtime: given by the controller when it enters, by the runtime when it has parked.
/// Vector state is in the processor.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ThreadState {
    /// rax rcx rdx rbx rsp rbp rsi rdi r8 to r15
    pub registers: [u64; 16],
    /// where it goes on
    pub rip: u64,
    /// its flags
    pub rflags: u64,
    /// its gs base
    pub gs_base: u64,
    /// its signal mask
    pub mask: u64,
    /// written by the runtime: its context; 0 if it has none
    pub context: u64,
    /// written by the runtime: the end of its stack in the runtime
    pub stack_top: u64,
    /// thread id
    pub tid: u32,
    /// not 0: it is inside the system call at rip, interrupted with this error that the kernel keeps to itself
    /// (ERESTARTSYS 512, ERESTARTNOINTR 513, ERESTARTNOHAND 514, ERESTART_RESTARTBLOCK 516)
    pub call_code: u32,
    /// where its struct rseq is; 0: it has none
    pub rseq_area: u64,
    /// what stands in front of the abort handlers of its critical sections (rseq)
    pub rseq_signature: u32,
    /// selector of the code segment that it goes on in; 0: the one of 64-bit programs
    pub code_selector: u16,
    /// likewise, of the stack
    pub stack_selector: u16,
    /// given: not 0: what is to be captured in front of the instruction at rip was already, by probes in the program's
    /// own code
    pub is_captured: u32,
    /// given: not 0: calls that are open will be in its window of calls when it is told of captures first
    pub has_calls: u32,
    /// zero
    pub reserved: [u8; 48],
}
const _: () = assert!(core::mem::size_of::<ThreadState>() == 256);
const _: () = assert!(core::mem::offset_of!(ThreadState, registers) == 0);
const _: () = assert!(core::mem::offset_of!(ThreadState, rip) == 128);
const _: () = assert!(core::mem::offset_of!(ThreadState, rflags) == 136);
const _: () = assert!(core::mem::offset_of!(ThreadState, gs_base) == 144);
const _: () = assert!(core::mem::offset_of!(ThreadState, mask) == 152);
const _: () = assert!(core::mem::offset_of!(ThreadState, context) == 160);
const _: () = assert!(core::mem::offset_of!(ThreadState, stack_top) == 168);
const _: () = assert!(core::mem::offset_of!(ThreadState, tid) == 176);
const _: () = assert!(core::mem::offset_of!(ThreadState, call_code) == 180);
const _: () = assert!(core::mem::offset_of!(ThreadState, rseq_area) == 184);
const _: () = assert!(core::mem::offset_of!(ThreadState, rseq_signature) == 192);
const _: () = assert!(core::mem::offset_of!(ThreadState, code_selector) == 196);
const _: () = assert!(core::mem::offset_of!(ThreadState, stack_selector) == 198);
const _: () = assert!(core::mem::offset_of!(ThreadState, is_captured) == 200);
const _: () = assert!(core::mem::offset_of!(ThreadState, has_calls) == 204);
const _: () = assert!(core::mem::offset_of!(ThreadState, reserved) == 208);

/// A fragment was translated, because execution came to it. Continuations carry size_bytes of code, then a bit for each
/// byte of code (least significant first): an instruction starts here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FragmentRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// how many continuation records follow (written by: runtime:thread)
    pub continuations: u16,
    /// who wrote it (written by: runtime:thread)
    pub tid: u32,
    /// address of the first instruction (written by: runtime:thread)
    pub app_pc: u64,
    /// target of a direct jump, conditional or call; else 0 (written by: runtime:thread)
    pub target_pc: u64,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// its number, from 0, in the order of translation (written by: runtime:thread)
    pub fragment_id: u32,
    /// conditional: \[i\] taken, \[i+1\] not taken; indirect_jump, indirect_call: none, the sum of its dynamic edges;
    /// return, none: \[i\]; jump, call, fall_through, syscall: \[i\]. no_index: no counters (coverage, or see flags). A
    /// call that runs counts when it is made (written by: runtime:thread)
    pub counter_index: u32,
    /// how often code at this address had changed before (written by: runtime:thread)
    pub code_version: u32,
    /// application bytes (written by: runtime:thread)
    pub size_bytes: u16,
    /// application instructions (written by: runtime:thread)
    pub n_instructions: u16,
    /// enum ExitKind (written by: runtime:thread)
    pub exit_kind: u8,
    /// enum FragmentFlag, added up (written by: runtime:thread)
    pub flags: u8,
    /// zero (written by: runtime:thread)
    pub reserved: [u8; 1],
    /// so many counters behind its own, one for each way out, taken first: how often it was taken and is not to be
    /// added to what it leads to (written by: runtime:thread)
    pub n_misses: u8,
    /// mode region: the number of its block, from 0; what is translated again keeps it. no_index: it is not tagged
    /// (written by: runtime:thread)
    pub region_block: u32,
    /// zero (written by: runtime:thread)
    pub reserved_more: [u8; 8],
}
const _: () = assert!(core::mem::size_of::<FragmentRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, continuations) == 2);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, app_pc) == 8);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, target_pc) == 16);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, tsc) == 24);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, fragment_id) == 32);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, counter_index) == 36);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, code_version) == 40);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, size_bytes) == 44);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, n_instructions) == 46);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, exit_kind) == 48);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, flags) == 49);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, reserved) == 50);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, n_misses) == 51);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, region_block) == 52);
const _: () = assert!(core::mem::offset_of!(FragmentRecord, reserved_more) == 56);

/// What was taken at a capture's place: a word for each field, which means nothing where it is missing, and is how many
/// bytes there are where the field is bytes. Continuations carry the words of the fields that the record does not hold,
/// then the bytes of all that are bytes, in the order of fields.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CaptureRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// how many continuation records follow (written by: runtime:thread)
    pub continuations: u16,
    /// who came there (written by: runtime:thread)
    pub tid: u32,
    /// where; of a call that has returned, the function (written by: runtime:thread)
    pub pc: u64,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// CapturePlace.number, and capture_left, capture_executing (written by: runtime:thread)
    pub number: u32,
    /// a bit for each field, least significant first: it is missing (written by: runtime:thread)
    pub missing: u32,
    /// the words of the first fields; anything behind the last (written by: runtime:thread)
    pub values: [u64; 4],
}
const _: () = assert!(core::mem::size_of::<CaptureRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(CaptureRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(CaptureRecord, continuations) == 2);
const _: () = assert!(core::mem::offset_of!(CaptureRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(CaptureRecord, pc) == 8);
const _: () = assert!(core::mem::offset_of!(CaptureRecord, tsc) == 16);
const _: () = assert!(core::mem::offset_of!(CaptureRecord, number) == 24);
const _: () = assert!(core::mem::offset_of!(CaptureRecord, missing) == 28);
const _: () = assert!(core::mem::offset_of!(CaptureRecord, values) == 32);

/// More payload of the record before it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ContinuationRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// which continuation, from 0 (written by: runtime:thread)
    pub index: u16,
    /// bytes (written by: runtime:thread)
    pub payload: [u8; 60],
}
const _: () = assert!(core::mem::size_of::<ContinuationRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(ContinuationRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(ContinuationRecord, index) == 2);
const _: () = assert!(core::mem::offset_of!(ContinuationRecord, payload) == 4);

/// A pair of source and target was seen for the first time. Its executions are the counter's, of all threads.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DynamicEdgeRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// 0 (written by: runtime:thread)
    pub continuations: u16,
    /// who wrote it (written by: runtime:thread)
    pub tid: u32,
    /// indirect branches and unannounced returns: the first instruction of the source fragment; signal, fault: the
    /// instruction that waits or faulted; sigreturn: the system call's block; start: 0; partial: the first instruction
    /// of the fragment (written by: runtime:thread)
    pub source_pc: u64,
    /// where it goes (written by: runtime:thread)
    pub target_pc: u64,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// the source fragment; no_index where there is none (written by: runtime:thread)
    pub source_fragment_id: u32,
    /// the target fragment; no_index where it is not translated yet (written by: runtime:thread)
    pub target_fragment_id: u32,
    /// its counter; no_index: none (coverage) (written by: runtime:thread)
    pub counter_index: u32,
    /// enum EdgeKind (written by: runtime:thread)
    pub edge_kind: u8,
    /// zero (written by: runtime:thread)
    pub reserved: [u8; 1],
    /// mode full: the number that paths have for this target of the branch or return at the source fragment's end;
    /// no_symbol: none (written by: runtime:thread)
    pub symbol: u16,
    /// zero (written by: runtime:thread)
    pub reserved_more: [u8; 16],
}
const _: () = assert!(core::mem::size_of::<DynamicEdgeRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, continuations) == 2);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, source_pc) == 8);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, target_pc) == 16);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, tsc) == 24);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, source_fragment_id) == 32);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, target_fragment_id) == 36);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, counter_index) == 40);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, edge_kind) == 44);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, reserved) == 45);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, symbol) == 46);
const _: () = assert!(core::mem::offset_of!(DynamicEdgeRecord, reserved_more) == 48);

/// Coverage: an exit was taken for the first time. Else the source is a leader of the target from now on: it leads
/// there by this way out past what counts the target. How often it took the way, less that way's misses
/// (FragmentRecord.n_misses), is to be added to the target's counter, to the one of both ways if it has two.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LinkRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// 0 (written by: runtime:thread)
    pub continuations: u16,
    /// who wrote it (written by: runtime:thread)
    pub tid: u32,
    /// first instruction of the source fragment (written by: runtime:thread)
    pub source_pc: u64,
    /// where it goes (written by: runtime:thread)
    pub target_pc: u64,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// the source fragment (written by: runtime:thread)
    pub source_fragment_id: u32,
    /// the target fragment (written by: runtime:thread)
    pub target_fragment_id: u32,
    /// enum EdgeKind (written by: runtime:thread)
    pub edge_kind: u8,
    /// zero (written by: runtime:thread)
    pub reserved: [u8; 23],
}
const _: () = assert!(core::mem::size_of::<LinkRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(LinkRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(LinkRecord, continuations) == 2);
const _: () = assert!(core::mem::offset_of!(LinkRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(LinkRecord, source_pc) == 8);
const _: () = assert!(core::mem::offset_of!(LinkRecord, target_pc) == 16);
const _: () = assert!(core::mem::offset_of!(LinkRecord, tsc) == 24);
const _: () = assert!(core::mem::offset_of!(LinkRecord, source_fragment_id) == 32);
const _: () = assert!(core::mem::offset_of!(LinkRecord, target_fragment_id) == 36);
const _: () = assert!(core::mem::offset_of!(LinkRecord, edge_kind) == 40);
const _: () = assert!(core::mem::offset_of!(LinkRecord, reserved) == 41);

/// The program mapped executable memory. Continuations carry path_bytes of the file's path as /proc/self/fd names it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ImageRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// how many continuation records follow (written by: runtime:thread)
    pub continuations: u16,
    /// who wrote it (written by: runtime:thread)
    pub tid: u32,
    /// first address (written by: runtime:thread)
    pub start: u64,
    /// length (written by: runtime:thread)
    pub size_bytes: u64,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// offset in the file (written by: runtime:thread)
    pub file_offset: u64,
    /// st_dev; 0 for memory without a file (written by: runtime:thread)
    pub device: u64,
    /// st_ino (written by: runtime:thread)
    pub inode: u64,
    /// PROT_* bits (written by: runtime:thread)
    pub protection: u32,
    /// length of the path; 0 for memory without a file (written by: runtime:thread)
    pub path_bytes: u32,
}
const _: () = assert!(core::mem::size_of::<ImageRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(ImageRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(ImageRecord, continuations) == 2);
const _: () = assert!(core::mem::offset_of!(ImageRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(ImageRecord, start) == 8);
const _: () = assert!(core::mem::offset_of!(ImageRecord, size_bytes) == 16);
const _: () = assert!(core::mem::offset_of!(ImageRecord, tsc) == 24);
const _: () = assert!(core::mem::offset_of!(ImageRecord, file_offset) == 32);
const _: () = assert!(core::mem::offset_of!(ImageRecord, device) == 40);
const _: () = assert!(core::mem::offset_of!(ImageRecord, inode) == 48);
const _: () = assert!(core::mem::offset_of!(ImageRecord, protection) == 56);
const _: () = assert!(core::mem::offset_of!(ImageRecord, path_bytes) == 60);

/// Memory that held code went, or lost its executable right.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UnmapRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// 0 (written by: runtime:thread)
    pub continuations: u16,
    /// who wrote it (written by: runtime:thread)
    pub tid: u32,
    /// first address (written by: runtime:thread)
    pub start: u64,
    /// length (written by: runtime:thread)
    pub size_bytes: u64,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// zero (written by: runtime:thread)
    pub reserved: [u8; 32],
}
const _: () = assert!(core::mem::size_of::<UnmapRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(UnmapRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(UnmapRecord, continuations) == 2);
const _: () = assert!(core::mem::offset_of!(UnmapRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(UnmapRecord, start) == 8);
const _: () = assert!(core::mem::offset_of!(UnmapRecord, size_bytes) == 16);
const _: () = assert!(core::mem::offset_of!(UnmapRecord, tsc) == 24);
const _: () = assert!(core::mem::offset_of!(UnmapRecord, reserved) == 32);

/// Something happened.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct EventRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// 0 (written by: runtime:thread)
    pub continuations: u16,
    /// who wrote it (written by: runtime:thread)
    pub tid: u32,
    /// where, or 0 (written by: runtime:thread)
    pub app_pc: u64,
    /// signal, fault: signal number; fork: child's pid; execve: 1 if the program is followed; execve_failed: errno;
    /// released: enum ReleaseReason; exit_group: status; thread_start: parent's tid; thread_end: enum EndKind;
    /// recording_changed: 1 if the code at app_pc, where the thread is, was recorded before (written by:
    /// runtime:thread)
    pub a: u64,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// signal, fault: si_code; thread_start: slot; fork: 1 if the child is followed; recording_changed: 1 if it is now
    /// (written by: runtime:thread)
    pub b: u64,
    /// fault: si_addr (written by: runtime:thread)
    pub c: u64,
    /// enum EventKind (written by: runtime:thread)
    pub event_kind: u16,
    /// zero (written by: runtime:thread)
    pub reserved: [u8; 14],
}
const _: () = assert!(core::mem::size_of::<EventRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(EventRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(EventRecord, continuations) == 2);
const _: () = assert!(core::mem::offset_of!(EventRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(EventRecord, app_pc) == 8);
const _: () = assert!(core::mem::offset_of!(EventRecord, a) == 16);
const _: () = assert!(core::mem::offset_of!(EventRecord, tsc) == 24);
const _: () = assert!(core::mem::offset_of!(EventRecord, b) == 32);
const _: () = assert!(core::mem::offset_of!(EventRecord, c) == 40);
const _: () = assert!(core::mem::offset_of!(EventRecord, event_kind) == 48);
const _: () = assert!(core::mem::offset_of!(EventRecord, reserved) == 50);

/// A fragment is no longer used: its code went or changed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InvalidateRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// 0 (written by: runtime:thread)
    pub continuations: u16,
    /// who wrote it (written by: runtime:thread)
    pub tid: u32,
    /// its first instruction (written by: runtime:thread)
    pub app_pc: u64,
    /// zero (written by: runtime:thread)
    pub reserved_target: u64,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// its number (written by: runtime:thread)
    pub fragment_id: u32,
    /// zero (written by: runtime:thread)
    pub reserved: [u8; 28],
}
const _: () = assert!(core::mem::size_of::<InvalidateRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(InvalidateRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(InvalidateRecord, continuations) == 2);
const _: () = assert!(core::mem::offset_of!(InvalidateRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(InvalidateRecord, app_pc) == 8);
const _: () = assert!(core::mem::offset_of!(InvalidateRecord, reserved_target) == 16);
const _: () = assert!(core::mem::offset_of!(InvalidateRecord, tsc) == 24);
const _: () = assert!(core::mem::offset_of!(InvalidateRecord, fragment_id) == 32);
const _: () = assert!(core::mem::offset_of!(InvalidateRecord, reserved) == 36);

/// A piece of one of the streams of a thread's path (mode full). It is in the rows behind the record, as it is. A
/// stream whose start is not where the one before ended has lost what lies between.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PathChunkRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// how many rows of 64 bytes follow that are no records (written by: runtime:thread)
    pub rows: u16,
    /// whose path it is (written by: runtime:thread)
    pub tid: u32,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// bytes of this stream before it (written by: runtime:thread)
    pub start: u64,
    /// bytes of the stream in it (written by: runtime:thread)
    pub size_bytes: u32,
    /// enum PathStream (written by: runtime:thread)
    pub stream: u16,
    /// zero (written by: runtime:thread)
    pub reserved: [u8; 34],
}
const _: () = assert!(core::mem::size_of::<PathChunkRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(PathChunkRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(PathChunkRecord, rows) == 2);
const _: () = assert!(core::mem::offset_of!(PathChunkRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(PathChunkRecord, tsc) == 8);
const _: () = assert!(core::mem::offset_of!(PathChunkRecord, start) == 16);
const _: () = assert!(core::mem::offset_of!(PathChunkRecord, size_bytes) == 24);
const _: () = assert!(core::mem::offset_of!(PathChunkRecord, stream) == 28);
const _: () = assert!(core::mem::offset_of!(PathChunkRecord, reserved) == 30);

/// What a thread's path cannot imply, and where in it that is (mode full).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PathEventRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// enum PathEventKind (written by: runtime:thread)
    pub event_kind: u16,
    /// whose path it is (written by: runtime:thread)
    pub tid: u32,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// bytes of surprises before it (written by: runtime:thread)
    pub surprise_bytes: u64,
    /// decisions since the last surprise (written by: runtime:thread)
    pub decisions: u64,
    /// bytes of symbols before it (written by: runtime:thread)
    pub symbol_bytes: u64,
    /// open calls (written by: runtime:thread)
    pub depth: u64,
    /// see enum PathEventKind (written by: runtime:thread)
    pub pc: u64,
    /// see enum PathEventKind (written by: runtime:thread)
    pub value: u64,
}
const _: () = assert!(core::mem::size_of::<PathEventRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, event_kind) == 2);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, tsc) == 8);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, surprise_bytes) == 16);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, decisions) == 24);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, symbol_bytes) == 32);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, depth) == 40);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, pc) == 48);
const _: () = assert!(core::mem::offset_of!(PathEventRecord, value) == 56);

/// A piece of a thread's tags (mode region): of the words or of the numbers that go with them. Continuations carry
/// size_bytes of it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RegionChunkRecord {
    /// enum RecordKind (written by: runtime:thread)
    pub kind: u16,
    /// how many continuation records follow (written by: runtime:thread)
    pub continuations: u16,
    /// whose tags they are (written by: runtime:thread)
    pub tid: u32,
    /// time stamp counter (written by: runtime:thread)
    pub tsc: u64,
    /// bytes of words, or of numbers, before it (written by: runtime:thread)
    pub start: u64,
    /// bytes in it (written by: runtime:thread)
    pub size_bytes: u32,
    /// 0 words, 1 numbers (written by: runtime:thread)
    pub stream: u16,
    /// zero (written by: runtime:thread)
    pub reserved: [u8; 34],
}
const _: () = assert!(core::mem::size_of::<RegionChunkRecord>() == 64);
const _: () = assert!(core::mem::offset_of!(RegionChunkRecord, kind) == 0);
const _: () = assert!(core::mem::offset_of!(RegionChunkRecord, continuations) == 2);
const _: () = assert!(core::mem::offset_of!(RegionChunkRecord, tid) == 4);
const _: () = assert!(core::mem::offset_of!(RegionChunkRecord, tsc) == 8);
const _: () = assert!(core::mem::offset_of!(RegionChunkRecord, start) == 16);
const _: () = assert!(core::mem::offset_of!(RegionChunkRecord, size_bytes) == 24);
const _: () = assert!(core::mem::offset_of!(RegionChunkRecord, stream) == 28);
const _: () = assert!(core::mem::offset_of!(RegionChunkRecord, reserved) == 30);
