"""How often functions were called from one time to another, out of what the target counts anyway.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.errors import UsageError
from clew.sessions.live_calls import LiveCalls

if TYPE_CHECKING:
    from clew.sessions.target import SessionTarget
    from clew.trace import Trace

__all__ = ["CallSummaries"]


REST: Final = 5.0
"""So many times as long as adding up took is waited at least before it is done again."""


class CallSummaries:
    """Of the session of `target` that records into `recorded`.

    `snapshot` gives a trace of what was recorded so far, for as long as it is needed: for what only a trace tells.
    `fail` takes what a callback raised.
    """

    def __init__(
        self,
        target: SessionTarget,
        recorded: Path,
        snapshot: Callable[[], AbstractContextManager[Trace]],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._snapshot, self._fail = snapshot, fail
        self._lock = threading.Lock()
        self._told: Counter[str] = Counter()
        self._telling: threading.Thread | None = None
        self._is_over = threading.Event()
        self._live: LiveCalls | None = None
        # Where the session has ended there is its trace, and no journal.
        with contextlib.suppress(OSError):
            self._live = LiveCalls(target, recorded)

    def take(self) -> dict[str, int]:
        """Calls since this was asked for last, by `IMAGE!FUNCTION`, the most frequent first."""
        with self._lock:
            calls = None if self._live is None else self._live.count()
            if calls is None:
                calls = self._count_by_trace()
            # Counters of threads that run are not read at one time: one that comes out lower is told of when it is not.
            since = calls - self._told
            self._told += since
        return dict(since.most_common())

    def _count_by_trace(self) -> Counter[str]:
        calls: Counter[str] = Counter()
        with self._snapshot() as trace:
            rows = trace.report(by="function", n=1 << 30)
        for row in rows:
            calls[f"{Path(row['image'] or '?').name}!{row['function'] or row['offset']}"] += row["calls"]
        return calls

    def tell(self, callback: Callable[[dict[str, int]], None], interval: float) -> None:
        """Call `callback` with what was called, every so many seconds, and once more when the session ends.

        Where adding up takes long that is rarer.
        """
        if self._telling is not None:
            raise UsageError("call summaries are told already")
        if not interval > 0:
            raise UsageError(f"interval {interval}: there must be time between two summaries")

        def run() -> None:
            try:
                rest = interval
                while not self._is_over.wait(rest):
                    start = time.monotonic()
                    calls = self.take()
                    rest = max(interval, REST * (time.monotonic() - start))
                    callback(calls)
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
        with self._lock:
            if self._live is not None:
                self._live.close()
