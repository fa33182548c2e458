"""The runtimes' own numbers, of all processes of a recording.

Runs in the controller.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["Statistics"]

ADDED: Final = (
    *("lost_records", "lost_threads", "uncounted_fragments", "untagged_fragments"),
    *("excursions", "uncounted_instructions"),
    *("waits", "unanswered", "counters_used", "thinned", "blocks_refused"),
    *("fragments", "instructions_translated", "cache_bytes", "slabs", "heap_bytes"),
    *("prefetched", "prefetch_refused", "native_runs", "native_calls", "calls_forgotten"),
    *("ring_submissions_unseen", "ring_completions_unseen"),
    *("links", "unlinks", "invalidated", "relaid", "trusted_pages", "trust_ends", "dynamic_edges"),
    *("table_misses", "entries_exit", "entries_indirect", "entries_syscall", "entries_signal"),
)
"""Fields of status pages that are numbers of something."""


class Statistics:
    """Sums over the status pages of processes."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}

    def add(self, page: Any, n_inherited: int = 0) -> None:
        """The last StatusPage of a process, a scalar of dtype STATUS_PAGE; `n_inherited` counters were its parent's."""
        for name in ADDED:
            self.totals[name] = self.totals.get(name, 0) + int(page[name])
        self.totals["counters_used"] -= n_inherited
