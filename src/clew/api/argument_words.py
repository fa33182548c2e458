"""Where the arguments of a call are, as platforms of the System V kind have it: words of captures, one for each.

Runs in the controller. Pure. Integers and addresses have registers of their own, numbers with a point others; what has
none of its kind left is on the stack, in one order, as numbers of x87's are. Structures, and pairs of numbers, are not
taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clew.api.description import Function, Parameter

__all__ = ["LONG_DOUBLE", "MAX_FLOATS", "MAX_REGISTERS", "MAX_WORDS", "argument_words", "result_word"]

MAX_REGISTERS: Final = 6
"""Of a call's integers and addresses; a system call has no more arguments."""
MAX_FLOATS: Final = 8
MAX_WORDS: Final = 12
"""So many arguments are looked at."""

LONG_DOUBLE: Final = "long double"
"""Arguments of that type are on the stack, results in st(0), where no capture looks."""

_LONG_DOUBLE_BYTES: Final = 10
_IN_MEMORY: Final = {LONG_DOUBLE: 2, "_Complex long double": 4}
"""How many words of the stack an argument of such a type has, from one on whose address is a multiple of 16."""
_PAIRS: Final = {"_Complex float": 1, "_Complex double": 2}
"""How many registers an argument has that is two numbers with a point."""


class _Places:
    """Gives out places of arguments in their order."""

    def __init__(self) -> None:
        self._n_words = self._n_floats = self._n_on_stack = 0
        self._knows_registers = self._knows_stack = True

    def word(self) -> str | None:
        """The place of the next integer or address."""
        if not self._knows_registers:
            return None
        if self._n_words < MAX_REGISTERS:
            self._n_words += 1
            return f"arg{self._n_words}"
        return self._on_stack()

    def number(self) -> str | None:
        """The place of the next number with a point."""
        if not self._knows_registers:
            return None
        if self._n_floats < MAX_FLOATS:
            self._n_floats += 1
            return f"farg{self._n_floats}"
        return self._on_stack()

    def long_double(self) -> str | None:
        """The place of the next number of x87's."""
        if not self._knows_stack:
            return None
        n = self._aligned(_IN_MEMORY[LONG_DOUBLE])
        return f"bytes(&arg{MAX_REGISTERS + n + 1}, {_LONG_DOUBLE_BYTES})"

    def other(self, c_type: str) -> None:
        """What follows has no such place; behind a structure nobody knows where arguments are."""
        if c_type in _IN_MEMORY:
            self._aligned(_IN_MEMORY[c_type])
        elif c_type in _PAIRS and self._n_floats + _PAIRS[c_type] <= MAX_FLOATS:
            self._n_floats += _PAIRS[c_type]
        elif c_type in _PAIRS:
            # Both numbers are on the stack if one has to be.
            self._n_on_stack += _PAIRS[c_type]
        else:
            # Small structures are in registers, depending on what is in them.
            self._knows_registers = self._knows_stack = False

    def _aligned(self, n_words: int) -> int:
        """The number of the first of some words on the stack."""
        first = self._n_on_stack + self._n_on_stack % 2
        self._n_on_stack = first + n_words
        return first

    def _on_stack(self) -> str | None:
        self._n_on_stack += 1
        return f"arg{MAX_REGISTERS + self._n_on_stack}" if self._knows_stack else None


def argument_words(function: Function) -> tuple[str | None, ...]:
    """The place of each argument, by its index; None: it is not taken."""
    if function.parameters is None or function.numbers:
        n = MAX_REGISTERS if function.parameters is None else min(len(function.arguments), MAX_REGISTERS)
        return tuple(f"arg{index + 1}" for index in range(n))
    return tuple(_words(function, _Places()))


def _words(function: Function, words: _Places) -> Iterator[str | None]:
    result = function.result
    if result is not None and result.raw_type == "raw" and result.c_type not in (*_IN_MEMORY, *_PAIRS):
        # Where it is to be may be an argument in front of all.
        words.other("")
    for parameter in function.arguments[:MAX_WORDS]:
        yield _word(parameter, words)


def _word(parameter: Parameter, words: _Places) -> str | None:
    if parameter.raw_type == "float":
        return words.long_double() if parameter.c_type == LONG_DOUBLE else words.number()
    if parameter.raw_type == "raw":
        words.other(parameter.c_type)
        return None
    return words.word()


def result_word(function: Function) -> str:
    """Where the result is when a call has returned."""
    result = function.result
    # Of what is in neither of both it is told that nobody knows it.
    return "farg1" if result is not None and result.raw_type == "float" else "retval"
