"""What is captured of a call, so that it can be told as its description says; and its values out of what was captured.

Runs in the controller. Pure: expressions of captures (`capture/grammar.py`), and the fields that these come to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clew.api.description import RESULT, Function, Parameter
from clew.api.text import Pointed, Value
from clew.dataclass import dataclass
from clew.protocol._constants import MAX_CAPTURE_TEXT, MAX_KEPT_VALUES

__all__ = ["CallCapture", "capture_of"]

MAX_ARGUMENTS: Final = 6
"""Of a system call; of a function so many are looked at."""

_FIXED_BYTES: Final = {"timespec": 16}
"""What pointers lead to that is of one size."""


@dataclass(frozen=True)
class _Taken:
    """What an argument leads to: which argument, and the field that has it; `is_answer`: the call wrote it."""

    index: int
    field: int
    is_answer: bool


@dataclass(frozen=True)
class CallCapture:
    """What is captured of the calls of a function: `expressions`, when they return, or begin where they never do."""

    function: Function
    expressions: tuple[str, ...]
    returns: bool
    n_arguments: int
    taken: tuple[_Taken, ...]

    def values_of(
        self, fields: Sequence[int | bytes | float | None]
    ) -> tuple[tuple[Value, ...], int | None, int | None]:
        """The values of the arguments, the result and the duration in nanoseconds, out of the fields in their order."""
        registers = [_number(value) for value in fields[: self.n_arguments]]
        values: list[Value] = list(registers)
        result, duration = (_number(value) for value in fields[-2:]) if self.returns else (None, None)
        # Nothing was written then.
        has_failed = self.function.has_failed(result)
        for one in self.taken:
            address, data = registers[one.index], fields[one.field]
            if address is None:
                continue
            text = data if isinstance(data, bytes) and not (one.is_answer and has_failed) else None
            values[one.index] = Pointed(address, text, text is not None and len(text) >= MAX_CAPTURE_TEXT)
        return tuple(values), result, duration


def _number(value: int | bytes | float | None) -> int | None:
    return value if isinstance(value, int) else None


def capture_of(function: Function) -> CallCapture:
    """What is to be captured of the calls of a function."""
    returns = function.parameters is None or function.result is not None
    n_arguments = MAX_ARGUMENTS if function.parameters is None else min(len(function.arguments), MAX_ARGUMENTS)
    kept = "entry(arg{})" if returns else "arg{}"
    expressions = [kept.format(index + 1) for index in range(n_arguments)]
    taken: list[_Taken] = []
    n_kept = n_arguments
    for parameter in function.arguments:
        begun, returned = _expressions(parameter, function)
        is_begun = begun is not None and n_kept < MAX_KEPT_VALUES and parameter.index < n_arguments
        text = None
        if is_begun:
            text = f"entry({begun})" if returns else begun
            n_kept += returns
        elif returned is not None and returns and parameter.index < n_arguments:
            text = returned
        if text is not None:
            taken.append(_Taken(parameter.index, len(expressions), not is_begun))
            expressions.append(text)
    if returns:
        expressions += ["retval", "duration"]
    return CallCapture(function, tuple(expressions), returns, n_arguments, tuple(taken))


def _expressions(parameter: Parameter, function: Function) -> tuple[str | None, str | None]:
    """What takes that to which an argument leads: when the call begins; or when it has returned."""
    if not parameter.is_pointer:
        return None, None
    own = f"arg{parameter.index + 1}"
    is_read = parameter.when != "exit" and parameter.direction != "out"
    if parameter.raw_type in ("path", "string"):
        return (
            (f"str({own}, {MAX_CAPTURE_TEXT})", None) if is_read else (None, f"str(entry({own}), {MAX_CAPTURE_TEXT})")
        )
    size = _size(parameter, function, is_read=is_read)
    if size is None:
        return None, None
    return (f"bytes({own}, {size})", None) if is_read else (None, f"bytes(entry({own}), {size})")


def _size(parameter: Parameter, function: Function, *, is_read: bool) -> str | None:
    """How many bytes an argument leads to, as an expression; None: nobody knows, or it is no matter of bytes."""
    if parameter.raw_type in _FIXED_BYTES:
        return str(_FIXED_BYTES[parameter.raw_type])
    index = parameter.size_index
    if parameter.raw_type not in ("buffer", "sockaddr") or index is None or index >= MAX_ARGUMENTS:
        return None
    if index == RESULT:
        return None if is_read else "retval"
    says = next((one for one in function.arguments if one.index == index), None)
    if says is None:
        return None
    word = f"arg{index + 1}" if is_read else f"entry(arg{index + 1})"
    return f"*(unsigned*){word}" if says.is_pointer else word
