"""Arguments behind those that a function names, which its format asks for: what is taken, and what of it is told.

Runs in the controller. Pure. What the format says is known when all has been taken: so many words and numbers as there
is room for, and what words lead to if they are strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from clew.api.argument_words import MAX_FLOATS, MAX_REGISTERS, argument_words
from clew.api.description import RESULT, Function, Parameter
from clew.api.formats import Directive, read_format
from clew.api.pieces import Pointed, Value
from clew.api.values import signed
from clew.dataclass import dataclass, replace

__all__ = ["ON_STACK", "STRING_BYTES", "FormatArguments", "more_words"]

STRING_BYTES: Final = 512
"""Of each."""
ON_STACK: Final = 4
"""Words that are taken of the stack."""


def more_words(function: Function) -> tuple[list[str], list[str]]:
    """The places of further integers and addresses, the last four on the stack, and of numbers with a point."""
    named = argument_words(function)
    if function.format_index is None or None in named:
        return [], []
    n_floats = sum(one is not None and one.startswith("f") for one in named)
    n_words = len(named) - n_floats
    words = [f"arg{index + 1}" for index in range(n_words, max(n_words, MAX_REGISTERS) + ON_STACK)]
    return words, [f"farg{index + 1}" for index in range(n_floats, MAX_FLOATS)]


@dataclass(frozen=True)
class FormatArguments:
    """What was taken: each word, the last ones of the stack, with what it leads to; and the numbers."""

    words: Sequence[tuple[int | None, bytes | None]]
    numbers: Sequence[int | None]

    def complete(self, function: Function, values: tuple[Value, ...]) -> tuple[Function, tuple[Value, ...]]:
        """The function with the arguments that its format asks for, and the values of all."""
        told = values[function.format_index or 0]
        if not isinstance(told, Pointed) or told.data is None or function.parameters is None:
            return function, values
        wanted = islice(read_format(told.data), len(self.words) + len(self.numbers))
        found = list(self._found(wanted))
        parameters = [one for one in function.parameters if one.index != RESULT]
        parameters += [
            Parameter(index, f"arg{index}", one.c_type, one.raw_type)
            for index, (one, _) in enumerate(found, len(values))
        ]
        parameters += [one for one in function.parameters if one.index == RESULT]
        return replace(function, parameters=tuple(parameters)), (*values, *(value for _, value in found))

    def _found(self, wanted: Iterator[Directive]) -> Iterator[tuple[Directive, Value]]:
        numbers = iter(self.numbers)
        n = max(len(self.words) - ON_STACK, 0)
        registers, stack = iter(self.words[:n]), iter(self.words[n:])
        nothing = None, None
        before: int | None = None
        for one in wanted:
            if one.raw_type == "float":
                for number in numbers:
                    yield one, number
                    break
                else:
                    yield one, next(stack, nothing)[0]
                continue
            word, text = next(registers, None) or next(stack, nothing)
            if one.raw_type != "string" or word is None:
                before = word
                yield one, word
                continue
            precision = before if one.precision == -1 else one.precision
            is_cut = text is not None and len(text) >= STRING_BYTES
            if text is not None and precision is not None and 0 <= signed(precision, 32) < len(text):
                text, is_cut = text[:precision], False
            yield one, Pointed(word, text, is_cut)
