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

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass, replace
from clew.protocol._generated import EdgeKind, ExitKind
from clew.recording.assembly.arrays.keys import sorted_unique
from clew.recording.assembly.arrays.rows import NumberSet, Rows
from clew.recording.assembly.arrays.tallies import KeptTally, Tally, iter_batches, narrow
from clew.recording.assembly.flow.accounting import Accounting, FlowBatch, ThreadFlows
from clew.recording.assembly.flow.leaders import Leaders
from clew.recording.assembly.flow.ways import DIRECT_EDGES, FragmentEdges, FragmentPaths, collect_ways
from clew.recording.assembly.records.records import Fragments, ParsedRecords
from clew.recording.assembly.records.states import CodeState, CodeStates
from clew.recording.raw.process import RawThread

__all__ = ["COUNTER_LIMIT", "ProcessFlow", "compute_flow", "compute_seen_flow", "keep_recorded"]

Array = npt.NDArray[Any]

COUNTER_LIMIT = 1 << 62
"""No counter gets as high in the life of a machine; one that does was overwritten."""


@dataclass(frozen=True)
class ProcessFlow:
    """Flow of a process. Only paths and edges that were taken are kept; `*_total` sums them over threads.

    `places`, `n_starts` and `edge_place` are those of `Accounting`; `inflow_missing` is how many executions at each
    place came by no counted edge: returns, where a call ends.
    """

    edges: FragmentEdges
    paths: FragmentPaths
    threads: ThreadFlows
    edge_total: Array
    path_total: Array
    places: Array
    n_starts: int
    edge_place: Array
    inflow_missing: Array
    damaged_counters: int


def compute_flow(parsed: ParsedRecords, states: CodeStates, threads: Sequence[RawThread]) -> ProcessFlow:
    """Flow of a process recorded in mode `counts`, from the counters of its threads."""
    fragments = parsed.fragments
    counted, damaged_counters = _complete_counters(parsed, threads)
    used = sorted_unique(np.zeros(0, np.int64), *(one.number for one in counted))
    edges, paths = collect_ways(parsed, states, None if _has_open_paths(threads) else NumberSet(used))
    # What counted, but was never announced: those records were lost.
    damaged_counters += int(np.count_nonzero(~NumberSet(edges.counter, paths.counter).holds(used)))

    accounting = Accounting(fragments, edges, paths, CodeState.COUNTED)
    n_members = [thread.n_members for thread in threads]
    flows: list[FlowBatch] = []
    # What a thread did takes the place of its counters.
    counted.reverse()
    first = 0
    while counted:
        one = counted.pop().open()
        flows.append(accounting.follow(one, n_members[first : first + one.n_threads]))
        first += one.n_threads
    flow = _add_up_threads(accounting, flows, damaged_counters)
    del accounting
    # A system call that never came back is no edge.
    taken = np.flatnonzero(flow.edge_total > 0)
    renumbered = narrow(np.cumsum(flow.edge_total > 0) - 1)
    return replace(
        flow,
        edges=edges.take(taken),
        threads=ThreadFlows([replace(batch, edges=batch.edges.renumber(renumbered)) for batch in flows]),
        edge_total=flow.edge_total[taken],
        edge_place=flow.edge_place[taken],
    )


def _has_open_paths(threads: Sequence[RawThread]) -> bool:
    """Whether counters of a thread with a path were read while it ran on. They are not of one time then: a count that
    is the difference of two others may come out as none, though the path, and what its checkpoints say, lead there.
    """
    return any(thread.path_bytes for thread in threads)


def _complete_counters(parsed: ParsedRecords, threads: Sequence[RawThread]) -> tuple[list[KeptTally], int]:
    """The counters of threads, some of them at a time, of each way alone; and how many were overwritten."""
    leaders, separation = Leaders(parsed.fragments, parsed.links), _Separation(parsed.fragments)
    n_damaged = 0
    complete: list[KeptTally] = []
    for batch in iter_batches([len(thread.counters.index) for thread in threads]):
        counters = Tally.join([(thread.counters.index, thread.counters.value) for thread in threads[batch]])
        sound = (counters.count >= 0) & (counters.count < COUNTER_LIMIT)
        n_damaged += int(np.count_nonzero(~sound))
        complete.append(separation.apply(leaders.apply(counters.take(sound))).keep())
    return complete, n_damaged


def keep_recorded(flow: ProcessFlow, fragments: Fragments) -> ProcessFlow:
    """The flow of a process, less what was counted only because ordered paths lead through it: what its threads did in
    recorded code, and the edges of which one end lies there. Edges and paths keep their numbers.
    """
    edges = flow.edges
    is_kept_path = ~fragments.is_left_out[flow.paths.fragment]
    is_kept_edge = (edges.source_state == CodeState.RECORDED) | (edges.target_state == CodeState.RECORDED)
    accounting = Accounting(fragments, edges, flow.paths, CodeState.RECORDED)
    kept = [
        accounting.balance(_take(batch.paths.open(), is_kept_path), _take(batch.edges.open(), is_kept_edge))
        for batch in flow.threads.batches
    ]
    return _add_up_threads(accounting, kept, flow.damaged_counters)


def _take(tally: Tally, is_kept: Array) -> Tally:
    return tally.take(is_kept[tally.number])


def _add_up_threads(accounting: Accounting, flows: list[FlowBatch], damaged_counters: int) -> ProcessFlow:
    edges, paths = accounting.edges, accounting.paths
    edge_total, path_total = np.zeros(len(edges), np.int64), np.zeros(len(paths), np.int64)
    missing = np.zeros(len(accounting.places), np.int64)
    for batch in flows:
        for total, tally in ((edge_total, batch.edges), (path_total, batch.paths), (missing, batch.returns)):
            # Of the type of the total: numpy takes ten times as long where it converts.
            np.add.at(total, tally.number, tally.count.astype(np.int64, copy=False))
    return ProcessFlow(
        edges=edges,
        paths=paths,
        threads=ThreadFlows(flows),
        edge_total=edge_total,
        path_total=path_total,
        places=accounting.places,
        n_starts=accounting.n_starts,
        edge_place=accounting.edge_place,
        inflow_missing=missing,
        damaged_counters=damaged_counters,
    )


def compute_seen_flow(parsed: ParsedRecords, states: CodeStates) -> ProcessFlow:
    """Flow of a process recorded in mode `coverage`: every total is 1, for "seen", or 0."""
    fragments = parsed.fragments
    possible, paths = collect_ways(parsed, states)
    is_dynamic = ~np.isin(possible.kind, [*DIRECT_EDGES.values(), EdgeKind.TAKEN, EdgeKind.NOT_TAKEN])
    # Where a signal comes at the end of a system call, its exit is taken without ever being linked.
    interrupted = possible.source_pc[possible.kind == EdgeKind.SIGNAL]
    is_dynamic |= (possible.kind == EdgeKind.SYSCALL) & np.isin(possible.target_pc, interrupted)
    dynamic = possible.take(np.flatnonzero(is_dynamic))
    links = parsed.links
    by_number = Rows(fragments.fragment_id)
    source = by_number.find_first(links["source_fragment_id"])
    linked = np.flatnonzero((source >= 0) & ~np.isin(links["edge_kind"], [EdgeKind.RETURN, EdgeKind.PARTIAL]))
    target_pc = links["target_pc"][linked].astype(np.uint64)
    source_state, target_state = states.find_of_ways(source[linked], fragments.app_pc[source[linked]], target_pc)
    edges = FragmentEdges(
        source=np.concatenate([source[linked], dynamic.source]),
        source_pc=np.concatenate([fragments.app_pc[source[linked]], dynamic.source_pc]),
        target_pc=np.concatenate([target_pc, dynamic.target_pc]),
        kind=np.concatenate([links["edge_kind"][linked], dynamic.kind]),
        counter=np.full(len(linked) + len(dynamic), -1),
        target=np.concatenate([by_number.find_first(links["target_fragment_id"][linked]), dynamic.target]),
        tsc=np.concatenate([links["tsc"][linked].astype(np.uint64), dynamic.tsc]),
        source_state=np.concatenate([source_state, dynamic.source_state]),
        target_state=np.concatenate([target_state, dynamic.target_state]),
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
    accounting = Accounting(fragments, edges, paths, CodeState.COUNTED)
    reached = np.zeros(len(accounting.places), bool)
    reached[accounting.edge_place] = True
    returned_to = np.isin(accounting.places, links["target_pc"][links["edge_kind"] == EdgeKind.RETURN])
    starts = np.arange(len(accounting.places)) < accounting.n_starts
    ran = accounting.find_run_places()
    return ProcessFlow(
        edges=edges,
        paths=paths,
        threads=ThreadFlows([]),
        edge_total=np.ones(len(edges), np.int64),
        path_total=np.ones(len(paths), np.int64),
        places=accounting.places,
        n_starts=accounting.n_starts,
        edge_place=accounting.edge_place,
        inflow_missing=(starts & ran & (~reached | returned_to)).astype(np.int64),
        damaged_counters=0,
    )


class _Separation:
    """Leaves one way in each counter, where the runtime counted both ways of a conditional branch in one of them."""

    def __init__(self, fragments: Fragments) -> None:
        has_counter = fragments.counter_index >= 0
        first = fragments.counter_index[fragments.first_is_both & has_counter]
        second = fragments.counter_index[fragments.second_is_both & has_counter] + 1
        # Counters with both ways, and how far from each the other one's is.
        self._shared = (NumberSet(first), 1), (NumberSet(second), -1)

    def apply(self, counters: Tally) -> Tally:
        thread, index, value = counters.thread, counters.number, counters.count.copy()
        for both, step in self._shared:
            # Counters rise, so the other one's is the next one or the one before, if it counted at all.
            shared = np.flatnonzero(both.holds(index))
            beside = np.clip(shared + step, 0, len(index) - 1)
            is_other = (index[beside] == index[shared] + step) & (thread[beside] == thread[shared])
            value[shared] -= np.minimum(counters.count[shared], np.where(is_other, counters.count[beside], 0))
        return Tally(counters.n_threads, thread, index, value).take(value > 0)
