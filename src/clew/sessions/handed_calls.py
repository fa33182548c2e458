"""Calls that were open when a probed process began to be followed: the engine tells of them when they return.

Runs in the controller. A thread's open calls lie in its window of the shared memory, by their stack pointers, in the
same form for probes in the program's own code and for translated code: they are put into the other window where they
were in the first, of the kinds that they have there, with what they keep but for texts. What is read is not trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import Tid
from clew.capture.form import Form
from clew.errors import TargetError
from clew.process.shared_memory import SharedMemory
from clew.protocol._constants import CALL_HEADS_OFFSET, CALL_WINDOW_BYTES, OPEN_CALLS, CaptureAction, CaptureType
from clew.protocol._generated import CALLS_HEAD, OPEN_CALL, OPEN_CALL_BYTES
from clew.recording.drain.counter_extents import iter_data_extents
from clew.recording.following.holding import Holding

__all__ = ["HandedCalls"]

_ALL_MISSING: Final = (1 << 32) - 1
_MAX_OTHERS: Final = 1 << 16

Calls = npt.NDArray[Any]


class HandedCalls:
    """Those of one process, all threads of which are held."""

    def __init__(self) -> None:
        self._calls: dict[Tid, tuple[npt.NDArray[np.int64], Calls]] = {}
        """By thread: which places of the window hold a call, and the calls."""
        self._forms: dict[int, Form] = {}
        """What is kept of calls, by their kinds."""
        self.n_lost = 0
        """Calls of which the return is not told: there was no place in the window for them."""

    @property
    def threads(self) -> frozenset[Tid]:
        """Those that have calls open."""
        return frozenset(self._calls)

    def read(self, shared: SharedMemory, slots: Mapping[int, Tid], forms: Mapping[int, Form]) -> None:
        """Read the calls of threads, by their slots, that are of some kinds, of which that is kept. Raises OSError."""
        self._forms = dict(forms)
        kinds = np.array(sorted(forms), np.uint32)
        for slot, tid in slots.items():
            window = _window(shared, slot)
            for places, calls in _iter_calls(shared.fd, window):
                chosen = np.isin(calls["kind"], kinds)
                if chosen.any():
                    before = self._calls.get(tid, (np.zeros(0, np.int64), np.zeros(0, OPEN_CALL)))
                    self._calls[tid] = (
                        np.concatenate([before[0], places[chosen]]),
                        np.concatenate([before[1], calls[chosen]]),
                    )
            [head] = np.frombuffer(os.pread(shared.fd, CALLS_HEAD.itemsize, window + CALL_HEADS_OFFSET), CALLS_HEAD)
            self.n_lost += min(int(head["others"]), _MAX_OTHERS)

    def write(self, holding: Holding, probe_of_kind: Mapping[int, int], probe_of_number: Mapping[int, int]) -> None:
        """Have them in the windows of threads that are stopped. Which probe a kind of theirs was of, and which probe
        captures are of that a number is known by. Raises TargetError."""
        kinds: dict[tuple[int, int], tuple[int, int]] = {}
        for row in holding.captures:
            if row.action == CaptureAction.CALL and row.number in probe_of_number:
                n_kept = len(Form.unpack(row.form).fields)
                kinds[probe_of_number[row.number], row.pc] = row.call_kind, n_kept
        shared = holding.followed.shared
        for tid, (places, calls) in self._calls.items():
            slot = holding.slot_of(holding.followed.number_of(tid))
            if slot is None:
                self.n_lost += len(calls)
                continue
            window = _window(shared, slot)
            for place, call in zip(places.tolist(), calls, strict=True):
                known = kinds.get((probe_of_kind.get(int(call["kind"]), -1), int(call["function"])))
                if known is None:
                    self.n_lost += 1
                    continue
                kind, n_kept = known
                own = _translated(call, self._forms[int(call["kind"])], kind, n_kept)
                if os.pwrite(shared.fd, own, window + place * OPEN_CALL_BYTES) <= 0:
                    raise TargetError(holding.followed.pid, f"process {holding.followed.pid}: can't be told of calls")


def _translated(call: np.void, form: Form, kind: int, n_kept: int) -> bytes:
    """A call, of which `form` says what it keeps, as calls of `kind` are, which keep so many values: the same, and
    behind them that the call is one of those that are chosen, if that is kept there. Others were not open."""
    own = call.copy()
    own["kind"], own["texts"] = kind, 0
    is_text = [form.instructions[one].result == CaptureType.TEXT for one in form.fields]
    known = sum(1 << index for index, one in enumerate(is_text) if not one) & ~int(call["missing"])
    if n_kept == len(form.fields) + 1:
        own["values"][n_kept - 1] = 1
        known |= 1 << n_kept - 1
    own["missing"] = _ALL_MISSING & ~known
    return bytes(own.tobytes())


def _window(shared: SharedMemory, slot: int) -> int:
    return shared.offset + shared.layout.calls_offset + slot * CALL_WINDOW_BYTES


def _iter_calls(fd: int, window: int) -> Iterator[tuple[npt.NDArray[np.int64], Calls]]:
    """The places of a window that hold a call, and the calls."""
    for start, end in iter_data_extents(fd, window, window + OPEN_CALLS * OPEN_CALL_BYTES):
        calls = np.frombuffer(os.pread(fd, end - start, start), OPEN_CALL)
        used = np.flatnonzero(calls["stack_pointer"])
        yield used + (start - window) // OPEN_CALL_BYTES, calls[used]
