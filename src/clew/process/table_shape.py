"""The shape of a table of aggregates in the shared memory.

Runs in the controller.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from clew.protocol._constants import (
    AGGREGATE_BUCKETS,
    AGGREGATE_HEAD_BYTES,
    AGGREGATE_PROBES,
    AGGREGATE_ROW_BYTES,
)

__all__ = ["TableShape"]

_LINE_BYTES: Final = 128


class TableShape(NamedTuple):
    """A table at `start` of the room for them: of `n_keys` keys in 2**`rows_log2` rows. In the order of CapturePlace's
    fields."""

    start: int
    n_keys: int
    rows_log2: int
    has_values: bool
    has_histograms: bool

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, with its histogram."""
        return _line_up(AGGREGATE_ROW_BYTES + 8 * AGGREGATE_BUCKETS * self.has_histograms)

    @property
    def size_bytes(self) -> int:
        """Bytes of all of it."""
        return AGGREGATE_HEAD_BYTES + ((1 << self.rows_log2) + AGGREGATE_PROBES) * self.row_bytes


def _line_up(size_bytes: int) -> int:
    return -(-size_bytes // _LINE_BYTES) * _LINE_BYTES
