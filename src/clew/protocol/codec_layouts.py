"""Generated from protocol/schema.toml by `make generate`; do not edit.

What the controller hands the path codec: numpy dtypes of tables, structs for calls.
"""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np

__all__ = [
    "ACCESS_ROW",
    "BLOCK",
    "BLOCK_DETAIL",
    "EVENT",
    "FLOW_EVENT",
    "TOLD_EVENT",
    "VALUE_EVENT",
    "BegunBlock",
    "Coded",
    "Encoded",
    "FlowReading",
    "Limit",
    "Position",
    "Progress",
    "Tables",
]


BLOCK: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "pc",
            "end_pc",
            "target",
            "next",
            "first_target",
            "n_targets",
            "n_instructions",
            "ending",
            "is_taken",
            "reserved",
        ],
        "formats": ["<u8", "<u8", "<u4", "<u4", "<u4", "<u4", "<u4", "<u1", "<u1", "V10"],
        "offsets": [0, 8, 16, 20, 24, 28, 32, 36, 37, 38],
        "itemsize": 48,
    }
)
"""A basic block. pc: address of its first instruction; end_pc: address behind its last one: what a call at its end
pushes; target: where a direct branch leads: the number of a block, or nowhere; next: the block behind it, or
nowhere; first_target: the targets of its indirect branch or return, by their symbols, are
targets[first_target..][..n_targets]; n_targets: how many these are; n_instructions: its instructions; ending: enum
Ending; is_taken: of a conditional branch: 1 if it is expected to be taken; of a return: 1 if it takes a symbol;
reserved: zero.
"""


class Position(ctypes.Structure):
    """Where in a path. With the block that would run next it is there once only: whatever comes back to a block has
    moved one of these.
    """

    surprise_bytes: int
    """bytes of surprises read"""
    decisions: int
    """decisions since the last surprise"""
    symbol_bytes: int
    """bytes of symbols read"""
    depth: int
    """open calls, those that were forgotten among them"""
    _fields_ = (
        ("surprise_bytes", ctypes.c_uint64),
        ("decisions", ctypes.c_uint64),
        ("symbol_bytes", ctypes.c_uint64),
        ("depth", ctypes.c_uint64),
    )


EVENT: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "surprise_bytes",
            "decisions",
            "symbol_bytes",
            "depth",
            "block",
            "subject",
            "value",
            "action",
            "reserved",
        ],
        "formats": ["<u8", "<u8", "<u8", "<u8", "<u4", "<u4", "<u4", "<u1", "V3"],
        "offsets": [0, 8, 16, 24, 32, 36, 40, 44, 45],
        "itemsize": 48,
    }
)
"""What a path cannot imply, and where in it that is. surprise_bytes: bytes of surprises read; decisions: decisions
since the last surprise; symbol_bytes: bytes of symbols read; depth: open calls, those that were forgotten among
them; block: the block that would run next; subject: the block that `action` is about, if that is not the one where
it is; value: see enum Action; action: enum Action; reserved: zero.
"""


class Progress(ctypes.Structure):
    """What was executed on the way."""

    instructions: int
    """instructions executed"""
    blocks: int
    """executions of blocks"""
    hits: int
    """executions of the block that is counted"""
    _fields_ = (
        ("instructions", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
        ("hits", ctypes.c_uint64),
    )


class Limit(ctypes.Structure):
    """How far to go on."""

    most: Progress
    """no more than that"""
    surprise_bytes: int
    """so many bytes of surprises read, and decisions made behind the last one: the walk stops where it comes to that"""
    decisions: int
    """these decisions"""
    counted: int
    """the block that `most.hits` is about; nowhere: none"""
    reserved: int
    """zero"""
    _fields_ = (
        ("most", Progress),
        ("surprise_bytes", ctypes.c_uint64),
        ("decisions", ctypes.c_uint64),
        ("counted", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class Tables(ctypes.Structure):
    """What a walk reads. Pointers to nothing are as good as any others where the count is 0, but not null."""

    blocks: int
    """the code"""
    n_blocks: int
    """so many"""
    targets: int
    """where indirect branches lead"""
    n_targets: int
    """so many"""
    surprises: int
    """a stream; to decode, room for it"""
    n_surprise_bytes: int
    """so many"""
    symbols: int
    """a stream; to decode, room for it"""
    n_symbol_bytes: int
    """so many"""
    events: int
    """in the order of the path"""
    n_events: int
    """so many"""
    decisions: int
    """decisions behind the last surprise"""
    addresses: int
    """the shadow stack's return addresses: room for max_depth, of which the first `depth` are open"""
    numbers: int
    """the blocks at these"""
    max_depth: int
    """room for so many"""
    depth: int
    """so many are open"""
    forgotten: int
    """so many others are"""
    start: Position
    """where the streams begin"""
    block: int
    """the block that would run next"""
    _fields_ = (
        ("blocks", ctypes.c_void_p),
        ("n_blocks", ctypes.c_uint64),
        ("targets", ctypes.c_void_p),
        ("n_targets", ctypes.c_uint64),
        ("surprises", ctypes.c_void_p),
        ("n_surprise_bytes", ctypes.c_uint64),
        ("symbols", ctypes.c_void_p),
        ("n_symbol_bytes", ctypes.c_uint64),
        ("events", ctypes.c_void_p),
        ("n_events", ctypes.c_uint64),
        ("decisions", ctypes.c_uint64),
        ("addresses", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
        ("max_depth", ctypes.c_uint64),
        ("depth", ctypes.c_uint64),
        ("forgotten", ctypes.c_uint64),
        ("start", Position),
        ("block", ctypes.c_uint64),
    )


ACCESS_ROW: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["what", "address", "value"],
        "formats": ["<u8", "<u8", "<u8"],
        "offsets": [0, 8, 16],
        "itemsize": 24,
    }
)
"""What an instruction did with memory, in the order in which its thread did it. what: from the lowest bit on: the
instruction's address, 48 bits; bytes that were accessed, 10; enum AccessKind, 2; 1 where another access of the same
instruction comes before it; 1 of a string instruction, whose `value` is how many bytes its turns accessed; address:
of the memory; value: the first eight bytes that were read or, where it was written, that are there now; 0 where that
is not known.
"""


FLOW_EVENT: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "sequence",
            "address",
            "target",
            "time",
            "thread",
            "depth",
            "size",
            "n_instructions",
            "kind",
            "access",
        ],
        "formats": ["<u8", "<u8", "<u8", "<u8", "<u4", "<u4", "<u4", "<u2", "<u1", "<u1"],
        "offsets": [0, 8, 16, 24, 32, 36, 40, 44, 46, 47],
        "itemsize": 48,
    }
)
"""What a thread did, in its own order. What is of one block comes so: its instructions, it, the call or return at its
end. sequence: the thread's events are numbered from 0 on; address: of the instruction, or of the first one; target:
the address that it leads to, though a signal or the end may come first; 0 where that is not known; time: the last
time stamp that was told before it: of a checkpoint, a system call, a signal; thread: the thread's number (tid);
depth: calls that were open when it began; size: bytes of the instruction, block or piece; n_instructions: 1, or
those of the block or piece; more than 65,535 are told as so many; kind: enum FlowKind; access: enum AccessKind of a
memory event; 0 of others.
"""


VALUE_EVENT: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": [
            "sequence",
            "address",
            "target",
            "time",
            "thread",
            "depth",
            "size",
            "n_instructions",
            "kind",
            "access",
            "value",
        ],
        "formats": ["<u8", "<u8", "<u8", "<u8", "<u4", "<u4", "<u4", "<u2", "<u1", "<u1", "<u8"],
        "offsets": [0, 8, 16, 24, 32, 36, 40, 44, 46, 47, 48],
        "itemsize": 56,
    }
)
"""An event where memory events are told: with the value. sequence: the thread's events are numbered from 0 on; address:
of the instruction, or of the first one; target: the address that it leads to, though a signal or the end may come
first; 0 where that is not known; time: the last time stamp that was told before it: of a checkpoint, a system call,
a signal; thread: the thread's number (tid); depth: calls that were open when it began; size: bytes of the
instruction, block or piece; n_instructions: 1, or those of the block or piece; more than 65,535 are told as so many;
kind: enum FlowKind; access: enum AccessKind of a memory event; 0 of others; value: AccessRow.value of a memory
event; 0 of others.
"""


BLOCK_DETAIL: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["branch_pc", "first_start", "is_wanted", "goes_on", "gate", "reserved"],
        "formats": ["<u8", "<u4", "<u1", "<u1", "<u1", "V1"],
        "offsets": [0, 8, 12, 13, 14, 15],
        "itemsize": 16,
    }
)
"""What events say of a block beside what its path says of it. branch_pc: address of its last instruction; first_start:
its instructions begin at so many bytes behind its first one: starts[first_start..][..n_instructions]; is_wanted: 1:
it is told of; goes_on: 1: it was cut where nothing leads elsewhere, so what is behind it is of the same block; gate:
enum Gate; reserved: zero.
"""


TOLD_EVENT: Final[np.dtype[np.void]] = np.dtype(
    {
        "names": ["address", "target", "is_told", "kind", "reserved"],
        "formats": ["<u8", "<u8", "<u1", "<u1", "V6"],
        "offsets": [0, 8, 16, 17, 18],
        "itemsize": 24,
    }
)
"""What is told of one of the path's events. address: FlowEvent.address; target: FlowEvent.target; is_told: 0: nothing
is; kind: enum FlowKind; reserved: zero.
"""


class BegunBlock(ctypes.Structure):
    """A block of which the thread executed a part, when there was no more to read."""

    address: int
    """of its first instruction"""
    end: int
    """address behind the part; 0: none was begun"""
    n_instructions: int
    """of the part"""
    depth: int
    """calls that were open when it began"""
    _fields_ = (
        ("address", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("n_instructions", ctypes.c_uint64),
        ("depth", ctypes.c_uint64),
    )


class FlowReading(ctypes.Structure):
    """What is read of a path as events, and how far that has come."""

    details: int
    """of each block of the code"""
    n_details: int
    """so many"""
    starts: int
    """where instructions begin"""
    n_starts: int
    """so many"""
    times: int
    """of each event of the path its time stamp, or 0"""
    n_times: int
    """so many"""
    told: int
    """of each event of the path what is told of it; or none"""
    n_told: int
    """so many"""
    rows: int
    """where events go: FlowEvent, or ValueEvent where has_values is 1"""
    n_rows: int
    """so many have room"""
    surprise_bytes: int
    """all that the thread did is known up to so many bytes of surprises, and decisions made behind the last one"""
    decisions: int
    """these decisions"""
    begun: BegunBlock
    """what was begun"""
    sequence: int
    """the next event's number"""
    time: int
    """the last time stamp"""
    thread: int
    """the thread's number"""
    kinds: int
    """which events are told: bits by enum FlowKind"""
    accesses: int
    """what the thread did with memory, from where the reading is"""
    n_accesses: int
    """so many"""
    n_passed: int
    """so many of them are behind the reading"""
    has_values: int
    """1: rows are ValueEvent"""
    has_accesses: int
    """1: there are accesses of what the thread executes, or none of it accesses memory; 2: there are more, behind these
    """
    is_open: int
    """0: what the thread does is not told, before it comes to a block whose gate opens"""
    reserved: int
    """zero"""
    _fields_ = (
        ("details", ctypes.c_void_p),
        ("n_details", ctypes.c_uint64),
        ("starts", ctypes.c_void_p),
        ("n_starts", ctypes.c_uint64),
        ("times", ctypes.c_void_p),
        ("n_times", ctypes.c_uint64),
        ("told", ctypes.c_void_p),
        ("n_told", ctypes.c_uint64),
        ("rows", ctypes.c_void_p),
        ("n_rows", ctypes.c_uint64),
        ("surprise_bytes", ctypes.c_uint64),
        ("decisions", ctypes.c_uint64),
        ("begun", BegunBlock),
        ("sequence", ctypes.c_uint64),
        ("time", ctypes.c_uint64),
        ("thread", ctypes.c_uint32),
        ("kinds", ctypes.c_uint32),
        ("accesses", ctypes.c_void_p),
        ("n_accesses", ctypes.c_uint64),
        ("n_passed", ctypes.c_uint64),
        ("has_values", ctypes.c_uint32),
        ("has_accesses", ctypes.c_uint32),
        ("is_open", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


class Encoded(ctypes.Structure):
    """What was encoded."""

    n_bytes: int
    """bytes of the coded form"""
    n_blocks: int
    """executions of blocks in it"""
    n_items: int
    """conditional and indirect branches in it"""
    _fields_ = (
        ("n_bytes", ctypes.c_uint64),
        ("n_blocks", ctypes.c_uint64),
        ("n_items", ctypes.c_uint64),
    )


class Coded(ctypes.Structure):
    """What is decoded, and the predictor's memory for it."""

    bytes: int
    """the coded form"""
    n_bytes: int
    """so many"""
    n_blocks: int
    """executions of blocks in it"""
    words: int
    """the predictor's memory"""
    n_words: int
    """so many"""
    _fields_ = (
        ("bytes", ctypes.c_void_p),
        ("n_bytes", ctypes.c_uint64),
        ("n_blocks", ctypes.c_uint64),
        ("words", ctypes.c_void_p),
        ("n_words", ctypes.c_uint64),
    )
