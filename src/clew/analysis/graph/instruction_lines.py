"""Source lines of the instructions of a process' blocks.

Runs in the controller. Reads the files of the images as they are now; one that has changed since it was recorded, by
its build-id, gives no lines. A file's lines are read when they are first asked for, which can take long, and kept.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clew.analysis.code.lost_images import is_same_file
from clew.analysis.graph.graph import ProcessGraph
from clew.binary.disassembly import instruction_starts
from clew.binary.lines import LineTable, has_debug_information, read_line_table

__all__ = ["InstructionLines"]

Line = tuple[int, int]


class InstructionLines:
    """Source lines of the process that `graph` is of. Threads may ask at the same time: who wants lines of a file that
    another is reading waits, others do not."""

    def __init__(self, graph: ProcessGraph) -> None:
        self._graph = graph
        self._locks = [threading.Lock() for _ in graph.images]
        self._tables: dict[int, LineTable | None] = {}

    def find(self, blocks: Sequence[int]) -> dict[str, Any]:
        """Lines of some blocks: `files`, names as the compiler was given them, and `lines`, by block (its index, in
        decimal) a list with a pair of numbers for each instruction, a file (an index) and a line, or None where that
        is not known. Blocks of which nothing is known are left out. Raises TraceDamagedError."""
        graph = self._graph
        files: dict[str, int] = {}
        lines: dict[str, list[Line | None]] = {}
        image_of = graph.image[graph.function[list(blocks)]].tolist()
        tables = {image: self._table(image) for image in sorted(set(image_of)) if image >= 0}
        wanted = [block for block, image in zip(blocks, image_of, strict=True) if tables.get(image) is not None]
        columns = ["bytes", "offset"]
        rows = graph.arrays.trace.read_rows("blocks", graph.block_row[wanted].tolist(), columns)
        for block, row in zip(wanted, rows, strict=True):
            table = tables[int(graph.image[graph.function[block]])]
            if table is None or row["offset"] is None:
                continue
            starts = instruction_starts(row["bytes"] or b"", row["offset"], graph.architecture)
            found = [_line_at(table, at, files) for at in table.find(np.array(starts, np.uint64)).tolist()]
            if any(line is not None for line in found):
                lines[str(block)] = found
        return {"files": list(files), "lines": lines}

    def _table(self, image: int) -> LineTable | None:
        """The lines of an image's code that was executed; None if it gives none."""
        with self._locks[image]:
            if image not in self._tables:
                self._tables[image] = self._read_table(image)
            return self._tables[image]

    def _read_table(self, image: int) -> LineTable | None:
        graph = self._graph
        path = Path(graph.images[image]["path"])
        if not is_same_file(path, graph.images[image]["build_id"]) or not has_debug_information(path):
            return None
        inside = graph.image[graph.function] == image
        first = graph.app_pc[inside] - np.uint64(graph.images[image]["base"])
        table = read_line_table(path, first, first + graph.size_bytes[inside].astype(np.uint64))
        return table if len(table.offsets) else None


def _line_at(table: LineTable, at: int, files: dict[str, int]) -> Line | None:
    if at < 0 or table.file[at] < 0:
        return None
    return files.setdefault(table.files[int(table.file[at])], len(files)), int(table.line[at])
