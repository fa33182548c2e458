"""Edges between basic blocks, and how often each thread ran each block and took each edge.

Runs in the controller, after the target ended. Pure: images, symbols and files are not known here.

Most edges stand in the flow as they are. Two sorts are worked out by thread: *returns*, from what is missing of the
inflow at the end of a call; and edges to an address where code of several versions starts, which are shared out by what
is missing of the inflow at each version. So is the straight line out of a path that stopped where other code was then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass, field, replace
from clew.protocol._generated import EdgeKind, ExitKind
from clew.recording.assembly.arrays.keys import is_vsyscall, sorted_unique, spans
from clew.recording.assembly.arrays.rows import Rows, is_in
from clew.recording.assembly.arrays.tallies import Batches, KeptTally, Tally, narrow
from clew.recording.assembly.blocks.blocks import NO_BLOCK, CutBlocks
from clew.recording.assembly.edges.missing import Missing
from clew.recording.assembly.flow.accounting import FlowBatch, ThreadFlow
from clew.recording.assembly.flow.flow import ProcessFlow

__all__ = ["CountsBatch", "Edges", "ThreadCounts", "ThreadsCounts", "build_edges", "find_ran"]

Array = npt.NDArray[Any]

_SEVERAL_VERSIONS = -2

_CALL_KINDS = (EdgeKind.CALL, EdgeKind.INDIRECT_CALL)


@dataclass(frozen=True)
class ThreadCounts:
    """How often a thread ran each block and took each edge: indices that rise, and counts above 0, i64."""

    block: Array
    block_count: Array
    edge: Array
    edge_count: Array


@dataclass(frozen=True)
class CountsBatch:
    """How often some threads ran each block and took each edge, by their indices."""

    blocks: KeptTally
    edges: KeptTally

    def of(self, thread: int) -> ThreadCounts:
        """Of one of them."""
        return ThreadCounts(*self.blocks.of(thread), *self.edges.of(thread))


class ThreadsCounts(Batches[CountsBatch, ThreadCounts]):
    """The counts of each thread."""

    def __init__(self, batches: list[CountsBatch]) -> None:
        super().__init__(batches, (batch.blocks.n_threads for batch in batches), CountsBatch.of)


@dataclass(frozen=True)
class Edges:
    """Edges between blocks (indices), one element each; `source` is NO_BLOCK for a start.

    `callee` is the block called, for returns, or NO_BLOCK. `threads` has the counts of each thread of the flow.
    `shared_return_points` are addresses at which two calls end that overlap: their returns went to the lower call.
    `passed` are blocks that ran, if some of them are not counted: ordered paths lead through them.
    """

    source: Array
    target: Array
    kind: Array
    callee: Array
    threads: ThreadsCounts
    shared_return_points: list[int]
    passed: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.source)


def build_edges(flow: ProcessFlow, cut: CutBlocks, batches: Iterable[FlowBatch]) -> Edges:
    """Edges between the blocks of `cut`: with counts of threads that did what `batches` say; without, what was seen."""
    return _EdgeBuilder(flow, cut).build(batches)


def find_ran(edges: Edges) -> Array:
    """The blocks (indices, i64, rising) that some thread ran."""
    return sorted_unique(np.zeros(0, np.int64), *(batch.blocks.number for batch in edges.threads.batches))


class _EdgeBuilder:
    """`path_*` arrays say what running a path once adds; `plain_*` are the edges that the flow has as they are."""

    def __init__(self, flow: ProcessFlow, cut: CutBlocks) -> None:
        self.flow, self.cut, self.blocks = flow, cut, cut.blocks
        blocks = self.blocks
        self._join_edges(*self._follow_paths())
        # Edges worked out by thread: (source, target, kind, callee) -> its number, counted from after all others.
        self.derived: dict[tuple[int, int, int, int], int] = {}
        self.shared_return_points: list[int] = []
        self._find_callees()
        self._find_return_points()
        self._add_simple_returns()
        self.into_vsyscall = is_vsyscall(blocks.app_pc[self.target]) & (self.kind != EdgeKind.RETURN)
        self.before_vsyscall = (self.source >= 0) & is_vsyscall(blocks.app_pc[self.source])
        self.before_vsyscall &= (self.kind == EdgeKind.SIGNAL) | (self.kind == EdgeKind.FAULT)

    def _follow_paths(self) -> tuple[Array, Array]:
        """Find the blocks that each path runs; and the straight line between them: blocks left and entered."""
        paths, cut, code = self.flow.paths, self.cut, self.cut.code
        n_pieces = code.first[paths.fragment + 1] - code.first[paths.fragment]
        piece = narrow(spans(code.first[paths.fragment], n_pieces))
        path = np.repeat(np.arange(len(paths), dtype=piece.dtype), n_pieces)
        has_run = code.start_pc[piece] < paths.stop_pc[path]
        piece, path = piece[has_run], path[has_run]
        ends = cut.piece_ends[piece]
        self.blocks_by_path, self.block_of_path = Rows(path[ends]), cut.piece_block[piece[ends]]

        following = np.minimum(piece + 1, len(code.fragment) - 1)
        crosses = (piece + 1 < code.first[code.fragment[piece] + 1]) & cut.piece_starts[following]
        # By path: the block in which one stopped that went on in another version, as far as can be told.
        self.parted_source = np.full(len(paths), NO_BLOCK, cut.piece_block.dtype)
        if len(cut.parted):
            may_part = is_in(path, cut.parted)
            is_parted = crosses & may_part & (code.start_pc[following] == paths.stop_pc[path])
            self.parted_source[path[is_parted]] = cut.piece_block[piece[is_parted]]
            crosses &= ~is_parted
        self.crossings_by_path = Rows(path[crosses])
        return cut.piece_block[piece[crosses]], cut.piece_block[following[crosses]]

    def _join_edges(self, crossing_source: Array, crossing_target: Array) -> None:
        """Find the plain edges: those of the flow, and the straight line between blocks of one path."""
        edges, cut = self.flow.edges, self.cut
        has_source = (cut.edge_source >= 0) | (edges.kind == EdgeKind.START)
        usable = (cut.edge_target >= 0) & has_source
        plain = np.flatnonzero(usable & ~cut.is_shared)
        self.is_shared_row = usable & cut.is_shared
        self.shared_out = np.flatnonzero(self.is_shared_row)
        source = np.concatenate([cut.edge_source[plain], crossing_source])
        target = np.concatenate([cut.edge_target[plain], crossing_target])
        straight = np.full(len(crossing_source), EdgeKind.FALL_THROUGH, edges.kind.dtype)
        kind = np.concatenate([edges.kind[plain], straight])
        self.packed, chosen, edge = np.unique(self._pack(source, target, kind), return_index=True, return_inverse=True)
        self.source, self.target, self.kind = source[chosen], target[chosen], kind[chosen]
        edge = narrow(edge)
        self.edge_of_crossing = edge[len(plain) :]
        self.plain_of_row = np.full(len(edges), -1, edge.dtype)
        self.plain_of_row[plain] = edge[: len(plain)]

    def build(self, flows: Iterable[FlowBatch]) -> Edges:
        batches = [self._count(batch) for batch in flows]
        if not batches:
            self._see_all()
        derived = np.array(list(self.derived), np.int64).reshape(-1, 4)
        return Edges(
            source=np.concatenate([self.source, derived[:, 0]]),
            target=np.concatenate([self.target, derived[:, 1]]),
            kind=np.concatenate([self.kind, derived[:, 2].astype(np.uint8)]),
            callee=np.concatenate([self.callee, derived[:, 3]]),
            threads=ThreadsCounts(batches),
            shared_return_points=self.shared_return_points,
        )

    def _pack(self, source: Array, target: Array, kind: Array) -> Array:
        """One number for each edge; equal ones for equal edges."""
        packed: Array = ((source.astype(np.int64) + 1) * (len(self.blocks) + 1) + target) * len(EdgeKind) + kind
        return packed

    def _find_callees(self) -> None:
        """By block: how many different callees it called, and the first of them."""
        calls = np.flatnonzero(np.isin(self.kind, _CALL_KINDS))
        self.call_edges = narrow(calls[np.argsort(self.source[calls], kind="stable")])
        self.call_first = narrow(np.searchsorted(self.source[self.call_edges], np.arange(len(self.blocks) + 1)))
        # A call whose callee's version is not known counts as several.
        n_callees = self.call_first[1:] - self.call_first[:-1]
        unsure = self.cut.edge_source[self.shared_out]
        n_callees[unsure[unsure >= 0]] += 2
        self.n_callees = n_callees

    def _find_return_points(self) -> None:
        """By place: the call that ends there, and the block that starts there."""
        blocks, flow = self.blocks, self.flow
        calls = np.flatnonzero((blocks.exit_kind == ExitKind.CALL) | (blocks.exit_kind == ExitKind.INDIRECT_CALL))
        calls = calls[np.argsort(blocks.end_pc[calls], kind="stable")]
        place = np.flatnonzero(flow.inflow_missing > 0)
        pc = flow.places[place]
        first = np.searchsorted(blocks.end_pc[calls], pc)
        n_calls = np.searchsorted(blocks.end_pc[calls], pc, "right") - first
        self.call_of_place = np.full(len(flow.places), NO_BLOCK, self.source.dtype)
        self.call_of_place[place[n_calls > 0]] = calls[first[n_calls > 0]]
        at = np.searchsorted(blocks.app_pc, pc)
        n_versions = np.searchsorted(blocks.app_pc, pc, "right") - at
        self.block_of_place = np.full(len(flow.places), NO_BLOCK, self.source.dtype)
        self.block_of_place[place[n_versions > 0]] = at[n_versions > 0]
        self.block_of_place[place[n_versions > 1]] = _SEVERAL_VERSIONS
        for several in np.flatnonzero(n_calls > 1):
            ending = calls[first[several] : first[several] + n_calls[several]]
            if len(np.unique(blocks.app_pc[ending])) > 1:
                self.shared_return_points.append(int(pc[several]))
            resumed = self.block_of_place[place[several]]
            same = ending[blocks.code_version[ending] == blocks.code_version[resumed]] if resumed >= 0 else ending
            self.call_of_place[place[several]] = same[0] if len(same) else ending[0]

    def _add_simple_returns(self) -> None:
        """Add the edges of returns that are the same whichever thread returns: one call, one callee, one version."""
        is_simple = (self.call_of_place >= 0) & (self.block_of_place >= 0)
        is_simple[is_simple] = self.n_callees[self.call_of_place[is_simple]] == 1
        self.simple_places = np.flatnonzero(is_simple)
        self.return_edge = np.full(len(self.flow.places), -1, self.plain_of_row.dtype)
        self.return_edge[self.simple_places] = len(self.source) + np.arange(len(self.simple_places))
        call = self.call_of_place[self.simple_places]
        callee = self.target[self.call_edges[self.call_first[call]]]
        self.callee = np.concatenate([np.full(len(self.source), NO_BLOCK, callee.dtype), callee])
        self.source = np.concatenate([self.source, call])
        self.target = np.concatenate([self.target, self.block_of_place[self.simple_places]])
        self.kind = np.concatenate([self.kind, np.full(len(call), EdgeKind.RETURN, self.kind.dtype)])

    def _count(self, batch: FlowBatch) -> CountsBatch:
        """How often the threads of `batch` ran each block and took each edge."""
        paths, edges, returns = batch.paths.open(), batch.edges.open(), batch.returns.open()
        counted = self._count_edges(paths, edges, returns)
        counts = CountsBatch(self._count_blocks(paths, counted).keep(), counted.keep())
        added = self._count_derived(batch, counts, paths, edges, returns)
        if added:
            columns = np.array(added, np.int64).T
            counted = Tally.add_up(counted.n_threads, (counted.thread, counted.number, counted.count), tuple(columns))
            counts = replace(counts, edges=counted.keep())
        return counts

    def _count_edges(self, paths: Tally, edges: Tally, returns: Tally) -> Tally:
        """How often threads took each plain edge, or one of a simple return."""
        plain, simple = self.plain_of_row[edges.number], self.return_edge[returns.number]
        crossing, at = self.crossings_by_path.find(paths.number)
        is_plain, is_simple = plain >= 0, simple >= 0
        return Tally.add_up(
            paths.n_threads,
            (edges.thread[is_plain], plain[is_plain], edges.count[is_plain]),
            (paths.thread[at], self.edge_of_crossing[crossing], paths.count[at]),
            (returns.thread[is_simple], simple[is_simple], returns.count[is_simple]),
        )

    def _count_blocks(self, paths: Tally, counted: Tally) -> Tally:
        """How often threads ran each block, given how often they took edges."""
        # The kernel runs the vsyscall page's calls and returns: as often as they were come to, but for signals.
        into_vsyscall = counted.take(self.into_vsyscall[counted.number])
        before_vsyscall = counted.take(self.before_vsyscall[counted.number])
        within, at = self.blocks_by_path.find(paths.number)
        run = Tally.add_up(
            paths.n_threads,
            (paths.thread[at], self.block_of_path[within], paths.count[at]),
            (into_vsyscall.thread, self.target[into_vsyscall.number], into_vsyscall.count),
            (before_vsyscall.thread, self.source[before_vsyscall.number], -before_vsyscall.count),
        )
        return run.take(run.count > 0)

    def _count_derived(
        self, batch: FlowBatch, counts: CountsBatch, paths: Tally, edges: Tally, returns: Tally
    ) -> list[tuple[int, int, int]]:
        """What is worked out thread by thread, as few have it: threads, edges, and how often they took these."""
        is_shared = self.is_shared_row[edges.number]
        has_several = self.block_of_place[returns.number] == _SEVERAL_VERSIONS
        is_other = (self.return_edge[returns.number] < 0) & (self.call_of_place[returns.number] >= 0)
        is_parted = self.parted_source[paths.number] >= 0
        sharing = edges.thread[is_shared], returns.thread[has_several], paths.thread[is_parted]
        shares = set(sorted_unique(*sharing).tolist())
        added: list[tuple[int, int, int]] = []
        for index in sorted(shares.union(returns.thread[is_other].tolist())):
            thread, own, derived, missing = batch.of(index), counts.of(index), dict[int, int](), None
            if index in shares:
                missing = Missing(self._count_missing(own), self.blocks)
                shared = self.is_shared_row[thread.edge]
                self._share_edges(derived, thread.edge[shared], thread.edge_count[shared], missing)
                self._share_parted(derived, thread, missing)
            self._add_returns(derived, thread, own, missing)
            added += [(index, edge, count) for edge, count in derived.items()]
        return added

    def _count_missing(self, counts: ThreadCounts) -> Array:
        """How many executions of each block no plain edge leads to."""
        missing = np.zeros(len(self.blocks), np.int64)
        missing[counts.block] = counts.block_count
        kind, source = self.kind[counts.edge], self.source[counts.edge]
        before = ((kind == EdgeKind.SIGNAL) | (kind == EdgeKind.FAULT)) & (source >= 0)
        np.add.at(missing, source[before], counts.edge_count[before])
        np.subtract.at(missing, self.target[counts.edge], counts.edge_count)
        return missing

    def _share_edges(self, derived: dict[int, int], rows: Array, counts: Array, missing: Missing) -> None:
        """Share out the edges to where code of several versions starts: first to the likeliest, as far as it misses."""
        flow, cut = self.flow, self.cut
        left = []
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            source, target = int(cut.edge_source[row]), int(cut.edge_target[row])
            kind = int(flow.edges.kind[row])
            part = missing.take(target, count)
            if part:
                self._add(derived, (source, target, kind, NO_BLOCK), part)
            if count > part:
                left.append(((source, int(flow.edges.target_pc[row]), kind, NO_BLOCK), count - part))
        for key, count in left:
            self._share_out(derived, key, count, missing)

    def _share_parted(self, derived: dict[int, int], thread: ThreadFlow, missing: Missing) -> None:
        """Share out what came after paths that stopped inside their fragment."""
        rows = np.flatnonzero(self.parted_source[thread.path] >= 0)
        for path, count in zip(thread.path[rows].tolist(), thread.path_count[rows].tolist(), strict=True):
            source, pc = int(self.parted_source[path]), int(self.flow.paths.stop_pc[path])
            self._share_out(derived, (source, pc, EdgeKind.FALL_THROUGH, NO_BLOCK), count, missing)

    def _share_out(self, derived: dict[int, int], key: tuple[int, int, int, int], count: int, missing: Missing) -> None:
        """Add `count` of an edge to the versions at its target, by what each is missing; `key` has its address."""
        source, pc, kind, callee = key
        for target, part in missing.iter_shares(pc, count):
            self._add(derived, (source, target, kind, callee), part)

    def _add(self, derived: dict[int, int], key: tuple[int, int, int, int], count: int) -> None:
        number = self._find_plain(key)
        if number < 0:
            number = len(self.source) + self.derived.setdefault(key, len(self.derived))
        derived[number] = derived.get(number, 0) + count

    def _find_plain(self, key: tuple[int, int, int, int]) -> int:
        """The plain edge that is the same; -1 if there is none."""
        source, target, kind, callee = key
        if callee >= 0 or not len(self.packed):
            return -1
        packed = ((source + 1) * (len(self.blocks) + 1) + target) * len(EdgeKind) + kind
        at = min(int(np.searchsorted(self.packed, packed)), len(self.packed) - 1)
        return at if int(self.packed[at]) == packed else -1

    def _add_returns(
        self, derived: dict[int, int], thread: ThreadFlow, counts: ThreadCounts, missing: Missing | None
    ) -> None:
        # What is missing elsewhere than after a call is lost; verifying the trace will show it.
        others = (self.return_edge[thread.return_place] < 0) & (self.call_of_place[thread.return_place] >= 0)
        places = thread.return_place[others]
        call, resumed = self.call_of_place[places], self.block_of_place[places]
        for place, count, source, target in zip(
            places.tolist(), thread.return_count[others].tolist(), call.tolist(), resumed.tolist(), strict=True
        ):
            for callee, part in self._divide(source, count, counts):
                if target == _SEVERAL_VERSIONS:
                    assert missing is not None
                    pc = int(self.flow.places[place])
                    self._share_out(derived, (source, pc, EdgeKind.RETURN, callee), part, missing)
                else:
                    self._add(derived, (source, target, EdgeKind.RETURN, callee), part)

    def _divide(self, call: int, count: int, counts: ThreadCounts | None) -> list[tuple[int, int]]:
        """Returns to the block `call`, divided by callee; the callee is NO_BLOCK where that cannot be told."""
        first, last = int(self.call_first[call]), int(self.call_first[call + 1])
        if self.n_callees[call] == 1:
            return [(int(self.target[self.call_edges[first]]), count)]
        if counts is not None and self.n_callees[call] == last - first:
            calls = self.call_edges[first:last]
            calls = calls[is_in(calls, counts.edge)]
            times = counts.edge_count[np.searchsorted(counts.edge, calls)]
            if int(times.sum()) == count:
                return list(zip(self.target[calls].tolist(), times.tolist(), strict=True))
        return [(NO_BLOCK, count)]

    def _see_all(self) -> None:
        """Edges worked out, where nothing was counted: to the likeliest version.

        One to which no edge leads then was come to by an edge that had been told of before, when code there was of
        another version: by one of these, were there several. All of them to each would be the square of what happened.
        """
        seen: dict[int, int] = {}
        flow, cut, blocks = self.flow, self.cut, self.blocks
        is_reached = np.zeros(len(blocks) + 1, bool)
        is_reached[self.target] = True
        is_reached[cut.edge_target[self.shared_out]] = True
        told_before: dict[int, tuple[int, int]] = {}
        for row in self.shared_out.tolist():
            source, kind = int(cut.edge_source[row]), int(flow.edges.kind[row])
            self._add(seen, (source, int(cut.edge_target[row]), kind, NO_BLOCK), 1)
            if flow.edges.target[row] < 0:
                told_before[int(flow.edges.target_pc[row])] = source, kind
        for path in np.flatnonzero(self.parted_source >= 0).tolist():
            there = blocks.at(int(flow.paths.stop_pc[path])).tolist()
            for target in [block for block in there if not is_reached[block]] or there[-1:]:
                self._add(seen, (int(self.parted_source[path]), target, EdgeKind.FALL_THROUGH, NO_BLOCK), 1)
        for pc, (source, kind) in told_before.items():
            for target in blocks.at(pc).tolist():
                if not is_reached[target]:
                    self._add(seen, (source, target, kind, NO_BLOCK), 1)
        for place in np.flatnonzero((self.call_of_place >= 0) & (self.return_edge < 0)).tolist():
            source = int(self.call_of_place[place])
            callee = self._divide(source, 1, None)[0][0]
            for target in self.blocks.at(int(self.flow.places[place])).tolist():
                self._add(seen, (source, target, EdgeKind.RETURN, callee), 1)
