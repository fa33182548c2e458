"""The code of a file that was decoded once, where it is loaded: what somebody asks for is moved there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from clew.probing.x86_64.functions import Branches, Parts
from clew.probing.x86_64.image_code import ImageCode

__all__ = ["move_image"]


def move_image(image: ImageCode, by: int) -> ImageCode:
    """The same code so many bytes higher. A function is one object there, however often it is asked for."""
    functions, branches, parts = image.functions.moved(by), image.branches, image.parts
    assert isinstance(branches, Branches) and isinstance(parts, Parts)
    entries = _MovedAddresses(image.entries, by)
    return ImageCode(functions, entries, branches.moved(functions, by), parts.moved(functions))


class _MovedAddresses(AbstractSet[int]):
    def __init__(self, addresses: AbstractSet[int], by: int) -> None:
        self._addresses, self._by = addresses, by

    def __len__(self) -> int:
        return len(self._addresses)

    def __iter__(self) -> Iterator[int]:
        return (one + self._by for one in self._addresses)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, int) and address - self._by in self._addresses

    def isdisjoint(self, other: Iterable[int]) -> bool:
        if isinstance(other, range):
            other = range(other.start - self._by, other.stop - self._by, other.step)
        else:
            other = [one - self._by for one in other]
        return self._addresses.isdisjoint(other)
