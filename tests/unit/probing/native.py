"""Code of this process is patched here, run, stepped through, and put back."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import re
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec

from clew.binary.elf import open_elf
from clew.binary.symbols import load_symbols
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.image_code import read_image_code
from clew.probing.x86_64.plans import SitePlan
from clew.probing.x86_64.relocation import Inserted, Relocated, relocate
from clew.probing.x86_64.trampolines import find_place

__all__ = ["Native", "Outcome", "apart", "counting_code", "free_ranges", "make_writable", "map_at"]

PAGE = 4096
ROOM = 512
MARGIN = 1 << 24
STACK_BYTES = 16384
STATUS_FLAGS = 0x8D5
RFLAGS = 16
RSP = 4
_FIXED_NOREPLACE = 0x100000
_ALL = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC

P = ParamSpec("P")
Outcome = tuple[tuple[int, ...], bytes, bytes]
"""Registers, the bytes, and the stack, as a call left them."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Registers(ctypes.Structure):
    """As in harness.c."""

    _fields_ = (("word", ctypes.c_uint64 * 17),)


def free_ranges() -> list[tuple[int, int]]:
    """Where nothing is mapped in this process."""
    ends, free = 0x10000, []
    for line in Path("/proc/self/maps").read_text().splitlines():
        found = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        assert found
        start, end = (int(word, 16) for word in found.groups())
        if ends < start < 1 << 47:
            free.append((ends, start))
        ends = max(ends, end)
    # The kernel gives out what is in front of other mappings, and keeps some room in front of a stack.
    return [(start + PAGE, end - MARGIN) for start, end in free if end - start > 2 * MARGIN]


def map_at(address: int, size_bytes: int) -> None:
    """Memory for code at whole pages that have these bytes."""
    first = address // PAGE * PAGE
    length = -(-(address + size_bytes) // PAGE) * PAGE - first
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
    assert _libc.mmap(first, length, _ALL, flags, -1, 0) == first, hex(address)


def unmap(address: int, size_bytes: int) -> None:
    """Undoes `map_at`."""
    first = address // PAGE * PAGE
    _libc.munmap(first, -(-(address + size_bytes) // PAGE) * PAGE - first)


def apart(test: Callable[P, None]) -> Callable[P, None]:
    """A test in a process of its own, so that code that goes astray fails this one test."""

    @functools.wraps(test)
    def run(*arguments: P.args, **named: P.kwargs) -> None:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            try:
                test(*arguments, **named)
            except BaseException:
                with open(writer, "w") as report:
                    traceback.print_exc(file=report)
                os._exit(1)
            os._exit(0)
        os.close(writer)
        with open(reader) as report:
            text = report.read()
        _, status = os.waitpid(child, 0)
        assert not os.WIFSIGNALED(status), f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
        assert not status, text

    return run


def counting_code(counter: int, scratch: int) -> bytes:
    """Code, for any address, that counts at `counter`, and changes no register, no flag and nothing on the stack; it
    needs 16 bytes at `scratch`."""
    counted, saved, flags = (place.to_bytes(8, "little") for place in (counter, scratch, scratch + 8))
    return b"".join(
        (
            *(b"\x48\xa3", saved),  # movabs [saved], rax
            b"\x9f\x0f\x90\xc0",  # lahf; seto al
            *(b"\x48\xa3", flags),  # movabs [flags], rax
            *(b"\x48\xb8", counted),  # movabs rax, counter
            b"\x48\xff\x00",  # inc qword [rax]
            *(b"\x48\xa1", flags),  # movabs rax, [flags]
            b"\x04\x7f\x9e",  # add al, 0x7f; sahf
            *(b"\x48\xa1", saved),  # movabs rax, [saved]
        )
    )


def make_writable(address: int, size_bytes: int) -> None:
    """Let this process write to its code."""
    first = address // PAGE * PAGE
    assert not _libc.mprotect(first, address + size_bytes - first, _ALL)


class Native:
    """A library that is loaded, with its `functions` by name, and `entries` of its code."""

    def __init__(self, library: Path, harness: Path) -> None:
        self._loaded = ctypes.CDLL(str(library))
        self._harness = ctypes.CDLL(str(harness))
        self._harness.step.restype = self._harness.traps.restype = ctypes.c_uint64
        self._harness.begin()
        symbols = load_symbols(library)
        (offset, _), *_ = symbols.find_by_name("c_leaf")
        address = ctypes.cast(self._loaded.c_leaf, ctypes.c_void_p).value
        assert address is not None
        self.base = address - offset
        with open_elf(library) as elf:
            image = read_image_code(elf, self.base)
            for segment in elf.segments:
                if segment.kind == 1 and segment.flags & 1:
                    make_writable(self.base + segment.address, segment.memory_bytes)
        self.entries, self.branches = image.entries, image.branches
        by_address = {code.start: code for code in image.functions}
        self.functions: dict[str, FunctionCode] = {}
        for index in range(len(symbols)):
            name, start = symbols.name(index), self.base + int(symbols.offsets[index])
            if name.startswith(("c_", "s_")) and start in by_address:
                self.functions[name] = by_address[start]
        self._cells = (ctypes.c_uint64 * (2 * PAGE))()
        self._data = ctypes.addressof(self._cells)
        self._bytes = (ctypes.c_uint8 * 256)()

    @property
    def cells(self) -> int:
        """Where counters may be; 32 bytes in front of it are free, too."""
        return self._data + 64

    def read_cells(self, n: int) -> list[int]:
        """The first so many of the counters."""
        return list((ctypes.c_uint64 * n).from_address(self.cells))

    def set_places(self, places: dict[int, int]) -> None:
        """Where a thread goes on that traps at an address."""
        pairs = [word for place in places.items() for word in place]
        self._harness.set_places((ctypes.c_uint64 * len(pairs))(*pairs), len(places))

    @property
    def count(self) -> int:
        """How often that code ran."""
        return ctypes.c_uint64.from_address(self._data).value

    @property
    def traps(self) -> int:
        """How often a thread trapped since the last patch."""
        return int(self._harness.traps())

    @contextmanager
    def probe(self, plan: SitePlan, *, taken: bool = False) -> Iterator[Relocated | None]:
        """Has a site patched, its executions counted, and only those at which it branches if `taken`. None: there is no
        room."""
        trampoline = find_place(plan, free_ranges(), ROOM)
        if trampoline is None:
            yield None
            return
        map_at(trampoline, ROOM)
        inserted: dict[int, Inserted] = {plan.probe_index: lambda _: counting_code(self._data, self._data + 8)}
        copy = relocate(plan.displaced, trampoline, *(({}, inserted) if taken else (inserted,)))
        assert len(copy.code) <= ROOM
        ctypes.memmove(trampoline, copy.code, len(copy.code))
        written = {plan.patch_address: plan.patch(trampoline)}
        for branch in plan.branches:
            distance = trampoline - branch.end
            written[branch.end - 4] = distance.to_bytes(4, "little", signed=True)
        kept = {at: ctypes.string_at(at, len(patch)) for at, patch in written.items()}
        assert kept[plan.patch_address] == plan.original
        places = {at: copy.starts[plan.displaced[index].address] for at, index in plan.guards.items()}
        self.set_places(places)
        ctypes.c_uint64.from_address(self._data).value = 0
        for at, patch in written.items():
            ctypes.memmove(at, patch, len(patch))
        try:
            yield copy
        finally:
            for at, original in kept.items():
                ctypes.memmove(at, original, len(original))
            unmap(trampoline, ROOM)

    def _registers(self, seed: int) -> Registers:
        words = [(seed * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03) % (1 << 64) for index in range(17)]
        words[7], words[6], words[2] = words[7] % 61, words[6] % 1000, ctypes.addressof(self._bytes)
        words[RFLAGS] = words[RFLAGS] & STATUS_FLAGS | 0x202
        for index in range(256):
            self._bytes[index] = (seed * 37 + index * index) % 251
        return Registers((ctypes.c_uint64 * 17)(*words))

    def call(self, code: FunctionCode, seed: int) -> Outcome:
        """Run a function with registers and bytes that follow from `seed`."""
        registers, left = Registers(), ctypes.create_string_buffer(STACK_BYTES)
        given = self._registers(seed)
        self._harness.call(ctypes.c_void_p(code.start), ctypes.byref(given), ctypes.byref(registers), left)
        return tuple(registers.word), bytes(self._bytes), left.raw

    def steps(self, code: FunctionCode, seed: int) -> list[int]:
        """The addresses of all instructions that it runs, in order; a repeated one once for all its turns."""
        registers, trace = Registers(), ctypes.POINTER(ctypes.c_uint64)()
        given = self._registers(seed)
        n = self._harness.step(
            ctypes.c_void_p(code.start), ctypes.byref(given), ctypes.byref(registers), ctypes.byref(trace)
        )
        assert n < 400000
        found: list[int] = []
        for at in trace[:n]:
            is_turn = found and at == found[-1] and ctypes.string_at(at, 1) in (b"\xf2", b"\xf3")
            if not is_turn:
                found.append(at)
        return found
