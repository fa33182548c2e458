"""All functions of a file, and where they lead: rows that are kept, of which objects are made when somebody asks.

A file has tens of thousands of functions and a million branches. A process has probes in a few of them, and processes
have the same files at addresses of their own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from clew.probing.x86_64.function_code import FunctionCode, FunctionShape
from clew.probing.x86_64.kinds import CALLS
from clew.probing.x86_64.plans import Displaced

__all__ = ["Branches", "Functions", "Leads", "Parts", "find_leads"]

Array = npt.NDArray[Any]


class Functions(Sequence[FunctionCode]):
    """Sorted by where they begin: at `starts`, so many bytes (`by`) higher. A function is one object, however often it
    is asked for."""

    def __init__(self, starts: Array, shapes: Sequence[FunctionShape], by: int = 0) -> None:
        self._starts, self._shapes, self._by = starts, shapes, by
        self._known: dict[int, FunctionCode] = {}

    @classmethod
    def of(cls, functions: Sequence[FunctionCode]) -> Functions:
        """These."""
        functions = sorted(functions, key=lambda one: one.start)
        return cls(np.array([one.start for one in functions], np.uint64), [one.shape for one in functions])

    def moved(self, by: int) -> Functions:
        """The same so many bytes higher."""
        return Functions(self._starts, self._shapes, self._by + by)

    def __len__(self) -> int:
        return len(self._shapes)

    @overload
    def __getitem__(self, index: int) -> FunctionCode: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FunctionCode]: ...
    def __getitem__(self, index: int | slice) -> FunctionCode | Sequence[FunctionCode]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        found = self._known.get(index)
        if found is None:
            index = range(len(self))[index]
            found = self._known[index] = FunctionCode(int(self._starts[index]) + self._by, self._shapes[index])
        return found

    @property
    def starts(self) -> Array:
        """Where each begins."""
        return self._starts + np.uint64(self._by) if self._by else self._starts

    @property
    def ends(self) -> Array:
        """Where each ends."""
        return self.starts + np.array([one.n_bytes for one in self._shapes], np.uint64)

    @property
    def shapes(self) -> Sequence[FunctionShape]:
        """What is kept of each."""
        return self._shapes

    def find(self, address: int) -> FunctionCode | None:
        """The one at an address."""
        index = bisect_right(self._starts, address - self._by) - 1
        if index < 0:
            return None
        found = self[index]
        return found if address < found.end else None


class Leads(NamedTuple):
    """What leads from functions to addresses outside of them, a row each: which function, the address of the branch or
    0, where a table leads; how many bytes the branch has, whether it calls, and where it leads."""

    functions: Array
    sources: Array
    sizes: Array
    calls: Array
    targets: Array


def find_leads(functions: Functions) -> Leads:
    """All that there are: branches, by functions, and behind them where tables lead."""
    starts, shapes = functions.starts, functions.shapes
    numbers = np.arange(len(shapes))
    sizes = np.frombuffer(b"".join([one.sizes for one in shapes]), np.uint8)
    kinds = np.frombuffer(b"".join([one.kinds for one in shapes]), np.uint8)
    # Where each instruction begins, and which one of all is a function's first.
    offsets = np.cumsum(sizes, dtype=np.uint64) - sizes
    firsts = np.cumsum([0, *(len(one.sizes) for one in shapes)])[:-1]
    pairs = np.frombuffer(b"".join([one.outer for one in shapes]), np.int64).reshape(-1, 2)
    owners = np.repeat(numbers, [len(one.outer) // 16 for one in shapes])
    rows = firsts[owners] + pairs[:, 0]
    sources = starts[owners] + offsets[rows] - offsets[firsts[owners]]
    targets = starts[owners] + pairs[:, 1].astype(np.uint64)
    led = [
        (number, target)
        for number, one in enumerate(shapes)
        for table in one.tables.values()
        for target in table
        if not 0 <= target < one.reach
    ]
    more, places = (np.array([one[column] for one in led], np.int64) for column in (0, 1))
    zeros = np.zeros(len(led), np.uint64)
    return Leads(
        functions=np.concatenate((owners, more)),
        sources=np.concatenate((sources, zeros)),
        sizes=np.concatenate((sizes[rows], zeros.astype(np.uint8))),
        calls=np.concatenate((np.isin(kinds[rows], _CALLS), zeros.astype(bool))),
        targets=np.concatenate((targets, starts[more] + places.astype(np.uint64))),
    )


_CALLS = np.array(sorted(CALLS), np.uint8)


class Branches(Mapping[int, tuple[Displaced, ...]]):
    """By where they lead, the direct branches and calls that lead out of `functions`, so many bytes higher; less those
    to addresses of `without`."""

    def __init__(self, functions: Functions, led: Leads, without: Collection[int] = (), by: int = 0) -> None:
        chosen = led.sizes != 0
        if without:
            chosen &= ~np.isin(led.targets, np.array(sorted(without), np.uint64))
        rows = np.flatnonzero(chosen)
        rows = rows[np.argsort(led.targets[rows], kind="stable")]
        self._targets, self._sources, self._sizes = led.targets[rows], led.sources[rows], led.sizes[rows]
        self._numbers, self._functions, self._by = led.functions[rows], functions, by

    def moved(self, functions: Functions, by: int) -> Branches:
        """The same so many bytes higher, where `functions` are."""
        other = object.__new__(Branches)
        other.__dict__.update(self.__dict__)
        other._functions, other._by = functions, self._by + by
        return other

    def __len__(self) -> int:
        return len(np.unique(self._targets))

    def __iter__(self) -> Iterator[int]:
        return (one + self._by for one in np.unique(self._targets).tolist())

    def _rows(self, address: object) -> range:
        if not isinstance(address, int) or address < self._by:
            return range(0)
        first, end = (int(np.searchsorted(self._targets, np.uint64(address - self._by), side)) for side in _SIDES)
        return range(first, end)

    def __contains__(self, address: object) -> bool:
        return bool(self._rows(address))

    def __getitem__(self, address: int) -> tuple[Displaced, ...]:
        rows = self._rows(address)
        if not rows:
            raise KeyError(address)
        return tuple(self._branch(row) for row in rows)

    def _branch(self, row: int) -> Displaced:
        code, source = self._functions[int(self._numbers[row])], int(self._sources[row]) + self._by
        at = source - code.start
        return Displaced(source, code.code[at : at + int(self._sizes[row])])


_SIDES: tuple[Any, Any] = ("left", "right")


class Parts(Mapping[int, tuple[FunctionCode, ...]]):
    """Pieces of functions, by where the function begins: `parts` has their numbers by the function's."""

    def __init__(self, functions: Functions, parts: Mapping[int, Sequence[int]]) -> None:
        self._functions, self._parts = functions, parts
        self._numbers = {functions[number].start: number for number in parts}

    def moved(self, functions: Functions) -> Parts:
        """The same where `functions` are."""
        return Parts(functions, self._parts)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __getitem__(self, address: int) -> tuple[FunctionCode, ...]:
        return tuple(self._functions[number] for number in self._parts[self._numbers[address]])
