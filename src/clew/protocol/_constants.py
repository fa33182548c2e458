"""Generated from protocol/schema.toml by `make generate`; do not edit.

Numbers, enums and layouts, cheap to import. The numpy dtypes are in `clew.protocol._generated`.
"""

from __future__ import annotations

from typing import Final

from clew.enumeration import IntEnum
from clew.protocol.architecture import ArchitectureDefinition

VERSION: Final = 1
MAGIC: Final = 0x314D485357454C43
NOTE_NAME: Final = b"clew\0"
NOTE_TYPE: Final = 1
SCHEMA_HASH: Final = bytes.fromhex("d7e2427ffbd945f4c3d583d3c4bd689eae9edd1d32ecd748adad7c55bb729a1f")

CONTAINER_MAGIC: Final = 3544686211845344323
"""what a container begins with: CLDATA11"""
CONTAINER_VERSION: Final = 1
"""of containers"""
MOST_BLOCKS: Final = 300000
"""with more blocks than so many the graph of a process stays at the level of functions; a function's own view has its
blocks
"""
LISTING_PAGE: Final = 64
"""blocks that the listing asks for at a time"""
RECORD_BYTES: Final = 64
"""every record, and every continuation of one, is one unit of this size"""
CONTINUATION_PAYLOAD_BYTES: Final = 60
"""bytes of payload in one continuation record"""
MAX_FRAGMENT_BYTES: Final = 2048
"""application bytes in one fragment at most; a limit makes no basic block"""
MAX_FRAGMENT_INSTRUCTIONS: Final = 256
"""application instructions in one fragment at most"""
THREAD_STRIDE_BYTES: Final = 67108864
"""address space of one thread's private block, counters window included"""
THREAD_COUNTERS_OFFSET: Final = 8388608
"""where the counters window starts inside a thread's private block (and from gs)"""
MAX_COUNTER_BYTES: Final = 58720256
"""largest counters window of one thread"""
MAX_PATH_BYTES: Final = 4096
"""longest path in an image record"""
MAX_BREAKPOINTS: Final = 32
"""entries of StatusPage.breakpoints"""
MAX_CAPTURES: Final = 65536
"""entries of the table of captures (CapturePlace)"""
MAX_CAPTURE_BYTES: Final = 2097152
"""bytes of the forms of all captures, behind the table"""
MAX_PROBES: Final = 524288
"""entries of the table of probes (ProbeSite)"""
MAX_PATCHES: Final = 1048576
"""entries of the table of patches (PatchRow)"""
MAX_TRAPS: Final = 2097152
"""entries of a table of traps (TrapRow)"""
MAX_UNWIND_IMAGES: Final = 4096
"""entries of each of the two directories of tables for unwinding (UnwindImage)"""
UNWIND_BYTES: Final = 67108864
"""bytes of these directories, and of the tables behind them (UnwindTable)"""
MAX_BACKTRACE_FRAMES: Final = 128
"""frames of a backtrace"""
BACKTRACE_STACK_BYTES: Final = 4096
"""bytes of a stack that the controller gets where it is asked what is behind a frame"""
MAX_CAPTURES_AT_PLACE: Final = 16
"""captures at one address"""
MAX_INVALIDATED_RANGES: Final = 16
"""ranges of code of StatusPage.invalidated_ranges"""
MAX_PREFETCHED: Final = 8192
"""addresses that may wait to be translated (SessionHeader.prefetch_offset)"""
MAX_TRANSFORM_RANGES: Final = 128
"""ranges of code whose blocks are asked about"""
AGGREGATES_BYTES: Final = 536870912
"""bytes of all tables of aggregates"""
MAX_AGGREGATE_ROWS_LOG2: Final = 16
"""the binary logarithm of the most rows that a table of aggregates has, beside aggregate_probes"""
AGGREGATE_PROBES: Final = 8
"""rows in which a key may be, from the one that its hash tells"""
AGGREGATE_KEY_WORDS: Final = 8
"""words of a row's keys"""
AGGREGATE_BUCKETS: Final = 252
"""buckets of a histogram: of 0, 1, 2, 3; from there on four to each power of two"""
AGGREGATE_HASH_FACTOR: Final = 11400714819323198485
"""of keys' words the hash is ((((0 rotated left by 29) xor first) * factor rotated left by 29) xor second) * factor;
its highest bits are the row
"""
MAX_INLINE_REGISTERS: Final = 6
"""registers that an inline piece changes (InlinePiece)"""
MAX_BLOCK_CHANGES_BYTES: Final = 16384
"""bytes of what is changed in one block"""
MAX_CAPTURE_OPERATIONS: Final = 192
"""operations of one form"""
MAX_CAPTURE_FIELDS: Final = 32
"""fields of one form"""
CAPTURE_RECORD_VALUES: Final = 4
"""fields of a CaptureRecord that are in the record itself"""
MAX_CAPTURE_VALUES: Final = 192
"""operations of all forms at one address"""
MAX_CAPTURE_TEXT: Final = 4096
"""bytes of one value that is bytes, and of the data of all forms at one address"""
MAX_CAPTURE_TEXTS: Final = 65536
"""bytes of the values that are bytes, of all forms at one address"""
OPEN_CALLS: Final = 2048
"""calls of a thread that may be open in its window of calls: OpenCall[open_calls], where it begins"""
CALL_HEADS_OFFSET: Final = 524288
"""where the CallsHead is in such a window, and behind it, up to call_texts_offset, u64[open_calls]: the tsc of the call
in each place that was told already; 0: none
"""
CALL_TEXTS_OFFSET: Final = 544768
"""where the bytes are that calls keep, in cells"""
CALL_TEXT_CELLS: Final = 3776
"""how many cells that are"""
CALL_TEXT_CELL_BYTES: Final = 64
"""size of one"""
CALL_WINDOW_BYTES: Final = 786432
"""size of a thread's window of calls"""
MAX_KEPT_VALUES: Final = 26
"""fields of a capture that opens a call: what is kept until it returns"""
CALL_PLACES: Final = 18442240474082181120
"""CapturePlace.pc: from here on it is taken at system calls, whose number is the rest; no code lies there"""
CAPTURE_LEFT: Final = 1073741824
"""CaptureRecord.number has this bit: of a call that is over and has not returned; of its fields only those are there
that were kept, and when it began
"""
CAPTURE_EXECUTING: Final = 2147483648
"""the same: of a call that is over if the process executes the program that it is about to execute; with capture_left:
it has not, and the call goes on
"""
RING_OPERATIONS: Final = 2048
"""CapturePlace.pc: numbers of system calls from here on are operations of io_uring; what registers are is there the
words of their entries (instrument/captures/ring.rs)
"""
MAX_CALL_KINDS: Final = 65535
"""CapturePlace.call_kind: the greatest"""
CAPTURE_NAME_BYTES: Final = 16
"""bytes of a thread's name, as the kernel keeps it"""
NO_CONDITION: Final = 65535
"""CaptureForm.condition: there is none"""
MAX_CHANGED_PAGES: Final = 32
"""entries of StatusPage.changed_pages"""
MAX_FILTER_RANGES: Final = 4096
"""entries in the filter table"""
DETACH_CODE: Final = 4410455
"""-si_code, and si_value, of the SIGTRAP that fetches a thread out of the code cache when the controller detaches"""
FULL_WAIT_SECONDS: Final = 5
"""no heartbeat of the controller for so long ends waiting for it; what finds no room then is dropped and counted"""
PATH_DECISIONS_CELL: Final = 0
"""mode full: which of a thread's counters holds its decisions since the last surprise, with path_other_decisions_cell
"""
PATH_OTHER_DECISIONS_CELL: Final = 6
"""mode full: the number of decisions is the sum of both cells, of 64 bits"""
PATH_SURPRISES_CELL: Final = 1
"""mode full: where the next surprise goes, counted from the end of its buffer: -path_buffer_bytes up to 0, or a little
beyond
"""
PATH_SYMBOLS_CELL: Final = 2
"""mode full: where the next symbol goes, in the same way"""
PATH_SURPRISES_LEFT_CELL: Final = 3
"""mode full: bytes of surprises that left the buffer so far"""
PATH_SYMBOLS_LEFT_CELL: Final = 4
"""mode full: bytes of symbols that did"""
PATH_START: Final = 18446744073709551615
"""mode full: stands for the address in front of a path's first instruction"""
PATH_LOST_CELL: Final = 5
"""mode full: a PathGap; unless it is none, what is in the buffers belongs to nothing"""
NOWHERE_PC: Final = 140737488355327
"""in records: every address at which no program can have code, the vsyscall page's apart"""
PATH_UNLIMITED: Final = 18446744073709551615
"""mode full: StatusPage.budget that leaves out nothing"""
PATH_SURPRISES_OFFSET: Final = 4096
"""mode full: where the buffer of surprises starts in a thread's counters window"""
PATH_SYMBOLS_OFFSET: Final = 73728
"""mode full: where the buffer of symbols starts"""
PATH_BUFFER_BYTES: Final = 65536
"""size of either; path_slack_bytes more may be in it"""
PATH_SLACK_BYTES: Final = 16
"""mode full: what is written last into a buffer ends at most so far behind it"""
PATH_ACCESSES_CELL: Final = 8
"""mode full: where the next AccessRow goes, counted from the end of its buffer"""
PATH_ACCESSES_LEFT_CELL: Final = 9
"""mode full: bytes of them that left the buffer; with path_accesses_leave while some do"""
PATH_ACCESSES_LEAVE: Final = 9223372036854775808
"""mode full: a bit of the cell path_accesses_left_cell"""
PATH_ACCESSES_OFFSET: Final = 143360
"""mode full: where the buffer of accesses to memory starts"""
PATH_ACCESSES_BUFFER_BYTES: Final = 262144
"""mode full: its size; path_accesses_slack_bytes more may be in it"""
PATH_ACCESSES_SLACK_BYTES: Final = 40960
"""mode full: the rows of one fragment, more than which no fragment writes"""
PATH_WINDOW_BYTES: Final = 446464
"""modes counts and full: what a path takes of a thread's counters window; the first counter comes behind it"""
REGION_BLOCKS: Final = 1048576
"""mode region: blocks that a thread can have levels for; of what is translated later executions are counted and not
tagged
"""
REGION_WORDS_CELL: Final = 0
"""mode region: which of a thread's counters holds where its next word goes, counted in bytes from the end of their
buffer: -region_buffer_bytes up to 0, or a little beyond
"""
REGION_NUMBERS_CELL: Final = 1
"""mode region: where the next number goes, in the same way"""
REGION_WORDS_LEFT_CELL: Final = 2
"""mode region: bytes of words that left the buffer so far"""
REGION_NUMBERS_LEFT_CELL: Final = 3
"""mode region: bytes of numbers that did"""
REGION_WORDS_OFFSET: Final = 4096
"""mode region: where the buffer of words starts in a thread's counters window"""
REGION_NUMBERS_OFFSET: Final = 73728
"""mode region: where the buffer of numbers starts"""
REGION_BUFFER_BYTES: Final = 65536
"""size of either; what is written last may end behind it, within buffer_guard_bytes"""
BUFFER_GUARD_BYTES: Final = 4096
"""modes full and region: so much behind each buffer of a path or of tags belongs to nothing else"""
REGION_WINDOW_BYTES: Final = 143360
"""mode region: what tags take of a thread's counters window; the first counter comes behind it"""
REGION_KIND_SHIFT: Final = 28
"""the bits of a word from this one on are enum RegionWord, those below its value"""
NO_INDEX: Final = 4294967295
"""in records: no fragment, no counter, no block of mode region"""
NO_SYMBOL: Final = 65535
"""in records: paths have no number for this target"""
MAX_BUSY_LIMIT: Final = 254
"""largest SessionHeader.busy_limit"""
LONGEST_WAIT_SECONDS: Final = 20
"""heartbeats for so long, and nothing else that was waited for: as if there were none, from then on"""

ARCHITECTURES: Final = {
    "x86_64": ArchitectureDefinition(
        "x86_64",
        "AMD64, as 64-bit programs of Linux have it.",
        "x86-64",
        62,
        4096,
        ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
        (
            "rax",
            "rcx",
            "rdx",
            "rbx",
            "rsp",
            "rbp",
            "rsi",
            "rdi",
            "r8",
            "r9",
            "r10",
            "r11",
            "r12",
            "r13",
            "r14",
            "r15",
            "rip",
            "rflags",
        ),
        "rip",
        "rsp",
        {
            "StartBlock": ("rip", "rflags", "fs_base", "gs_base", "has_fsgsbase"),
            "ThreadState": ("rip", "rflags", "gs_base", "code_selector", "stack_selector"),
        },
    ),
}
"""The architectures by name."""


class RecordKind(IntEnum):
    """What a 64-byte record in a ring is."""

    PADDING = 0
    FRAGMENT = 1
    CONTINUATION = 2
    DYNAMIC_EDGE = 3
    LINK = 4
    IMAGE = 5
    UNMAP = 6
    EVENT = 7
    INVALIDATE = 8
    PATH_CHUNK = 9
    PATH_EVENT = 10
    REGION_CHUNK = 14
    CAPTURE = 15


class ExitKind(IntEnum):
    """How a fragment ends. Says what its counters mean: see FragmentRecord.counter_index."""

    FALL_THROUGH = 0
    JUMP = 1
    CONDITIONAL = 2
    CALL = 3
    INDIRECT_JUMP = 4
    INDIRECT_CALL = 5
    RETURN = 6
    SYSCALL = 7
    NONE = 8


class FragmentFlag(IntEnum):
    """Bits of a fragment's flags. excluded: by a filter; its executions are not counted, and of its counters only those
    of edges into recorded code. limit: it was ended by a size limit. first_edge, second_edge: of what is excluded
    the taken, or only, edge leads into recorded code, or the one not taken. first_counts_both: of a conditional, [i]
    counts taken and not taken together; second_counts_both: [i+1] does. later_code: its code may have come in the
    place of other code, and paths tell when (mode full). counted: excluded, and counted all the same, since paths
    lead there (mode full).
    """

    EXCLUDED = 1
    LIMIT = 2
    FIRST_EDGE = 4
    SECOND_EDGE = 8
    FIRST_COUNTS_BOTH = 16
    SECOND_COUNTS_BOTH = 32
    LATER_CODE = 64
    COUNTED = 128


class EdgeKind(IntEnum):
    """Edge kinds of the trace; also `kind` of dynamic_edge and link records. `partial` is no edge of the trace: it says
    how often a fragment was left in its middle, before the instruction at target_pc (which faulted). A dynamic_edge
    record of kind `return` is no edge, it announces the symbol of a return (mode full).
    """

    JUMP = 0
    TAKEN = 1
    NOT_TAKEN = 2
    FALL_THROUGH = 3
    CALL = 4
    INDIRECT_CALL = 5
    INDIRECT_JUMP = 6
    RETURN = 7
    SYSCALL = 8
    SIGNAL = 9
    SIGRETURN = 10
    FAULT = 11
    START = 12
    PARTIAL = 13


class EventKind(IntEnum):
    """What an event record tells."""

    THREAD_START = 1
    THREAD_END = 2
    SIGNAL = 3
    FAULT = 4
    FORK = 5
    EXECVE = 6
    RELEASED = 7
    EXIT_GROUP = 8
    WRITABLE_CODE = 9
    EXECVE_FAILED = 10
    SECCOMP = 11
    RECORDING_CHANGED = 12


class PathEventKind(IntEnum):
    """What a path_event record tells of a thread's path (mode full); pc and value as each one says. note: nothing
    changes; value: number of the system call made at pc. resume: in front of pc the thread went to value: start (pc
    is path_start), signal, fault, return from a handler. elsewhere: the return or indirect branch at pc led to
    value. unlike: from now on the conditional branch at value is expected to go the other way than before; or the
    return at value takes a symbol, which it did not, or the other way round. code: from now on the code of fragment
    value is what runs. end: the path ends in front of pc, unless more of it follows: the call that was to end the
    thread was refused. checkpoint: where the thread is in front of pc, and what it did since the last one: streams
    counters and calls go with it; of the open calls the outermost `value` are as at the last one. lost: records of
    the path were dropped since the position before; the checkpoint behind it is where it goes on. thinned: as lost,
    but left out on purpose, to stay within StatusPage.budget or while no order was recorded; what the path told of
    code and branches holds on.
    """

    NOTE = 0
    RESUME = 1
    ELSEWHERE = 2
    UNLIKE = 3
    CODE = 4
    END = 5
    CHECKPOINT = 6
    LOST = 7
    THINNED = 8


class PathGap(IntEnum):
    """What of a thread's path is missing where it is (mode full). lost: something was dropped, and not told yet.
    left_out: it is left out, to stay within StatusPage.budget or because no order is recorded.
    """

    NONE = 0
    LOST = 1
    LEFT_OUT = 2


class PathStream(IntEnum):
    """The streams of a thread's path (mode full). surprises, symbols: see docs/format/paths.md. counters: pairs of a
    counter's index (u32) and how much it rose (u64), 12 bytes each. calls: return addresses (u64) of open calls,
    outermost first. few: as counters, of those that rose by less than 65,536; each chunk begins with an index (u32),
    and has 3 bytes for each counter: its index less the one before (u8), and how much it rose (u16); if that is 0
    there is no counter, and the index is 256 times as much higher. Counters, few and calls belong to the next
    checkpoint. accesses: rows of AccessRow, in the order in which they were made.
    """

    SURPRISES = 0
    SYMBOLS = 1
    COUNTERS = 2
    CALLS = 3
    FEW = 4
    ACCESSES = 5


class RegionWord(IntEnum):
    """What a word of a thread's tags tells (mode region), 32 bits; behind each kind: its value; the numbers that go
    with it, 64 bits each. executed: FragmentRecord.region_block, whose execution begins; none. became_busy: that
    block, which is counted from here on; time stamp, executions so far. counts: that block; executions while it was
    busy. counts_target: nothing; of these to an address, and how many. left_busy: nothing; time stamp. stopped:
    nothing; the execution that began last got as far as this address, whose instruction was not executed. signal,
    fault: signal number; time stamp, address of the instruction that waits or faulted. syscall: nothing; time stamp,
    number of the call, which is about to be made. end: nothing; time stamp, address of the instruction that waits.
    """

    EXECUTED = 0
    BECAME_BUSY = 1
    COUNTS = 2
    COUNTS_TARGET = 3
    LEFT_BUSY = 4
    STOPPED = 5
    SIGNAL = 6
    FAULT = 7
    SYSCALL = 8
    END = 9


class ReleaseReason(IntEnum):
    """Why a task was released to native: `a` of a `released` event."""

    FORK_CHILD = 1
    NO_SLOT = 4
    UNSUPPORTED = 5
    RUNTIME_ERROR = 6
    FATAL_FAULT = 7
    DETACH = 8
    SECCOMP_STRICT = 9
    TRACED = 10
    SECCOMP_FILTER = 12
    OTHER_CODE = 13
    WRITTEN = 14


class Mode(IntEnum):
    """The recorder in use."""

    COVERAGE = 0
    COUNTS = 1
    REGION = 2
    FULL = 3


class SlotState(IntEnum):
    """A thread slot's life. free -> running (runtime, compare-and-swap) -> ended (runtime:thread, its last act) -> free
    (controller, after it kept the counters, zeroed them and drained the ring). Role probes: free -> taken (runtime,
    compare-and-swap) -> running -> free (controller, when the thread is gone).
    """

    FREE = 0
    RUNNING = 1
    ENDED = 2
    TAKEN = 3


class EndKind(IntEnum):
    """How a thread ended, as far as the runtime knows."""

    UNKNOWN = 0
    EXIT = 1
    EXIT_GROUP = 2
    RELEASED = 3
    EXECVE = 4


class Role(IntEnum):
    """What the runtime does in a process. engine: it executes the program's code, translated. probes: the program
    executes its own, and comes here at probes only.
    """

    ENGINE = 0
    PROBES = 1


class ProbeState(IntEnum):
    """How far a probe's handler is. none: there is none. asked: its code is to be made. made: it is. refused: there is
    no capture at its place, or no room for its code.
    """

    NONE = 0
    ASKED = 1
    MADE = 2
    REFUSED = 3


class RuntimeState(IntEnum):
    """Where the runtime stands."""

    INJECTED = 0
    RUNNING = 1
    FAILED = 2


class Stage(IntEnum):
    """How far a process is in the runtime's hands: it is entered and left as a whole, also if the controller is killed
    meanwhile. A thread that enters or has parked and goes on looks here. entering: it goes back to where it came
    from. entered (controller, or the runtime of a launched program) and leaving (controller): the points of no
    return. giving_back: one thread does what leave_pc does; left: nothing of the process depends on the runtime any
    more.
    """

    ENTERING = 0
    ENTERED = 1
    LEAVING = 2
    GIVING_BACK = 3
    LEFT = 4


class RequestKind(IntEnum):
    """What a thread asks of the controller and waits for. The thread writes the arguments, then request_kind with
    release order; the controller answers, then sets request_kind back to none. image_filters: start, end and file
    offset of new code. fork: a region for a child, or 0 (with an argument: that region was not used); adopt, of the
    child: process id and the time stamp of the fork, 1 if it is followed. execve: path, directory (AT_FDCWD), flags;
    1 if the controller waits for the program. execve_failed: it waits no longer. child: a region and the process id
    of who begins in it; answered when that has executed a program or ended. hold: enum HoldReason; the thread is
    stopped at the slot's held_registers, in front of the instruction at rip; enum HoldReply. mapping: an address; 1
    if something is mapped from there on, the first of which is in request_answer: start, end, PROT_* bits, 1 if it
    is shared. trace: the number of a thread that the asking one is about to trace; and why that is to run natively,
    enum ReleaseReason; 1 if its process was left for it. write: the number of a process to whose memory the asking
    thread may write from now on, whatever is protected there; 1 if it takes that into account. born: a slot;
    answered when its born_child is 0.
    """

    NONE = 0
    IMAGE_FILTERS = 1
    FORK = 2
    EXECVE = 3
    ADOPT = 4
    EXECVE_FAILED = 5
    HOLD = 6
    CHILD = 7
    MAPPING = 8
    TRACE = 9
    BORN = 10
    WRITE = 11


class CaptureType(IntEnum):
    """What a value of a capture is: an integer, with a sign or without, of 8 to 64 bits; a floating-point number;
    bytes.
    """

    I8 = 0
    U8 = 1
    I16 = 2
    U16 = 3
    I32 = 4
    U32 = 5
    I64 = 6
    U64 = 7
    F32 = 8
    F64 = 9
    TEXT = 10


class CaptureOperation(IntEnum):
    """What an instruction of a capture does with its operands a and b, values of instructions before it. A value may be
    missing: of memory that can't be read, of a division by 0, and of what is made of a missing one. constant:
    immediate. register, vector: number immediate of the architecture's; of a vector register the low half, or, for
    an f32, the lower half of that. context: CaptureContext. load: memory at a. string: bytes at a up to a zero byte,
    immediate at most. bytes: b bytes at a, immediate at most. words: words of 8 bytes at a up to one that is 0,
    immediate bytes at most, a multiple of 8. literal: bytes of the program's data, from the immediate's lower half
    on, as many as its upper half says. convert: a, which is of type immediate. add to complement: arithmetic of
    type, which both operands are of. equal to less_equal: 1 or 0, an i32, of operands of type. logical_and,
    logical_or, logical_not: of i32; what the left one decides does not ask the right one. text_equal: 1 or 0. kept:
    of a call that has returned, the field that was kept when it began, of the number that the immediate's lower half
    is; of bytes as many as its upper half says, at most; missing elsewhere. text_match: 1 or 0, whether a is as the
    pattern b: * stands for any bytes, ? for one, [abc], [a-z] and [!a] for one of some, or of all others;
    descriptor_path: where the process' descriptor a, an i32, leads to, as /proc tells it, immediate bytes at most.
    These two are for action inject only. backtrace: the calls that are open, bytes: a BacktraceHead, and the
    addresses of immediate frames at most, the first of them where the thread is; where the controller is asked what
    is behind it, more (BacktraceEnd). At probes only; no operation has it as its operand, and it is worked out
    behind the condition.
    """

    CONSTANT = 0
    REGISTER = 1
    VECTOR = 2
    CONTEXT = 3
    LOAD = 4
    STRING = 5
    BYTES = 6
    LITERAL = 7
    CONVERT = 8
    ADD = 9
    SUBTRACT = 10
    MULTIPLY = 11
    DIVIDE = 12
    REMAINDER = 13
    BIT_AND = 14
    BIT_OR = 15
    BIT_XOR = 16
    SHIFT_LEFT = 17
    SHIFT_RIGHT = 18
    NEGATE = 19
    COMPLEMENT = 20
    EQUAL = 21
    NOT_EQUAL = 22
    LESS = 23
    LESS_EQUAL = 24
    LOGICAL_AND = 25
    LOGICAL_OR = 26
    LOGICAL_NOT = 27
    TEXT_EQUAL = 28
    KEPT = 29
    WORDS = 30
    TEXT_MATCH = 31
    DESCRIPTOR_PATH = 32
    BACKTRACE = 33


class CaptureContext(IntEnum):
    """What a capture may ask about the place beside registers and memory: thread, process, processor, nanoseconds of
    CLOCK_MONOTONIC, how many calls are open, the thread's name; and its thread pointer, from which its thread-local
    variables are found: the word that it points at, which by the ABI is itself. duration: of a call that has
    returned, nanoseconds since it began; missing elsewhere, and where a thread may be refused the time stamp
    counter. began: of such a call, and of one that is over otherwise, the time stamp counter when it began. frame:
    of such calls, the stack pointer in front of the function, or 8 below that of the system call. behind: the mark
    of the instruction that the thread comes from (PieceKind), if it has one, or something else. injected: where a
    call begins, what is done to it, bits of Injected; delay_exit: and how many nanoseconds the thread is to be held
    when it has returned, of functions.
    """

    TID = 0
    PID = 1
    CPU = 2
    TIME = 3
    DEPTH = 4
    COMM = 5
    THREAD_POINTER = 6
    DURATION = 7
    BEHIND = 8
    BEGAN = 9
    FRAME = 10
    INJECTED = 11
    DELAY_EXIT = 12


class CaptureAction(IntEnum):
    """What is done where a capture's condition holds: a CaptureRecord is written; or the thread stops
    (RequestKind.hold); or the fields are added to a row of a table: its keys, and behind them, if the table has
    values, what is added up; or a call begins there, in front of the function's first instruction, and the fields
    are kept until it returns to where its return address says: then the capture whose place is nowhere (pc 0) and
    whose call_kind is the same is taken there. inject: the call that begins there goes another way than the program
    has it; the fields say which (InjectField), and nothing is done where one of them is missing. delay: where a call
    has returned, the thread is held for so many nanoseconds as its only field says. change: the thread goes on
    otherwise than the program has it; the fields say how (ChangeField), and nothing is done where one of them is
    missing. Of probes only.
    """

    RECORD = 0
    STOP = 1
    AGGREGATE = 2
    CALL = 3
    INJECT = 4
    DELAY = 5
    CHANGE = 6


class ChangeField(IntEnum):
    """The fields of a capture of action change, integers of 64 bits, by their numbers. what: enum Change. where: the
    number of a register, or an address. value: what is to be there; of delay nanoseconds.
    """

    WHAT = 0
    WHERE = 1
    VALUE = 2


class Change(IntEnum):
    """What a thread does at a probe. register: a general register is another one, the stack pointer not. result: the
    function in front of which the thread is returns that, without having been executed. delay: the thread waits.
    poke: the low bytes of the value are written to memory, as many as the name says in bits; what can't be written
    stays as it is.
    """

    REGISTER = 0
    RESULT = 1
    DELAY = 2
    POKE8 = 3
    POKE16 = 4
    POKE32 = 5
    POKE64 = 6


class InjectField(IntEnum):
    """The fields of a capture of action inject, integers of 64 bits, by their numbers. what: bits of Injected. result:
    what the call gives, which is not made then. errno_address, errno: where an i32 is to be besides, 0: nowhere; of
    functions. delay_enter, delay_exit: how many nanoseconds the thread is held before the call is made and when it
    has returned. signal: what the thread is sent. first, last, step: of the calls of a thread at which the condition
    holds, counted from 1, which: from the first to the last one, each step.
    """

    WHAT = 0
    RESULT = 1
    ERRNO_ADDRESS = 2
    ERRNO = 3
    DELAY_ENTER = 4
    DELAY_EXIT = 5
    SIGNAL = 6
    FIRST = 7
    LAST = 8
    STEP = 9


class Injected(IntEnum):
    """Bits: what is done to a call."""

    RESULT = 1
    DELAY_ENTER = 2
    DELAY_EXIT = 4
    SIGNAL = 8


class OnFull(IntEnum):
    """What a thread does that finds its ring full: it waits; or what it has is dropped, and counted; or it writes over
    the oldest records, and nobody takes any out but up to the moment of a snapshot.
    """

    WAIT = 0
    DROP = 1
    OVERWRITE = 2


class HoldReason(IntEnum):
    """Why a thread is stopped in the dispatcher: the controller holds the process, the thread has made the one step
    that it was to make, it came to a breakpoint, or to a capture that stops; or it is about to translate a block of
    transform_ranges: the request's arguments are then the block's size, where in the target max_block_changes_bytes
    of BlockChange may be written, and the block's address; nothing is shown of the thread.
    """

    ASKED = 1
    STEPPED = 2
    BREAKPOINT = 3
    CAPTURE = 4
    BLOCK = 5


class HoldReply(IntEnum):
    """What a thread that was stopped does next: it goes on, or executes one instruction and stops again. go_on_changed,
    step_changed: it does so with the registers that the slot has now. changed_block: the block is translated with
    the changes that were written, so many bytes of them as request_answer says first. call: it goes to the address
    that held_registers has as its pc, as if a signal came whose handler begins there and is left by the code at the
    address in request_answer; with the registers of held_registers, all but the stack pointer, and held_vectors.
    Where it can't it stops again where it is.
    """

    GO_ON = 0
    STEP = 1
    GO_ON_CHANGED = 2
    STEP_CHANGED = 3
    CHANGED_BLOCK = 4
    CALL = 5


class PiecePlace(IntEnum):
    """Where code that is added to a block stands: in front of the instruction, or behind it."""

    BEFORE = 0
    AFTER = 1


class BacktraceEnd(IntEnum):
    """Why a backtrace ends. outermost: there is no caller. full: it has as many frames as were asked for. asks: its
    last frame's rule is not known to the runtime, or may not be known any more: behind the frames there are the
    stack pointer and the frame pointer there, then the general registers and the instruction's address where the
    thread is, then two numbers, u32, and as many bytes of the stack from the thread's stack pointer on, and from the
    last frame's, unless the first reach so far.
    """

    OUTERMOST = 0
    FULL = 1
    ASKS = 2


class UnwindKind(IntEnum):
    """What is known of code for unwinding. table: there is one. nothing: there is none, it is taken to have frame
    pointers. asks: the controller has to be asked.
    """

    TABLE = 0
    NOTHING = 1
    ASKS = 2


class PieceKind(IntEnum):
    """What is added: instructions of the program's kind, as if they were at the instruction's address, or right behind
    it; or machine code that means the same everywhere and is executed as it is: verbatim keeps what the program
    needs, and runs on the runtime's stack, the program's stack pointer on top; inline uses no stack, and what it
    changes is kept by the runtime (InlinePiece). mark: no code, but a u32; the thread has that for
    CaptureContext.behind until something is captured.
    """

    CODE = 0
    VERBATIM = 1
    INLINE = 2
    MARK = 3


class ErrorCode(IntEnum):
    """Numbered errors on the status page; error_detail says more as each one tells."""

    NONE = 0
    BAD_HEADER = 1
    BAD_START_BLOCK = 2
    OUT_OF_MEMORY = 3
    NO_SLAB = 4
    PANIC = 5
    COUNTERS_FULL = 6
    THREADS_FULL = 7
    FRAGMENTS_FULL = 8
    MAPPING_FAILED = 9
    BAD_FAULT = 10
    GS_BASE = 11


class TickKind(IntEnum):
    """What happened at one moment of a thread's time."""

    SIGNAL = 0
    FAULT = 1
    SYSTEM_CALL = 2


class GapReason(IntEnum):
    """Why the order of a stretch of time is not known. busy: it was counted, since the thread was busy. lost: what was
    recorded of it is lost. mode: this mode records none. thinned: left out, to stay within a budget or while no
    order was recorded.
    """

    BUSY = 0
    LOST = 1
    MODE = 2
    THINNED = 3


class FunctionFlag(IntEnum):
    """Bits of a function's flags. stub: it only leads into another image. main_image: it is the executable's. outside:
    it is in no image.
    """

    STUB = 1
    MAIN_IMAGE = 2
    OUTSIDE = 4


SESSION_HEADER_BYTES: Final = 256
UNWIND_IMAGE_BYTES: Final = 32
UNWIND_TABLE_BYTES: Final = 16
BACKTRACE_HEAD_BYTES: Final = 8
PATCH_ROW_BYTES: Final = 32
TRAP_ROW_BYTES: Final = 16
PROBE_SITE_BYTES: Final = 64
FILTER_RANGE_BYTES: Final = 24
CAPTURE_FORM_BYTES: Final = 8
CAPTURE_INSTRUCTION_BYTES: Final = 16
CAPTURE_PLACE_BYTES: Final = 40
AGGREGATE_HEAD_BYTES: Final = 128
AGGREGATE_ROW_BYTES: Final = 128
BLOCK_CHANGE_BYTES: Final = 4
BLOCK_PIECE_BYTES: Final = 4
INLINE_PIECE_BYTES: Final = 4
STATUS_PAGE_BYTES: Final = 4096
THREAD_SLOT_BYTES: Final = 512
OPEN_CALL_BYTES: Final = 256
CALLS_HEAD_BYTES: Final = 4096
START_BLOCK_BYTES: Final = 4096
CONTROL_BLOCK_BYTES: Final = 128
THREAD_STATE_BYTES: Final = 256
FRAGMENT_RECORD_BYTES: Final = 64
CAPTURE_RECORD_BYTES: Final = 64
CONTINUATION_RECORD_BYTES: Final = 64
DYNAMIC_EDGE_RECORD_BYTES: Final = 64
LINK_RECORD_BYTES: Final = 64
IMAGE_RECORD_BYTES: Final = 64
UNMAP_RECORD_BYTES: Final = 64
EVENT_RECORD_BYTES: Final = 64
INVALIDATE_RECORD_BYTES: Final = 64
PATH_CHUNK_RECORD_BYTES: Final = 64
PATH_EVENT_RECORD_BYTES: Final = 64
REGION_CHUNK_RECORD_BYTES: Final = 64

LAYOUTS: Final[dict[str, tuple[int, dict[str, tuple[int, str]]]]] = {
    "SessionHeader": (
        256,
        {
            "magic": (0, "<Q"),
            "version": (8, "<I"),
            "header_bytes": (12, "<I"),
            "schema_hash": (16, "<32s"),
            "total_bytes": (48, "<Q"),
            "status_offset": (56, "<Q"),
            "slots_offset": (64, "<Q"),
            "rings_offset": (72, "<Q"),
            "counters_offset": (80, "<Q"),
            "filters_offset": (88, "<Q"),
            "counter_bytes": (96, "<Q"),
            "ring_bytes": (104, "<I"),
            "max_threads": (108, "<I"),
            "mode": (112, "<I"),
            "on_full": (116, "<I"),
            "controller_pid": (120, "<I"),
            "filters_active": (124, "<I"),
            "default_included": (128, "<I"),
            "filter_count": (132, "<I"),
            "relayout_executions": (136, "<I"),
            "follows": (140, "<I"),
            "region": (144, "<I"),
            "reaper_pid": (148, "<I"),
            "busy_limit": (152, "<I"),
            "controller_tid": (156, "<I"),
            "captures_offset": (160, "<Q"),
            "prefetch_offset": (168, "<Q"),
            "aggregates_offset": (176, "<Q"),
            "calls_offset": (184, "<Q"),
            "probes_offset": (192, "<Q"),
            "traps_offset": (200, "<Q"),
            "patches_offset": (208, "<Q"),
            "unwind_offset": (216, "<Q"),
            "reserved": (224, "<32s"),
        },
    ),
    "UnwindImage": (
        32,
        {
            "start": (0, "<Q"),
            "end": (8, "<Q"),
            "base": (16, "<Q"),
            "kind": (24, "<I"),
            "table": (28, "<I"),
        },
    ),
    "UnwindTable": (
        16,
        {
            "first": (0, "<I"),
            "bucket_log2": (4, "<I"),
            "n_rows": (8, "<I"),
            "n_buckets": (12, "<I"),
        },
    ),
    "BacktraceHead": (
        8,
        {
            "end": (0, "<B"),
            "is_place": (1, "<B"),
            "has_frame_pointer": (2, "<B"),
            "reserved": (3, "<B"),
            "n_frames": (4, "<I"),
        },
    ),
    "PatchRow": (
        32,
        {
            "address": (0, "<Q"),
            "size": (8, "<I"),
            "raised": (12, "<I"),
            "content": (16, "<16s"),
        },
    ),
    "TrapRow": (
        16,
        {
            "address": (0, "<Q"),
            "target": (8, "<Q"),
        },
    ),
    "ProbeSite": (
        64,
        {
            "pc": (0, "<Q"),
            "code": (8, "<Q"),
            "resume": (16, "<Q"),
            "room": (24, "<I"),
            "state": (28, "<I"),
            "made": (32, "<Q"),
            "size": (40, "<I"),
            "reserved": (44, "<I"),
            "missed": (48, "<Q"),
            "place": (56, "<Q"),
        },
    ),
    "FilterRange": (
        24,
        {
            "start": (0, "<Q"),
            "end": (8, "<Q"),
            "included": (16, "<Q"),
        },
    ),
    "CaptureForm": (
        8,
        {
            "n_operations": (0, "<H"),
            "n_fields": (2, "<H"),
            "condition": (4, "<H"),
            "data_bytes": (6, "<H"),
        },
    ),
    "CaptureInstruction": (
        16,
        {
            "operation": (0, "<B"),
            "value_type": (1, "<B"),
            "a": (2, "<H"),
            "b": (4, "<H"),
            "reserved": (6, "<H"),
            "immediate": (8, "<Q"),
        },
    ),
    "CapturePlace": (
        40,
        {
            "pc": (0, "<Q"),
            "number": (8, "<I"),
            "action": (12, "<I"),
            "form_start": (16, "<I"),
            "form_bytes": (20, "<I"),
            "table_start": (24, "<I"),
            "table_keys": (28, "<B"),
            "table_rows_log2": (29, "<B"),
            "table_has_values": (30, "<B"),
            "table_has_histograms": (31, "<B"),
            "call_kind": (32, "<I"),
            "tells_left": (36, "<I"),
        },
    ),
    "AggregateHead": (
        128,
        {
            "n_left_out": (0, "<Q"),
            "reserved": (8, "<120s"),
        },
    ),
    "AggregateRow": (
        128,
        {
            "state": (0, "<Q"),
            "keys": (8, "<8Q"),
            "count": (72, "<Q"),
            "sum_low": (80, "<Q"),
            "sum_high": (88, "<Q"),
            "least": (96, "<Q"),
            "most": (104, "<Q"),
            "n_missing": (112, "<Q"),
            "reserved": (120, "<Q"),
        },
    ),
    "BlockChange": (
        4,
        {
            "offset": (0, "<H"),
            "is_dropped": (2, "<B"),
            "n_pieces": (3, "<B"),
        },
    ),
    "BlockPiece": (
        4,
        {
            "place": (0, "<B"),
            "kind": (1, "<B"),
            "size_bytes": (2, "<H"),
        },
    ),
    "InlinePiece": (
        4,
        {
            "registers": (0, "<H"),
            "keeps_flags": (2, "<B"),
            "reserved": (3, "<B"),
        },
    ),
    "StatusPage": (
        4096,
        {
            "state": (0, "<I"),
            "error": (4, "<I"),
            "error_detail": (8, "<4Q"),
            "counters_used": (40, "<Q"),
            "start_tsc": (48, "<Q"),
            "start_ns": (56, "<Q"),
            "last_tsc": (64, "<Q"),
            "last_ns": (72, "<Q"),
            "lost_records": (80, "<Q"),
            "lost_threads": (88, "<Q"),
            "uncounted_fragments": (96, "<Q"),
            "waits": (104, "<Q"),
            "fragments": (112, "<Q"),
            "instructions_translated": (120, "<Q"),
            "cache_bytes": (128, "<Q"),
            "links": (136, "<Q"),
            "unlinks": (144, "<Q"),
            "invalidated": (152, "<Q"),
            "entries_exit": (160, "<Q"),
            "entries_indirect": (168, "<Q"),
            "entries_syscall": (176, "<Q"),
            "entries_signal": (184, "<Q"),
            "dynamic_edges": (192, "<Q"),
            "heap_bytes": (200, "<Q"),
            "slabs": (208, "<Q"),
            "pause_ticket": (216, "<I"),
            "detach_ticket": (220, "<I"),
            "relaid": (224, "<Q"),
            "doorbell": (232, "<I"),
            "heartbeat": (236, "<I"),
            "unanswered": (240, "<Q"),
            "slots_used": (248, "<Q"),
            "trusted_pages": (256, "<Q"),
            "trust_ends": (264, "<Q"),
            "table_misses": (272, "<Q"),
            "untagged_fragments": (280, "<Q"),
            "hold_ticket": (288, "<I"),
            "directive_count": (292, "<I"),
            "breakpoint_count": (296, "<I"),
            "records_order": (300, "<I"),
            "breakpoints": (304, "<32Q"),
            "budget": (560, "<Q"),
            "thinned": (568, "<Q"),
            "excursions": (576, "<Q"),
            "uncounted_instructions": (584, "<Q"),
            "detach_reason": (592, "<I"),
            "is_written": (596, "<I"),
            "changed_pages": (600, "<32Q"),
            "changed_count": (856, "<I"),
            "released_task": (860, "<I"),
            "capture_count": (864, "<I"),
            "refused_captures": (868, "<I"),
            "visit_bell": (872, "<I"),
            "hears_visits": (876, "<I"),
            "transform_ticket": (880, "<I"),
            "transform_count": (884, "<I"),
            "transform_ranges": (888, "<256Q"),
            "blocks_asked": (2936, "<Q"),
            "blocks_refused": (2944, "<Q"),
            "invalidated_ranges": (2952, "<32Q"),
            "invalidated_count": (3208, "<I"),
            "prefetch_count": (3212, "<I"),
            "prefetch_done": (3216, "<I"),
            "reserved_prefetch": (3220, "<I"),
            "prefetched": (3224, "<Q"),
            "prefetch_refused": (3232, "<Q"),
            "native_runs": (3240, "<Q"),
            "native_calls": (3248, "<Q"),
            "unfollows_new": (3256, "<I"),
            "reserved_calls": (3260, "<I"),
            "calls_forgotten": (3264, "<Q"),
            "ring_submissions_unseen": (3272, "<Q"),
            "ring_completions_unseen": (3280, "<Q"),
            "captures_tsc": (3288, "<Q"),
            "probe_ticket": (3296, "<I"),
            "probe_done": (3300, "<I"),
            "probe_count": (3304, "<I"),
            "probes_leave": (3308, "<I"),
            "probe_task": (3312, "<I"),
            "reserved_probes": (3316, "<I"),
            "trap_handler": (3320, "<Q"),
            "trap_restorer": (3328, "<Q"),
            "trap_table": (3336, "<Q"),
            "trap_actions": (3344, "<8Q"),
            "patch_count": (3408, "<I"),
            "reserved_patches": (3412, "<I"),
            "task_call": (3416, "<Q"),
            "unwind_state": (3424, "<Q"),
            "reserved": (3432, "<664s"),
        },
    ),
    "ThreadSlot": (
        512,
        {
            "state": (0, "<I"),
            "tid": (4, "<I"),
            "ring_head": (8, "<Q"),
            "start_tsc": (16, "<Q"),
            "end_tsc": (24, "<Q"),
            "end_kind": (32, "<I"),
            "parent_tid": (36, "<I"),
            "lost_records": (40, "<Q"),
            "name": (48, "<16s"),
            "ring_tail": (64, "<Q"),
            "ring_waiters": (72, "<I"),
            "is_unfollowed": (76, "<I"),
            "request_answer": (80, "<4Q"),
            "reserved_answer": (112, "<16s"),
            "request_kind": (128, "<I"),
            "request_reply": (132, "<I"),
            "request_arguments": (136, "<4Q"),
            "born_child": (168, "<Q"),
            "process": (176, "<I"),
            "reserved": (180, "<76s"),
            "held_registers": (256, "<18Q"),
            "held_vectors": (400, "<8Q"),
            "held_thread_pointer": (464, "<Q"),
            "held_behind": (472, "<Q"),
            "reserved_more": (480, "<32s"),
        },
    ),
    "OpenCall": (
        256,
        {
            "stack_pointer": (0, "<Q"),
            "return_pc": (8, "<Q"),
            "function": (16, "<Q"),
            "tsc": (24, "<Q"),
            "kind": (32, "<I"),
            "missing": (36, "<I"),
            "texts": (40, "<Q"),
            "values": (48, "<26Q"),
        },
    ),
    "CallsHead": (
        4096,
        {
            "others": (0, "<Q"),
            "reserved": (8, "<4088s"),
        },
    ),
    "StartBlock": (
        4096,
        {
            "shared_base": (0, "<Q"),
            "shared_bytes": (8, "<Q"),
            "image_base": (16, "<Q"),
            "image_bytes": (24, "<Q"),
            "private_base": (32, "<Q"),
            "private_bytes": (40, "<Q"),
            "heap_base": (48, "<Q"),
            "heap_bytes": (56, "<Q"),
            "registers": (64, "<16Q"),
            "rip": (192, "<Q"),
            "rflags": (200, "<Q"),
            "fs_base": (208, "<Q"),
            "gs_base": (216, "<Q"),
            "range_count": (224, "<I"),
            "has_fsgsbase": (228, "<I"),
            "anchor_base": (232, "<Q"),
            "control_block": (240, "<Q"),
            "role": (248, "<I"),
            "reserved": (252, "<4s"),
            "ranges": (256, "<480Q"),
        },
    ),
    "ControlBlock": (
        128,
        {
            "threads": (0, "<Q"),
            "thread_count": (8, "<I"),
            "stage": (12, "<I"),
            "attach_pc": (16, "<Q"),
            "parked_pc": (24, "<Q"),
            "leave_pc": (32, "<Q"),
            "syscall_return_pc": (40, "<Q"),
            "syscall_again_pc": (48, "<Q"),
            "gates_start": (56, "<Q"),
            "gates_end": (64, "<Q"),
            "pending_offset": (72, "<I"),
            "call_code_offset": (76, "<I"),
            "signal_stack_offset": (80, "<I"),
            "tid_offset": (84, "<I"),
            "call_pc": (88, "<Q"),
            "trap_action": (96, "<Q"),
            "handover_pc": (104, "<Q"),
            "native_offset": (112, "<I"),
            "reserved_more": (116, "<12s"),
        },
    ),
    "ThreadState": (
        256,
        {
            "registers": (0, "<16Q"),
            "rip": (128, "<Q"),
            "rflags": (136, "<Q"),
            "gs_base": (144, "<Q"),
            "mask": (152, "<Q"),
            "context": (160, "<Q"),
            "stack_top": (168, "<Q"),
            "tid": (176, "<I"),
            "call_code": (180, "<I"),
            "rseq_area": (184, "<Q"),
            "rseq_signature": (192, "<I"),
            "code_selector": (196, "<H"),
            "stack_selector": (198, "<H"),
            "is_captured": (200, "<I"),
            "has_calls": (204, "<I"),
            "reserved": (208, "<48s"),
        },
    ),
    "FragmentRecord": (
        64,
        {
            "kind": (0, "<H"),
            "continuations": (2, "<H"),
            "tid": (4, "<I"),
            "app_pc": (8, "<Q"),
            "target_pc": (16, "<Q"),
            "tsc": (24, "<Q"),
            "fragment_id": (32, "<I"),
            "counter_index": (36, "<I"),
            "code_version": (40, "<I"),
            "size_bytes": (44, "<H"),
            "n_instructions": (46, "<H"),
            "exit_kind": (48, "<B"),
            "flags": (49, "<B"),
            "reserved": (50, "<1s"),
            "n_misses": (51, "<B"),
            "region_block": (52, "<I"),
            "reserved_more": (56, "<8s"),
        },
    ),
    "CaptureRecord": (
        64,
        {
            "kind": (0, "<H"),
            "continuations": (2, "<H"),
            "tid": (4, "<I"),
            "pc": (8, "<Q"),
            "tsc": (16, "<Q"),
            "number": (24, "<I"),
            "missing": (28, "<I"),
            "values": (32, "<4Q"),
        },
    ),
    "ContinuationRecord": (
        64,
        {
            "kind": (0, "<H"),
            "index": (2, "<H"),
            "payload": (4, "<60s"),
        },
    ),
    "DynamicEdgeRecord": (
        64,
        {
            "kind": (0, "<H"),
            "continuations": (2, "<H"),
            "tid": (4, "<I"),
            "source_pc": (8, "<Q"),
            "target_pc": (16, "<Q"),
            "tsc": (24, "<Q"),
            "source_fragment_id": (32, "<I"),
            "target_fragment_id": (36, "<I"),
            "counter_index": (40, "<I"),
            "edge_kind": (44, "<B"),
            "reserved": (45, "<1s"),
            "symbol": (46, "<H"),
            "reserved_more": (48, "<16s"),
        },
    ),
    "LinkRecord": (
        64,
        {
            "kind": (0, "<H"),
            "continuations": (2, "<H"),
            "tid": (4, "<I"),
            "source_pc": (8, "<Q"),
            "target_pc": (16, "<Q"),
            "tsc": (24, "<Q"),
            "source_fragment_id": (32, "<I"),
            "target_fragment_id": (36, "<I"),
            "edge_kind": (40, "<B"),
            "reserved": (41, "<23s"),
        },
    ),
    "ImageRecord": (
        64,
        {
            "kind": (0, "<H"),
            "continuations": (2, "<H"),
            "tid": (4, "<I"),
            "start": (8, "<Q"),
            "size_bytes": (16, "<Q"),
            "tsc": (24, "<Q"),
            "file_offset": (32, "<Q"),
            "device": (40, "<Q"),
            "inode": (48, "<Q"),
            "protection": (56, "<I"),
            "path_bytes": (60, "<I"),
        },
    ),
    "UnmapRecord": (
        64,
        {
            "kind": (0, "<H"),
            "continuations": (2, "<H"),
            "tid": (4, "<I"),
            "start": (8, "<Q"),
            "size_bytes": (16, "<Q"),
            "tsc": (24, "<Q"),
            "reserved": (32, "<32s"),
        },
    ),
    "EventRecord": (
        64,
        {
            "kind": (0, "<H"),
            "continuations": (2, "<H"),
            "tid": (4, "<I"),
            "app_pc": (8, "<Q"),
            "a": (16, "<Q"),
            "tsc": (24, "<Q"),
            "b": (32, "<Q"),
            "c": (40, "<Q"),
            "event_kind": (48, "<H"),
            "reserved": (50, "<14s"),
        },
    ),
    "InvalidateRecord": (
        64,
        {
            "kind": (0, "<H"),
            "continuations": (2, "<H"),
            "tid": (4, "<I"),
            "app_pc": (8, "<Q"),
            "reserved_target": (16, "<Q"),
            "tsc": (24, "<Q"),
            "fragment_id": (32, "<I"),
            "reserved": (36, "<28s"),
        },
    ),
    "PathChunkRecord": (
        64,
        {
            "kind": (0, "<H"),
            "rows": (2, "<H"),
            "tid": (4, "<I"),
            "tsc": (8, "<Q"),
            "start": (16, "<Q"),
            "size_bytes": (24, "<I"),
            "stream": (28, "<H"),
            "reserved": (30, "<34s"),
        },
    ),
    "PathEventRecord": (
        64,
        {
            "kind": (0, "<H"),
            "event_kind": (2, "<H"),
            "tid": (4, "<I"),
            "tsc": (8, "<Q"),
            "surprise_bytes": (16, "<Q"),
            "decisions": (24, "<Q"),
            "symbol_bytes": (32, "<Q"),
            "depth": (40, "<Q"),
            "pc": (48, "<Q"),
            "value": (56, "<Q"),
        },
    ),
    "RegionChunkRecord": (
        64,
        {
            "kind": (0, "<H"),
            "continuations": (2, "<H"),
            "tid": (4, "<I"),
            "tsc": (8, "<Q"),
            "start": (16, "<Q"),
            "size_bytes": (24, "<I"),
            "stream": (28, "<H"),
            "reserved": (30, "<34s"),
        },
    ),
}
"""Of each struct: its size, and of each field its offset and `struct` format."""
