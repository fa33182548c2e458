"""Invariants of ordered paths: what a walk along each finds is what was counted.

Runs in the controller. A path is walked stretch by stretch, so what is in memory does not grow with its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np

from clew.analysis.order.ordered import Stretches, find_gaps, is_at_same_position
from clew.analysis.order.path_code import ProcessCode, load_process_code, read_process_rows
from clew.analysis.tables.arrays import Array, TraceArrays
from clew.analysis.tables.broken_places import Places
from clew.errors import TraceDamagedError
from clew.protocol._generated import PathEventKind
from clew.protocol.codec import Stop
from clew.protocol.codec_layouts import Position
from clew.protocol.words import ThreadEndWord
from clew.store.columns import to_numpy
from clew.store.path_file import PathFile
from clew.store.trace import Trace

__all__ = ["PATH_INVARIANTS"]

_BLOCKS_AT_ONCE = 1 << 18
_CUT_ENDS: Final[tuple[ThreadEndWord, ...]] = ("killed", "lost")
"""How threads end whose paths end wherever they were."""


def check_paths(arrays: TraceArrays) -> Iterator[Places]:
    """Walks equal counters, between checkpoints as in all; a path ends where its thread did, or is cut off there."""
    trace = arrays.trace
    if trace.mode != "full":
        return
    rows = trace.paths.to_pylist()
    numbers = trace.whole_rows("paths", np.arange(len(rows))).tolist()
    # What filters leave out is in the order, and not counted. A child has code of its parent's, as filters were before.
    may_pass_uncounted = bool(arrays.is_event("recording_changed").any())
    told: list[tuple[tuple[int, ...], str]] = []
    for process_id, numbered in groupby(zip(numbers, rows, strict=True), lambda pair: pair[1]["process_id"]):
        own = list(numbered)
        try:
            checker = _ProcessChecker(trace, process_id, may_pass_uncounted=may_pass_uncounted)
            for number, row in own:
                texts = checker.check(row)
                told += [((number, at), f"thread {row['tid']}: {text}") for at, text in enumerate(texts)]
            told += [((own[-1][0] + 1, -1), text) for text in checker.check_totals()]
        except TraceDamagedError as error:
            told.append(((own[0][0], -1), str(error)))
    yield Places.of(sorted(told))


@dataclass
class _Walked:
    """What was walked of a thread's paths: executions by block.

    `is_whole`: nothing of them is missing. `n_cut`: so many of them end where the thread was killed. `behind`: what of
    the executions comes after the last that their streams tell of, and may not have been.
    """

    executions: Array
    behind: Array
    is_whole: bool = True
    n_cut: int = 0


class _ProcessChecker:
    """Checks the paths of one process, whose code and counters are those of all its threads.

    `may_pass_uncounted`: what paths lead through may have been left out of the counts for some of the time.
    """

    def __init__(self, trace: Trace, process_id: int, *, may_pass_uncounted: bool) -> None:
        self._trace = trace
        self._process_id = process_id
        self._code: ProcessCode = load_process_code(trace, process_id)
        self._walked: dict[int, _Walked] = {}
        self._is_recorded = np.zeros(len(self._code), bool)
        blocks = _rows(trace, "blocks", process_id, "block_id", "is_recorded")
        place, known = self._code.find_ids(blocks[0])
        self._is_recorded[place] = blocks[1][known].astype(bool)
        threads = trace.threads.select(["process_id", "tid", "end"]).to_pylist()
        ends = {row["tid"]: row["end"] for row in threads if row["process_id"] == process_id}
        self._cut = {tid for tid, end in ends.items() if end in _CUT_ENDS}
        self._lost = {tid for tid, end in ends.items() if end == "lost"}
        self._may_pass_uncounted = may_pass_uncounted
        table = _rows(trace, "path_counters", process_id, "counter", "block_id", "weight")
        block, known = self._code.find_ids(table[1])
        order = np.argsort(table[0][known], kind="stable")
        self._counter, self._counted, self._weight = (
            column[order] for column in (table[0][known].astype(np.int64), block, table[2][known].astype(np.int64))
        )

    def check(self, row: dict[str, Any]) -> list[str]:
        """What does not hold of one path."""
        n = len(self._code)
        walked = self._walked.setdefault(row["tid"], _Walked(np.zeros(n, np.int64), np.zeros(n, np.int64)))
        told = []
        file = PathFile(self._trace.directory, row["file"])
        try:
            stretches = Stretches(self._code, file)
            for stretch in stretches:
                walk = stretches.open(stretch.number)
                found = np.zeros(n, np.int64)
                while walk.stop == Stop.ASKED:
                    found += np.bincount(walk.read(_BLOCKS_AT_ONCE), minlength=n)[:n]
                walked.executions += found
                is_last = stretch.number + 1 == len(stretches)
                is_lost = file.facts.is_lost_at_end if is_last else stretches[stretch.number + 1].is_after_loss
                # Where the recording was cut off counters are of later than the path's end.
                walked.is_whole &= not is_lost and row["tid"] not in self._lost
                may_be_cut = (is_lost and not _says_where_it_was_left(stretches, stretch.number)) or (
                    is_last and row["tid"] in self._cut
                )
                if walk.stop != Stop.END and not (walk.stop == Stop.CUT and may_be_cut):
                    walked.is_whole = False
                    told.append(f"stretch {stretch.number} of {len(stretches)} is {walk.stop.name.lower()}")
                elif is_last:
                    if walk.stop == Stop.CUT:
                        walked.n_cut += 1
                        walked.behind += _count_behind(stretches, walk.place()[0])
                else:
                    told += self._compare(stretches, stretch.number, found, is_lost=is_lost)
        except TraceDamagedError as error:
            walked.is_whole = False
            told.append(str(error))
        finally:
            file.close()
        return told

    def _compare(self, stretches: Stretches, number: int, found: Array, *, is_lost: bool) -> Iterator[str]:
        """A stretch that a checkpoint ends, with what counters rose."""
        n = len(self._code)
        checkpoint = stretches.file.read_checkpoint(number)
        counted = np.zeros(n, np.int64)
        rises = np.zeros(int(self._counter[-1]) + 1 if len(self._counter) else 0, np.int64)
        inside = checkpoint.index < len(rises)
        np.add.at(rises, checkpoint.index[inside].astype(np.int64), checkpoint.rise[inside].astype(np.int64))
        np.add.at(counted, self._counted, rises[self._counter] * self._weight)
        wrong = found > counted if is_lost else found != counted
        # What has no instructions, as what the kernel runs itself, is counted by the edges that lead there.
        wrong &= self._code.n_instructions > 0
        if wrong.any():
            yield f"stretch {number} of {len(stretches)}: {self._tell(wrong, found, counted)}"
        after, before = stretches[number + 1], stretches[number]
        sizes = self._code.n_instructions
        for name, walked in (("executions", int(counted.sum())), ("instructions", int((counted * sizes).sum()))):
            risen = getattr(after, name) - getattr(before, name)
            if risen != walked:
                yield f"stretch {number} of {len(stretches)}: {risen} {name} by its checkpoints, {walked} by counters"

    def check_totals(self) -> Iterator[str]:
        """What does not hold of the process' paths and counts as wholes."""
        tid, block_id, executions = _rows(self._trace, "counts", self._process_id, "tid", "block_id", "executions")
        for number, walked in self._walked.items():
            own = np.flatnonzero(tid == number)
            block, known = self._code.find_ids(block_id[own])
            counted = np.zeros(len(self._code), np.int64)
            np.add.at(counted, block, executions[own][known])
            # What runs between two decisions is told by neither: a thread that was killed may have counted each block
            # once more. A walk goes on as far as nothing has to be told, as through all the returns of a recursion.
            too_many, too_few = walked.executions - counted, counted - walked.executions
            wrong = (too_few > walked.n_cut) & walked.is_whole
            # Counters of a thread that ran on while they were read are not of one time.
            if not self._may_pass_uncounted and number not in self._lost:
                wrong |= too_many > np.maximum(walked.behind, walked.n_cut)
            wrong &= self._is_recorded
            if wrong.any():
                yield f"thread {number}: {self._tell(wrong, walked.executions, counted)}"

    def _tell(self, wrong: Array, walked: Array, counted: Array) -> str:
        at = int(np.flatnonzero(wrong)[0])
        return (
            f"{int(wrong.sum())} blocks were executed otherwise than counted, block {int(self._code.block_id[at])} "
            f"{int(walked[at])} times instead of {int(counted[at])}"
        )


def _says_where_it_was_left(stretches: Stretches, number: int) -> bool:
    """Whether the stretch, in front of something that was left out, says exactly where that begins."""
    records = stretches.events(number)
    gaps = find_gaps(records)
    last = records[: gaps[0]] if len(gaps) else records
    if not len(last) or last[-1]["event_kind"] != PathEventKind.END:
        return False
    if not len(gaps):
        return stretches.file.facts.is_thinned_at_end
    return is_at_same_position(last[-1], records[gaps[0]])


def _count_behind(stretches: Stretches, end: Position) -> Array:
    """Executions by block on the last stretch, behind the last decision, which comes to `end`."""
    n = len(stretches.code)
    walk = stretches.open(len(stretches) - 1)
    walk.skip_until(end.surprise_bytes, end.decisions)
    found = np.zeros(n, np.int64)
    while walk.stop == Stop.ASKED:
        found += np.bincount(walk.read(_BLOCKS_AT_ONCE), minlength=n)[:n]
    return found


def _rows(trace: Trace, table: str, process_id: int, *columns: str) -> list[Array]:
    """Columns of the rows of a process; null is -1."""
    found = read_process_rows(trace, table, list(columns), process_id)
    return [to_numpy(found[name]) for name in columns]


PATH_INVARIANTS: Final[list[tuple[str, Callable[[TraceArrays], Iterator[Places]]]]] = [
    ("paths lead through blocks as often as was counted, up to their ends", check_paths),
]
