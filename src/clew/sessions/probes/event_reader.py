"""Makes events of what was captured at probes: which one of its thread each is, and how that is called; who called.

Runs in the controller, in one thread at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.address import Pid
from clew.errors import TargetError
from clew.export.probes.event_types import EventType
from clew.process.processors.chosen import native_processor
from clew.protocol._generated import CAPTURE_RECORD
from clew.sessions.backtrace import unwind
from clew.sessions.capture_sink import Captured
from clew.sessions.live_clock import LiveClock
from clew.sessions.memory import Image, Images
from clew.sessions.probes.event_forms import EventForm

__all__ = ["CapturedOf", "EventReader", "ReadEvents"]

Array = npt.NDArray[Any]


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
    """Of one session. `first_name` knows what a thread was called that is gone, empty: it does not."""

    def __init__(self, images: Images, first_name: Callable[[int], bytes]) -> None:
        self._images, self._first_name = images, first_name
        self._sequences: dict[tuple[int, int], int] = {}
        self._comms: dict[int, bytes] = {}
        self._loaded: dict[int, list[Image]] = {}

    def meet(self, pid: int) -> None:
        """Note what a process is called, and what it has loaded, while it is there. Raises OSError."""
        self._comms[pid] = Path(f"/proc/{pid}/comm").read_bytes().rstrip(b"\n")
        self._look_at_images(pid)

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

    def _unwind(self, pid: int, registers: dict[str, int], stack: bytes) -> list[int]:
        processor = native_processor()
        start = registers[processor.definition.stack_pointer]

        def read(address: int, size_bytes: int) -> bytes:
            if start <= address < start + len(stack):
                return stack[address - start : address - start + size_bytes]
            return b""

        architecture, definition = processor.architecture, processor.definition
        loaded, pc = self._loaded.get(pid, []), registers[definition.program_counter]
        if not any(image.start <= pc < image.end for image in loaded):
            loaded = self._look_at_images(pid)
        return [frame.pc for frame in unwind(self._images, loaded, registers, read, architecture, definition)]

    def _look_at_images(self, pid: int) -> list[Image]:
        """What a process has loaded now, or had when it was looked at last."""
        with contextlib.suppress(TargetError):
            self._loaded[pid] = self._images.of(Pid(pid))
        return self._loaded.get(pid, [])
