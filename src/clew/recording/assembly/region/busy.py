"""What a thread that was killed while it was busy had counted, and could not write any more (mode region).

Runs in the controller, after the target ended. The thread's counters are there: what it executed of a block since that
became busy is what it executed of it in all, less what that had been by then. Where executions went is told where it
follows: how often each way was taken in all, less what tags tell of before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import NO_INDEX, EdgeKind, ExitKind, RegionWord
from clew.recording.assembly.flow.flow import ProcessFlow
from clew.recording.assembly.records.records import Fragments
from clew.recording.assembly.region.tags import NOT_THERE, TAG_KINDS, Tags

__all__ = ["count_untold"]

Array = npt.NDArray[Any]

_WAYS = (
    *(EdgeKind.JUMP, EdgeKind.TAKEN, EdgeKind.NOT_TAKEN, EdgeKind.CALL, EdgeKind.SYSCALL),
    *(EdgeKind.INDIRECT_JUMP, EdgeKind.INDIRECT_CALL),
)
_EXECUTED, _COUNTS = (TAG_KINDS.index(word) for word in (RegionWord.EXECUTED, RegionWord.COUNTS))

Way = tuple[int, int]
"""The number of a block, and the address that it went to."""


def count_untold(
    busy: Mapping[int, int],
    n_tags: int,
    told: Iterable[Tags],
    start_pc: Array,
    fragments: Fragments,
    flow: ProcessFlow,
    thread: int,
) -> Tags:
    """Counts of the blocks `busy`, as tags that follow `n_tags` others.

    With each block comes how often it had been executed before it became busy. `told` are the tags that the thread,
    an index, wrote itself, `start_pc` is where blocks begin by their numbers.
    """
    executed = _count_executions(busy, fragments, flow, thread)
    ways = _count_ways(busy, told, start_pc, fragments, flow, thread)
    rows: list[tuple[int, int, int, int]] = []
    n_counted = 0
    for block, before in busy.items():
        counted = executed[block] - before
        if counted < 0:
            continue  # The counters are older than that, or damaged.
        known = {target: n for target, n in sorted(ways.get(block, {}).items()) if n}
        rest = counted - sum(known.values())
        if rest < 0 or min(known.values(), default=0) < 0:
            known, rest = {}, counted
        if rest or not known:
            rows.append((n_tags + n_counted, block, NOT_THERE, rest))
        rows += [(n_tags + n_counted, block, target, n) for target, n in known.items()]
        n_counted += 1
    number, block_of, target_pc, executions = np.array(rows, np.int64).reshape(-1, 4).T
    nothing = np.full(len(rows), NOT_THERE)
    kind = np.full(len(rows), _COUNTS, np.int32)
    return Tags(number, kind, block_of, nothing, target_pc, executions, nothing, nothing)


def _count_executions(busy: Mapping[int, int], fragments: Fragments, flow: ProcessFlow, thread: int) -> Counter[int]:
    """How often the thread executed each block, to its end."""
    of_thread, paths = flow.threads[thread], flow.paths
    fragment = paths.fragment[of_thread.path]
    block = fragments.region_block[fragment]
    is_whole = paths.stop_pc[of_thread.path] == fragments.end_pc[fragment]
    found: Counter[int] = Counter()
    for row in np.flatnonzero(is_whole & np.isin(block, list(busy))).tolist():
        found[int(block[row])] += int(of_thread.path_count[row])
    return found


def _count_ways(
    busy: Mapping[int, int],
    told: Iterable[Tags],
    start_pc: Array,
    fragments: Fragments,
    flow: ProcessFlow,
    thread: int,
) -> dict[int, Counter[int]]:
    """How often each way of a block was taken that no tag tells of, by the address that it leads to.

    Below 0 where tags tell of other ways than were counted.
    """
    ways: dict[int, Counter[int]] = {}
    if (fragments.region_block == NO_INDEX).any():
        return ways  # A tagged block may have gone through code that is not, which its tag passes over.
    of_thread, edges = flow.threads[thread], flow.edges
    source = edges.source[of_thread.edge]
    block = np.where(source >= 0, fragments.region_block[source], NO_INDEX)
    is_way = np.isin(block, list(busy)) & np.isin(edges.kind[of_thread.edge], _WAYS)
    # Where returns go is not counted.
    is_way &= fragments.exit_kind[source] != ExitKind.RETURN
    for row in np.flatnonzero(is_way).tolist():
        target = int(edges.target_pc[of_thread.edge[row]])
        ways.setdefault(int(block[row]), Counter())[target] += int(of_thread.edge_count[row])
    for tags in told:
        rows = np.flatnonzero(np.isin(tags.kind, (_EXECUTED, _COUNTS)) & np.isin(tags.block, list(ways)))
        for of_block, target, n in _read_targets(tags, rows, start_pc):
            ways[of_block][target] -= n
    return ways


def _read_targets(tags: Tags, rows: Array, start_pc: Array) -> Iterable[tuple[int, int, int]]:
    """The different blocks and addresses that they went to, and how often, in some rows."""
    target = tags.target[rows]
    address = tags.target_pc[rows]
    is_block = (target >= 0) & (target < len(start_pc))
    address[is_block] = start_pc[target[is_block]].astype(np.int64)
    times = np.where(tags.kind[rows] == _COUNTS, tags.executions[rows], 1)
    known = address >= 0
    found: Counter[Way] = Counter()
    for block, to, n in zip(
        tags.block[rows][known].tolist(), address[known].tolist(), times[known].tolist(), strict=True
    ):
        found[block, to] += n
    return ((block, to, n) for (block, to), n in found.items())
