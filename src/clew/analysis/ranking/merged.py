"""Rankings of functions and images of several processes, added up over them.

Runs in the controller. What is the same in two processes goes by its file, the path and the build-id, so that a program
built anew is another one; and in the file by where it starts. Code outside of images is one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from clew.analysis.ranking.ranking import Ranking, Row
from clew.analysis.ranking.rankings import FunctionRanking, ImageRanking
from clew.analysis.tables.arrays import Array, TraceArrays
from clew.store.trace import Trace

__all__ = ["Merged", "MergedFunctions", "MergedImages", "add_up", "number_files"]


class Merged(Ranking):
    """Mixed into a ranking, in front of it: rows that are the same in the columns `KEYS` become one.

    `SUMS` are added up, of `MAXIMA` the highest is taken; `processes` says in how many processes it ran.
    """

    KEYS: ClassVar[tuple[str, ...]]
    SUMS: ClassVar[tuple[str, ...]]
    MAXIMA: ClassVar[tuple[str, ...]] = ()

    def keep(self, columns: dict[str, Array]) -> None:
        ran = columns[self.KEY] >= self.LEAST
        columns = {name: column[ran] for name, column in columns.items()}
        # A process may have run the same file in several programs, and counts once.
        columns = add_up(columns, (*self.KEYS, "pid"), self.SUMS, self.MAXIMA)
        columns["processes"] = np.ones(len(columns["pid"]), np.int64)
        if self._kept:
            columns = {name: np.concatenate([self._kept[name], column]) for name, column in columns.items()}
        self._kept = add_up(columns, self.KEYS, (*self.SUMS, "processes"), self.MAXIMA)

    def rows(self) -> list[Row]:
        if self._kept:
            best = self.find_best(self._kept)
            self._kept = {name: column[best] for name, column in self._kept.items()}
        return super().rows()


class _MergedByFile(Merged):
    """Adds the column `file`, the number of the image's file, and leaves out what is of one process."""

    _files: Array | None = None

    def collect(self, arrays: TraceArrays) -> dict[str, Array]:
        if self._files is None:
            self._files = number_files(arrays.trace.whole)
        columns = super().collect(arrays)  # type: ignore[safe-super]
        return columns | {"file": self._files[columns["image"]]}

    def describe(self, trace: Trace, kept: dict[str, list[Any]]) -> list[Row]:
        rows = super().describe(trace, kept)  # type: ignore[safe-super]
        return [
            {"processes": n} | {name: value for name, value in row.items() if name not in ("pid", "base")}
            for row, n in zip(rows, kept["processes"], strict=True)
        ]


class MergedFunctions(_MergedByFile, FunctionRanking):
    """Functions, by instructions in all processes; `blocks` are counted in each of them."""

    KEYS = ("file", "offset")
    SUMS = ("instructions", "executions", "entries", "calls", "returns", "blocks")


class MergedImages(_MergedByFile, ImageRanking):
    """Files of images, by instructions in all processes; `blocks` are counted in each of them."""

    KEYS = ("file",)
    SUMS = ("instructions", "executions", "blocks")


def number_files(trace: Trace) -> Array:
    """By row of the images the number of its file; and -1 behind the last, for a row of -1."""
    images = trace.read("images", ["path", "build_id"])
    numbers: dict[tuple[str, str | None], int] = {}
    names = zip(images["path"].to_pylist(), images["build_id"].to_pylist(), strict=True)
    return np.array([*(numbers.setdefault(name, len(numbers)) for name in names), -1], np.int64)


def add_up(
    columns: dict[str, Array], keys: Sequence[str], sums: Sequence[str], maxima: Sequence[str] = ()
) -> dict[str, Array]:
    """Rows that are the same in the columns `keys` made one, sorted by them.

    Of `sums` it has the sum, of `maxima` the highest, of other columns what the first has.
    """
    order = np.lexsort([columns[key] for key in reversed(keys)])
    begins = np.zeros(len(order), bool)
    begins[:1] = True
    for key in keys:
        column = columns[key][order]
        begins[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(begins)
    if not len(starts):
        return columns
    made_one = {}
    for name, column in columns.items():
        if name in sums or name in maxima:
            made_one[name] = (np.add if name in sums else np.maximum).reduceat(column[order], starts)
        else:
            made_one[name] = column[order[starts]]
    return made_one
