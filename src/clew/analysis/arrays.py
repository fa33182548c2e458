"""The tables of a trace as numpy arrays, with ids turned into rows.

Runs in the controller. Ids that lead nowhere become rows of -1, so that nothing here can fail on a damaged trace.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.store.trace import Trace

__all__ = ["Array", "TraceArrays", "byte_lengths", "find_rows", "to_numpy", "to_words"]

Array = npt.NDArray[Any]


def to_numpy(column: pa.ChunkedArray | pa.Array, missing: int = -1) -> Array:
    """A column of integers or booleans as an array; `missing` where it is null (of an unsigned type, its low bits)."""
    array = _to_array(column)
    n, offset = len(array), array.offset
    validity, data = array.buffers()
    if pa.types.is_boolean(array.type):
        values = _bits(data, offset, n)
    else:
        values = np.frombuffer(data or b"", np.dtype(str(array.type)), n, offset * array.type.bit_width // 8)
    if validity is not None and array.null_count:
        values = np.where(_bits(validity, offset, n), values, np.array(missing).astype(values.dtype))
    return values


def byte_lengths(column: pa.ChunkedArray) -> Array:
    """How long the values of a column of bytes are, i64."""
    array = _to_array(column)
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
    return np.diff(offsets.astype(np.int64))


def to_words(column: pa.ChunkedArray | pa.Array, words: list[str]) -> Array:
    """A column of words as indices into `words`; -1 for any other word and for null."""
    array = _to_array(column)
    known = {word: index for index, word in enumerate(words)}
    lookup = np.array([known.get(word, -1) for word in array.dictionary.to_pylist()] + [-1])
    found: Array = lookup[to_numpy(array.indices)]
    return found


def _to_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    # Arrow's own conversions load its kernels, or look for pandas: longer than what is to be done here takes.
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _bits(buffer: pa.Buffer, offset: int, n: int) -> Array:
    return np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little", count=offset + n)[offset:].astype(bool)


class TraceArrays:
    """Columns of a trace, each computed when first used.

    Blocks and edges are named by their rows in the tables. `edge_source` is -1 for a start, `callee` where there is
    none; `count_thread` is a row of `tids`, the sorted pairs of (process_id, tid) that the counts speak of.
    """

    BLOCK_EXITS = ("fall_through", "jump", "conditional", "call", "indirect_jump", "indirect_call", "return", "syscall",
                   "none")  # fmt: skip
    EDGE_KINDS = ("jump", "taken", "not_taken", "fall_through", "call", "indirect_call", "indirect_jump", "return",
                  "syscall", "signal", "sigreturn", "fault", "start")  # fmt: skip

    def __init__(self, trace: Trace, pid: int | None = None) -> None:
        """With `pid` only what that process ran counts: executions of the others' blocks and edges are 0."""
        self.trace = trace
        self.pid = pid
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
    def block_process(self) -> Array:
        """The process_id of each block."""
        return to_numpy(self.blocks["process_id"])

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
        return to_numpy(self.blocks["is_recorded"])

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
        return np.unique(pack_threads(self.trace.counts), return_inverse=True)

    @property
    def tids(self) -> Array:
        """Threads of the counts, as `pack_threads` has them, sorted."""
        return self._count_tids[0]

    @property
    def count_thread(self) -> Array:
        return self._count_tids[1]

    @cached_property
    def block_executions(self) -> Array:
        """Executions of each block, over all threads; in mode coverage 1 for each that ran."""
        if self.trace.mode == "coverage":
            return self._of_process(self.blocks, (self.is_recorded & (self.n_instructions > 0)).astype(np.int64))
        return self._of_process(self.blocks, self._total(self.count_block, self.n_blocks))

    @cached_property
    def edge_executions(self) -> Array:
        """Executions of each edge, over all threads; in mode coverage 1 for each."""
        if self.trace.mode == "coverage":
            return self._of_process(self.edges, np.ones(self.n_edges, np.int64))
        return self._of_process(self.edges, self._total(self.count_edge, self.n_edges))

    def _of_process(self, table: pa.Table, executions: Array) -> Array:
        if self.pid is None:
            return executions
        return np.where(to_numpy(table["pid"]) == self.pid, executions, 0)

    def _total(self, row: Array, n: int) -> Array:
        total = np.zeros(n, np.int64)
        known = row >= 0
        np.add.at(total, row[known], self.count_executions[known])
        return total


def pack_threads(table: pa.Table) -> Array:
    """Of each row, which thread it is about: process_id << 32 | tid."""
    process, tid = to_numpy(table["process_id"]), to_numpy(table["tid"])
    packed: Array = process.astype(np.int64) << 32 | (tid.astype(np.int64) & 0xFFFFFFFF)
    return packed


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
