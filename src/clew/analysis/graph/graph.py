"""The graph of one process: its functions, their blocks, and the edges between them, as arrays.

Runs in the controller. Functions are numbered in the order in which they were discovered, blocks function by function
and by address within one, so that the blocks of a function follow one another. Whatever shows a graph names functions
and blocks by these numbers, its indices; tables name blocks by `block_id`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clew.analysis.code.functions import NO_OFFSET, FunctionTable, name_function
from clew.analysis.graph.discovery import Discovery
from clew.analysis.graph.function_links import find_entering, link_functions
from clew.analysis.tables.arrays import Array, TraceArrays, find_rows, pack_threads
from clew.binary.architectures.architecture import Architecture
from clew.binary.demangle import demangle
from clew.binary.plt import SUFFIX as STUB_SUFFIX
from clew.errors import UsageError
from clew.store.excerpt import excerpt_of_process

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.protocol.words import EdgeWord
    from clew.store.trace import Trace

__all__ = ["CALLS", "ENTRIES", "JUMPS", "GraphCounts", "ProcessGraph"]

CALLS: Final[tuple[EdgeWord, ...]] = ("call", "indirect_call", "signal", "fault")
ENTRIES: Final[tuple[EdgeWord, ...]] = (*CALLS, "jump", "indirect_jump", "taken", "start")
"""Edges that may enter a function at its start."""
JUMPS: Final[tuple[EdgeWord, ...]] = ("jump", "indirect_jump", "taken", "not_taken", "fall_through")


class GraphCounts:
    """How often what of a graph was executed: `blocks` and `edges`, i64, by index."""

    def __init__(self, blocks: Array, edges: Array) -> None:
        self.blocks = blocks
        self.edges = edges


class ProcessGraph:
    """The graph of the process `process_id` of a trace.

    By block: `block_id`, `function`, `app_pc`, `size_bytes`, `n_instructions`, `exit_kind` (an index of
    `EXIT_WORDS`), `code_version`, `first_ns`, `is_recorded`. By edge: `edge_id`, `source` and `target`,
    indices of blocks, -1 for none; `kind`, an index of `EDGE_WORDS`; `callee`, an index of a block or -1.
    By function: `names`, `image` (a row of the images of `trace`, or -1), `offset` (u64, NO_OFFSET where it is not
    known), `first_block` (one more than there are functions), `discovered_ns`, `caller`, `depth`, `is_stub`.
    `index_of_row` turns rows of the process' blocks, as `arrays` has them, into indices; -1 stays.
    Raises UsageError if there is no such process, and TraceDamagedError.
    """

    def __init__(self, trace: Trace, process_id: int) -> None:
        if process_id not in trace.read("processes", ["process_id"])["process_id"].to_pylist():
            raise UsageError(f"{trace.directory}: no process {process_id} in it")
        self.trace = trace
        self.process_id = process_id
        self._excerpt = excerpt_of_process(trace, process_id)
        self.arrays = TraceArrays(self._excerpt)
        self._table = FunctionTable(self.arrays)
        self.arrays.load(
            "blocks", "app_pc", "size_bytes", "n_instructions", "exit_kind", "code_version", "first_ns", "is_recorded"
        )
        self.arrays.load("edges", "edge_id", "source_block_id", "target_block_id", "callee_block_id", "kind")
        self._sort_blocks()
        self._take_edges()

    @property
    def architecture(self) -> Architecture:
        """What the code of the process is for."""
        return self.trace.architecture_of(self.process_id)

    @property
    def n_functions(self) -> int:
        return len(self._table)

    @property
    def n_blocks(self) -> int:
        return len(self.block_row)

    @property
    def n_edges(self) -> int:
        return len(self.source)

    @property
    def images(self) -> list[dict[str, Any]]:
        """Rows of the images that `image` names: `path`, `base`, `size_bytes`, `build_id`."""
        return self._images

    def _sort_blocks(self) -> None:
        arrays, table = self.arrays, self._table
        first_ns = arrays.numbers("blocks", "first_ns")
        version = arrays.numbers("blocks", "code_version")
        found = self._discovery = Discovery(table.of_block, len(table), arrays.app_pc, version, first_ns)
        # Rows are numbers within the excerpt from here on.
        self.block_row = found.order
        self.index_of_row = np.empty(len(self.block_row) + 1, np.int64)
        self.index_of_row[self.block_row] = np.arange(len(self.block_row))
        self.index_of_row[-1] = -1
        row = self.block_row
        self.block_id = arrays.block_id[row]
        self.function = found.function[row]
        self.app_pc = arrays.app_pc[row]
        self.size_bytes = arrays.size_bytes[row]
        self.n_instructions = arrays.n_instructions[row]
        self.exit_kind = arrays.exit_kind[row]
        self.code_version = version[row]
        self.first_ns = first_ns[row]
        self.is_recorded = arrays.is_recorded[row]
        self.image = table.image[found.number]
        self.offset = table.offset[found.number]
        self.discovered_ns = found.discovered
        self.first_block = found.first_block

    def _take_edges(self) -> None:
        arrays = self.arrays
        self.edge_id = arrays.edge_id
        self.source = self.index_of_row[arrays.edge_source]
        self.target = self.index_of_row[arrays.edge_target]
        self.callee = self.index_of_row[arrays.callee]
        self.kind = arrays.edge_kind

    @cached_property
    def _images(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._excerpt.read(
            "images", ["path", "base", "size_bytes", "build_id"]
        ).to_pylist()
        return found

    @cached_property
    def entry_block(self) -> Array:
        """By function the block at which it is entered: that at its start, or its first."""
        start = np.array([self._images[image]["base"] if image >= 0 else 0 for image in self.image.tolist()], np.uint64)
        found: Array = self.index_of_row[self._discovery.find_entries(start + self.offset, self.offset != NO_OFFSET)]
        return found

    @cached_property
    def names(self) -> list[str]:
        """Names of functions, demangled."""
        rows = self.block_row[self.entry_block]
        column = self.arrays.column("blocks", "symbol").combine_chunks()
        symbols = column.dictionary.to_pylist()
        index = column.indices.to_numpy(zero_copy_only=False)
        found = []
        for function, row in enumerate(rows.tolist()):
            word = index[row]
            symbol = None if word != word or word < 0 else symbols[int(word)]
            image = int(self.image[function])
            path = self._images[image]["path"] if image >= 0 else None
            found.append(demangle(name_function(symbol, path, int(self.offset[function]))))
        return found

    @cached_property
    def is_stub(self) -> Array:
        """Which functions only lead to those of another image."""
        return np.array([name.endswith(STUB_SUFFIX) for name in self.names], bool)

    @cached_property
    def _callers(self) -> tuple[Array, Array]:
        """By function who was the first to call it, -1 where nobody is known, and how many calls deep that was."""
        arrays, is_call = self.arrays, self.arrays.is_kind(*CALLS)
        is_across = is_call | arrays.is_kind(*JUMPS)
        return self._discovery.find_callers(arrays.edge_source, arrays.edge_target, is_across, is_call)

    @property
    def caller(self) -> Array:
        """By function the one that was the first to call it; -1 where nobody is known."""
        return self._callers[0]

    @property
    def depth(self) -> Array:
        """By function how many calls deep it was when it was discovered."""
        return self._callers[1]

    @cached_property
    def links(self) -> tuple[Array, Array, Array, Array]:
        """Edges between functions: `source`, `target`, `is_call`, and by edge of the graph which of these it is, or -1.

        Returns are not among them: they lead from a call to behind it, within the function that called.
        """
        is_call, is_return = self.arrays.is_kind(*CALLS), self.arrays.is_kind("return")
        return link_functions(
            self.source, self.target, self.function, self.n_functions, is_call=is_call, is_return=is_return
        )

    @cached_property
    def threads(self) -> Array:
        """Ids of the process' threads, in the order in which they began."""
        return self.arrays.numbers("threads", "tid")

    def count(self, threads: Sequence[int] | None = None) -> GraphCounts:
        """Executions by all threads, or by some, told by their ids; in mode coverage 1 for what ran."""
        if threads is None or self.trace.mode == "coverage":
            return GraphCounts(self.arrays.block_executions[self.block_row], self.arrays.edge_executions)
        process = np.full(len(threads), self.process_id)
        wanted = np.isin(self.arrays.tids, pack_threads(process, np.array(threads, np.int64)))
        kept = wanted[self.arrays.count_thread]
        blocks, edges = np.zeros(self.n_blocks, np.int64), np.zeros(self.n_edges, np.int64)
        for row, total, index in (
            (self.arrays.count_block, blocks, self.index_of_row),
            (self.arrays.count_edge, edges, None),
        ):
            known = kept & (row >= 0)
            at = row[known] if index is None else index[row[known]]
            np.add.at(total, at, self.arrays.count_executions[known])
        return GraphCounts(blocks, edges)

    def sum_links(self, counts: GraphCounts) -> Array:
        """How often each edge between functions was taken."""
        source, _, _, of_edge = self.links
        total = np.zeros(len(source), np.int64)
        known = of_edge >= 0
        np.add.at(total, of_edge[known], counts.edges[known])
        return total

    def sum_functions(self, counts: GraphCounts) -> Array:
        """By function how many instructions were executed in it; in mode coverage how many of them are covered."""
        total = np.zeros(self.n_functions, np.int64)
        np.add.at(total, self.function, counts.blocks * self.n_instructions)
        return total

    def count_entries(self, counts: GraphCounts) -> Array:
        """By function how often control came to its start from another one, or by a call from itself."""
        comes, is_call = self.arrays.is_kind(*ENTRIES), self.arrays.is_kind("call", "indirect_call")
        enters = find_entering(self.source, self.target, self.function, self.entry_block, comes=comes, is_call=is_call)
        entries = np.zeros(self.n_functions, np.int64)
        np.add.at(entries, self.function[self.target[enters]], counts.edges[enters])
        return entries

    @cached_property
    def _thread_blocks(self) -> tuple[Array, Array, Array]:
        """Executions of blocks by thread: an index of `threads`, a block, how often; each pair once at most."""
        arrays = self.arrays
        rows = np.flatnonzero(arrays.count_block >= 0)
        keys = pack_threads(np.full(len(self.threads), self.process_id), self.threads)
        thread = find_rows(keys, arrays.tids)[arrays.count_thread[rows]]
        block = self.index_of_row[arrays.count_block[rows]]
        known = thread >= 0
        key, which = np.unique(thread[known] * self.n_blocks + block[known], return_inverse=True)
        executions = np.zeros(len(key), np.int64)
        np.add.at(executions, which, arrays.count_executions[rows][known])
        return key // max(self.n_blocks, 1), key % max(self.n_blocks, 1), executions

    def sum_thread_functions(self) -> tuple[Array, Array, Array]:
        """What each thread executed: an index of `threads`, a function, and instructions; only what is not 0."""
        thread, block, executions = self._thread_blocks
        key, which = np.unique(thread * self.n_functions + self.function[block], return_inverse=True)
        instructions = np.zeros(len(key), np.int64)
        np.add.at(instructions, which, executions * self.n_instructions[block])
        ran = instructions > 0
        n = max(self.n_functions, 1)
        return key[ran] // n, key[ran] % n, instructions[ran]

    def find_owners(self, threads: Sequence[int] | None = None) -> Array:
        """By block the thread that executed it most, of all or of some (told by their ids), an index of `threads`; -1
        where none did, -2 where several did and none of them nine times in ten."""
        thread, block, executions = self._thread_blocks
        if threads is not None:
            kept = np.isin(self.threads, np.array(threads, np.int64))[thread]
            thread, block, executions = thread[kept], block[kept], executions[kept]
        order = np.lexsort((-thread, executions, block))
        total = np.zeros(self.n_blocks, np.int64)
        np.add.at(total, block, executions)
        owners, best = np.full(self.n_blocks, -1), np.zeros(self.n_blocks, np.int64)
        # The last of those about one block counts: the most executions, and of equal ones the first thread.
        owners[block[order]], best[block[order]] = thread[order], executions[order]
        owners[best == 0] = -1
        owners[(owners >= 0) & (best * 10 < total * 9)] = -2
        return owners
