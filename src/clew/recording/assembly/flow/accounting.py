"""Where the executions at every address come from and go to, and what is missing of them: those came by returns.

Runs in the controller, after the target ended. Pure. Knows ways through fragments, and not of which blocks they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import EdgeKind
from clew.recording.assembly.arrays.keys import sorted_unique
from clew.recording.assembly.arrays.rows import Rows
from clew.recording.assembly.arrays.tallies import Batches, KeptTally, Tally, narrow
from clew.recording.assembly.flow.ways import FragmentEdges, FragmentPaths
from clew.recording.assembly.records.records import Fragments
from clew.recording.assembly.records.states import CodeState

__all__ = ["Accounting", "FlowBatch", "ThreadFlow", "ThreadFlows"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ThreadFlow:
    """What one thread did: rows of paths and edges that it took, and how often (i64, positive).

    `return_place` and `return_count`: places (see `Accounting.places`) that returns came to, and how many.
    """

    path: Array
    path_count: Array
    edge: Array
    edge_count: Array
    return_place: Array
    return_count: Array


@dataclass(frozen=True)
class FlowBatch:
    """What some threads did: rows of paths and edges that they took, and places that returns came to (`ThreadFlow`)."""

    paths: KeptTally
    edges: KeptTally
    returns: KeptTally

    def of(self, thread: int) -> ThreadFlow:
        """What one of them did."""
        return ThreadFlow(*self.paths.of(thread), *self.edges.of(thread), *self.returns.of(thread))


class ThreadFlows(Batches[FlowBatch, ThreadFlow]):
    """What each thread did."""

    def __init__(self, batches: list[FlowBatch]) -> None:
        super().__init__(batches, (batch.paths.n_threads for batch in batches), FlowBatch.of)


class Accounting:
    """Where the executions at every place come from and go to, in code of states up to `most`.

    `places` are addresses, u64, sorted: every one at which a fragment of such code starts, and then, from `n_starts`
    on, unsorted others that edges lead to. `edge_place` is the place of each edge's target.
    """

    def __init__(self, fragments: Fragments, edges: FragmentEdges, paths: FragmentPaths, most: CodeState) -> None:
        self.edges, self.paths = edges, paths
        is_counted = ~(fragments.is_excluded if most == CodeState.COUNTED else fragments.is_left_out)
        starts = sorted_unique(fragments.app_pc[is_counted])
        self.n_starts = len(starts)
        # What was to run next and did not: a signal came before it, or it faulted. Execution came there by an edge, or
        # along a path that stops there.
        waiting_edge = np.flatnonzero((edges.kind == EdgeKind.SIGNAL) | (edges.kind == EdgeKind.FAULT))
        stopping_path = np.flatnonzero(paths.stop_pc != fragments.end_pc[paths.fragment])
        self.places, (self.edge_place, waiting_place, stopping_place) = _extend_places(
            starts, edges.target_pc, edges.source_pc[waiting_edge], paths.stop_pc[stopping_path]
        )
        self._path_place = narrow(np.searchsorted(starts, fragments.app_pc[paths.fragment]))
        self._waiting_place = np.full(len(edges), -1, self.edge_place.dtype)
        self._stopping_place = np.full(len(paths), -1, self.edge_place.dtype)
        self._waiting_place[waiting_edge] = waiting_place
        self._stopping_place[stopping_path] = stopping_place

        # The edge after the system call that each sigreturn made.
        is_syscall = edges.kind == EdgeKind.SYSCALL
        edge_after = np.full(len(fragments) + 1, -1)
        edge_after[edges.source[is_syscall]] = np.flatnonzero(is_syscall)
        resumes = np.flatnonzero((edges.kind == EdgeKind.SIGRETURN) & (edges.source >= 0))
        self._resumed_syscall = np.full(len(edges), -1, edges.source.dtype)
        self._resumed_syscall[resumes] = edge_after[edges.source[resumes]]
        self._is_syscall = is_syscall
        self._edges_by_counter, self._paths_by_counter = Rows(edges.counter), Rows(paths.counter)
        # Code that is not counted says nothing about what is missing where it starts.
        self._is_counted_place = np.ones(len(self.places), bool)
        others = slice(self.n_starts, None)
        self._is_counted_place[others] = ~np.isin(self.places[others], fragments.app_pc[~is_counted])
        self._leads_to_counted, self._waits_in_counted = edges.target_state <= most, edges.source_state <= most

    def follow(self, counted: Tally, n_members: Sequence[int]) -> FlowBatch:
        """Flow of threads whose counters are `counted`; each is of so many threads that left them together."""
        edge, at = self._edges_by_counter.find(counted.number)
        thread, edge_count = counted.thread[at], counted.count[at]
        resumes = self._resumed_syscall[edge] >= 0
        edges = Tally.add_up(
            counted.n_threads,
            (thread, edge, edge_count),
            (thread[resumes], self._resumed_syscall[edge[resumes]], -edge_count[resumes]),
        )
        path, at = self._paths_by_counter.find(counted.number)
        paths = Tally.add_up(counted.n_threads, (counted.thread[at], path, counted.count[at]))
        missing = self._find_missing(paths, edges)
        left = list(n_members)
        for row, target in self._find_last_syscalls(edges, missing):
            owner = int(edges.thread[row])
            n_unreturned = min(left[owner], int(edges.count[row]), -int(missing.count[target]))
            if n_unreturned > 0:
                edges.count[row] -= n_unreturned
                missing.count[target] += n_unreturned
                left[owner] -= n_unreturned
        return self._with_returns(paths, edges.take(edges.count > 0), missing)

    def balance(self, paths: Tally, edges: Tally) -> FlowBatch:
        """Flow of threads that took so many paths and edges, of which all came back that are system calls."""
        return self._with_returns(paths, edges, self._find_missing(paths, edges))

    def _with_returns(self, paths: Tally, edges: Tally, missing: Tally) -> FlowBatch:
        returned = missing.take((missing.count > 0) & self._is_counted_place[missing.number])
        return FlowBatch(paths.keep(), edges.keep(), returned.keep())

    def _find_missing(self, paths: Tally, edges: Tally) -> Tally:
        """At which places of each thread how many of the executions came by none of the edges."""
        waiting = edges.take((self._waiting_place[edges.number] >= 0) & self._waits_in_counted[edges.number])
        stopping = paths.take(self._stopping_place[paths.number] >= 0)
        return Tally.add_up(
            paths.n_threads,
            (paths.thread, self._path_place[paths.number], paths.count),
            (waiting.thread, self._waiting_place[waiting.number], waiting.count),
            (
                edges.thread,
                self.edge_place[edges.number],
                np.where(self._leads_to_counted[edges.number], -edges.count, 0),
            ),
            (stopping.thread, self._stopping_place[stopping.number], -stopping.count),
        )

    def _find_last_syscalls(self, edges: Tally, missing: Tally) -> list[tuple[int, int]]:
        """System calls that did not come back: the address after one ran less often than edges led to it.

        Rows of the edges and of what their targets miss. A thread does one last thing; were there several, one after
        which nothing ever ran is likelier, and comes first.
        """
        rows = np.flatnonzero((edges.count > 0) & self._is_syscall[edges.number])
        place = self.edge_place[edges.number[rows]]
        target = missing.find(edges.thread[rows], place)
        waits = np.flatnonzero((missing.count[target] < 0) & self._is_counted_place[place])
        ranked = waits[np.argsort(place[waits] < self.n_starts, kind="stable")]
        return list(zip(rows[ranked].tolist(), target[ranked].tolist(), strict=True))

    def find_run_places(self) -> Array:
        """At which places some path begins; shape (n_places,), bool."""
        runs = np.zeros(len(self.places), bool)
        runs[self._path_place] = True
        return runs


def _extend_places(starts: Array, *addresses: Array) -> tuple[Array, list[Array]]:
    """`starts`, which are sorted, with those of `addresses` that are not among them appended; and where each one is."""
    wanted = np.concatenate(addresses)
    at = np.searchsorted(starts, wanted)
    known = np.concatenate((starts, [np.uint64(0)]))[at] if len(starts) else ~wanted
    missing = np.flatnonzero(known != wanted)
    added, at[missing] = np.unique(wanted[missing], return_inverse=True)
    at[missing] += len(starts)
    ends = np.cumsum([len(part) for part in addresses]).tolist()
    at = narrow(at)
    places = [at[end - len(part) : end] for part, end in zip(addresses, ends, strict=True)]
    return np.concatenate([starts, added]), places
