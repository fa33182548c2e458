"""What of two traces is the same: their processes, and the files of their images.

Runs in the controller. Addresses and ids differ from run to run, so neither is looked at. Processes go by what they
execute and by their order, files by their build-ids, then by their paths and names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from clew.store.columns import Array
from clew.store.trace import Trace

__all__ = ["FilePair", "Files", "ProcessPair", "Processes", "match_files", "match_processes"]


@dataclass(frozen=True)
class ProcessPair:
    """Rows of the processes of A and of B that are compared; one is None where the other has no like.

    `matched_by` is `command`, `executable`, `name` (of the file) or `order` (the first of each); None for one alone.
    """

    row_a: int | None
    row_b: int | None
    matched_by: str | None


@dataclass(frozen=True)
class Processes:
    """The processes of two traces; `of_a` and `of_b` have, by row, the index of its pair, and -1 behind the last."""

    pairs: list[ProcessPair]
    of_a: Array
    of_b: Array


@dataclass(frozen=True)
class FilePair:
    """A file of A and the same one of B; path and build-id of one are None where the other has no like.

    `matched_by` is `build_id`; `path`, where neither has a build-id; `name`, of the path or its last part, where it is
    another build, or nobody knows; `executable`, where processes that are compared execute files of different names.
    None for one alone.
    """

    path_a: str | None
    path_b: str | None
    build_id_a: str | None
    build_id_b: str | None
    matched_by: str | None

    @property
    def is_anew(self) -> bool:
        """Whether the two are builds of their own, as far as anybody knows."""
        return self.matched_by in ("name", "executable")


@dataclass(frozen=True)
class Files:
    """The files of two traces; `of_a` and `of_b` have, by row of the images, the index of its file, -1 at the end."""

    pairs: list[FilePair]
    of_a: Array
    of_b: Array


class _Matching:
    """Pairs of numbered things of A and B, found by one kind of key after the other; equals go by their order."""

    def __init__(self, n_a: int, n_b: int) -> None:
        self.left_a, self.left_b = list(range(n_a)), list(range(n_b))
        self.pairs: list[tuple[int | None, int | None, str | None]] = []

    def match(self, by: str, keys_a: Sequence[Hashable], keys_b: Sequence[Hashable]) -> None:
        """Pair what is left and has the same key; None is the same as nothing."""
        waiting: dict[Hashable, deque[int]] = {}
        for index in self.left_b:
            if keys_b[index] is not None:
                waiting.setdefault(keys_b[index], deque()).append(index)
        left_a, used = [], set()
        for index in self.left_a:
            if found := waiting.get(keys_a[index]):
                used.add(found[0])
                self.pairs.append((index, found.popleft(), by))
            else:
                left_a.append(index)
        self.left_a, self.left_b = left_a, [index for index in self.left_b if index not in used]

    def finish(self) -> list[tuple[int | None, int | None, str | None]]:
        """All pairs, and what has no like."""
        alone = [(index, None, None) for index in self.left_a], [(None, index, None) for index in self.left_b]
        return [*self.pairs, *alone[0], *alone[1]]


def match_processes(a: Trace, b: Trace) -> Processes:
    """Pair the rows of the processes of A and B. Each program that a process executed is a row."""
    columns = [trace.read("processes", ["executable", "command"]) for trace in (a, b)]
    paths = [table["executable"].to_pylist() for table in columns]
    commands = [list(map(tuple, table["command"].to_pylist())) for table in columns]
    matching = _Matching(len(paths[0]), len(paths[1]))
    matching.match("command", *(list(zip(*of_trace, strict=True)) for of_trace in zip(paths, commands, strict=True)))
    matching.match("executable", *paths)
    matching.match("name", *([_last_part(path) for path in of_trace] for of_trace in paths))
    # Who names the program anew for each of its versions compares them all the same.
    matching.match("order", *(["first", *[None] * (len(of_trace) - 1)][: len(of_trace)] for of_trace in paths))
    pairs = [ProcessPair(*pair) for pair in matching.finish()]
    pairs.sort(key=lambda pair: sorted(row for row in (pair.row_a, pair.row_b) if row is not None))
    of = [np.full(len(of_trace) + 1, -1) for of_trace in paths]
    for index, pair in enumerate(pairs):
        for side, row in zip(of, (pair.row_a, pair.row_b), strict=True):
            if row is not None:
                side[row] = index
    return Processes(pairs, *of)


def match_files(a: Trace, b: Trace, processes: Processes) -> Files:
    """Pair the files that the images of A and B are of. In one trace, files of one build-id are one."""
    (files_a, rows_a), (files_b, rows_b) = _list_files(a), _list_files(b)
    matching = _Matching(len(files_a), len(files_b))
    both = (files_a, files_b)
    matching.match("build_id", *([build_id for _, build_id in files] for files in both))
    matching.match("path", *([path if build_id is None else None for path, build_id in files] for files in both))
    matching.match("name", *([path for path, _ in files] for files in both))
    matching.match("name", *([_last_part(path) for path, _ in files] for files in both))
    executed = _number_executables(a, b, processes)
    matching.match(
        "executable", *([of.get(path) for path, _ in files] for of, files in zip(executed, both, strict=True))
    )
    pairs = matching.finish()
    described = []
    for index_a, index_b, by in pairs:
        path_a, build_id_a = (None, None) if index_a is None else files_a[index_a]
        path_b, build_id_b = (None, None) if index_b is None else files_b[index_b]
        described.append(FilePair(path_a, path_b, build_id_a, build_id_b, by))
    order = sorted(range(len(pairs)), key=lambda index: _sort_key(described[index]))
    number_a, number_b = np.full(len(files_a) + 1, -1), np.full(len(files_b) + 1, -1)
    for number, index in enumerate(order):
        for side, of_side in zip((number_a, number_b), pairs[index][:2], strict=True):
            if of_side is not None:
                side[of_side] = number
    return Files([described[index] for index in order], number_a[rows_a], number_b[rows_b])


def _number_executables(a: Trace, b: Trace, processes: Processes) -> tuple[dict[str, int], dict[str, int]]:
    """By path of a file which pair of processes, that execute it and one of another name, is the first."""
    paths = [trace.read("processes", ["executable"])["executable"].to_pylist() for trace in (a, b)]
    found: tuple[dict[str, int], dict[str, int]] = ({}, {})
    for number, pair in enumerate(processes.pairs):
        if pair.matched_by == "order" and pair.row_a is not None and pair.row_b is not None:
            for of_side, of_trace, row in zip(found, paths, (pair.row_a, pair.row_b), strict=True):
                of_side.setdefault(of_trace[row], number)
    return found


def _list_files(trace: Trace) -> tuple[list[tuple[str, str | None]], Array]:
    """Path and build-id of each file, and by row of the images which it is."""
    images = trace.read("images", ["path", "build_id"])
    numbers: dict[Hashable, int] = {}
    files: list[tuple[str, str | None]] = []
    rows = []
    for path, build_id in zip(images["path"].to_pylist(), images["build_id"].to_pylist(), strict=True):
        number = numbers.setdefault(("path", path) if build_id is None else ("build_id", build_id), len(files))
        if number == len(files):
            files.append((path, build_id))
        rows.append(number)
    return files, np.array([*rows, -1], np.int64)


def _sort_key(pair: FilePair) -> list[tuple[str, str]]:
    """The same for A and B as for B and A."""
    sides = ((pair.path_a, pair.build_id_a), (pair.path_b, pair.build_id_b))
    return sorted((path, build_id or "") for path, build_id in sides if path is not None)


def _last_part(path: str) -> str | None:
    return path.rsplit("/", 1)[-1] or None
