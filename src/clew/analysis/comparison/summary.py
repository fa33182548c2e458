"""What of two traces is compared with what, and how much of it differs, in numbers.

Runs in the controller. Everything that ran is in one of the numbers: what can't be compared is counted apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clew.analysis.comparison.content import SIDES
from clew.analysis.comparison.flow import SideBySide
from clew.analysis.comparison.matching import FilePair
from clew.analysis.tables.totals import Totals
from clew.store.columns import Array, to_numpy

if TYPE_CHECKING:
    from clew.analysis.comparison.trace_diff import TraceDiff

__all__ = ["summarize_diff"]

Row = dict[str, Any]


def summarize_diff(diff: TraceDiff) -> Row:
    """The part of `clew diff --json` that is the same whatever the differences are told of."""
    return {
        **{name: _describe_trace(diff, side) for side, name in enumerate(SIDES)},
        "compared": "counts" if diff.is_counted else "coverage",
        "merged": diff.is_merged,
        "equal": diff.is_equal,
        "blocks": _count(diff.blocks),
        "edges": _count(diff.edges),
        "not_comparable": {name: _count_not_comparable(diff, side) for side, name in enumerate(SIDES)},
        "processes": _describe_processes(diff),
        "images": _describe_images(diff),
        "notes": _find_notes(diff),
    }


def _describe_trace(diff: TraceDiff, side: int) -> Row:
    trace = diff.traces[side]
    totals = Totals(trace)
    totals.add(diff.code[side].arrays)
    return {
        "path": str(trace.directory),
        "command": trace.manifest.command,
        "mode": trace.mode,
        "totals": totals.to_dict(),
    }


def _count(side_by_side: SideBySide) -> dict[str, int]:
    """How many are the same in both, and how many are not."""
    ran = side_by_side.ran & side_by_side.is_comparable
    in_both = ran.all(axis=0)
    return {
        "same": int(np.count_nonzero(in_both & ~side_by_side.differs)),
        "differ": int(np.count_nonzero(in_both & side_by_side.differs)),
        "only_in_a": int(np.count_nonzero(ran[0] & ~ran[1])),
        "only_in_b": int(np.count_nonzero(ran[1] & ~ran[0])),
    }


def _count_not_comparable(diff: TraceDiff, side: int) -> dict[str, int]:
    blocks = diff.blocks.ran[side] & ~diff.blocks.is_comparable
    edges = diff.edges.ran[side] & ~diff.edges.is_comparable
    counted = {"executions": int(diff.blocks.executions[side, blocks].sum())} if diff.is_counted else {}
    return {
        "blocks": int(np.count_nonzero(blocks)),
        **counted,
        "instructions": int(diff.blocks.instructions[side, blocks].sum()),
        "edges": int(np.count_nonzero(edges)),
    }


def _describe_processes(diff: TraceDiff) -> list[Row]:
    pids, executables = [], []
    for trace in diff.traces:
        table = trace.read("processes", ["pid", "executable"])
        pids.append(to_numpy(table["pid"]).tolist())
        executables.append(table["executable"].to_pylist())
    described = []
    for pair in diff.processes.pairs:
        rows = (pair.row_a, pair.row_b)
        sides = [
            None if row is None else {"pid": pids[side][row], "executable": executables[side][row]}
            for side, row in enumerate(rows)
        ]
        described.append({"matched_by": pair.matched_by, **dict(zip(SIDES, sides, strict=True))})
    return described


def _describe_images(diff: TraceDiff) -> list[Row]:
    """Files that code ran in, and last, if there is such code, what is outside of images."""
    space, _ = diff.place
    # The last is what is outside of images.
    file = diff.spaces.file[space]
    n = len(diff.files.pairs) + 1
    blocks = diff.blocks
    ran = blocks.ran & blocks.is_comparable

    def add_up(values: Array) -> list[int]:
        total = np.zeros(n, np.int64)
        np.add.at(total, file, values.astype(np.int64))
        return total.tolist()

    in_all = [add_up(blocks.ran[side]) for side in (0, 1)]
    in_both = ran.all(axis=0)
    same, differ = add_up(in_both & ~blocks.differs), add_up(in_both & blocks.differs)
    instructions = [add_up(blocks.instructions[side] * ran[side]) for side in (0, 1)]
    only = [add_up(blocks.is_only_in(side)) for side in (0, 1)]
    only_instructions = [add_up(blocks.instructions[side] * blocks.is_only_in(side)) for side in (0, 1)]
    rows = []
    for index, pair in enumerate([*diff.files.pairs, FilePair(None, None, None, None, None)]):
        if not (in_all[0][index] or in_all[1][index]):
            continue
        sides: Row = {}
        for side, (name, path, build_id) in enumerate(
            zip(SIDES, (pair.path_a, pair.path_b), (pair.build_id_a, pair.build_id_b), strict=True)
        ):
            sides[name] = {
                "image": path,
                "build_id": build_id,
                "instructions": instructions[side][index],
                "only": {"blocks": only[side][index], "instructions": only_instructions[side][index]},
            }
        rows.append({"matched_by": pair.matched_by, "same": same[index], "differ": differ[index], **sides})
    return rows


def _find_notes(diff: TraceDiff) -> list[str]:
    """What has to be known to read the rest."""
    a, b = diff.traces
    notes = []
    if a.mode != b.mode:
        what = "how often each block and edge ran" if diff.is_counted else "only which code ran"
        notes.append(f"A is of mode {a.mode}, B of mode {b.mode}: {what} is compared")
        if "full" in (a.mode, b.mode):
            notes.append("the order is compared only where both are of mode full")
    notes += [
        f"{_name_both(pair)}: another build, compared by symbol, and by offset where there is none"
        for pair in diff.files.pairs
        if pair.is_anew
    ]
    if any(pair.matched_by == "order" for pair in diff.processes.pairs):
        notes.append("the first processes execute different files; they are compared as they come first")
    alone = [sum(pair.row_b is None for pair in diff.processes.pairs)]
    alone.append(sum(pair.row_a is None for pair in diff.processes.pairs))
    for name, n in zip("AB", alone, strict=True):
        if n and not diff.is_merged:
            of = "1 process" if n == 1 else f"{n} processes"
            notes.append(
                f"{of} only in {name}: all that ran there is only in {name}; --merge compares without processes"
            )
    if (a.manifest.include, a.manifest.exclude) != (b.manifest.include, b.manifest.exclude):
        notes.append("A and B were recorded with other filters; what one leaves out is told as only in the other")
    for name, trace in zip("AB", diff.traces, strict=True):
        if any(trace.manifest.losses.values()):
            notes.append(f"{name} is not whole, so that what it lacks may only be lost; see `clew info`")
    return notes


def _name_both(pair: FilePair) -> str:
    return str(pair.path_a) if pair.path_a == pair.path_b else f"{pair.path_a} and {pair.path_b}"
