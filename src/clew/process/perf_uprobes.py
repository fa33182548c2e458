"""The kernel's uprobes, for single threads and what these make: where they are, and what was met there.

Runs in the controller. By perf events (perf_event_open(2)) of tracepoints that tracefs makes (`tracefs.py`). The
kernel's PMU `uprobe` would need none, but its events can't be inherited: the kernel reads their path in the memory of
whoever forks, whose forks fail then. What is read is the kernel's.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import time
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

from clew.process.linux import libc, number_of_call
from clew.process.processors.chosen import native_processor
from clew.process.tracefs import UprobeTracepoints

__all__ = ["UprobeHit", "Uprobes", "read_processors"]

_TRACEPOINT: Final = 2
"""PERF_TYPE_TRACEPOINT."""
_ATTRIBUTE: Final = struct.Struct("<IIQQQQQIIQQQQIiQIHH")
_INHERIT, _USE_CLOCK = 1 << 1, 1 << 25
_IDENTIFIER, _IP, _TID, _TIME, _CPU, _REGISTERS, _STACK = 1 << 16, 1, 2, 4, 1 << 7, 1 << 12, 1 << 13
_SAMPLE: Final = _IDENTIFIER | _IP | _TID | _TIME | _CPU | _REGISTERS | _STACK
_STACK_BYTES: Final = 8
"""A word of the stack: at a function's beginning who called it."""
_CLOSE_ON_EXEC: Final = 8
_IOC_SET_OUTPUT, _IOC_ID = 0x2405, 0x80082407
_RECORD_LOST, _RECORD_SAMPLE = 2, 9
_HEAD_AT, _TAIL_AT = 1024, 1032
"""In a ring's first page (struct perf_event_mmap_page)."""
RING_BYTES: Final = 1 << 20
_HEADER: Final = struct.Struct("<IHH")
_PLACE: Final = struct.Struct("<QQIIQIIQ")
"""Identifier, address, process, thread, time, processor, nothing, whether registers follow."""


class UprobeHit(NamedTuple):
    """A thread came to uprobe `key`. `time_ns` counts from 1970. `registers` are in the architecture's order of held
    ones, None where there are none. `word` is what the stack pointer leads to, None: it can't be read."""

    key: int
    pid: int
    tid: int
    time_ns: int
    cpu: int
    registers: tuple[int, ...] | None
    word: int | None


class _Ring:
    """Of one processor: what its events tell. `descriptor` is of the event that has it."""

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        self.descriptor, self._size_bytes = descriptor, size_bytes
        self._map = mmap.mmap(descriptor, mmap.PAGESIZE + size_bytes, mmap.MAP_SHARED)
        self._head = ctypes.c_uint64.from_buffer(self._map, _HEAD_AT)
        self._tail = ctypes.c_uint64.from_buffer(self._map, _TAIL_AT)

    def take(self) -> bytes:
        """What has come."""
        head, tail = self._head.value, self._tail.value
        start, end = tail % self._size_bytes, head % self._size_bytes
        first = mmap.PAGESIZE
        if head == tail:
            return b""
        if start < end:
            data = self._map[first + start : first + end]
        else:
            data = self._map[first + start : first + self._size_bytes] + self._map[first : first + end]
        self._tail.value = head
        return data

    def close(self) -> None:
        """Let go of it."""
        del self._head, self._tail
        self._map.close()


class Uprobes:
    """Some uprobes, by keys, with `ring_bytes` of room on each processor. Raises OSError where the kernel has none."""

    def __init__(self, ring_bytes: int = RING_BYTES) -> None:
        self._ring_bytes = ring_bytes
        self._tracing = UprobeTracepoints()
        numbers = native_processor().perf_registers
        self._mask = sum(1 << number for number in numbers)
        # The kernel tells them by their numbers.
        self._order = [sorted(numbers).index(number) for number in numbers]
        self._values = struct.Struct(f"<{len(numbers)}Q")
        self._processors = read_processors()
        self._rings: dict[int, _Ring] = {}
        self._keys: dict[int, int] = {}
        self._descriptors: list[int] = []
        self._since_1970_ns = time.time_ns() - time.monotonic_ns()
        self.n_lost = 0
        """How many hits the kernel had no room for."""

    def add(self, key: int, path: str, offset: int, tids: Iterable[int], *, is_return: bool) -> None:
        """Have one at an offset of a file, or where the function that begins there returns, met by some threads and all
        that these make. Raises OSError."""
        tracepoint = self._tracing.make(path, offset, is_return=is_return)
        attribute = _ATTRIBUTE.pack(
            *(_TRACEPOINT, _ATTRIBUTE.size, tracepoint, 1, _SAMPLE, 0, _INHERIT | _USE_CLOCK, 0, 0),
            *(0, 0, 0, self._mask, _STACK_BYTES, time.CLOCK_MONOTONIC, 0, 0, 0, 0),
        )
        for tid, processor in product(tids, self._processors):
            descriptor = _open(attribute, tid, processor)
            self._descriptors.append(descriptor)
            if processor in self._rings:
                fcntl.ioctl(descriptor, _IOC_SET_OUTPUT, self._rings[processor].descriptor)
            else:
                self._rings[processor] = _Ring(descriptor, self._ring_bytes)
            number = fcntl.ioctl(descriptor, _IOC_ID, bytes(8))
            self._keys[int.from_bytes(number, "little")] = key

    def read(self) -> list[UprobeHit]:
        """What has come since, each thread's in its order."""
        hits = [hit for ring in self._rings.values() for hit in self._parse(ring.take())]
        # A thread may have been on several processors.
        hits.sort(key=lambda one: one.time_ns)
        return hits

    def _parse(self, data: bytes) -> Iterator[UprobeHit]:
        at = 0
        while at < len(data):
            kind, _, size = _HEADER.unpack_from(data, at)
            if kind == _RECORD_SAMPLE:
                yield self._parse_sample(data, at + _HEADER.size)
            elif kind == _RECORD_LOST:
                self.n_lost += int.from_bytes(data[at + _HEADER.size + 8 : at + _HEADER.size + 16], "little")
            at += size

    def _parse_sample(self, data: bytes, at: int) -> UprobeHit:
        number, _, pid, tid, time_ns, cpu, _, abi = _PLACE.unpack_from(data, at)
        at += _PLACE.size
        registers = None
        if abi:
            values = self._values.unpack_from(data, at)
            registers = tuple(values[index] for index in self._order)
            at += self._values.size
        size = int.from_bytes(data[at : at + 8], "little")
        is_read = size == _STACK_BYTES == int.from_bytes(data[at + 8 + size : at + 16 + size], "little")
        word = int.from_bytes(data[at + 8 : at + 8 + size], "little") if is_read else None
        return UprobeHit(self._keys[number], pid, tid, time_ns + self._since_1970_ns, cpu, registers, word)

    def close(self) -> None:
        """Have none any more."""
        for ring in self._rings.values():
            ring.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._rings.clear()
        self._descriptors.clear()
        self._tracing.close()


def read_processors() -> list[int]:
    """The numbers of the processors that are on."""
    text = Path("/sys/devices/system/cpu/online").read_text().strip()
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _open(attribute: bytes, tid: int, processor: int) -> int:
    descriptor = libc.syscall(
        ctypes.c_long(number_of_call("perf_event_open")),
        ctypes.c_char_p(attribute),
        ctypes.c_long(tid),
        ctypes.c_long(processor),
        ctypes.c_long(-1),
        ctypes.c_long(_CLOSE_ON_EXEC),
    )
    if descriptor < 0:
        error = ctypes.get_errno() or errno.EINVAL
        raise OSError(error, os.strerror(error))
    return int(descriptor)
