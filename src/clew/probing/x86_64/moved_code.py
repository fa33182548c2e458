"""The code of a file that was decoded once, where it is loaded: what somebody asks for is moved there.

Of thousands of functions a process has probes in a few, and processes have the same files at addresses of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar, overload

from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.image_code import ImageCode
from clew.probing.x86_64.plans import Displaced

__all__ = ["move_image"]

T = TypeVar("T")


def move_image(image: ImageCode, by: int) -> ImageCode:
    """The same code so many bytes higher. A function is one object there, however often it is asked for."""
    known: dict[int, FunctionCode] = {}

    def move(code: FunctionCode) -> FunctionCode:
        if code.start not in known:
            known[code.start] = code.moved(by)
        return known[code.start]

    def move_parts(parts: tuple[FunctionCode, ...]) -> tuple[FunctionCode, ...]:
        return tuple(move(one) for one in parts)

    def move_branches(branches: tuple[Displaced, ...]) -> tuple[Displaced, ...]:
        return tuple(Displaced(one.address + by, one.code) for one in branches)

    return ImageCode(
        _MovedFunctions(image.functions, move),
        _MovedAddresses(image.entries, by),
        _MovedValues(image.branches, by, move_branches),
        _MovedValues(image.parts, by, move_parts),
    )


class _MovedFunctions(Sequence[FunctionCode]):
    def __init__(self, functions: Sequence[FunctionCode], move: Callable[[FunctionCode], FunctionCode]) -> None:
        self._functions, self._move = functions, move

    def __len__(self) -> int:
        return len(self._functions)

    @overload
    def __getitem__(self, index: int) -> FunctionCode: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FunctionCode]: ...
    def __getitem__(self, index: int | slice) -> FunctionCode | Sequence[FunctionCode]:
        if isinstance(index, slice):
            return [self._move(one) for one in self._functions[index]]
        return self._move(self._functions[index])


class _MovedAddresses(Collection[int]):
    def __init__(self, addresses: Collection[int], by: int) -> None:
        self._addresses, self._by = addresses, by

    def __len__(self) -> int:
        return len(self._addresses)

    def __iter__(self) -> Iterator[int]:
        return (one + self._by for one in self._addresses)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, int) and address - self._by in self._addresses


class _MovedValues(Mapping[int, T]):
    def __init__(self, values: Mapping[int, T], by: int, move: Callable[[T], T]) -> None:
        self._values, self._by, self._move = values, by, move

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[int]:
        return (one + self._by for one in self._values)

    def __getitem__(self, address: int) -> T:
        return self._move(self._values[address - self._by])
