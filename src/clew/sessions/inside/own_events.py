"""What `clew.follow_me` gives: events of the thread that calls it.

Runs in the process that is followed.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import Pid
from clew.dataclass import dataclass
from clew.errors import ControlError, UsageError
from clew.process.maps import read_maps
from clew.protocol.codec_layouts import FLOW_EVENT
from clew.sessions.backtrace import Frame
from clew.sessions.inside.helping import Helping
from clew.sessions.memory import Image, Images
from clew.sessions.where import parse_where

__all__ = ["OwnEvents", "OwnRequest"]

Array = npt.NDArray[Any]

BATCH_ROWS: Final = 1 << 16

_followed: dict[int, OwnEvents] = {}
"""By process (a fork's child has the parent's entry): who has a thread followed now."""


@dataclass(frozen=True)
class OwnRequest:
    """What is to be told: `events` by their names, as a session takes them; so `include`, `exclude` and `time`. At most
    `limit` events are kept."""

    events: tuple[str, ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    interpreter: bool
    time: bool
    limit: int


class OwnEvents:
    """Events of the code that the calling thread executes in the `with` block of it, in their order.

    They are there behind the block: `array` has all of them, iterating gives them in batches, of dtype `dtype`. Once.
    Entering raises AttachError where the process can't be traced, UsageError where one of its threads is followed
    already, ControlError where the process that does it can't be started. A block that ends without an exception
    raises ControlError if events were lost since that process was ended.
    """

    dtype: Final = FLOW_EVENT
    """As `EventStream.dtype` has it."""

    def __init__(self, request: OwnRequest) -> None:
        """Meant for `follow_me`."""
        self._request = request
        self._pid = self._tid = 0
        self._helping: Helping | None = None
        self._array: Array | None = None
        self._images: Images | None = None
        self._loaded: list[Image] = []
        self.n_dropped = 0
        """Events beyond the limit, or for which there was no memory."""
        self.n_gaps = self.n_damaged = 0
        """As `EventStream` has them."""

    # ----------------------------------------------------------------------------------------------- while it goes on

    def __enter__(self) -> OwnEvents:
        if self._pid:
            raise UsageError("a thread is followed once by each `follow_me`")
        pid = os.getpid()
        other = _followed.setdefault(pid, self)
        if other is not self:
            raise UsageError(f"thread {other._tid} of this process is followed already: one can be at a time")
        self._pid, self._tid = pid, threading.get_native_id()
        try:
            self._helping = Helping(self._tid, self._request)
        except BaseException:
            del _followed[pid]
            raise
        # The body begins behind this system call.
        os.getppid()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        # The body has ended in front of this system call.
        os.getppid()
        self._end(is_marked=True, is_told=error is None)

    def unfollow(self) -> None:
        """Have nothing told any more, as leaving the `with` block does. Raises ControlError."""
        os.getppid()
        self._end(is_marked=True, is_told=True)

    def _end(self, *, is_marked: bool, is_told: bool) -> None:
        helping, self._helping = self._helping, None
        if helping is None:
            return
        if self._pid != os.getpid():
            # The child of a fork goes on natively; what the parent did is the parent's.
            helping.forget()
            self._array = np.zeros(0, FLOW_EVENT)
            return
        try:
            left = helping.leave(is_marked=is_marked and self._tid == threading.get_native_id())
            self._array = helping.read_events()
        finally:
            helping.close()
            del _followed[self._pid]
        if left is None:
            if is_told:
                raise ControlError("the process that followed this one has ended; what was not told by then is lost")
            return
        self.n_dropped, self.n_gaps, self.n_damaged = left.n_dropped, left.n_gaps, left.n_damaged
        if left.warning:
            warnings.warn(left.warning, stacklevel=3)
        if self.n_dropped:
            warnings.warn(f"{self.n_dropped} events were dropped; `limit` says how many are kept", stacklevel=3)

    # ------------------------------------------------------------------------------------------------------ afterwards

    @property
    def array(self) -> Array:
        """All events, of dtype `dtype`. Raises UsageError as long as they are still made."""
        if self._array is None:
            raise UsageError("the events of a thread are there when it is no longer followed: behind the `with` block")
        return self._array

    @property
    def batches(self) -> list[Array]:
        """The events in pieces of at most 65,536, which share `array`'s memory."""
        return list(self)

    def __iter__(self) -> Iterator[Array]:
        array = self.array
        return (array[start : start + BATCH_ROWS] for start in range(0, len(array), BATCH_ROWS))

    def __len__(self) -> int:
        return len(self.array)

    def __repr__(self) -> str:
        state = f"{len(self._array)} of them" if self._array is not None else "followed" if self._helping else "new"
        return f"<events of this process's own, {state}>"

    def find(self, name: str) -> int:
        """The address of `malloc`, `libc.so.6!malloc`, or either with a distance, in this process, as `Session.find`.

        Raises ControlError if there is none, or several.
        """
        found = sorted(parse_where(name).find_in(self._open_images(), read_maps(Pid(os.getpid()))))
        if len(found) != 1:
            there = f"there are {len(found)} of it; give IMAGE!SYMBOL" if found else "nothing that is loaded has it"
            raise ControlError(f"{name}: {there}")
        return found[0]

    def name(self, address: int) -> str:
        """`IMAGE!SYMBOL+0x10` for an address of this process, as much of it as is known."""
        images = self._open_images()
        if not any(image.start <= address < image.end for image in self._loaded):
            self._loaded = images.of(Pid(os.getpid()))
        return str(Frame(address, *images.name(self._loaded, address)))

    def _open_images(self) -> Images:
        """What files say, each of which is read once and kept as long as these events."""
        if self._images is None:
            self._images = Images()
            weakref.finalize(self, self._images.close)
        return self._images
