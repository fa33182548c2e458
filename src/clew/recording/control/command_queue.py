"""Has a recording do what other threads of its own process ask, in the recording's own loop: nothing here ever waits
there.

Runs in the controller: `ask` in any thread, everything else in the recording's one thread.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from clew.dataclass import dataclass
from clew.errors import ControlError

if TYPE_CHECKING:
    from clew.recording.control.commands import Control

__all__ = ["CommandQueue", "Do"]

T = TypeVar("T")
Do = Callable[["Control"], Iterator[T | None]]
"""Does something step by step: None while it has to wait for the target, then what came of it. Raises ClewError."""


@dataclass
class _Asked:
    do: Callable[[Control], Iterator[Any]]
    future: Future[Any]
    steps: Iterator[Any] | None = None


class CommandQueue:
    """Commands to one recording, done in the order in which they were asked for, several at a time if they wait."""

    def __init__(self) -> None:
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()
        self._is_closed = False
        self._new: deque[_Asked] = deque()
        self._under_way: list[_Asked] = []
        self._control: Control | None = None
        self._forget: Callable[[int], None] | None = None

    def ask(self, do: Do[T]) -> Future[T]:
        """Have something done; what came of it. Raises ControlError, by the future, once the recording has ended."""
        asked = _Asked(do, Future())
        with self._lock:
            if self._is_closed:
                asked.future.set_exception(_ended())
                return asked.future
            self._new.append(asked)
            os.eventfd_write(self._wake, 1)
        return asked.future

    def open(self, control: Control, watch: Callable[[int], None], forget: Callable[[int], None]) -> None:
        """From now on `control` does what is asked. `watch` and `forget` have the loop wake for a descriptor, or no
        longer."""
        self._control, self._forget = control, forget
        watch(self._wake)

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return bool(self._under_way or self._new)

    def advance(self) -> None:
        """Begin with what is asked, and go on with it."""
        assert self._control is not None
        if self._new:
            with self._lock:
                os.eventfd_read(self._wake)
                while self._new:
                    asked = self._new.popleft()
                    if asked.future.set_running_or_notify_cancel():
                        self._under_way.append(asked)
        for asked in list(self._under_way):
            try:
                if asked.steps is None:
                    asked.steps = asked.do(self._control)
                answer = next(asked.steps)
            except StopIteration:
                answer = ()
            except Exception as error:
                # Whatever went wrong with one of them: the recording goes on.
                self._under_way.remove(asked)
                asked.future.set_exception(error)
                continue
            if answer is not None:
                self._under_way.remove(asked)
                asked.future.set_result(answer)

    def close(self) -> None:
        """Do nothing more; who waits for an answer gets a ControlError."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            left = [*self._under_way, *self._new]
            self._under_way.clear()
            self._new.clear()
            if self._forget is not None:
                self._forget(self._wake)
            os.close(self._wake)
        for asked in left:
            if asked.steps is not None or asked.future.set_running_or_notify_cancel():
                asked.future.set_exception(_ended())


def _ended() -> ControlError:
    return ControlError("the session has ended")
