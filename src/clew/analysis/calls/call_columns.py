"""Rows of the table `calls` gathered as the arrays that CallRows have, piece by piece.

Runs in the controller. Whose rows they are is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from clew.analysis.calls.call_rows import CallRows, join_parts
from clew.analysis.tables.arrays import Array, to_numpy, to_words
from clew.api.vocabulary import FILTERS
from clew.binary.vdso import VDSO_NAME
from clew.protocol._constants import Injected
from clew.protocol.words import CALL_WORDS

__all__ = ["CALL_COLUMNS", "CallColumns", "has_one_image"]

CALL_COLUMNS: Final = (
    *("process_id", "tid", "time_ns", "duration_ns", "kind", "name", "library", "block_id", "error", "injected"),
    "filter",
)
"""What pieces have."""


class CallColumns:
    """The columns of some calls."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._libraries: dict[str, int] = {}
        self._parts: dict[str, list[Array]] = {name: [] for name in CALL_COLUMNS}

    def add(self, piece: pa.Table) -> None:
        """Take in rows, with the columns CALL_COLUMNS."""
        parts = self._parts
        for name in ("process_id", "tid", "time_ns", "duration_ns", "block_id"):
            parts[name].append(to_numpy(piece[name]))
        parts["kind"].append(to_words(piece["kind"], CALL_WORDS))
        parts["name"].append(_number_names(piece["name"].combine_chunks(), self._names))
        parts["library"].append(_number_names(piece["library"].combine_chunks(), self._libraries))
        parts["error"].append(to_numpy(piece["error"].combine_chunks().indices) >= 0)
        parts["filter"].append(_number_filters(piece["filter"].combine_chunks()))
        parts["injected"].append(_number_injected(piece["injected"].combine_chunks()))

    def numbers(self, name: str) -> Array:
        """A column of numbers (i64) of all rows so far."""
        return join_parts(self._parts[name], np.int64)

    def finish(self, tids: list[int], thread: Array, block: Array) -> CallRows:
        """The rows, in the order in which they came; `thread` has indices of `tids`, -1 for none, `block` of the graph,
        or is empty where blocks are not asked for."""
        time_ns = self.numbers("time_ns")
        # What there is not is behind the last.
        return CallRows(
            names=list(self._names),
            tids=tids,
            time_ns=time_ns,
            name=_fit(self.numbers("name"), len(self._names)),
            thread=_fit(thread, len(tids)),
            block=block.astype(np.int32) if len(block) else np.broadcast_to(np.int32(-1), len(time_ns)),
            kind=_fit(self.numbers("kind"), len(CALL_WORDS)),
            failed=join_parts(self._parts["error"], np.bool_),
            duration_ns=self.numbers("duration_ns"),
            source=np.arange(len(time_ns)),
            libraries=list(self._libraries),
            library=_fit(self.numbers("library"), len(self._libraries)),
            described=join_parts(self._parts["filter"], np.uint8),
            injected=join_parts(self._parts["injected"], np.uint8),
        )


def has_one_image(paths: Iterable[str]) -> bool:
    """Whether the program that loaded these images has its libraries inside: nothing else was loaded."""
    return len({path for path in paths if path != VDSO_NAME}) == 1


def _number_names(column: Any, names: dict[str, int]) -> Array:
    """Indices of names among all so far; -1 for null."""
    known = column.dictionary.to_pylist()
    lookup = np.array([*(names.setdefault(str(name), len(names)) for name in known), -1], np.int64)
    return lookup[to_numpy(column.indices)]


def _number_injected(column: Any) -> Array:
    """What was done to calls, as bits of Injected; words that mean nothing are none."""
    told = [str(text).split(",") for text in column.dictionary.to_pylist()]
    bits = [sum(one for one in Injected if one.name.lower() in words) for words in told]
    found: Array = np.array([*bits, 0], np.uint8)[to_numpy(column.indices.fill_null(len(told)))]
    return found


def _number_filters(column: Any) -> Array:
    """Indices of FILTERS, and their number where the trace does not say, or says what is none of them."""
    told = [str(word) for word in column.dictionary.to_pylist()]
    numbers = [FILTERS.index(word) if word in FILTERS else len(FILTERS) for word in told]
    found: Array = np.array([*numbers, len(FILTERS)], np.uint8)[to_numpy(column.indices.fill_null(len(told)))]
    return found


def _fit(values: Array, n: int) -> Array:
    """Numbers below `n`, and `n` for those that are not, in as few bytes as they need."""
    return np.where((values >= 0) & (values < n), values, n).astype(np.min_scalar_type(n))
