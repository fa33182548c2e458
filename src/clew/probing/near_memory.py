"""Memory for trampolines and handlers, where a jump of five bytes reaches it from the code that leads there.

Runs in the controller. It lies far from where the program's own memory grows to, so that the program gets the addresses
that it gets without it; nothing there can be written by the program (it is written from outside). It is mapped in
chunks, some of which are for what has to lie at certain addresses.
"""

from __future__ import annotations

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
        self._current: dict[Hashable, Chunk] = {}
        self._gaps = _find_gaps([(one.start, one.end) for one in mappings], _find_heap(pid, mappings))

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
        reach = range(_HIGHEST) if code is None else range(max(code - _REACH_BYTES, 0), code + _REACH_BYTES)
        if within is not None:
            reach = range(max(reach.start, within.start), min(reach.stop, within.stop))
        next_fit = next_fit or _next_line
        current = self._current.get(shape)
        if current is not None:
            found = _fit_in(current, n_bytes, next_fit, reach)
            if found is not None:
                return found
        wanted = reach.start if code is None else max(code - _WANTED_DISTANCE, reach.start)
        for start, end in [*_within(self._gaps, wanted, reach.stop), *_within(self._gaps, reach.start, reach.stop)]:
            at = start
            for _ in range(_TRIES):
                address = next_fit(at)
                if address is None or address + n_bytes > end or address not in reach:
                    break
                # One more of the kind of one that is full will soon be, too.
                larger = 0 if current is None else 2 * (current.end - current.start)
                chunk = self._map(worker, address, n_bytes, min(larger, _MAX_CHUNK_BYTES, end - start))
                if chunk is not None:
                    chunk.used = address + n_bytes
                    self._current[shape] = chunk
                    return address
                at = -(-(address + n_bytes) // CHUNK_BYTES) * CHUNK_BYTES
        # Where something else has been taken from, too.
        for chunk in self._chunks:
            found = _fit_in(chunk, n_bytes, next_fit, reach)
            if found is not None:
                return found
        where = "" if code is None else f" within 2 GiB of {code:#x}"
        raise NoRoomError(self._pid, f"process {self._pid}: there is no room{where} that would do")

    def spans(self) -> list[tuple[int, int]]:
        """What is mapped: from where up to where."""
        return [(chunk.start, chunk.end) for chunk in self._chunks]

    def _map(self, worker: StoppedProcess, address: int, n_bytes: int, wanted_bytes: int) -> Chunk | None:
        """Map a chunk that has so many bytes at an address, and is as large as wanted if there is nothing else; None:
        there is something else already."""
        start = address // CHUNK_BYTES * CHUNK_BYTES
        least = -(-(address + n_bytes) // CHUNK_BYTES) * CHUNK_BYTES
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
        free_end = next((last for first, last in self._gaps if first <= start < last), least)
        for end in dict.fromkeys((max(min(start + wanted_bytes, free_end), least), least)):
            try:
                made = worker.call("mmap", start, end - start, PROT_READ | PROT_EXEC, flags, -1, 0)
            except RemoteCallError:
                continue
            if made != start:
                worker.call("munmap", RemoteAddress(made), end - start)
                return None
            chunk = Chunk(start, end, start)
            self._chunks.append(chunk)
            self._gaps = [*_without(self._gaps, start, end)]
            return chunk
        return None


def _next_line(address: int) -> int:
    return -(-address // _ALIGNMENT) * _ALIGNMENT


def _fit_in(chunk: Chunk, n_bytes: int, next_fit: NextFit, reach: range) -> int | None:
    """Take so many bytes of what is left of a chunk."""
    found = next_fit(max(chunk.used, reach.start))
    if found is None or found + n_bytes > chunk.end or found not in reach:
        return None
    chunk.used = found + n_bytes
    return found


def _find_heap(pid: Pid, mappings: Sequence[Mapping]) -> tuple[int, int]:
    """Where brk(2) has memory, and will have more: a program that starts has none of it yet."""
    fields = read_stat(pid)
    start = int(fields[_START_BRK]) if len(fields) > _START_BRK else 0
    if not start:
        return 0, 0
    return start, max((one.end for one in mappings if one.path == "[heap]"), default=start) + _HEAP_BYTES


def _find_gaps(mapped: Sequence[tuple[int, int]], heap: tuple[int, int]) -> list[tuple[int, int]]:
    """Where nothing is mapped, with a margin to what is and where no heap will be, and in whole chunks; without a
    margin where there is nothing else."""
    gaps: list[tuple[int, int]] = []
    tight: list[tuple[int, int]] = []
    for margin, spans, found in ((_MARGIN_BYTES, [*mapped, heap], gaps), (0, mapped, tight)):
        before = _LOWEST
        for start, end in [*sorted(spans), (_HIGHEST, _HIGHEST)]:
            first = -(-(before + margin) // CHUNK_BYTES) * CHUNK_BYTES
            last = (start - margin) // CHUNK_BYTES * CHUNK_BYTES
            if last - first >= CHUNK_BYTES:
                found.append((first, last))
            before = max(before, end)
    return gaps + tight


def _within(gaps: Sequence[tuple[int, int]], low: int, high: int) -> Iterator[tuple[int, int]]:
    """What of gaps lies between two addresses, in whole chunks."""
    low, high = -(-low // CHUNK_BYTES) * CHUNK_BYTES, high // CHUNK_BYTES * CHUNK_BYTES
    for start, end in gaps:
        first, last = max(start, low), min(end, high)
        if last - first >= CHUNK_BYTES:
            yield first, last


def _without(gaps: Sequence[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    for first, last in gaps:
        for low, high in ((first, min(last, start)), (max(first, end), last)):
            if high - low >= CHUNK_BYTES:
                yield low, high
