"""What is captured of a call, so that it can be told as its description says; and its values out of what was captured.

Runs in the controller. Pure: expressions of captures (`capture_plan.py` makes them), and the fields that these come to.

What a call reads is kept when it begins, as far as calls keep that much (MAX_KEPT_VALUES); the rest of it, which is
what structures lead to, is read when it has returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clew.api.capture_plan import ENDED_ELEMENTS, MAX_ARGUMENTS, Words, inner_pieces, root_piece
from clew.api.description import RESULT, Function, Parameter
from clew.api.descriptions import Descriptions
from clew.api.pieces import Path, Pointed, Value
from clew.api.values import signed, width_bits
from clew.api.variant_plan import variant_pieces
from clew.dataclass import dataclass
from clew.protocol._constants import MAX_CAPTURE_FIELDS, MAX_CAPTURE_TEXT, MAX_KEPT_VALUES

__all__ = ["CallCapture", "capture_of"]

_OF_CALLS: Final = ("retval", "began", "frame")
"""The last expressions of what returns."""
_MAX_INNER: Final = 12
"""How much is read at most of that to which the structures of a call lead; of an array up to a zero all there is."""


@dataclass(frozen=True)
class _Taken:
    """What an argument leads to: which argument, the field that has it, and where it is in there.

    `is_answer`: as the call left it. `is_sure`: it is there whatever the call is about; else no bytes are nothing.
    """

    index: int
    field: int
    path: Path
    is_answer: bool
    is_sure: bool = True


@dataclass(frozen=True)
class CallCapture:
    """What is captured of the calls of a function: `expressions`, when they return, or begin where they never do."""

    function: Function
    expressions: tuple[str, ...]
    returns: bool
    n_arguments: int
    taken: tuple[_Taken, ...]
    sizes: dict[int, int]
    """How many bytes an element has, by the index of the argument that leads to them."""
    hidden: tuple[int, ...] = ()
    """Indexes of arguments that lead to data which nobody wants."""
    injected_field: int | None = None
    """Which field says what was done to the call (enum Injected), if one does."""

    def injected_of(self, fields: Sequence[int | bytes | float | None]) -> int:
        """What was done to the call, bits of enum Injected."""
        return 0 if self.injected_field is None else _number(fields[self.injected_field]) or 0

    def values_of(
        self, fields: Sequence[int | bytes | float | None]
    ) -> tuple[tuple[Value, ...], int | None, int | None, int | None]:
        """The values of the arguments, the result, when it began, and where the stack was then, out of the fields in
        their order. Without a result it has not returned: then nothing is there that was to be taken behind it."""
        registers = [_number(value) for value in fields[: self.n_arguments]]
        values: list[Value] = list(registers)
        told = fields[-len(_OF_CALLS) :] if self.returns else (None,) * len(_OF_CALLS)
        result, began, frame = (_number(value) for value in told)
        has_failed = self.function.has_failed(result)
        found: dict[int, dict[tuple[bool, Path], bytes]] = {}
        for one in self.taken:
            data = fields[one.field]
            pieces = found.setdefault(one.index, {})
            parameter = self.function.arguments[one.index]
            is_written = not one.is_answer or _is_written(parameter, self._signed(result), has_failed)
            if isinstance(data, bytes) and is_written and (data or one.is_sure):
                pieces.setdefault((one.is_answer, one.path), data)
        for index in self.hidden:
            # Of data that is not taken it is told how much there is.
            n_bytes = self._moved(self.function.arguments[index], registers, result)
            if (address := registers[index]) is not None:
                values[index] = Pointed(address, total=None if has_failed else n_bytes)
        for index, pieces in found.items():
            address = registers[index]
            if address is not None:
                values[index] = self._pointed(self.function.arguments[index], address, pieces, registers, result)
        return tuple(values), result, began, frame

    def _pointed(
        self,
        parameter: Parameter,
        address: int,
        pieces: dict[tuple[bool, Path], bytes],
        registers: Sequence[int | None],
        result: int | None,
    ) -> Pointed:
        before, after = pieces.pop((False, ()), None), pieces.pop((True, ()), None)
        inner_before = {path: data for (is_answer, path), data in pieces.items() if not is_answer}
        inner = {path: data for (is_answer, path), data in pieces.items() if is_answer}
        if parameter.direction == "in":
            data, before, inner, inner_before = before if after is None else after, before, inner_before, inner_before
            before = None if data is before else before
        else:
            data = after
        shown = before if data is None else data
        total = result if parameter.total_index == RESULT and parameter.direction != "in" else None
        return Pointed(
            address,
            data,
            shown is not None and self._is_cut(parameter, shown, registers, result),
            before,
            inner,
            inner_before,
            total,
        )

    def _signed(self, result: int | None) -> int | None:
        """The result as a number that may be negative."""
        described = self.function.result
        bits = 64 if described is None else width_bits(described.c_type)
        return None if result is None else signed(result, bits)

    def _moved(self, parameter: Parameter, registers: Sequence[int | None], result: int | None) -> int | None:
        """How many bytes an argument leads to, if an argument or the result is that number."""
        index = parameter.size_index
        if index is None or index >= len(registers):
            return None
        said = self._signed(result) if index == RESULT else registers[index]
        is_number = index == RESULT or not self.function.arguments[index].is_pointer
        return said if is_number and said is not None and 0 <= said < 1 << 63 else None

    def _is_cut(self, parameter: Parameter, data: bytes, registers: Sequence[int | None], result: int | None) -> bool:
        """Whether there is more than was taken."""
        size = self.sizes.get(parameter.index)
        if size is None:
            return len(data) >= MAX_CAPTURE_TEXT
        if parameter.is_ended:
            return len(data) >= ENDED_ELEMENTS * size
        index = parameter.count
        count = None if index is None else result if index == RESULT else registers[index]
        return len(data) >= MAX_CAPTURE_TEXT if count is None else (count & 0xFFFFFFFF) * size > len(data)


def _is_written(parameter: Parameter, result: int | None, has_failed: bool) -> bool:
    """Whether a call with that result has written to where an argument leads."""
    if parameter.written == "positive":
        return bool(result) and not has_failed
    if parameter.size_index == RESULT and result is not None and result < 0:
        return False
    return has_failed == (parameter.written == "failed")


def _number(value: int | bytes | float | None) -> int | None:
    return value if isinstance(value, int) else None


def capture_of(function: Function, descriptions: Descriptions, *, is_injected: bool = False) -> CallCapture:
    """What is to be captured of the calls of a function; `is_injected`: and what is done to them."""
    returns = function.parameters is None or function.result is not None
    n_arguments = MAX_ARGUMENTS if function.parameters is None else min(len(function.arguments), MAX_ARGUMENTS)
    plan = _Plan(returns, n_arguments)
    injected_field = plan.add_injected() if is_injected else None
    arguments = [one for one in function.arguments if one.index < n_arguments]
    begun, returned = Words(False), Words(True)
    for parameter in arguments:
        if not parameter.is_pointer:
            continue
        is_both = parameter.direction == "inout"
        late = root_piece(parameter, function, descriptions, returned)
        if is_both or not _is_answer(parameter):
            early = root_piece(parameter, function, descriptions, begun)
            plan.add_begun(parameter.index, (), early, None if is_both else late)
        if is_both or _is_answer(parameter):
            plan.add_returned(parameter.index, (), late)
    for index, text, is_answer in variant_pieces(function, descriptions):
        (plan.add_returned if is_answer else plan.add_begun)(index, (), text, is_sure=False)
    for parameter in arguments:
        words = returned if _is_answer(parameter) else begun
        most = ENDED_ELEMENTS if parameter.is_ended else _MAX_INNER
        pieces = list(inner_pieces(parameter, function, descriptions, words))[:most]
        later = list(inner_pieces(parameter, function, descriptions, returned))
        for (path, text), (_, late_text) in zip(pieces, later, strict=False):
            if _is_answer(parameter):
                plan.add_returned(parameter.index, path, text)
            else:
                plan.add_begun(parameter.index, path, text, late_text)
    sizes = {
        one.index: struct.size
        for one in arguments
        if one.is_array and (struct := descriptions.struct(one.struct)) is not None
    }
    expressions = (*plan.expressions, *(_OF_CALLS if returns else ()))
    hidden = tuple(one.index for one in arguments if one.hidden == "data")
    return CallCapture(function, expressions, returns, n_arguments, tuple(plan.taken), sizes, hidden, injected_field)


def _is_answer(parameter: Parameter) -> bool:
    return parameter.when == "exit" or parameter.direction == "out"


class _Plan:
    """The expressions so far, and what each of them takes."""

    def __init__(self, returns: bool, n_arguments: int) -> None:
        self._returns = returns
        self.expressions = [f"entry(arg{index + 1})" if returns else f"arg{index + 1}" for index in range(n_arguments)]
        self.taken: list[_Taken] = []
        self._n_kept = n_arguments

    def add_injected(self) -> int:
        """Take what is done to the call; which field that is."""
        self._n_kept += 1
        self.expressions.append("entry(injected)" if self._returns else "injected")
        return len(self.expressions) - 1

    def add_begun(
        self, index: int, path: Path, text: str | None, late: str | None = None, *, is_sure: bool = True
    ) -> None:
        """Take something when the call begins; or where no more is kept when it has returned, by another expression."""
        if text is None:
            return
        if not self._returns or self._n_kept < MAX_KEPT_VALUES:
            self._n_kept += 1
            self._add(index, path, f"entry({text})" if self._returns else text, is_answer=False, is_sure=is_sure)
        elif late is not None:
            self._add(index, path, late, is_answer=False, is_sure=is_sure)

    def add_returned(self, index: int, path: Path, text: str | None, *, is_sure: bool = True) -> None:
        """Take something when the call has returned."""
        if text is not None and self._returns:
            self._add(index, path, text, is_answer=True, is_sure=is_sure)

    def _add(self, index: int, path: Path, text: str, *, is_answer: bool, is_sure: bool) -> None:
        if len(self.expressions) < MAX_CAPTURE_FIELDS - len(_OF_CALLS):
            self.taken.append(_Taken(index, len(self.expressions), path, is_answer, is_sure))
            self.expressions.append(text)
