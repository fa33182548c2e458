"""What is mapped of all that was: spans of addresses that come, and go where they are unmapped whole.

Runs in the controller. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, insort

__all__ = ["MappedSpans"]


class MappedSpans:
    """Spans that are mapped now, each with a number of the caller's. They may overlap."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int, int]] = []

    def add(self, start: int, end: int, number: int) -> None:
        """Addresses from `start` up to `end` are mapped."""
        insort(self._spans, (start, end, number))

    def remove(self, start: int, end: int) -> list[int]:
        """Addresses from `start` up to `end` are not mapped any more: the numbers of the spans that lie inside."""
        first, last = bisect_left(self._spans, (start,)), bisect_left(self._spans, (end,))
        touched = self._spans[first:last]
        gone = [number for _, its_end, number in touched if its_end <= end]
        if gone:
            self._spans[first:last] = [span for span in touched if span[1] > end]
        return gone
