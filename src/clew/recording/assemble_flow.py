"""How often each fragment was run through and each way out of it was taken, by thread.

Runs in the controller, after the target ended. Works on fragments and addresses; basic blocks are not known here.

The runtime counts exits. Three things follow from its counters by arithmetic, and are worked out here:

- *Returns.* Nothing counts where a return goes. But every execution that starts at an address came to it by some edge,
  so what starts at a return point beyond the counted edges into it came by returns: the *inflow missing* there.
- *System calls that never came back.* They are counted when they are made. A thread's last one (exit, execve) has no
  way out; it shows as one execution missing at the address after it.
- *sigreturn* is a system call whose way out is its own edge, not the address after it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import EdgeKind, ExitKind
from clew.recording.assemble_records import Fragments, ParsedRecords
from clew.recording.assemble_ways import DIRECT_EDGES, FragmentEdges, FragmentPaths, collect_ways
from clew.recording.blocks_keys import sorted_unique
from clew.recording.raw import Counters, RawThread
from clew.recording.rows import NumberSet, Rows, add_up, find_places

__all__ = ["ProcessFlow", "ThreadFlow", "compute_flow", "compute_seen_flow"]

Array = npt.NDArray[Any]

COUNTER_LIMIT = np.uint64(1 << 62)
"""No counter gets as high in the life of a machine; one that does was overwritten."""


@dataclass(frozen=True)
class ThreadFlow:
    """What one thread did: rows of paths and edges that it took, and how often (i64, positive).

    `return_place` and `return_count`: places (see `ProcessFlow.places`) that returns came to, and how many.
    """

    path: Array
    path_count: Array
    edge: Array
    edge_count: Array
    return_place: Array
    return_count: Array


@dataclass(frozen=True)
class ProcessFlow:
    """Flow of a process. Only paths and edges that were taken are kept; `*_total` sums them over threads.

    `places` are addresses, u64, sorted: every one at which a fragment starts, and then, from `n_starts` on, unsorted
    others that edges lead to. `edge_place` is the place of each edge's target, `inflow_missing` how many executions
    at each place came by no counted edge: returns, where a call ends.
    """

    edges: FragmentEdges
    paths: FragmentPaths
    threads: list[ThreadFlow]
    edge_total: Array
    path_total: Array
    places: Array
    n_starts: int
    edge_place: Array
    inflow_missing: Array
    damaged_counters: int


def compute_flow(parsed: ParsedRecords, threads: Sequence[RawThread]) -> ProcessFlow:
    """Flow of a process recorded in mode `counts`, from the counters of its threads."""
    fragments = parsed.fragments
    edges, paths = collect_ways(parsed)
    damaged_counters = 0
    counters = []
    separation = _Separation(fragments)
    for thread in threads:
        sound = thread.counters.value < COUNTER_LIMIT
        damaged_counters += int(np.count_nonzero(~sound))
        counters.append(separation.apply(Counters(thread.counters.index[sound], thread.counters.value[sound])))
    used = sorted_unique(np.zeros(0, np.int64), *(one.index for one in counters))
    # What counted, but was never announced: those records were lost.
    damaged_counters += int(np.count_nonzero(~NumberSet(edges.counter, paths.counter).holds(used)))
    has_counted = NumberSet(used)
    edges = edges.take(np.flatnonzero(has_counted.holds(edges.counter)))
    paths = paths.take(np.flatnonzero(has_counted.holds(paths.counter)))

    accounting = _Accounting(fragments, edges, paths)
    flows = [accounting.follow(values, thread.n_members) for values, thread in zip(counters, threads, strict=True)]
    edge_total, path_total = np.zeros(len(edges), np.int64), np.zeros(len(paths), np.int64)
    missing = np.zeros(len(accounting.places), np.int64)
    for flow in flows:
        edge_total[flow.edge] += flow.edge_count
        path_total[flow.path] += flow.path_count
        missing[flow.return_place] += flow.return_count
    # A system call that never came back is no edge.
    taken = np.flatnonzero(edge_total > 0)
    renumbered = np.cumsum(edge_total > 0) - 1
    return ProcessFlow(
        edges=edges.take(taken),
        paths=paths,
        threads=[dataclasses.replace(flow, edge=renumbered[flow.edge]) for flow in flows],
        edge_total=edge_total[taken],
        path_total=path_total,
        places=accounting.places,
        n_starts=accounting.n_starts,
        edge_place=accounting.edge_place[taken],
        inflow_missing=missing,
        damaged_counters=damaged_counters,
    )


def compute_seen_flow(parsed: ParsedRecords) -> ProcessFlow:
    """Flow of a process recorded in mode `coverage`: every total is 1, for "seen", or 0."""
    fragments = parsed.fragments
    possible, paths = collect_ways(parsed)
    is_dynamic = ~np.isin(possible.kind, [*DIRECT_EDGES.values(), EdgeKind.TAKEN, EdgeKind.NOT_TAKEN])
    # Where a signal comes at the end of a system call, its exit is taken without ever being linked.
    interrupted = possible.source_pc[possible.kind == EdgeKind.SIGNAL]
    is_dynamic |= (possible.kind == EdgeKind.SYSCALL) & np.isin(possible.target_pc, interrupted)
    dynamic = possible.take(np.flatnonzero(is_dynamic))
    links = parsed.links
    by_number = Rows(fragments.fragment_id)
    source = by_number.find_first(links["source_fragment_id"])
    linked = np.flatnonzero((source >= 0) & ~np.isin(links["edge_kind"], [EdgeKind.RETURN, EdgeKind.PARTIAL]))
    edges = FragmentEdges(
        source=np.concatenate([source[linked], dynamic.source]),
        source_pc=np.concatenate([fragments.app_pc[source[linked]], dynamic.source_pc]),
        target_pc=np.concatenate([links["target_pc"][linked].astype(np.uint64), dynamic.target_pc]),
        kind=np.concatenate([links["edge_kind"][linked], dynamic.kind]),
        counter=np.full(len(linked) + len(dynamic), -1),
        target=np.concatenate([by_number.find_first(links["target_fragment_id"][linked]), dynamic.target]),
        tsc=np.concatenate([links["tsc"][linked].astype(np.uint64), dynamic.tsc]),
    )
    # A fragment that was left in its middle, or in front of which a signal or fault came, and by none of its exits, ran
    # no further than that. Nothing tells where returns come from, nor of a call that ended the thread.
    is_whole = paths.stop_pc == fragments.end_pc[paths.fragment]
    left = np.zeros(len(fragments), bool)
    left[paths.fragment[~is_whole]] = True
    waiting = (dynamic.kind == EdgeKind.FAULT) | (dynamic.kind == EdgeKind.SIGNAL)
    left[np.isin(fragments.app_pc, dynamic.source_pc[waiting])] = True
    left[edges.source[edges.source >= 0]] = False
    left[np.isin(fragments.exit_kind, (ExitKind.RETURN, ExitKind.SYSCALL))] = False
    recorded = np.flatnonzero(~fragments.is_excluded & ~left)
    partial = paths.take(np.flatnonzero(~is_whole))
    paths = FragmentPaths(
        fragment=np.concatenate([recorded, partial.fragment]),
        stop_pc=np.concatenate([fragments.end_pc[recorded], partial.stop_pc]),
        counter=np.full(len(recorded) + len(partial), -1),
    )
    accounting = _Accounting(fragments, edges, paths)
    reached = np.zeros(len(accounting.places), bool)
    reached[accounting.edge_place] = True
    returned_to = np.isin(accounting.places, links["target_pc"][links["edge_kind"] == EdgeKind.RETURN])
    starts = np.arange(len(accounting.places)) < accounting.n_starts
    ran = np.zeros(len(accounting.places), bool)
    ran[accounting.path_place] = True
    return ProcessFlow(
        edges=edges,
        paths=paths,
        threads=[],
        edge_total=np.ones(len(edges), np.int64),
        path_total=np.ones(len(paths), np.int64),
        places=accounting.places,
        n_starts=accounting.n_starts,
        edge_place=accounting.edge_place,
        inflow_missing=(starts & ran & (~reached | returned_to)).astype(np.int64),
        damaged_counters=0,
    )


class _Accounting:
    """Where the executions at every place come from and go to."""

    def __init__(self, fragments: Fragments, edges: FragmentEdges, paths: FragmentPaths) -> None:
        self.edges, self.paths = edges, paths
        recorded = fragments.app_pc[~fragments.is_excluded]
        starts = sorted_unique(recorded)
        self.n_starts = len(starts)
        # What was to run next and did not: a signal came before it, or it faulted. Execution came there by an edge, or
        # along a path that stops there.
        waiting_edge = np.flatnonzero((edges.kind == EdgeKind.SIGNAL) | (edges.kind == EdgeKind.FAULT))
        stopping_path = np.flatnonzero(paths.stop_pc != fragments.end_pc[paths.fragment])
        self.places, (self.edge_place, waiting_place, stopping_place) = _extend_places(
            starts, edges.target_pc, edges.source_pc[waiting_edge], paths.stop_pc[stopping_path]
        )
        self.path_place = np.searchsorted(starts, fragments.app_pc[paths.fragment])
        self.waiting_place, self.stopping_place = np.full(len(edges), -1), np.full(len(paths), -1)
        self.waiting_place[waiting_edge] = waiting_place
        self.stopping_place[stopping_path] = stopping_place

        # The edge after the system call that each sigreturn made.
        is_syscall = edges.kind == EdgeKind.SYSCALL
        edge_after = np.full(len(fragments) + 1, -1)
        edge_after[edges.source[is_syscall]] = np.flatnonzero(is_syscall)
        resumes = np.flatnonzero((edges.kind == EdgeKind.SIGRETURN) & (edges.source >= 0))
        self.resumed_syscall = np.full(len(edges), -1)
        self.resumed_syscall[resumes] = edge_after[edges.source[resumes]]
        self.is_syscall = is_syscall
        self.edges_by_counter, self.paths_by_counter = Rows(edges.counter), Rows(paths.counter)
        # A place in code that is not recorded says nothing about what is missing there.
        self.is_recorded_place = np.ones(len(self.places), bool)
        if fragments.is_excluded.any():
            self.is_recorded_place[np.isin(self.places, fragments.app_pc[fragments.is_excluded])] = False

    def follow(self, counters: Counters, n_members: int = 1) -> ThreadFlow:
        """Flow of one thread that left `counters`, or of `n_members` that left them together."""
        edge, at = self.edges_by_counter.find(counters.index)
        edge_count = counters.value[at].astype(np.int64)
        resumes = self.resumed_syscall[edge] >= 0
        edge, edge_count = add_up(
            np.concatenate([edge, self.resumed_syscall[edge[resumes]]]),
            np.concatenate([edge_count, -edge_count[resumes]]),
        )
        path, at = self.paths_by_counter.find(counters.index)
        path, path_count = add_up(path, counters.value[at].astype(np.int64))
        waits, stops = self.waiting_place[edge] >= 0, self.stopping_place[path] >= 0
        place, missing = add_up(
            np.concatenate(
                [
                    self.path_place[path],
                    self.waiting_place[edge[waits]],
                    self.edge_place[edge],
                    self.stopping_place[path[stops]],
                ]
            ),
            np.concatenate([path_count, edge_count[waits], -edge_count, -path_count[stops]]),
        )
        target = find_places(place, self.edge_place[edge])
        left = n_members
        for last in self._find_last_syscalls(edge, edge_count, missing[target]):
            n_unreturned = min(left, int(edge_count[last]), -int(missing[target[last]]))
            if n_unreturned > 0:
                edge_count[last] -= n_unreturned
                missing[target[last]] += n_unreturned
                left -= n_unreturned
        taken = edge_count > 0
        returned = (missing > 0) & self.is_recorded_place[place]
        return ThreadFlow(path, path_count, edge[taken], edge_count[taken], place[returned], missing[returned])

    def _find_last_syscalls(self, edge: Array, count: Array, missing: Array) -> list[int]:
        """System calls that did not come back: the address after one ran less often than edges led to it.

        For each of the edges `edge`, how often it was taken and what its target misses; indices into these. A thread
        does one last thing; were there several, one after which nothing ever ran is likelier, and comes first.
        """
        place = self.edge_place[edge]
        waiting = (count > 0) & self.is_syscall[edge] & (missing < 0) & self.is_recorded_place[place]
        candidates = np.flatnonzero(waiting)
        ranked: list[int] = candidates[np.argsort(place[candidates] < self.n_starts, kind="stable")].tolist()
        return ranked


def _extend_places(starts: Array, *addresses: Array) -> tuple[Array, list[Array]]:
    """`starts`, which are sorted, with those of `addresses` that are not among them appended; and where each one is."""
    wanted = np.concatenate(addresses)
    at = np.searchsorted(starts, wanted)
    missing = np.flatnonzero(np.append(starts, np.uint64(0))[at] != wanted) if len(starts) else np.arange(len(wanted))
    added, at[missing] = np.unique(wanted[missing], return_inverse=True)
    at[missing] += len(starts)
    return np.concatenate([starts, added]), np.split(at, np.cumsum([len(part) for part in addresses])[:-1])


class _Separation:
    """Leaves one way in each counter, where the runtime counted both ways of a conditional branch in one of them."""

    def __init__(self, fragments: Fragments) -> None:
        has_counter = fragments.counter_index >= 0
        first = fragments.counter_index[fragments.first_is_both & has_counter]
        second = fragments.counter_index[fragments.second_is_both & has_counter] + 1
        # Counters with both ways, and how far from each the other one's is.
        self._shared = (NumberSet(first), 1), (NumberSet(second), -1)

    def apply(self, counters: Counters) -> Counters:
        index, value = counters.index, counters.value.copy()
        for both, step in self._shared:
            # Counters rise, so the other one's is the next one or the one before, if it counted at all.
            shared = np.flatnonzero(both.holds(index))
            beside = np.clip(shared + step, 0, len(index) - 1)
            other = np.where(index[beside] == index[shared] + step, counters.value[beside], np.uint64(0))
            value[shared] -= np.minimum(counters.value[shared], other)
        left = value > 0
        return Counters(index[left], value[left])
