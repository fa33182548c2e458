"""How often functions were called from one time to another, out of what the target counts anyway.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.trace import Trace

__all__ = ["CallSummaries"]


class CallSummaries:
    """Of one session; `snapshot` gives a trace of what was recorded so far."""

    def __init__(self, snapshot: Callable[[], Trace]) -> None:
        self._snapshot = snapshot
        self._lock = threading.Lock()
        self._before: Counter[str] = Counter()

    def take(self) -> dict[str, int]:
        """Calls since this was asked for last, by `IMAGE!FUNCTION`, the most frequent first."""
        with self._lock:
            calls: Counter[str] = Counter()
            for row in self._snapshot().report(by="function", n=1 << 30):
                calls[f"{Path(row['image'] or '?').name}!{row['function'] or row['offset']}"] += row["calls"]
            since = calls - self._before
            self._before = calls
        return dict(since.most_common())
