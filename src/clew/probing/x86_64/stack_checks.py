"""Functions of Go that begin by looking whether there is room on the stack, and begin anew once it was moved.

The address where such a function begins is come to twice then, for one call: what is behind the check, once. Registers
and stack are there what they were at the beginning (cmd/internal/obj/x86/obj6.go, stacksplit).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.kinds import CALLS, ENDS, Kind

__all__ = ["StackCheck", "find_body", "find_stack_check"]

_COMPARISONS: Final = (b"\x49\x3b\x66\x10", b"\x4d\x3b\x66\x10")
"""Of rsp, or of r12, which is made of it, with where the stack ends: r14 leads to the goroutine."""
_MAX_INDEX: Final = 6
"""Of the comparison among the function's instructions."""


_MAX_BYTES: Final = 15 * _MAX_INDEX


class StackCheck(NamedTuple):
    """Where a function goes on if there is room, and the jump back to its start."""

    body: int
    again: int


def find_stack_check(code: FunctionCode) -> StackCheck | None:
    """The check with which a function begins; None: there is none."""
    # Nearly all functions are seen to have none at a glance.
    if not any(one in code.code[:_MAX_BYTES] for one in _COMPARISONS):
        return None
    last = min(_MAX_INDEX, code.n_instructions - 2)
    index = next((one for one in range(last) if code.bytes_of(one) in _COMPARISONS), None)
    if index is None or code.kinds[index + 1] != Kind.CONDITIONAL:
        return None
    branch = code.starts[index + 1]
    target = next((to for to, sources in code.branches.items() if branch in sources), None)
    at = None if target is None else code.index_of.get(target)
    if at is None:
        return None
    has_called = False
    while at < code.n_instructions and code.kinds[at] not in ENDS:
        has_called = has_called or code.kinds[at] in CALLS
        at += 1
    again = code.starts[at]
    if not has_called or (again, code.start) not in code.leaving:
        return None
    return StackCheck(code.starts[index + 2], again)


def find_body(code: FunctionCode) -> int:
    """The address that is come to once in each call, before the function does anything."""
    check = find_stack_check(code)
    return code.start if check is None else check.body
