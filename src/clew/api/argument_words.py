"""Where the arguments of a call are, as platforms of the System V kind have it: words of captures, one for each.

Runs in the controller. Pure. Integers and addresses have registers of their own, numbers with a point others; what has
none of its kind left is on the stack, in one order. What is larger than a register, or a structure, is not taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clew.api.description import Function, Parameter

__all__ = ["MAX_FLOATS", "MAX_REGISTERS", "MAX_WORDS", "argument_words", "result_word"]

MAX_REGISTERS: Final = 6
"""Of a call's integers and addresses; a system call has no more arguments."""
MAX_FLOATS: Final = 8
MAX_WORDS: Final = 12
"""So many arguments are looked at."""

_MEMORY: Final = ("long double", "_Complex long double")
"""Of such types arguments are on the stack, and results where no capture looks."""
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

    def other(self, c_type: str) -> None:
        """What follows has no such place, and behind it is less known."""
        if c_type in _PAIRS:
            self._n_floats = min(self._n_floats + _PAIRS[c_type], MAX_FLOATS)
        elif c_type not in _MEMORY:
            # Small structures are in registers, depending on what is in them.
            self._knows_registers = False
        # Which of them are there, and how they are aligned, depends on the type.
        self._knows_stack = False

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
    if result is not None and result.raw_type == "raw" and result.c_type not in (*_MEMORY, *_PAIRS):
        # Where it is to be may be an argument in front of all.
        words.other("")
    for parameter in function.arguments[:MAX_WORDS]:
        yield _word(parameter, words)


def _word(parameter: Parameter, words: _Places) -> str | None:
    if parameter.raw_type == "float":
        return words.number()
    if parameter.raw_type == "raw":
        words.other(parameter.c_type)
        return None
    return words.word()


def result_word(function: Function) -> str:
    """Where the result is when a call has returned."""
    result = function.result
    return "farg1" if result is not None and result.raw_type == "float" else "retval"
