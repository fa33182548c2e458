"""Generated from protocol/schema.toml by `make generate`; do not edit.

Numbers and enums that the path codec and the controller share, cheap to import. The layouts are in
`clew.protocol.codec_layouts`.
"""

from __future__ import annotations

from typing import Final

from clew.enumeration import IntEnum

__all__ = [
    "FIRST_LONG_SURPRISE",
    "FIRST_WIDE_SURPRISE",
    "MAX_DEPTH",
    "MAX_SURPRISE_BYTES",
    "NOWHERE",
    "WIDE_SURPRISE_BYTES",
    "AccessKind",
    "Action",
    "Ending",
    "FlowKind",
    "Gate",
    "Stop",
]

NOWHERE: Final = 0xffffffff
"""no block"""
MAX_DEPTH: Final = 0x40000
"""so many calls may be open; one more, and all of them are forgotten first"""
WIDE_SURPRISE_BYTES: Final = 0x3
"""a surprise of first_wide_surprise decisions or more takes so much"""
MAX_SURPRISE_BYTES: Final = 0xb
"""one of first_long_surprise decisions or more takes so much, none more"""
FIRST_WIDE_SURPRISE: Final = 0x100
"""surprises of so many decisions are behind a zero"""
FIRST_LONG_SURPRISE: Final = 0x10000
"""surprises of so many decisions are behind three zeros"""


class Ending(IntEnum):
    """What a block ends with, as far as its path is concerned. fall_through: goes on behind itself, also behind a
    system call. jump: a direct one forwards. back_jump: a direct one backwards, or to itself: a decision without a
    choice, so that no cycle of code is without one. call: a direct one, a decision without a choice, so that two
    calls of one function are two places. return: to the topmost open call; or, where `is_taken`, as an indirect
    jump, whose symbol also says what it pops. stop: nothing follows unless an event says what. slot: no block, but
    an address that held several: the one that it holds now is `target`.
    """

    FALL_THROUGH = 0
    JUMP = 1
    BACK_JUMP = 2
    CONDITIONAL = 3
    CALL = 4
    INDIRECT_CALL = 5
    INDIRECT_JUMP = 6
    RETURN = 7
    STOP = 8
    SLOT = 9


class Action(IntEnum):
    """What an event does to the path. note: nothing, it says something about this place. resume: the thread goes on at
    block `value` instead: a signal, a fault, a return from a handler. elsewhere: the return or indirect branch that
    comes next leads to block `value`. expect: from here on the conditional branch at the end of `subject` is
    expected to be taken (`value` 1) or not (0), or the return there takes a symbol (1) or none (0). end: the path
    ends. code: from here on the slot `subject` holds block `value`.
    """

    NOTE = 0
    RESUME = 1
    ELSEWHERE = 2
    EXPECT = 3
    END = 4
    CODE = 5


class Stop(IntEnum):
    """Why a walk stopped. asked: it was asked to, there may be more. end: the path ends. cut: what was recorded is used
    up. damaged: path and code contradict each other. no_room: nothing was done: the predictor's memory, or the room
    for what is written, is too small.
    """

    ASKED = 0
    END = 1
    CUT = 2
    DAMAGED = 3
    NO_ROOM = 4


class Gate(IntEnum):
    """What it means for the telling of events that a thread comes to a block. opens: what it does from there on is
    told. closes: nothing is, until it comes to one that opens.
    """

    NONE = 0
    OPENS = 1
    CLOSES = 2


class FlowKind(IntEnum):
    """What a thread did, as events tell it. call: an instruction called. ret: one returned. block: the thread left a
    basic block as it ran: from where the thread came to, up to the instruction that led elsewhere, calls the kernel,
    or was as far as it came. exec: it executed an instruction. compile: it translated a piece of code, which is
    executed from then on. syscall: it called the kernel; target is the call's number. signal: it was interrupted in
    front of address, and a handler begins; target is the signal's number. exception: the same of a signal that the
    instruction at address caused. thread: it began at address (target 1), or ended in front of it (target 0). image:
    it mapped executable memory; target is the offset in the file. memory: the instruction at address accessed memory
    at target.
    """

    CALL = 0
    RET = 1
    BLOCK = 2
    EXEC = 3
    COMPILE = 4
    SYSCALL = 5
    SIGNAL = 6
    EXCEPTION = 7
    THREAD = 8
    IMAGE = 9
    MEMORY = 10


class AccessKind(IntEnum):
    """What an instruction did with memory. update: it read and wrote it."""

    READ = 1
    WRITE = 2
    UPDATE = 3
