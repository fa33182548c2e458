"""The four bytes of a jump's distance, where some of them have to be what they are, or have to trap.

A thread may come to an instruction whose first byte is now a byte of the distance. That is harmless where the byte
traps there: int3, or an instruction that does not exist in 64-bit mode. And where a short instruction is replaced the
last bytes of the distance are those of the instructions behind it, unchanged. Both leave only some addresses to which
the jump can lead.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

__all__ = ["ANY", "JUMP_SIZE", "TRAPS", "JumpBytes", "iter_trampolines"]

JUMP_SIZE: Final = 5
_OPCODE: Final = b"\xe9"

ANY: Final = ()
"""Of a byte of the distance: any will do."""

TRAPS: Final = tuple(b"\xcc\xd6\x06\x07\x0e\x16\x17\x1e\x1f\x27\x2f\x37\x3f\x60\x61\xce\xd4\x9a\xea")
"""First bytes with which an instruction traps: int3 (SIGTRAP, behind the byte), then what gives an invalid-opcode
exception in 64-bit mode (SIGILL, at the byte), by table B-1 of AMD's manual 3. The last three would have operands. Left
out are those that are or will be prefixes there: 0x62, 0xc4, 0xc5 (EVEX, VEX), 0xd5 (REX2), and 0x82."""

_HALF: Final = 1 << 31
_SPAN: Final = 1 << 32


class JumpBytes(NamedTuple):
    """A jump at `address`: of each byte of its distance, the least significant first, the values that it may have, in
    order of preference, or ANY."""

    address: int
    allowed: tuple[tuple[int, ...], ...]

    @property
    def n_choices(self) -> int:
        """How many distances there are."""
        n = 1
        for values in self.allowed:
            n *= len(values) or 256
        return n

    def fits(self, trampoline: int) -> bool:
        """Whether the jump can lead to that address."""
        distance = trampoline - self.address - JUMP_SIZE
        if not -_HALF <= distance < _HALF:
            return False
        for values in self.allowed:
            if values and distance & 0xFF not in values:
                return False
            distance >>= 8
        return True

    def next_fit(self, address: int) -> int | None:
        """The lowest address from `address` on to which the jump can lead; None if there is none."""
        low = max(address - self.address - JUMP_SIZE + _HALF, 0)
        if low >= _SPAN:
            return None
        # Distances count from the least one, so that their order is that of numbers.
        found = _lowest_from(_choices(self.allowed), low) if any(self.allowed) else low
        return None if found is None else found - _HALF + self.address + JUMP_SIZE

    def encode(self, trampoline: int) -> bytes:
        """The jump's bytes, leading to that address. Raises ValueError if it can't lead there."""
        if not self.fits(trampoline):
            raise ValueError(f"a jump at {self.address:#x} can't lead to {trampoline:#x}")
        return _OPCODE + (trampoline - self.address - JUMP_SIZE).to_bytes(4, "little", signed=True)


def iter_trampolines(jump: JumpBytes, free: Iterable[tuple[int, int]], size_bytes: int) -> Iterator[range]:
    """Ranges of addresses to which the jump can lead, and where `size_bytes` are free behind each.

    `free` are ranges of addresses, from the first to behind the last. Preferred bytes come first, within each range.
    """
    behind = jump.address + JUMP_SIZE
    for start, end in free:
        # Distances that are looked for.
        first = max(start - behind, -_HALF)
        last = min(end - size_bytes - behind, _HALF - 1)
        if first > last:
            continue
        if not any(jump.allowed):
            yield range(behind + first, behind + last + 1)
            continue
        # The distance counts as a number without sign, so that its bytes can be chosen one by one.
        parts = [(first, last)]
        if last < 0:
            parts = [(first + _SPAN, last + _SPAN)]
        elif first < 0:
            parts = [(0, last), (first + _SPAN, _SPAN - 1)]
        for value in jump.allowed[3] or range(256):
            for low, high in parts:
                shift = behind - (_SPAN if value >= 0x80 else 0)
                for found in _iter_distances(jump.allowed, 2, value << 24, low, high):
                    yield range(found.start + shift, found.stop + shift)


def _iter_distances(
    allowed: tuple[tuple[int, ...], ...], index: int, prefix: int, low: int, high: int
) -> Iterator[range]:
    """Distances from `low` to `high` whose bytes above `index` are those of `prefix`."""
    span = 1 << 8 * (index + 1)
    if prefix > high or prefix + span <= low:
        return
    if not any(allowed[: index + 1]):
        # Nothing is asked of the bytes that are left.
        yield range(max(prefix, low), min(prefix + span - 1, high) + 1)
        return
    step = 1 << 8 * index
    for value in allowed[index] or range(max((low - prefix) // step, 0), min((high - prefix) // step, 255) + 1):
        if index == 0:
            if low <= prefix + value <= high:
                yield range(prefix + value, prefix + value + 1)
        else:
            yield from _iter_distances(allowed, index - 1, prefix + value * step, low, high)


_Choices = tuple[tuple[int, tuple[int, ...], int], ...]
"""Of each byte of a number, the highest first: how far it is shifted, its values, rising, and the lowest number that
all bytes behind it make up."""


@functools.lru_cache(4096)
def _choices(allowed: tuple[tuple[int, ...], ...]) -> _Choices:
    """Of distances that count from the least one."""
    highest = (one ^ 0x80 for one in allowed[3] or range(256))
    values = [tuple(sorted(one)) for one in (highest, *(allowed[index] or range(256) for index in _DOWN[1:]))]
    rest, found = 0, []
    for index, own in zip(reversed(_DOWN), reversed(values), strict=True):
        found.append((8 * index, own, rest))
        rest |= own[0] << 8 * index
    return tuple(reversed(found))


_DOWN: Final = (3, 2, 1, 0)


def _lowest_from(choices: _Choices, wanted: int) -> int | None:
    """The lowest number that is not below another one."""
    prefix = 0
    higher: int | None = None
    for shift, values, rest in choices:
        byte = wanted >> shift & 0xFF
        at = bisect.bisect_left(values, byte)
        is_same = at < len(values) and values[at] == byte
        if at + is_same < len(values):
            higher = prefix | values[at + is_same] << shift | rest
        if not is_same:
            return higher
        prefix |= byte << shift
    return wanted
