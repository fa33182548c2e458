"""Memory for trampolines and handlers, where a jump of five bytes reaches it from the code that leads there.

Runs in the controller. It lies far from where the program's own memory grows to, so that the program gets the addresses
that it gets without it; nothing there can be written by the program (it is written from outside). It is mapped in
chunks, some of which are for what has to lie at certain addresses.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.dataclass import dataclass
from clew.errors import RemoteCallError, TargetError
from clew.process.identity import read_stat
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
_HEAP_BYTES: Final = 1 << 29
"""So much more the heap may have."""
_START_BRK: Final = 44
"""Among the fields of /proc/PID/stat from the state on: start_brk (proc_pid_stat(5))."""
CHUNK_BYTES: Final = 1 << 16
"""Distances of which one byte is given, that of the highest but one, lie within so many bytes of each other."""
_MAX_CHUNK_BYTES: Final = 1 << 20
_LOWEST: Final = 1 << 16
_HIGHEST: Final = (1 << 47) - (1 << 20)
_ALIGNMENT: Final = 16
_TRIES: Final = 64

_Gaps = list[tuple[int, int]]
NextFit = Callable[[int], int | None]
"""Gives the lowest address from another one on that would do."""


class NoRoomError(TargetError):
    """There is no memory where it would have to be."""


@dataclass
class Chunk:
    """Mapped memory from `start` to `end`, used up to `used`."""

    start: int
    end: int
    used: int


class NearMemory:
    """Of one process. `mappings` are those that it has without this."""

    def __init__(self, pid: Pid, mappings: Sequence[Mapping]) -> None:
        self._pid = pid
        self._chunks: list[Chunk] = []
        """By their addresses."""
        self._current: dict[Hashable, Chunk] = {}
        self._gaps = _find_gaps([(one.start, one.end) for one in mappings], _find_heap(pid, mappings))
        """Those that are far from what is mapped, and all."""

    def take(
        self,
        worker: StoppedProcess,
        code: int | None,
        n_bytes: int,
        next_fit: NextFit | None = None,
        within: range | None = None,
        shape: Hashable = None,
    ) -> int:
        """The address of so many bytes that a jump at `code` reaches, anywhere if that is None, mapped in `worker` if
        they are not yet; one that `next_fit` gives, if that is given, and one `within` some. What has the same `shape`
        lies close to each other. Raises NoRoomError: there is none."""
        low, high = (0, _HIGHEST) if code is None else (max(code - _REACH_BYTES, 0), code + _REACH_BYTES)
        if within is not None:
            low, high = max(low, within.start), min(high, within.stop)
        next_fit = next_fit or _next_line
        current = self._current.get(shape)
        if current is not None:
            found = _fit_in(current, n_bytes, next_fit, low, high)
            if found is not None:
                return found
        wanted = low if code is None else max(code - _WANTED_DISTANCE, low)
        for start, end in (one for least in (wanted, low) for gaps in self._gaps for one in _within(gaps, least, high)):
            at = start
            for _ in range(_TRIES):
                address = next_fit(at)
                if address is None or address + n_bytes > end or not low <= address < high:
                    break
                # One more of the kind of one that is full will soon be, too.
                larger = 0 if current is None else 2 * (current.end - current.start)
                chunk = self._map(worker, address, n_bytes, min(larger, _MAX_CHUNK_BYTES, end - start))
                if chunk is not None:
                    chunk.used = address + n_bytes
                    self._current[shape] = chunk
                    return address
                at = -(-(address + n_bytes) // CHUNK_BYTES) * CHUNK_BYTES
        found = self._find_in_chunks(n_bytes, next_fit, low, high)
        if found is None:
            where = "" if code is None else f" within 2 GiB of {code:#x}"
            raise NoRoomError(self._pid, f"process {self._pid}: there is no room{where} that would do")
        return found

    def give_back(self, start: int, end: int, shape: Hashable = None) -> None:
        """What was taken for the same `shape` last ends at `start`, not at `end`."""
        current = self._current.get(shape)
        if current is not None and current.used == end:
            current.used = start

    def _find_in_chunks(self, n_bytes: int, next_fit: NextFit, low: int, high: int) -> int | None:
        """Take so many bytes where something else has been taken from, too."""
        at = next_fit(low)
        while at is not None and at < high:
            # The first chunk that ends behind that address.
            number = bisect.bisect_right(self._chunks, at, key=_end_of)
            if number == len(self._chunks):
                return None
            chunk = self._chunks[number]
            found = _fit_in(chunk, n_bytes, next_fit, at, high)
            if found is not None:
                return found
            at = next_fit(chunk.end)
        return None

    def spans(self) -> list[tuple[int, int]]:
        """What is mapped: from where up to where."""
        return [(chunk.start, chunk.end) for chunk in self._chunks]

    def _map(self, worker: StoppedProcess, address: int, n_bytes: int, wanted_bytes: int) -> Chunk | None:
        """Map a chunk that has so many bytes at an address, and is as large as wanted if there is nothing else; None:
        there is something else already."""
        start = address // CHUNK_BYTES * CHUNK_BYTES
        least = -(-(address + n_bytes) // CHUNK_BYTES) * CHUNK_BYTES
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
        free = (gaps[_index_at(gaps, start)] for gaps in self._gaps if gaps)
        free_end = next((last for first, last in free if first <= start < last), least)
        for end in dict.fromkeys((max(min(start + wanted_bytes, free_end), least), least)):
            try:
                made = worker.call("mmap", start, end - start, PROT_READ | PROT_EXEC, flags, -1, 0)
            except RemoteCallError:
                continue
            if made != start:
                worker.call("munmap", RemoteAddress(made), end - start)
                return None
            chunk = Chunk(start, end, start)
            bisect.insort(self._chunks, chunk, key=_end_of)
            for gaps in self._gaps:
                _take_out(gaps, start, end)
            return chunk
        return None


def _next_line(address: int) -> int:
    return address + _ALIGNMENT - 1 & -_ALIGNMENT


def _fit_in(chunk: Chunk, n_bytes: int, next_fit: NextFit, low: int, high: int) -> int | None:
    """Take so many bytes of what is left of a chunk, from an address between two."""
    at = chunk.used if chunk.used > low else low
    if at + n_bytes > chunk.end:
        return None
    found = next_fit(at)
    if found is None or found + n_bytes > chunk.end or found >= high:
        return None
    chunk.used = found + n_bytes
    return found


def _end_of(chunk: Chunk) -> int:
    return chunk.end


def _find_heap(pid: Pid, mappings: Sequence[Mapping]) -> tuple[int, int]:
    """Where brk(2) has memory, and will have more: a program that starts has none of it yet."""
    fields = read_stat(pid)
    start = int(fields[_START_BRK]) if len(fields) > _START_BRK else 0
    if not start:
        return 0, 0
    return start, max((one.end for one in mappings if one.path == "[heap]"), default=start) + _HEAP_BYTES


def _find_gaps(mapped: Sequence[tuple[int, int]], heap: tuple[int, int]) -> tuple[_Gaps, _Gaps]:
    """Where nothing is mapped, with a margin to what is and where no heap will be, and in whole chunks; and the same
    without a margin, for where there is nothing else. Both rise."""
    gaps: tuple[_Gaps, _Gaps] = [], []
    for margin, spans, found in ((_MARGIN_BYTES, [*mapped, heap], gaps[0]), (0, mapped, gaps[1])):
        before = _LOWEST
        for start, end in [*sorted(spans), (_HIGHEST, _HIGHEST)]:
            first = -(-(before + margin) // CHUNK_BYTES) * CHUNK_BYTES
            last = (start - margin) // CHUNK_BYTES * CHUNK_BYTES
            if last - first >= CHUNK_BYTES:
                found.append((first, last))
            before = max(before, end)
    return gaps


def _index_at(gaps: _Gaps, address: int) -> int:
    """The number of the gap that has an address, or is the last one in front of it; of the first if none is."""
    return max(bisect.bisect_right(gaps, (address, _HIGHEST)) - 1, 0)


def _within(gaps: _Gaps, low: int, high: int) -> Iterator[tuple[int, int]]:
    """What of gaps lies between two addresses, in whole chunks."""
    low, high = -(-low // CHUNK_BYTES) * CHUNK_BYTES, high // CHUNK_BYTES * CHUNK_BYTES
    for number in range(_index_at(gaps, low), len(gaps)):
        start, end = gaps[number]
        if start >= high:
            return
        first, last = max(start, low), min(end, high)
        if last - first >= CHUNK_BYTES:
            yield first, last


def _take_out(gaps: _Gaps, start: int, end: int) -> None:
    """Have what lies between two addresses be in no gap any more."""
    number = _index_at(gaps, start)
    while number < len(gaps) and gaps[number][0] < end:
        first, last = gaps[number]
        left = ((first, min(last, start)), (max(first, end), last))
        gaps[number : number + 1] = kept = [(low, high) for low, high in left if high - low >= CHUNK_BYTES]
        number += len(kept)
