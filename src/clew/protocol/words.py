"""Generated from protocol/schema.toml by `make generate`; do not edit.

Words of tables of traces and of answers: of each kind a type, and all of them in the order of their numbers.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

__all__ = [
    "CALL_WORDS",
    "EDGE_WORDS",
    "ENDING_WORDS",
    "EVENT_WORDS",
    "EXIT_WORDS",
    "HOLD_WORDS",
    "MODE_WORDS",
    "TAG_WORDS",
    "THREAD_END_WORDS",
    "CallWord",
    "EdgeWord",
    "EndingWord",
    "EventWord",
    "ExitWord",
    "HoldWord",
    "ModeWord",
    "TagWord",
    "ThreadEndWord",
]

ExitWord: TypeAlias = Literal[
    "fall_through",
    "jump",
    "conditional",
    "call",
    "indirect_jump",
    "indirect_call",
    "return",
    "syscall",
    "none",
]
"""How a block ends: exit_kind of blocks."""
EXIT_WORDS: Final[tuple[ExitWord, ...]] = (
    "fall_through",
    "jump",
    "conditional",
    "call",
    "indirect_jump",
    "indirect_call",
    "return",
    "syscall",
    "none",
)
"""Every ExitWord, in the order of the numbers."""

EdgeWord: TypeAlias = Literal[
    "jump",
    "taken",
    "not_taken",
    "fall_through",
    "call",
    "indirect_call",
    "indirect_jump",
    "return",
    "syscall",
    "signal",
    "sigreturn",
    "fault",
    "start",
]
"""What an edge is: kind of edges."""
EDGE_WORDS: Final[tuple[EdgeWord, ...]] = (
    "jump",
    "taken",
    "not_taken",
    "fall_through",
    "call",
    "indirect_call",
    "indirect_jump",
    "return",
    "syscall",
    "signal",
    "sigreturn",
    "fault",
    "start",
)
"""Every EdgeWord, in the order of the numbers."""

EventWord: TypeAlias = Literal[
    "thread_start",
    "thread_end",
    "signal",
    "fault",
    "fork",
    "execve",
    "released",
    "exit_group",
    "writable_code",
    "execve_failed",
    "seccomp",
    "recording_changed",
]
"""What happened: kind of events."""
EVENT_WORDS: Final[tuple[EventWord, ...]] = (
    "thread_start",
    "thread_end",
    "signal",
    "fault",
    "fork",
    "execve",
    "released",
    "exit_group",
    "writable_code",
    "execve_failed",
    "seccomp",
    "recording_changed",
)
"""Every EventWord, in the order of the numbers."""

TagWord: TypeAlias = Literal["executed", "became_busy", "counts", "left_busy", "signal", "fault", "syscall"]
"""What a thread told in its order: kind of tags (mode region)."""
TAG_WORDS: Final[tuple[TagWord, ...]] = ("executed", "became_busy", "counts", "left_busy", "signal", "fault", "syscall")
"""Every TagWord, in the order of the numbers."""

EndingWord: TypeAlias = Literal[
    "fall_through",
    "jump",
    "back_jump",
    "conditional",
    "call",
    "indirect_call",
    "indirect_jump",
    "return",
    "stop",
]
"""How a block ends, as far as paths are concerned: ending of path_blocks (mode full)."""
ENDING_WORDS: Final[tuple[EndingWord, ...]] = (
    "fall_through",
    "jump",
    "back_jump",
    "conditional",
    "call",
    "indirect_call",
    "indirect_jump",
    "return",
    "stop",
)
"""Every EndingWord, in the order of the numbers."""

ThreadEndWord: TypeAlias = Literal["exit", "killed", "detached", "lost"]
"""How a thread ended: end of threads. killed: from outside, or by another thread's exit. detached: it goes on untraced.
lost: that is not known.
"""
THREAD_END_WORDS: Final[tuple[ThreadEndWord, ...]] = ("exit", "killed", "detached", "lost")
"""Every ThreadEndWord, in the order of the numbers."""

ModeWord: TypeAlias = Literal["coverage", "counts", "region", "full"]
"""The recorder that was in use: mode of the manifest."""
MODE_WORDS: Final[tuple[ModeWord, ...]] = ("coverage", "counts", "region", "full")
"""Every ModeWord, in the order of the numbers."""

HoldWord: TypeAlias = Literal["asked", "stepped", "breakpoint", "capture", "block"]
"""Why a thread stands still: reason in answers of `clew control`."""
HOLD_WORDS: Final[tuple[HoldWord, ...]] = ("asked", "stepped", "breakpoint", "capture", "block")
"""Every HoldWord, in the order of the numbers."""

CallWord: TypeAlias = Literal["system_call", "library", "probe"]
"""What was called: kind of calls. probe: an event of a probe, or the entry and the return of a function; in no trace on
a disk.
"""
CALL_WORDS: Final[tuple[CallWord, ...]] = ("system_call", "library", "probe")
"""Every CallWord, in the order of the numbers."""
