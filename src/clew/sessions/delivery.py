"""Runs a session's callbacks, in a thread of its own: none of them keeps the target's owner from its work.

Runs in the controller. What a callback raises stops delivery, never the target: from then on threads go on at once, and
the session raises it where somebody waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

__all__ = ["Delivery"]

T = TypeVar("T")


class Delivery(Generic[T]):
    """`handle` is called with each thing that is told, one after the other; `drop` with those after a failure.

    Ends when it is closed, after what was told until then.
    """

    def __init__(self, handle: Callable[[T], None], drop: Callable[[T], None]) -> None:
        self._handle, self._drop = handle, drop
        self._queue: SimpleQueue[T | None] = SimpleQueue()
        self._failure: BaseException | None = None
        self._is_raised = False
        self._thread: threading.Thread | None = None

    @property
    def is_here(self) -> bool:
        """Whether this is the thread that runs callbacks."""
        return threading.current_thread() is self._thread

    def tell(self, something: T) -> None:
        """Have it handled."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="clew-callbacks", daemon=True)
            self._thread.start()
        self._queue.put(something)

    def do(self, something: T) -> None:
        """Have it handled here and now, in the thread that waited for it."""
        if self._failure is not None:
            self._drop(something)
            return
        try:
            self._handle(something)
        except BaseException as error:
            self.fail(error)
            self._drop(something)

    def fail(self, error: BaseException) -> None:
        """Handle nothing more, because of that."""
        self._failure = self._failure or error

    def close(self) -> None:
        """Handle what was told, and nothing more."""
        if self._thread is not None:
            self._queue.put(None)
            if not self.is_here:
                self._thread.join()

    def raise_failure(self) -> None:
        """Raise what a callback raised, once."""
        if self._failure is not None and not self._is_raised:
            self._is_raised = True
            raise self._failure

    def _run(self) -> None:
        while (something := self._queue.get()) is not None:
            self.do(something)
