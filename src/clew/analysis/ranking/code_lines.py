"""Which source lines the code of a trace is of, and how many of its instructions are of each.

Runs in the controller. Reads the files of the images as they are now; one that has changed since it was recorded, by
its build-id, gives no lines. Code that several processes ran is looked up once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from clew.analysis.code.lost_images import is_same_file
from clew.analysis.ranking.merged import add_up, number_files
from clew.analysis.tables.arrays import Array, TraceArrays
from clew.binary.disassembly import instruction_starts
from clew.binary.lines import LineTable, SourceLine, has_debug_information, read_line_table
from clew.store.trace import Trace

__all__ = ["CodeLines"]

_MAX_DECODED: Final = 50_000
"""Blocks of a file, the hottest, that are decoded where its lines don't tell how many instructions are of which."""

_CODE: Final = ("file", "offset", "size_bytes", "n_instructions")
"""What tells pieces of code apart."""

_NO_LINE: Final = -1
_LINE_BITS: Final = 31


class CodeLines:
    """Lines of the code that ran: `note` every piece of a trace, `look_up` once, then `cut` blocks into lines.

    A line is a number here: `describe` says which. -1 is none that is known.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._files, self._paths = _find_files(trace)
        self._code: dict[str, Array] = {}
        self._sources: dict[str, int] = {}
        self._names: list[str] = []
        self._part_first = self._part_line = self._part_instructions = np.zeros(0, np.int64)

    def note(self, arrays: TraceArrays) -> None:
        """Take note of the code that a piece of the trace ran."""
        ran = np.flatnonzero(arrays.block_executions > 0)
        columns = self._code_of(arrays, ran)
        columns["instructions"] = (arrays.block_executions * arrays.n_instructions)[ran]
        columns["block"] = arrays.trace.whole_rows("blocks", ran)
        columns = {name: column[columns["file"] >= 0] for name, column in columns.items()}
        if self._code:
            columns = {name: np.concatenate([self._code[name], column]) for name, column in columns.items()}
        self._code = add_up(columns, _CODE, ("instructions",))

    def look_up(self) -> None:
        """Find the lines of all code that was noted."""
        parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for file, path in self._paths.items():
            code = np.flatnonzero(self._code["file"] == file)
            first = self._code["offset"][code]
            table = read_line_table(path, first, first + self._code["size_bytes"][code].astype(np.uint64))
            parts += self._find_parts(code, table)
        self._names = list(self._sources)
        code, line, instructions = (np.concatenate(column) for column in zip(*parts, strict=True))
        # Where nothing is known it is one part.
        has_lines = np.zeros(len(self._code["file"]), bool)
        has_lines[code] = True
        rest = np.flatnonzero(~has_lines)
        code = np.concatenate([code, rest])
        order = np.argsort(code, kind="stable")
        self._part_first = np.searchsorted(code[order], np.arange(len(self._code["file"]) + 1))
        self._part_line = np.append(line, np.full(len(rest), _NO_LINE))[order]
        self._part_instructions = np.append(instructions, self._code["n_instructions"][rest])[order]

    def cut(self, arrays: TraceArrays, blocks: Array) -> tuple[Array, Array, Array]:
        """Some blocks of a piece, which ran, as parts that are of one line each.

        Which of `blocks` each part is of (by index), its line, and how many instructions it has.
        """
        code = self._number(self._code_of(arrays, blocks))
        is_known = np.flatnonzero(code >= 0)
        first = self._part_first[code[is_known]]
        n_parts = self._part_first[code[is_known] + 1] - first
        part = np.repeat(first - (np.cumsum(n_parts) - n_parts), n_parts) + np.arange(n_parts.sum())
        others = np.flatnonzero(code < 0)
        return (
            np.concatenate([np.repeat(is_known, n_parts), others]),
            np.concatenate([self._part_line[part], np.full(len(others), _NO_LINE)]),
            np.concatenate([self._part_instructions[part], arrays.n_instructions[blocks[others]]]),
        )

    def describe(self, line: int) -> SourceLine | None:
        """Which line that is."""
        return None if line < 0 else SourceLine(self._names[line >> _LINE_BITS], line & (1 << _LINE_BITS) - 1)

    def _code_of(self, arrays: TraceArrays, blocks: Array) -> dict[str, Array]:
        arrays.load("blocks", "block_id", "image_id", *_CODE[1:])
        image = arrays.trace.whole_rows("images", arrays.block_image[blocks])
        return {
            "file": self._files[image],
            "offset": arrays.numbers("blocks", "offset")[blocks],
            "size_bytes": arrays.size_bytes[blocks].astype(np.int64),
            "n_instructions": arrays.n_instructions[blocks],
        }

    def _number(self, wanted: dict[str, Array]) -> Array:
        """Of each piece of code which of those that were noted it is; -1 outside of files with lines."""
        n = len(self._code["file"])
        keys = [np.concatenate([self._code[name], wanted[name]]) for name in reversed(_CODE)]
        # Sorted with those that were noted, each comes right behind its own, since sorting is stable.
        order = np.lexsort(keys)
        latest = np.maximum.accumulate(np.where(order < n, order, -1))
        number = np.empty(len(order), np.int64)
        number[order] = latest
        return np.where(wanted["file"] >= 0, number[n:], -1)

    def _find_parts(self, code: Array, table: LineTable) -> list[tuple[Array, Array, Array]]:
        """Of some code of one file: which, lines, and numbers of instructions; of some only that nothing is known."""
        if not len(table.offsets):
            return []
        sources = np.array([self._sources.setdefault(name, len(self._sources)) for name in table.files] + [0])
        lines = np.where(table.file >= 0, sources[table.file] << _LINE_BITS | table.line, _NO_LINE)
        # In front of the first row nothing is known.
        lines = np.append([_NO_LINE], lines)
        changes = np.cumsum(np.append([0], lines[1:] != lines[:-1]))
        offset, size = self._code["offset"][code], self._code["size_bytes"][code]
        n_instructions = self._code["n_instructions"][code]
        first, last = table.find(offset) + 1, table.find(offset + (size - 1).astype(np.uint64)) + 1
        is_one = (last >= first) & (changes[last] == changes[first])
        # As many rows as instructions: each has its own.
        is_each = (last > first) & ~is_one & (last - first + 1 == n_instructions)
        n_rows = (last - first + 1)[is_each]
        row = np.repeat(first[is_each] - (np.cumsum(n_rows) - n_rows), n_rows) + np.arange(n_rows.sum())
        parts = [
            (code[is_one], lines[first[is_one]], n_instructions[is_one]),
            (np.repeat(code[is_each], n_rows), lines[row], np.ones(len(row), np.int64)),
        ]
        others = code[(last > first) & ~is_one & ~is_each]
        others = others[np.argsort(-self._code["instructions"][others], kind="stable")[:_MAX_DECODED]]
        blocks = self._trace.read_rows(
            "blocks", self._code["block"][others].tolist(), ["process_id", "offset", "bytes"]
        )
        starts = [
            instruction_starts(block["bytes"], block["offset"], self._trace.architecture_of(block["process_id"]))
            for block in blocks
        ]
        n_starts = np.array([len(of_block) for of_block in starts], np.int64)
        at = table.find(np.array([start for of_block in starts for start in of_block], np.uint64)) + 1
        return [*parts, (np.repeat(others, n_starts), lines[at], np.ones(len(at), np.int64))]


def _find_files(trace: Trace) -> tuple[Array, dict[int, Path]]:
    """By row of the images, also for -1, the number of its file, -1 for one without lines; and paths by number."""
    files = number_files(trace)
    numbers, rows = np.unique(files[:-1], return_index=True)
    images = trace.read_rows("images", rows.tolist(), ["path", "build_id"])
    paths = {number: Path(image["path"]) for number, image in zip(numbers.tolist(), images, strict=True)}
    has_lines = {
        number: path
        for (number, path), image in zip(paths.items(), images, strict=True)
        if is_same_file(path, image["build_id"]) and has_debug_information(path)
    }
    return np.where(np.isin(files, list(has_lines)), files, -1), has_lines
