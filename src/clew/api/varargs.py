"""Arguments behind those that a function names, which its format asks for: what is taken, and what of it is told.

Runs in the controller. Pure. What the format says is known when all has been taken: so many words and numbers as there
is room for, and what words lead to: strings of a printf, and what a scanf has written there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from clew.api.argument_words import LONG_DOUBLE, MAX_FLOATS, MAX_REGISTERS, argument_words
from clew.api.capture_plan import paged_pieces
from clew.api.description import Function, Parameter
from clew.api.formats import Directive, read_format
from clew.api.long_doubles import LONG_DOUBLE_BITS
from clew.api.pieces import Pointed, Value
from clew.api.scan_formats import Target, read_scan_format
from clew.api.values import signed, unsigned
from clew.api.vocabulary import RESULT
from clew.api.wide_strings import WIDE_BYTES, narrowed
from clew.dataclass import dataclass, replace

__all__ = ["ON_STACK", "STRING_BYTES", "FormatArguments", "Word", "more_words", "text_pieces"]

STRING_BYTES: Final = 512
"""Of each."""
ON_STACK: Final = 4
"""Words that are taken of the stack."""


def more_words(function: Function) -> tuple[list[str], list[str]]:
    """The places of further integers and addresses, the last four on the stack, and of numbers with a point."""
    named = argument_words(function)
    if function.format_index is None or None in named:
        return [], []
    n_floats, n_words = (sum(str(one).startswith(kind) for one in named) for kind in ("farg", "arg"))
    words = [f"arg{index + 1}" for index in range(n_words, max(n_words, MAX_REGISTERS) + ON_STACK)]
    if function.format_kind == "scanf":
        # It is given addresses only.
        return words, []
    return words, [f"farg{index + 1}" for index in range(n_floats, MAX_FLOATS)]


def text_pieces(function: Function, word: str) -> tuple[str, ...]:
    """What takes that to which a word leads, once a call has returned; of pieces the one that matters most first."""
    if function.format_kind == "printf" and not _is_wide(function):
        return (f"str({word}, {STRING_BYTES})",)
    own, rest = (text for _, text in paged_pieces(word, STRING_BYTES))
    return (own, rest) if function.format_kind == "scanf" else (own,)


def _is_wide(function: Function) -> bool:
    return any(one.index == function.format_index and one.raw_type == "wide_string" for one in function.arguments)


@dataclass(frozen=True)
class Word:
    """An argument that is no number with a point, with what it leads to, if that was taken."""

    value: int | None = None
    data: bytes | None = None


class _Stack(Iterator[Word]):
    """Words that were taken of the stack, one behind the other."""

    def __init__(self, words: Sequence[Word], first: int) -> None:
        self._words, self._first, self._at = words, first, 0

    def __next__(self) -> Word:
        if self._at >= len(self._words):
            raise StopIteration
        self._at += 1
        return self._words[self._at - 1]

    def long_double(self) -> int | None:
        """A number of x87's, which begins at a multiple of 16; None: not all of it was taken."""
        self._at += (self._first + self._at) % 2
        own = [one.value for one in self._words[self._at : self._at + 2]]
        self._at += 2
        if len(own) < 2 or own[0] is None or own[1] is None:
            return None
        return unsigned(own[0], 64) | unsigned(own[1], LONG_DOUBLE_BITS - 64) << 64


@dataclass(frozen=True)
class FormatArguments:
    """What was taken: each word, the last ones of the stack; and the numbers."""

    words: Sequence[Word]
    numbers: Sequence[int | None]

    def complete(
        self, function: Function, values: tuple[Value, ...], result: int | None
    ) -> tuple[Function, tuple[Value, ...]]:
        """The function with the arguments that its format asks for, and the values of all."""
        told = values[function.format_index or 0]
        if not isinstance(told, Pointed) or told.data is None or function.parameters is None:
            return function, values
        text = narrowed(told.data) if _is_wide(function) else told.data
        found: list[tuple[Parameter, Value]]
        if function.format_kind == "scanf":
            n_stored = 0 if result is None else max(signed(result, 32), 0)
            found = list(_stored(read_scan_format(text), self.words, n_stored))
        else:
            wanted = islice(read_format(text), len(self.words) + len(self.numbers))
            n_before = max(len(function.arguments) - MAX_REGISTERS, 0)
            found = list(self._printed(wanted, n_before, is_wide=_is_wide(function)))
        arguments = [replace(one, index=index, name=f"arg{index}") for index, (one, _) in enumerate(found, len(values))]
        parameters = [
            *(one for one in function.parameters if one.index != RESULT),
            *arguments,
            *(one for one in function.parameters if one.index == RESULT),
        ]
        return replace(function, parameters=tuple(parameters)), (*values, *(value for _, value in found))

    def _printed(
        self, wanted: Iterator[Directive], n_before: int, *, is_wide: bool
    ) -> Iterator[tuple[Parameter, Value]]:
        """The arguments of a printf; `n_before` of those that it names are on the stack."""
        numbers = iter(self.numbers)
        n = max(len(self.words) - ON_STACK, 0)
        registers, stack = iter(self.words[:n]), _Stack(self.words[n:], n_before)
        nothing = Word()
        before: int | None = None
        for one in wanted:
            parameter = Parameter(0, "", one.c_type, one.raw_type)
            if one.c_type == LONG_DOUBLE:
                yield parameter, stack.long_double()
                continue
            if one.raw_type == "float":
                for number in numbers:
                    yield parameter, number
                    break
                else:
                    yield parameter, next(stack, nothing).value
                continue
            word = next(registers, None) or next(stack, nothing)
            if one.raw_type not in ("string", "wide_string") or word.value is None:
                before = word.value
                yield parameter, word.value
                continue
            if one.raw_type == "wide_string" and not is_wide:
                # Of strings only what is in front of the first zero byte was taken.
                yield replace(parameter, raw_type="pointer"), word.value
                continue
            precision = before if one.precision == -1 else one.precision
            most = None if precision is None else signed(precision, 32)
            yield parameter, _text(word, one.raw_type, most, is_wide=is_wide)


def _text(word: Word, raw_type: str, most: int | None, *, is_wide: bool) -> Value:
    """A string, of which `most` characters are printed; None, or a negative number: all."""
    assert word.value is not None
    data = word.data
    if data is None or most is None or most < 0:
        return Pointed(word.value, data, _has_more(data, raw_type, is_wide=is_wide))
    if raw_type == "wide_string":
        shown = data[: most * WIDE_BYTES]
        return Pointed(word.value, shown, len(shown) < most * WIDE_BYTES)
    if is_wide:
        # So many characters of the output, of which each may be several bytes.
        return Pointed(word.value, data, is_cut=True)
    if most < len(data):
        return Pointed(word.value, data[:most], is_cut=False)
    return Pointed(word.value, data, _has_more(data, raw_type, is_wide=False))


def _has_more(data: bytes | None, raw_type: str, *, is_wide: bool) -> bool:
    """Whether there is more of a string, unless the data has its end."""
    if data is None or raw_type == "wide_string" or is_wide:
        return data is not None
    return len(data) >= STRING_BYTES


def _stored(targets: Iterator[Target], words: Sequence[Word], n_stored: int) -> Iterator[tuple[Parameter, Value]]:
    """What a scanf has written, the first `n_stored` of those that count."""
    wanted = list(islice(targets, len(words)))
    counted = [index for index, one in enumerate(wanted) if one.is_counted]
    # How far it has read beyond the last one nobody knows.
    n_sure = counted[min(n_stored, len(counted)) - 1] + 1 if n_stored and counted else 0
    while 0 < n_sure < len(wanted) and not wanted[n_sure].is_counted and wanted[n_sure].is_behind:
        n_sure += 1
    for index, (one, word) in enumerate(zip(wanted, words, strict=False)):
        size = None if one.width is None else one.width * (WIDE_BYTES if one.raw_type == "wide_string" else 1)
        parameter = Parameter(0, "", one.c_type, one.raw_type, direction="out", when="exit", struct=one.struct)
        if index >= n_sure or word.value is None or word.data is None:
            yield parameter, word.value
            continue
        data = word.data if size is None else word.data[:size]
        yield parameter, Pointed(word.value, data, is_cut=size is None or len(data) < size)
