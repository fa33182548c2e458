"""The tables of a trace as numpy arrays, with ids turned into rows.

Runs in the controller. Ids that lead nowhere become rows of -1, so that nothing here can fail on a damaged trace.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from clew.store.trace import Trace

__all__ = ["TraceArrays", "to_numpy", "to_words"]

Array = npt.NDArray[Any]


def to_numpy(column: pa.ChunkedArray | pa.Array, missing: int = -1) -> Array:
    """A column of numbers as an array; `missing` where it is null."""
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(missing, column.type) if missing >= 0 else _wide(column, missing))
    values: Array = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    return values


def _wide(column: pa.ChunkedArray | pa.Array, missing: int) -> pa.Scalar:
    """`missing` in the column's type; for unsigned types the highest number."""
    if pa.types.is_unsigned_integer(column.type):
        return pa.scalar((1 << column.type.bit_width) + missing, column.type)
    return pa.scalar(missing, column.type)


def to_words(column: pa.ChunkedArray | pa.Array, words: list[str]) -> Array:
    """A column of words as indices into `words`; -1 for any other word and for null."""
    encoded = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else pa.array([], encoded.type)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    known = {word: index for index, word in enumerate(words)}
    lookup = np.array([known.get(word, -1) for word in encoded.dictionary.to_pylist()] + [-1])
    found: Array = lookup[to_numpy(encoded.indices)]
    return found


class TraceArrays:
    """Columns of a trace, each computed when first used.

    Blocks and edges are named by their rows in the tables. `edge_source` is -1 for a start, `callee` where there is
    none; `count_thread` is a row of `tids`, the sorted pairs of (pid, tid) that the counts speak of.
    """

    BLOCK_EXITS = ("fall_through", "jump", "conditional", "call", "indirect_jump", "indirect_call", "return", "syscall",
                   "none")  # fmt: skip
    EDGE_KINDS = ("jump", "taken", "not_taken", "fall_through", "call", "indirect_call", "indirect_jump", "return",
                  "syscall", "signal", "sigreturn", "fault", "start")  # fmt: skip

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.blocks = trace.blocks
        self.edges = trace.edges
        self.n_blocks, self.n_edges = trace.blocks.num_rows, trace.edges.num_rows

    @cached_property
    def block_id(self) -> Array:
        return to_numpy(self.blocks["block_id"])

    @cached_property
    def edge_id(self) -> Array:
        return to_numpy(self.edges["edge_id"])

    @cached_property
    def block_pid(self) -> Array:
        return to_numpy(self.blocks["pid"])

    @cached_property
    def app_pc(self) -> Array:
        return to_numpy(self.blocks["app_pc"])

    @cached_property
    def size_bytes(self) -> Array:
        return to_numpy(self.blocks["size_bytes"])

    @cached_property
    def n_instructions(self) -> Array:
        return to_numpy(self.blocks["n_instructions"]).astype(np.int64)

    @cached_property
    def exit_kind(self) -> Array:
        return to_words(self.blocks["exit_kind"], list(self.BLOCK_EXITS))

    @cached_property
    def is_recorded(self) -> Array:
        recorded: Array = to_numpy(pc.cast(self.blocks["is_recorded"], pa.int8())) == 1
        return recorded

    @cached_property
    def edge_source(self) -> Array:
        return find_rows(self.block_id, to_numpy(self.edges["source_block_id"]))

    @cached_property
    def edge_target(self) -> Array:
        return find_rows(self.block_id, to_numpy(self.edges["target_block_id"]))

    @cached_property
    def callee(self) -> Array:
        return find_rows(self.block_id, to_numpy(self.edges["callee_block_id"]))

    @cached_property
    def edge_kind(self) -> Array:
        return to_words(self.edges["kind"], list(self.EDGE_KINDS))

    def is_kind(self, *kinds: str) -> Array:
        """Which edges are of one of `kinds`."""
        return np.isin(self.edge_kind, [self.EDGE_KINDS.index(kind) for kind in kinds])

    def ends_with(self, *exits: str) -> Array:
        """Which blocks end in one of the ways `exits`."""
        return np.isin(self.exit_kind, [self.BLOCK_EXITS.index(word) for word in exits])

    @cached_property
    def count_executions(self) -> Array:
        return to_numpy(self.trace.counts["executions"])

    @cached_property
    def count_block(self) -> Array:
        return find_rows(self.block_id, to_numpy(self.trace.counts["block_id"]))

    @cached_property
    def count_edge(self) -> Array:
        return find_rows(self.edge_id, to_numpy(self.trace.counts["edge_id"]))

    @cached_property
    def _count_tids(self) -> tuple[Array, Array]:
        pid, tid = to_numpy(self.trace.counts["pid"]), to_numpy(self.trace.counts["tid"])
        packed = pid.astype(np.int64) << 32 | (tid.astype(np.int64) & 0xFFFFFFFF)
        return np.unique(packed, return_inverse=True)

    @property
    def tids(self) -> Array:
        """Threads of the counts: pid << 32 | tid, sorted."""
        return self._count_tids[0]

    @property
    def count_thread(self) -> Array:
        return self._count_tids[1]

    @cached_property
    def block_executions(self) -> Array:
        """Executions of each block, over all threads; in mode coverage 1 for each that ran."""
        if self.trace.mode == "coverage":
            return (self.is_recorded & (self.n_instructions > 0)).astype(np.int64)
        return self._total(self.count_block, self.n_blocks)

    @cached_property
    def edge_executions(self) -> Array:
        """Executions of each edge, over all threads; in mode coverage 1 for each."""
        if self.trace.mode == "coverage":
            return np.ones(self.n_edges, np.int64)
        return self._total(self.count_edge, self.n_edges)

    def _total(self, row: Array, n: int) -> Array:
        total = np.zeros(n, np.int64)
        known = row >= 0
        np.add.at(total, row[known], self.count_executions[known])
        return total


def find_rows(ids: Array, wanted: Array) -> Array:
    """Rows at which `ids` has the numbers `wanted`; -1 where it does not."""
    if not len(ids):
        return np.full(len(wanted), -1)
    first = int(ids[0])
    if int(ids[-1]) - first == len(ids) - 1 and np.all(np.diff(ids) == 1):
        rows = wanted.astype(np.int64) - first
        return np.where((rows >= 0) & (rows < len(ids)), rows, -1)
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)
    return np.where(ids[order[at]] == wanted, order[at], -1)
