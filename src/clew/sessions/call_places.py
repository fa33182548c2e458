"""Where recorded calls were made: which block made each of them, and where that is in the order of its thread.

Runs in the controller. What is known of a call is the address of its instruction. In a trace of mode full the k-th call
of a thread out of a block is the k-th execution of that block, if all of them were recorded.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.analysis.trace import Trace
from clew.errors import UsageError
from clew.store.columns import to_numpy

__all__ = ["find_places"]

Array = npt.NDArray[Any]

_BLOCK_COLUMNS: Final = ["process_id", "block_id", "app_pc", "size_bytes"]


def find_places(trace: Trace, calls: pa.Table) -> tuple[Array, Array]:
    """By call its block and its position (i64, -1 where nobody knows).

    `calls` has `process_id`, `tid` and `pc` (u64, 0 where it is not known), those of a thread in the order in which
    they were made. A place that several blocks hold, as of code that changed, is none.
    """
    process, tid, pc = (to_numpy(calls[name]) for name in ("process_id", "tid", "pc"))
    block_id = np.full(len(pc), -1, np.int64)
    table = trace.read("blocks", _BLOCK_COLUMNS)
    owner, ids, start, size = (to_numpy(table[name]) for name in _BLOCK_COLUMNS)
    for process_id in np.unique(process).tolist():
        own = np.flatnonzero(owner == process_id)
        wanted = np.flatnonzero((process == process_id) & (pc != 0))
        block_id[wanted] = _blocks_at(pc[wanted].astype(np.uint64), start[own].astype(np.uint64), size[own], ids[own])
    position = np.full(len(pc), -1, np.int64)
    if trace.mode == "full":
        for process_id, thread in sorted(set(zip(process.tolist(), tid.tolist(), strict=True))):
            rows = np.flatnonzero((process == process_id) & (tid == thread) & (block_id >= 0))
            position[rows] = _positions(trace, process_id, thread, block_id[rows])
    return block_id, position


def _blocks_at(pc: Array, start: Array, size: Array, ids: Array) -> Array:
    """The ids of the blocks that have addresses in them; -1 for none, and for more than one."""
    order = np.argsort(start, kind="stable")
    start, end, ids = start[order], (start + size.astype(np.uint64))[order], ids[order]
    at = np.searchsorted(start, pc, "right") - 1
    is_in = (at >= 0) & (pc < np.append(end, 0)[at])
    # Blocks of one address are versions of it; one that begins further in front may reach as far.
    is_alone = (np.append(start, 0)[at - 1] != np.append(start, 0)[at]) | (at == 0)
    return np.where(is_in & is_alone, np.append(ids, -1)[at], -1)


def _positions(trace: Trace, process_id: int, tid: int, block_id: Array) -> Array:
    """Where the calls out of blocks, in the order in which they were made, are in the thread's order of blocks."""
    found = np.full(len(block_id), -1, np.int64)
    try:
        path = trace.path(tid, process_id=process_id)
    except UsageError:
        return found
    wanted = np.unique(block_id)
    places: dict[int, list[Array]] = defaultdict(list)
    for piece in path.iter_pieces():
        if piece.is_after_loss:
            # What is missing may be one of them.
            return found
        hits = np.flatnonzero(np.isin(piece.block_ids, wanted))
        for one in np.unique(piece.block_ids[hits]).tolist():
            places[one].append(hits[piece.block_ids[hits] == one] + piece.place.execution)
    for one in wanted.tolist():
        rows, executions = np.flatnonzero(block_id == one), np.concatenate([np.zeros(0, np.int64), *places[one]])
        if len(rows) == len(executions):
            found[rows] = executions
    return found
