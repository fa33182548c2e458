"""Makes events of what was captured at probes: which one of its thread each is, and how that is called; who called.

Runs in the controller, in one thread at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.address import Pid
from clew.binary.demangle import demangle
from clew.errors import TargetError
from clew.export.probes.event_types import EventType
from clew.process.maps import Mapping as MemoryMapping
from clew.process.processors.chosen import native_processor
from clew.protocol._generated import CAPTURE_RECORD
from clew.sessions.backtrace import unwind
from clew.sessions.capture_sink import Captured
from clew.sessions.live_clock import LiveClock
from clew.sessions.memory import Image, Images
from clew.sessions.probes.backtraces import StackPieces
from clew.sessions.probes.event_forms import EventForm
from clew.sessions.probes.target import Rings

__all__ = ["CapturedOf", "EventReader", "ReadEvents"]

Array = npt.NDArray[Any]


class Probed(Protocol):
    """A process with probes in it, and forks' children of it."""

    @property
    def pid(self) -> Pid:
        """Its number."""

    @property
    def mappings(self) -> list[MemoryMapping]:
        """What it had mapped when something was loaded last."""

    @property
    def rings(self) -> Rings:
        """What its threads wrote."""


class CapturedOf(NamedTuple):
    """Records of probe number `probe`, what was asked for there, and what the places are called, by their addresses,
    where it is at several."""

    probe: int
    form: EventForm
    captured: Captured
    names: Mapping[int, str]


class ReadEvents(NamedTuple):
    """Events of probe number `probe`."""

    probe: int
    type: EventType
    table: pa.Table


class EventReader:
    """Of one session; `targets` gives its processes."""

    def __init__(self, images: Images, targets: Callable[[], Sequence[Probed]]) -> None:
        self._images, self._targets = images, targets
        self._sequences: dict[tuple[int, int], int] = {}
        self._comms: dict[int, bytes] = {}
        self._loaded: dict[int, list[Image]] = {}
        self._mappings: dict[int, list[MemoryMapping]] = {}
        """Of which the images were looked at."""

    def meet(self, pid: int) -> None:
        """Note what a process is called, while it is there. Raises OSError."""
        self._comms[pid] = Path(f"/proc/{pid}/comm").read_bytes().rstrip(b"\n")

    def note_images(self, target: Probed) -> None:
        """Note what a process has loaded, as it was when something was loaded last: it may be gone before it is
        asked."""
        if self._mappings.get(target.pid) is not target.mappings:
            self._mappings[target.pid] = target.mappings
            self._loaded[target.pid] = self._images.in_mappings(target.mappings)

    def read(self, captured: Sequence[CapturedOf], clock: LiveClock) -> list[ReadEvents]:
        """The events of records."""
        found: list[ReadEvents] = []
        sequences = self._number([one.captured for one in captured])
        for (number, form, one, names), own in zip(captured, sequences, strict=True):
            tables = form.tables(one, clock, own, self._names(one), self._unwind, names)
            found += [ReadEvents(number, kind, table) for kind, table in tables]
        return found

    def _number(self, captured: Sequence[Captured]) -> list[Array]:
        """Of each record which one of its thread it is: by their times, which rise in a thread."""
        if not captured:
            return []
        heads = [one.heads.view(CAPTURE_RECORD)[:, 0] for one in captured]
        sizes = [len(own) for own in heads]
        pids = np.repeat(np.array([one.pid for one in captured], np.uint64), sizes)
        tids = np.concatenate([own["tid"] for own in heads]).astype(np.uint64)
        order = np.lexsort((np.concatenate([own["tsc"] for own in heads]), tids, pids))
        threads = (pids << np.uint64(32) | tids)[order]
        starts = np.flatnonzero(np.append(True, threads[1:] != threads[:-1]))
        ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        result = np.empty(len(order), np.uint64)
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            key = (int(pids[order[start]]), int(tids[order[start]]))
            before = self._sequences.get(key, 0)
            result[order[start:end]] = before + ranks[start:end]
            self._sequences[key] = before + end - start
        return np.split(result, np.cumsum(sizes)[:-1])

    def _names(self, captured: Captured) -> dict[int, bytes]:
        """What threads are called now, or were when they were last seen."""
        for tid in np.unique(captured.heads.view(CAPTURE_RECORD)[:, 0]["tid"]).tolist():
            try:
                self._comms[tid] = Path(f"/proc/{captured.pid}/task/{tid}/comm").read_bytes().rstrip(b"\n")
            except OSError:
                # It is gone.
                self._comms.setdefault(tid, self._first_name(tid) or self._comms.get(captured.pid, b""))
        return self._comms

    def _unwind(self, pid: int, registers: dict[str, int], pieces: StackPieces, is_place: bool) -> list[int]:
        processor = native_processor()

        def read(address: int, size_bytes: int) -> bytes:
            for start, data in pieces:
                if start <= address and address + size_bytes <= start + len(data):
                    return data[address - start : address - start + size_bytes]
            return b""

        found = unwind(
            self._images,
            self._images_of(pid),
            registers,
            read,
            processor.architecture,
            processor.definition,
            is_place=is_place,
        )
        return [frame.pc for frame in found]

    def _first_name(self, tid: int) -> bytes:
        """What a thread was called when it came to a probe first; empty: nobody knows."""
        return next(filter(None, (target.rings.first_name(tid) for target in self._targets())), b"")

    def name_address(self, pid: int, address: int) -> str:
        """What an address of a process is called in a stack: its function, or how far it is in its image."""
        image, symbol, offset = self._images.name(self._images_of(pid), address)
        return demangle(symbol) if symbol else f"{image}+{offset:#x}" if image else f"{address:#x}"

    def name_place(self, pid: int, address: int, is_return: bool) -> str:
        """How far an address of a process is in which function, or in which image; empty where there is none.
        `is_return`: it is where a call goes on, and the call is in front of it."""
        image, symbol, offset = self._images.name(self._images_of(pid), address - is_return)
        offset += is_return
        where = demangle(symbol) if symbol else image
        return f"{where}+{offset:#x}" if where and offset else where

    def _images_of(self, pid: int) -> list[Image]:
        return self._loaded[pid] if pid in self._loaded else self.look_at_images(pid)

    def look_at_images(self, pid: int) -> list[Image]:
        """What a process has loaded now; what its parent has, if it is a fork's child that is gone."""
        found: list[Image] = []
        with contextlib.suppress(TargetError):
            found = self._images.of(Pid(pid))
        if not found:
            targets = (target for target in self._targets() if pid in target.rings.processes)
            found = next((self._loaded.get(target.pid, []) for target in targets), [])
        self._loaded[pid] = found
        return found
