"""Where the code of a function is not what its file has: somebody else's breakpoints, and other sessions' jumps.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clew.probing.native import JUMP_SIZE, TRAP_BYTE, Displaced, FunctionCode
from clew.probing.planning import Foreign

__all__ = ["find_foreign"]

_JUMP: Final = 0xE9
_BREAKPOINT: Final = "has a breakpoint of somebody else's"
_CHANGED: Final = "is not what its file has: somebody has changed it"


def find_foreign(code: FunctionCode, read: Callable[[int, int], bytes]) -> list[Foreign]:
    """Such places; `read` gives memory, less what is this session's own."""
    found = read(code.start, len(code.code))
    if found == code.code[: len(found)]:
        return []
    places: list[Foreign] = []
    at = 0
    while at < len(found):
        if found[at] == code.code[at]:
            at += 1
            continue
        # A jump's first byte may have been one before, its distance's first bytes what they were.
        start = code.start + at
        is_jump = found[at] == _JUMP and start in code.index_of and at + JUMP_SIZE <= len(found)
        jump = Displaced(start, found[at : at + JUMP_SIZE]) if is_jump else None
        size = JUMP_SIZE if is_jump else 1
        reason = _BREAKPOINT if found[at] == TRAP_BYTE else _CHANGED
        places.append(Foreign(start, start + size, reason, jump))
        at += size
    return places
