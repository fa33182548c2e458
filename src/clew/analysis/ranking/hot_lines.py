"""Rankings of source lines.

Runs in the controller. Which lines code is of is `clew.analysis.ranking.code_lines`'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.analysis.ranking.code_lines import CodeLines
from clew.analysis.ranking.merged import Merged, add_up
from clew.analysis.ranking.ranking import Ranking, Row
from clew.analysis.tables.arrays import Array, TraceArrays
from clew.store.trace import Trace

__all__ = ["LineRanking", "MergedLines"]


class LineRanking(Ranking):
    """Lines of each process, by instructions; code without lines is a row with file and line null.

    `executions` is that of its instruction that ran most.
    """

    TIES = ("pid", "line")

    def __init__(self, n: int, lines: CodeLines) -> None:
        """`lines`: looked up in all pieces that are added."""
        super().__init__(n)
        self._lines = lines

    def collect(self, arrays: TraceArrays) -> dict[str, Array]:
        self.note_images(arrays)
        blocks = np.flatnonzero(arrays.block_executions > 0)
        index, line, instructions = self._lines.cut(arrays, blocks)
        executions = arrays.block_executions[blocks][index]
        columns = {
            "pid": arrays.block_pid[blocks][index],
            "line": line,
            "instructions": executions * instructions,
            "executions": executions,
        }
        self.total += int(columns["instructions"].sum())
        return add_up(columns, ("pid", "line"), ("instructions",), ("executions",))

    def describe(self, trace: Trace, kept: dict[str, list[Any]]) -> list[Row]:
        rows = []
        for index, number in enumerate(kept["line"]):
            line = self._lines.describe(number)
            rows.append(
                self.whose(kept, index)
                | {
                    "file": None if line is None else line.file,
                    "line": None if line is None else line.line,
                    "instructions": kept["instructions"][index],
                    "share": self.share(kept["instructions"][index]),
                    "executions": kept["executions"][index],
                }
            )
        return sorted(
            rows, key=lambda row: (-row["instructions"], row["file"] is None, row["file"] or "", row["line"] or 0)
        )

    def whose(self, kept: dict[str, list[Any]], index: int) -> Row:
        """What a row says of its process."""
        return {"pid": kept["pid"][index]}


class MergedLines(Merged, LineRanking):
    """Lines, by instructions in all processes."""

    KEYS = ("line",)
    SUMS = ("instructions",)
    MAXIMA = ("executions",)

    def whose(self, kept: dict[str, list[Any]], index: int) -> Row:
        return {"processes": kept["processes"][index]}
