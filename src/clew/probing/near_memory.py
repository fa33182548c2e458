"""Memory for trampolines and handlers, where a jump of five bytes reaches it from the code that leads there.

Runs in the controller. It lies far from where the program's own memory grows to, so that the program gets the addresses
that it gets without it; nothing there can be written by the program (it is written from outside). It is mapped in
chunks, some of which are for what has to lie at certain addresses.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.dataclass import dataclass
from clew.errors import RemoteCallError, TargetError
from clew.process.linux import (
    MAP_ANONYMOUS,
    MAP_FIXED_NOREPLACE,
    MAP_NORESERVE,
    MAP_PRIVATE,
    PROT_EXEC,
    PROT_READ,
)
from clew.process.maps import Mapping
from clew.process.stopped_process import StoppedProcess

__all__ = ["Chunk", "NearMemory", "NoRoomError"]

_REACH_BYTES: Final = (1 << 31) - (1 << 24)
"""A jump's distance has 32 bits with a sign; what is led to lies a little behind a chunk's start."""
_WANTED_DISTANCE: Final = 1 << 30
_MARGIN_BYTES: Final = 1 << 24
"""So far from anything that may grow."""
CHUNK_BYTES: Final = 1 << 16
"""Distances of which one byte is given, that of the highest but one, lie within so many bytes of each other."""
_LOWEST: Final = 1 << 16
_HIGHEST: Final = (1 << 47) - (1 << 20)

IterPlaces = Callable[[Sequence[tuple[int, int]]], Iterator[range]]
"""Chooses addresses in ranges of free memory, which go from the first to behind the last byte."""
_TRIES: Final = 64
_N_RECENT: Final = 4


class NoRoomError(TargetError):
    """There is no memory where it would have to be."""


@dataclass
class Chunk:
    """Mapped memory from `start` to `end`; what is free of it, sorted."""

    start: int
    end: int
    free: list[tuple[int, int]]

    def take(self, address: int, n_bytes: int) -> None:
        """Have so many bytes no longer be free, all of which are."""
        index = bisect.bisect_right(self.free, (address, self.end)) - 1
        start, end = self.free[index]
        rest = [(start, address), (address + n_bytes, end)]
        self.free[index : index + 1] = [(low, high) for low, high in rest if low < high]


class NearMemory:
    """Of one process. `mappings` are those that it has without this."""

    def __init__(self, pid: Pid, mappings: Sequence[Mapping]) -> None:
        self._pid = pid
        self._chunks: list[Chunk] = []
        self._recent: dict[Hashable, deque[Chunk]] = {}
        self._gaps = _find_gaps(mappings)

    def take(
        self,
        worker: StoppedProcess,
        code: int,
        n_bytes: int,
        choose: IterPlaces | None = None,
        shape: Hashable = None,
    ) -> int:
        """The address of so many bytes that a jump at `code` reaches, mapped in `worker` if they are not yet; one of
        those that `choose` chooses, if that is given. What has the same `shape` may lie close to each other. Raises
        NoRoomError: there is none."""
        choose = choose or (lambda free: (range(start, end - n_bytes + 1) for start, end in free))
        recent = self._recent.setdefault(shape, deque(maxlen=_N_RECENT))
        for chunk in recent:
            if abs(chunk.start - code) <= _REACH_BYTES:
                for places in choose([one for one in chunk.free if one[1] - one[0] >= n_bytes]):
                    address = min(-(-places.start // 16) * 16, places.stop - 1)
                    if address in places:
                        chunk.take(address, n_bytes)
                        return address
        for start, end in _near(self._gaps, code):
            for places in islice(choose([(start, end)]), _TRIES):
                address = min(max(code - _WANTED_DISTANCE, places.start), places.stop - 1)
                mapped = self._map(worker, address, n_bytes)
                if mapped is not None:
                    mapped.take(address, n_bytes)
                    recent.appendleft(mapped)
                    return address
        # Where something else has been taken from, too.
        for chunk in self._chunks:
            if abs(chunk.start - code) <= _REACH_BYTES:
                for places in choose([one for one in chunk.free if one[1] - one[0] >= n_bytes]):
                    chunk.take(places.start, n_bytes)
                    recent.appendleft(chunk)
                    return places.start
        raise NoRoomError(self._pid, f"process {self._pid}: there is no room within 2 GiB of {code:#x} that would do")

    def spans(self) -> list[tuple[int, int]]:
        """What is mapped: from where up to where."""
        return [(chunk.start, chunk.end) for chunk in self._chunks]

    def _map(self, worker: StoppedProcess, address: int, n_bytes: int) -> Chunk | None:
        """Map the chunk or chunks that hold so many bytes at an address; None: there is something else already."""
        start = address // CHUNK_BYTES * CHUNK_BYTES
        end = -(-(address + n_bytes) // CHUNK_BYTES) * CHUNK_BYTES
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
        try:
            made = worker.call("mmap", start, end - start, PROT_READ | PROT_EXEC, flags, -1, 0)
        except RemoteCallError:
            return None
        if made != start:
            worker.call("munmap", RemoteAddress(made), end - start)
            return None
        chunk = Chunk(start, end, [(start, end)])
        self._chunks.append(chunk)
        self._gaps = [*_without(self._gaps, start, end)]
        return chunk


def _find_gaps(mappings: Sequence[Mapping]) -> list[tuple[int, int]]:
    """Where nothing is mapped, with a margin to what is, and in whole chunks; without a margin where there is nothing
    else."""
    gaps: list[tuple[int, int]] = []
    tight: list[tuple[int, int]] = []
    before = _LOWEST
    for start, end in [*sorted((one.start, one.end) for one in mappings), (_HIGHEST, _HIGHEST)]:
        for margin, found in ((_MARGIN_BYTES, gaps), (0, tight)):
            first = -(-(before + margin) // CHUNK_BYTES) * CHUNK_BYTES
            last = (start - margin) // CHUNK_BYTES * CHUNK_BYTES
            if last - first >= CHUNK_BYTES:
                found.append((first, last))
        before = max(before, end)
    return gaps + tight


def _near(gaps: Sequence[tuple[int, int]], code: int) -> Iterator[tuple[int, int]]:
    """What of gaps a jump reaches."""
    low = -(-(code - _REACH_BYTES) // CHUNK_BYTES) * CHUNK_BYTES
    high = (code + _REACH_BYTES) // CHUNK_BYTES * CHUNK_BYTES
    for start, end in gaps:
        first, last = max(start, low), min(end, high)
        if last - first >= CHUNK_BYTES:
            yield first, last


def _without(gaps: Sequence[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    for first, last in gaps:
        for low, high in ((first, min(last, start)), (max(first, end), last)):
            if high - low >= CHUNK_BYTES:
                yield low, high
