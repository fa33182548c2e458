"""Where the fields of an operation of io_uring are, as expressions of captures have them.

Runs in the controller. Pure. What registers are elsewhere is there words: eight of the operation's entry (struct
io_uring_sqe of the kernel's include/uapi/linux/io_uring.h), and what is known of it besides, as the runtime numbers
them (instrument/captures/ring.rs).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["FIELDS", "RESULT_WORD", "WORDS", "field_text", "is_answered", "word_of"]

RESULT_WORD: Final = "res"
WORDS: Final = (*(f"sqe{index}" for index in range(8)), "ring", "cqe_flags", RESULT_WORD, "among")
"""By the runtime's numbers."""

_ANSWERED: Final = frozenset({"cqe_flags", "among"})
"""Known only where there is a result."""

_PLACES: Final = {
    "opcode": (0, 1),
    "flags": (1, 1),
    "ioprio": (2, 2),
    "fd": (4, 4),
    "off": (8, 8),
    "cmd_op": (8, 4),
    "addr": (16, 8),
    "len": (24, 4),
    "op_flags": (28, 4),
    "user_data": (32, 8),
    "buf_index": (40, 2),
    "personality": (42, 2),
    "file_index": (44, 4),
    "addr_len": (44, 2),
    "addr3": (48, 8),
}
"""Where in the entry, and of how many bytes. Members of unions have one name here."""

FIELDS: Final = frozenset(_PLACES) | {"ring"} | _ANSWERED


def is_answered(field: str) -> bool:
    """Whether a field is known only where there is a result."""
    return field in _ANSWERED


def word_of(field: str) -> str:
    """The word that has a field."""
    return f"sqe{_PLACES[field][0] // 8}" if field in _PLACES else field


def field_text(field: str, name_word: Callable[[str], str]) -> str:
    """The expression that gives a field, where `name_word` says how its word is called."""
    word = name_word(word_of(field))
    offset, size = _PLACES.get(field, (0, 8))
    shift = 8 * (offset % 8)
    if size == 8:
        return word
    return f"(u{8 * size})({word}>>{shift})" if shift else f"(u{8 * size}){word}"
