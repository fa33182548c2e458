"""How often functions were called from one time to another, out of what the target counts anyway.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.trace import Trace

__all__ = ["CallSummaries"]


class CallSummaries:
    """Of one session; `snapshot` gives a trace of what was recorded so far, for as long as it is needed.

    `fail` takes what a callback raised.
    """

    def __init__(
        self, snapshot: Callable[[], AbstractContextManager[Trace]], fail: Callable[[BaseException], None]
    ) -> None:
        self._snapshot, self._fail = snapshot, fail
        self._lock = threading.Lock()
        self._before: Counter[str] = Counter()
        self._telling: threading.Thread | None = None
        self._is_over = threading.Event()

    def take(self) -> dict[str, int]:
        """Calls since this was asked for last, by `IMAGE!FUNCTION`, the most frequent first."""
        with self._lock:
            calls: Counter[str] = Counter()
            with self._snapshot() as trace:
                rows = trace.report(by="function", n=1 << 30)
            for row in rows:
                calls[f"{Path(row['image'] or '?').name}!{row['function'] or row['offset']}"] += row["calls"]
            since = calls - self._before
            self._before = calls
        return dict(since.most_common())

    def tell(self, callback: Callable[[dict[str, int]], None], interval: float) -> None:
        """Call `callback` with what was called, every so many seconds, and once more when the session ends."""
        if self._telling is not None:
            raise UsageError("call summaries are told already")
        if not interval > 0:
            raise UsageError(f"interval {interval}: there must be time between two summaries")

        def run() -> None:
            try:
                while not self._is_over.wait(interval):
                    callback(self.take())
                callback(self.take())
            except BaseException as error:
                self._fail(error)

        self._telling = threading.Thread(target=run, name="clew-summaries", daemon=True)
        self._telling.start()

    def close(self) -> None:
        """Tell the last one, and no more."""
        self._is_over.set()
        if self._telling is not None and self._telling is not threading.current_thread():
            self._telling.join()
