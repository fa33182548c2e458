"""Where the executions at every address come from and go to, and what is missing of them: those came by returns.

Runs in the controller, after the target ended. Pure. Knows ways through fragments, and not of which blocks they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import EdgeKind
from clew.recording.assembly.blocks_keys import sorted_unique
from clew.recording.assembly.records import Fragments
from clew.recording.assembly.rows import Rows, add_up, find_places
from clew.recording.assembly.states import CodeState
from clew.recording.assembly.ways import FragmentEdges, FragmentPaths
from clew.recording.raw import Counters

__all__ = ["Accounting", "ThreadFlow"]

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
        self._path_place = np.searchsorted(starts, fragments.app_pc[paths.fragment])
        self._waiting_place, self._stopping_place = np.full(len(edges), -1), np.full(len(paths), -1)
        self._waiting_place[waiting_edge] = waiting_place
        self._stopping_place[stopping_path] = stopping_place

        # The edge after the system call that each sigreturn made.
        is_syscall = edges.kind == EdgeKind.SYSCALL
        edge_after = np.full(len(fragments) + 1, -1)
        edge_after[edges.source[is_syscall]] = np.flatnonzero(is_syscall)
        resumes = np.flatnonzero((edges.kind == EdgeKind.SIGRETURN) & (edges.source >= 0))
        self._resumed_syscall = np.full(len(edges), -1)
        self._resumed_syscall[resumes] = edge_after[edges.source[resumes]]
        self._is_syscall = is_syscall
        self._edges_by_counter, self._paths_by_counter = Rows(edges.counter), Rows(paths.counter)
        # Code that is not counted says nothing about what is missing where it starts.
        self._is_counted_place = np.ones(len(self.places), bool)
        others = slice(self.n_starts, None)
        self._is_counted_place[others] = ~np.isin(self.places[others], fragments.app_pc[~is_counted])
        self._leads_to_counted, self._waits_in_counted = edges.target_state <= most, edges.source_state <= most

    def follow(self, counters: Counters, n_members: int = 1) -> ThreadFlow:
        """Flow of one thread that left `counters`, or of `n_members` that left them together."""
        edge, at = self._edges_by_counter.find(counters.index)
        edge_count = counters.value[at].astype(np.int64)
        resumes = self._resumed_syscall[edge] >= 0
        edge, edge_count = add_up(
            np.concatenate([edge, self._resumed_syscall[edge[resumes]]]),
            np.concatenate([edge_count, -edge_count[resumes]]),
        )
        path, at = self._paths_by_counter.find(counters.index)
        path, path_count = add_up(path, counters.value[at].astype(np.int64))
        place, missing = self._find_missing(path, path_count, edge, edge_count)
        target = find_places(place, self.edge_place[edge])
        left = n_members
        for last in self._find_last_syscalls(edge, edge_count, missing[target]):
            n_unreturned = min(left, int(edge_count[last]), -int(missing[target[last]]))
            if n_unreturned > 0:
                edge_count[last] -= n_unreturned
                missing[target[last]] += n_unreturned
                left -= n_unreturned
        taken = edge_count > 0
        return self._with_returns(path, path_count, edge[taken], edge_count[taken], place, missing)

    def balance(self, path: Array, path_count: Array, edge: Array, edge_count: Array) -> ThreadFlow:
        """Flow of a thread that took so many paths and edges, of which all came back that are system calls."""
        place, missing = self._find_missing(path, path_count, edge, edge_count)
        return self._with_returns(path, path_count, edge, edge_count, place, missing)

    def _with_returns(
        self, path: Array, path_count: Array, edge: Array, edge_count: Array, place: Array, missing: Array
    ) -> ThreadFlow:
        returned = (missing > 0) & self._is_counted_place[place]
        return ThreadFlow(path, path_count, edge, edge_count, place[returned], missing[returned])

    def _find_missing(self, path: Array, path_count: Array, edge: Array, edge_count: Array) -> tuple[Array, Array]:
        """Places that rise, and how many of the executions at each came by none of the edges."""
        waits = (self._waiting_place[edge] >= 0) & self._waits_in_counted[edge]
        stops = self._stopping_place[path] >= 0
        return add_up(
            np.concatenate(
                [
                    self._path_place[path],
                    self._waiting_place[edge[waits]],
                    self.edge_place[edge],
                    self._stopping_place[path[stops]],
                ]
            ),
            np.concatenate(
                [
                    path_count,
                    edge_count[waits],
                    np.where(self._leads_to_counted[edge], -edge_count, 0),
                    -path_count[stops],
                ]
            ),
        )

    def _find_last_syscalls(self, edge: Array, count: Array, missing: Array) -> list[int]:
        """System calls that did not come back: the address after one ran less often than edges led to it.

        For each of the edges `edge`, how often it was taken and what its target misses; indices into these. A thread
        does one last thing; were there several, one after which nothing ever ran is likelier, and comes first.
        """
        place = self.edge_place[edge]
        waiting = (count > 0) & self._is_syscall[edge] & (missing < 0) & self._is_counted_place[place]
        candidates = np.flatnonzero(waiting)
        ranked: list[int] = candidates[np.argsort(place[candidates] < self.n_starts, kind="stable")].tolist()
        return ranked

    def find_run_places(self) -> Array:
        """At which places some path begins; shape (n_places,), bool."""
        runs = np.zeros(len(self.places), bool)
        runs[self._path_place] = True
        return runs


def _extend_places(starts: Array, *addresses: Array) -> tuple[Array, list[Array]]:
    """`starts`, which are sorted, with those of `addresses` that are not among them appended; and where each one is."""
    wanted = np.concatenate(addresses)
    at = np.searchsorted(starts, wanted)
    missing = np.flatnonzero(np.append(starts, np.uint64(0))[at] != wanted) if len(starts) else np.arange(len(wanted))
    added, at[missing] = np.unique(wanted[missing], return_inverse=True)
    at[missing] += len(starts)
    return np.concatenate([starts, added]), np.split(at, np.cumsum([len(part) for part in addresses])[:-1])
