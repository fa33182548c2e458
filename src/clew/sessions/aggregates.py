"""What was added up where functions were called: tables with a row a key, which the target fills.

Runs in the controller, in any thread. What the target wrote is not believed: it may make numbers wrong, nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.capture.interpreter import from_bits
from clew.capture.types import is_float, is_signed
from clew.dataclass import dataclass
from clew.protocol._constants import AGGREGATE_BUCKETS, AGGREGATE_KEY_WORDS, AGGREGATE_ROW_BYTES, CaptureType
from clew.protocol._generated import AGGREGATE_ROW
from clew.store.arrow_types import ARROW_TYPES

if TYPE_CHECKING:
    from clew.sessions.aggregate_table import AggregateTable, AggregateWish

__all__ = ["Aggregate"]

Array = npt.NDArray[Any]
_Key = tuple[int | float | bytes | None, ...]

QUANTILES: Final = (0.5, 0.9, 0.99)


def _make_edges() -> Array:
    edges = [0, 1, 2, 3, *(4 + quarter << power for power in range(62) for quarter in range(4))]
    return np.array(edges, np.uint64)


EDGES: Final = _make_edges()
"""The least value of each bucket, u64: the first has all that are not above 0 as well."""


@dataclass
class _Sum:
    """What was added up of a key."""

    count: int
    total: int | float
    least: int | float
    most: int | float
    n_missing: int
    buckets: Array | None

    def add(self, other: _Sum, sign: int = 1) -> None:
        """Add another one; or take it away, with a `sign` of -1, but for the extremes."""
        self.count += sign * other.count
        self.total += sign * other.total
        self.n_missing += sign * other.n_missing
        if sign > 0:
            self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        if self.buckets is not None and other.buckets is not None:
            self.buckets = self.buckets + sign * other.buckets

    def copy(self) -> _Sum:
        return _Sum(self.count, self.total, self.least, self.most, self.n_missing, self.buckets)


_Sums = dict[_Key, _Sum]


class Aggregate:
    """Something that is added up in the target where a function is called; `where` as it was asked for."""

    def __init__(
        self,
        table: AggregateTable,
        where: str,
        wish: AggregateWish,
        remove: Callable[[], None],
    ) -> None:
        self.where = where
        self._table, self._wish, self._remove = table, wish, remove
        self._ended: _Sums = {}
        self._before: _Sums = {}
        """What was there when it was cleared last."""
        table.take_rows = lambda rows: self._add(self._ended, rows)

    def read(self, *, clear: bool = False) -> pa.Table:
        """What has been added up by now in all processes of the session, a row a key, the most frequent first.

        Columns are the keys, by their expressions, null where one could not be had; `count` (u64); of a value `sum`,
        `min`, `max` (of 64 bits, as the value has a sign or is a floating-point number; of larger sums decimals),
        `mean` (f64), `n_missing` (u64, how often it could not be had: that is in `count` and nothing else), and with
        a histogram `p50`, `p90`, `p99` (f64, within a quarter for values from 4 on; what is not above 0 is taken
        for alike) and `histogram` (list of u64 by `edges`). With `clear` the next reading tells what came since, but
        for `min` and `max`. While the program runs a call may be in `count` before it is in all others.
        """
        sums, _ = self._collect()
        told = {key: one.copy() for key, one in sums.items()}
        for key, one in self._before.items():
            if key in told:
                told[key].add(one, -1)
        if clear:
            self._before = sums
        return self._to_arrow({key: one for key, one in told.items() if one.count})

    @property
    def n_left_out(self) -> int:
        """Executions whose key found no room."""
        return self._collect()[1]

    @property
    def edges(self) -> Array:
        """The least value of each bucket of a histogram, u64; what is not above 0 is in the first one."""
        return EDGES.copy()

    def remove(self) -> None:
        """Add up nothing more. What there is can still be read."""
        self._remove()

    def __repr__(self) -> str:
        return f"<aggregate of calls of {self.where}>"

    def _collect(self) -> tuple[_Sums, int]:
        """What came of all keys in all processes, and how many executions found no room."""
        sums: _Sums = {}

        def add_ended() -> None:
            for key, one in self._ended.items():
                if key in sums:
                    sums[key].add(one)
                else:
                    sums[key] = one.copy()

        return sums, self._table.read(lambda rows: self._add(sums, rows), add_ended)

    def _add(self, sums: _Sums, data: bytes) -> None:
        """Add the rows of a process."""
        if not data:
            return
        shape = self._table.shape
        rows = np.frombuffer(data, np.uint8).reshape(-1, shape.row_bytes)
        heads = rows[:, :AGGREGATE_ROW_BYTES].copy().view(AGGREGATE_ROW)[:, 0]
        buckets = rows[:, AGGREGATE_ROW_BYTES : AGGREGATE_ROW_BYTES + 8 * AGGREGATE_BUCKETS].copy().view("<u8")
        for index, head in enumerate(heads):
            # One that is about to get its keys is not there yet.
            if not int(head["state"]) & 2:
                continue
            key = self._read_key(head)
            found = self._read_sum(head, buckets[index] if shape.has_histograms else None)
            if key in sums:
                sums[key].add(found)
            else:
                sums[key] = found

    def _read_key(self, head: np.void) -> _Key:
        missing, words = int(head["state"]) >> 2, [int(word) for word in head["keys"]]
        n_keys = len(self._table.key_kinds)
        texts = struct.pack(f"<{AGGREGATE_KEY_WORDS - n_keys}Q", *words[n_keys:])
        values: list[int | float | bytes | None] = []
        at = 0
        for index, kind in enumerate(self._table.key_kinds):
            word = words[index]
            if missing >> index & 1:
                values.append(None)
            elif kind == CaptureType.TEXT:
                values.append(texts[at : at + word])
                at += word
            else:
                values.append(from_bits(word, kind))
        return tuple(values)

    def _read_sum(self, head: np.void, buckets: Array | None) -> _Sum:
        low, high, least, most = (int(head[name]) for name in ("sum_low", "sum_high", "least", "most"))
        kind = self._table.value_kind
        count, n_missing = int(head["count"]), int(head["n_missing"])
        if kind is not None and is_float(kind):
            total, lowest, highest = struct.unpack("<3d", struct.pack("<3Q", low, least, most))
            return _Sum(count, total, lowest, highest, n_missing, buckets)
        bits = high << 64 | low
        if kind is not None and is_signed(kind):
            return _Sum(count, _sign(bits, 128), _sign(least, 64), _sign(most, 64), n_missing, buckets)
        return _Sum(count, bits, least, most, n_missing, buckets)

    def _to_arrow(self, sums: _Sums) -> pa.Table:
        ordered = sorted(sums.items(), key=lambda item: -item[1].count)
        columns: dict[str, pa.Array] = {}
        for index, (text, key_kind) in enumerate(zip(self._wish.by, self._table.key_kinds, strict=True)):
            columns[text] = pa.array([key[index] for key, _ in ordered], ARROW_TYPES[key_kind])
        rows = [one for _, one in ordered]
        columns["count"] = _counts([one.count for one in rows])
        kind = self._table.value_kind
        if kind is not None:
            wide = pa.float64() if is_float(kind) else pa.int64() if is_signed(kind) else pa.uint64()
            n_values = [max(one.count - one.n_missing, 0) for one in rows]
            columns["sum"] = _sums([one.total for one in rows], wide)
            for name, values in (("min", [one.least for one in rows]), ("max", [one.most for one in rows])):
                own = [value if n else None for value, n in zip(values, n_values, strict=True)]
                columns[name] = pa.array(own, wide)
            means = [one.total / n if n else None for one, n in zip(rows, n_values, strict=True)]
            columns["mean"] = pa.array(means, pa.float64())
            columns["n_missing"] = _counts([one.n_missing for one in rows])
            if self._table.shape.has_histograms:
                for quantile in QUANTILES:
                    found = [_quantile(one, quantile, is_whole=not is_float(kind)) for one in rows]
                    columns[f"p{100 * quantile:g}"] = pa.array(found, pa.float64())
                histograms = [one.buckets for one in rows]
                columns["histogram"] = pa.array(histograms, pa.list_(pa.uint64()))
        return pa.table(columns)


def _sign(word: int, bits: int) -> int:
    return word - (word >> bits - 1 << bits)


def _counts(values: Sequence[int]) -> pa.Array:
    """What is more than there can be was written by the program."""
    return pa.array([value & (1 << 64) - 1 for value in values], pa.uint64())


def _sums(values: Sequence[int | float], kind: pa.DataType) -> pa.Array:
    """Sums of a type; as decimals where one is too large for that."""
    try:
        return pa.array(values, kind)
    except (OverflowError, pa.ArrowInvalid):
        from decimal import Decimal

        return pa.array([Decimal(value) for value in values], pa.decimal256(76))


def _quantile(one: _Sum, quantile: float, *, is_whole: bool) -> float | None:
    """A value that so great a part of all are not above: within its bucket as if these were spread evenly."""
    assert one.buckets is not None
    ends = np.cumsum(one.buckets, dtype=np.float64)
    if not ends[-1]:
        return None
    rank = quantile * ends[-1]
    bucket = int(np.searchsorted(ends, rank))
    start = float(EDGES[bucket])
    end = float(EDGES[bucket + 1]) if bucket + 1 < len(EDGES) else 2.0**64
    within = (rank - (ends[bucket - 1] if bucket else 0.0)) / float(one.buckets[bucket])
    # Where a bucket is one integer, that is it; the least and the greatest value are known.
    value = start if is_whole and end - start == 1 else start + within * (end - start)
    return float(min(max(value, one.least), one.most))
