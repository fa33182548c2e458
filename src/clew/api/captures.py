"""What is captured of a call, so that it can be told as its description says; and its values out of what was captured.

Runs in the controller. Pure: expressions of captures (`capture_plan.py` makes them), and the fields that these come to.

What a call reads is kept when it begins, as far as calls keep that much (MAX_KEPT_VALUES); the rest of it, which is
what structures lead to, is read when it has returned.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

from clew.api.argument_words import argument_words, result_word
from clew.api.capture_plan import ENDED_ELEMENTS, Words, inner_pieces, root_pieces
from clew.api.description import Function, Parameter
from clew.api.descriptions import Descriptions
from clew.api.pieces import REST, Path, Pointed, Value
from clew.api.ring_entries import is_answered, word_of
from clew.api.values import is_error, signed, unsigned, width_bits
from clew.api.varargs import FormatArguments, Word, more_words, text_pieces
from clew.api.variant_plan import variant_pieces
from clew.api.vocabulary import RESULT
from clew.api.wide_strings import WIDE_BYTES
from clew.dataclass import dataclass
from clew.protocol._constants import MAX_CAPTURE_FIELDS, MAX_CAPTURE_TEXT, MAX_KEPT_VALUES

__all__ = ["CallCapture", "capture_of"]

_OF_CALLS: Final = ("began", "frame")
"""The last expressions of what returns, behind its result."""
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
    places: tuple[int | None, ...]
    """The field of each argument; None: it is not taken."""
    taken: tuple[_Taken, ...]
    sizes: dict[int, int]
    """How many bytes an element has, by the index of the argument that leads to them."""
    hidden: tuple[int, ...] = ()
    """Indexes of arguments that lead to data which nobody wants."""
    words: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Where a format says what arguments there are, the fields of words, and of each those of what it leads to."""
    numbers: tuple[int, ...] = ()
    hide: Callable[[Function], Function] | None = None
    """Hides what of those arguments is to be hidden."""
    injected_field: int | None = None
    """Which field says what was done to the call (enum Injected), if one does."""

    def complete(
        self, values: tuple[Value, ...], fields: Sequence[int | bytes | float | None]
    ) -> tuple[Function, tuple[Value, ...]]:
        """The function, and the values of its arguments, with those that its format asks for."""
        if not self.words:
            return self.function, values
        words = [Word(_number(fields[at]), _text_of([fields[piece] for piece in texts])) for at, texts in self.words]
        numbers = [_number(fields[at]) for at in self.numbers]
        result = _number(fields[-1 - len(_OF_CALLS)]) if self.returns else None
        function, values = FormatArguments(words, numbers).complete(self.function, values, result)
        return function if self.hide is None else self.hide(function), values

    def injected_of(self, fields: Sequence[int | bytes | float | None]) -> int:
        """What was done to the call, bits of enum Injected."""
        return 0 if self.injected_field is None else _number(fields[self.injected_field]) or 0

    def values_of(
        self, fields: Sequence[int | bytes | float | None]
    ) -> tuple[tuple[Value, ...], int | None, int | None, int | None]:
        """The values of the arguments, the result, when it began, and where the stack was then, out of the fields in
        their order. Without a result it has not returned: then nothing is there that was to be taken behind it."""
        registers = [None if at is None else _number(fields[at]) for at in self.places]
        values: list[Value] = list(registers)
        told = fields[-1 - len(_OF_CALLS) :] if self.returns else (None,) * (1 + len(_OF_CALLS))
        result, began, frame = (_number(value) for value in told)
        has_failed = is_error(self.function, result)
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
        before, after = _joined(pieces, is_answer=False), _joined(pieces, is_answer=True)
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
        """Whether there is more than was taken; of what ends by itself if it has not ended."""
        if parameter.raw_type == "wide_string":
            n = None if parameter.count is None else registers[parameter.count]
            bits = 64 if n is None else width_bits(self.function.arguments[parameter.count or 0].c_type)
            return n is None or unsigned(n, bits) > len(data) // WIDE_BYTES
        size = self.sizes.get(parameter.index)
        if size is None:
            return len(data) >= MAX_CAPTURE_TEXT
        if parameter.is_ended:
            return len(data) >= ENDED_ELEMENTS * size
        index = parameter.count
        count = None if index is None else result if index == RESULT else registers[index]
        return len(data) >= MAX_CAPTURE_TEXT if count is None else (count & 0xFFFFFFFF) * size > len(data)


def _joined(pieces: dict[tuple[bool, Path], bytes], *, is_answer: bool) -> bytes | None:
    """What an argument leads to itself, out of what was taken of it."""
    own, rest = pieces.pop((is_answer, ()), None), pieces.pop((is_answer, REST), b"")
    return None if own is None else own + rest


def _text_of(pieces: Sequence[int | bytes | float | None]) -> bytes | None:
    """What a word leads to, out of the pieces that were taken; None: nothing is there."""
    taken = [one for one in pieces if isinstance(one, bytes)]
    return b"".join(taken) if taken and taken[0] is pieces[0] else None


def _is_written(parameter: Parameter, result: int | None, has_failed: bool) -> bool:
    """Whether a call with that result has written to where an argument leads."""
    if parameter.written == "positive":
        return bool(result) and not has_failed
    if parameter.size_index == RESULT and result is not None and result < 0:
        return False
    return has_failed == (parameter.written == "failed")


def _number(value: int | bytes | float | None) -> int | None:
    if isinstance(value, float):
        # As the register had it.
        return int.from_bytes(struct.pack("<d", value), "little", signed=True)
    if isinstance(value, bytes):
        # What has no register, as the stack had it.
        return int.from_bytes(value, "little")
    return value if isinstance(value, int) else None


def capture_of(
    function: Function, descriptions: Descriptions, n_spare: int = 0, *, is_injected: bool = False
) -> CallCapture:
    """What is to be captured of the calls of a function, so that there is room for `n_spare` fields besides;
    `is_injected`: and what is done to them."""
    returns = function.parameters is None or function.result is not None
    operation_fields = tuple(one.field for one in function.arguments if one.field is not None)
    places = operation_fields if function.opcode is not None else argument_words(function)
    of_ring = operation_fields if function.opcode is not None else ()
    words, numbers = more_words(function)
    if any(one.index == function.format_index and one.hidden is not None for one in function.arguments):
        # What is in a format is the program's data as well.
        words, numbers = [], []
    plan = _Plan(returns, MAX_CAPTURE_FIELDS - n_spare)
    injected_field = plan.add_injected() if is_injected else None
    begun, returned = Words(False, places, of_ring), Words(True, places, of_ring)
    if of_ring:
        own = returned if returns else begun
        fields: list[int | None] = [plan.add_field(own.argument(index)) for index in range(len(of_ring))]
        # What lies in one word is kept once.
        plan.note_kept(len({word_of(field) for field in of_ring if not is_answered(field)}))
    else:
        fields = [None if place is None else plan.add_word(place) for place in places]
    arguments = [one for one in function.arguments if one.index < len(places) and places[one.index] is not None]
    for parameter in arguments:
        if not parameter.is_pointer:
            continue
        is_both = parameter.direction == "inout"
        late = root_pieces(parameter, function, descriptions, returned)
        if is_both or not _is_answer(parameter):
            later = {} if is_both else dict(late)
            for path, text in root_pieces(parameter, function, descriptions, begun):
                plan.add_begun(parameter.index, path, text, later.get(path))
        if is_both or _is_answer(parameter):
            for path, text in late:
                plan.add_returned(parameter.index, path, text)
    # Cases of operations say what descriptors are, and nothing of memory.
    for index, text, is_answer in () if of_ring else variant_pieces(function, descriptions):
        (plan.add_returned if is_answer else plan.add_begun)(index, (), text, is_sure=False)
    for parameter in arguments:
        own = returned if _is_answer(parameter) else begun
        most = ENDED_ELEMENTS if parameter.is_ended else _MAX_INNER
        pieces = list(inner_pieces(parameter, function, descriptions, own))[:most]
        late = tuple(inner_pieces(parameter, function, descriptions, returned))
        for (path, text), (_, late_text) in zip(pieces, late, strict=False):
            if _is_answer(parameter):
                plan.add_returned(parameter.index, path, text)
            else:
                plan.add_begun(parameter.index, path, text, late_text)
    more = [plan.add_word(word) for word in words], [plan.add_word(number) for number in numbers]
    texts: list[tuple[int, ...]] = [() for _ in words]
    for together in zip(*(text_pieces(function, plan.late(word)) for word in words), strict=True):
        for index, piece in enumerate(together):
            texts[index] += plan.add_text(piece)
    sizes = {
        one.index: shape.size
        for one in arguments
        if one.is_array and (shape := descriptions.struct(one.struct)) is not None
    }
    expressions = (*plan.expressions, *((result_word(function), *_OF_CALLS) if returns else ()))
    return CallCapture(
        function,
        expressions,
        returns,
        tuple(fields),
        tuple(plan.taken),
        sizes,
        tuple(one.index for one in arguments if one.hidden == "data"),
        tuple(zip(more[0], texts, strict=True)),
        tuple(more[1]),
        descriptions.hidden,
        injected_field,
    )


def _is_answer(parameter: Parameter) -> bool:
    return parameter.when == "exit" or parameter.direction == "out"


class _Plan:
    """The expressions so far, and what each of them takes."""

    def __init__(self, returns: bool, n_fields: int) -> None:
        self._returns, self._n_fields = returns, n_fields
        self.expressions: list[str] = []
        self.taken: list[_Taken] = []
        self._n_kept = 0

    def add_word(self, place: str) -> int:
        """Take what is at a place when the call begins; the field that has it."""
        self._n_kept += 1
        self.expressions.append(f"entry({place})" if self._returns else place)
        return len(self.expressions) - 1

    def late(self, place: str) -> str:
        """What was at a place when the call began, in expressions that are worked out when it has returned."""
        return f"entry({place})" if self._returns else place

    def add_text(self, text: str) -> tuple[int, ...]:
        """Take what a word leads to, if there is room; the field that has it."""
        if not self._has_room:
            return ()
        self.expressions.append(text)
        return (len(self.expressions) - 1,)

    @property
    def _has_room(self) -> bool:
        return len(self.expressions) < self._n_fields - 1 - len(_OF_CALLS)

    def add_injected(self) -> int:
        """Take what is done to the call; which field that is."""
        self._n_kept += 1
        self.expressions.append("entry(injected)" if self._returns else "injected")
        return len(self.expressions) - 1

    def add_field(self, expression: str) -> int:
        """Take a field of an operation of io_uring; which field of the capture that is."""
        self.expressions.append(expression)
        return len(self.expressions) - 1

    def note_kept(self, n: int) -> None:
        """So many words more are kept until the call returns."""
        self._n_kept += n

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
        if self._has_room:
            self.taken.append(_Taken(index, len(self.expressions), path, is_answer, is_sure))
            self.expressions.append(text)
