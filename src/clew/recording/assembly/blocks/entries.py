"""Where basic blocks begin: every instruction that the run came to otherwise than along the straight line.

Runs in the controller, after the target ended. Pure.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import EdgeKind, ExitKind
from clew.recording.assembly.arrays.keys import KeySpace, sorted_unique, spans
from clew.recording.assembly.flow.flow import ProcessFlow
from clew.recording.assembly.records.records import Fragments
from clew.recording.assembly.records.states import CodeState

__all__ = ["Entries", "find_entries"]

Array = npt.NDArray[Any]

_MAX_CANDIDATES = 64
"""How many versions an edge is tried with: those around the time at which it was taken come first."""


@dataclass(frozen=True)
class Entries:
    """Where blocks begin, and where the edges lead.

    `keys` are entries, u64, sorted, each once. `used` are the fragments that matter (indices): what ran, and what is
    gone to. `target_key` has the instruction each edge of the flow leads to; where `is_ambiguous`, code of several
    versions starts there, and it is the likeliest of them. `waiting` are the edges (indices) of kind signal and fault,
    and `waiting_key` the instructions that they came before. `onward_key` has, by fragment, what the straight line out
    of its end leads to. `calls` are the fragments (indices) that did not run and end with a call that came back here: a
    fork's child returns from what its parent called. `parted` are the paths (indices) that stop inside their fragment,
    where what came next may be code of another version: it was written before the thread went on.
    """

    keys: Array
    used: Array
    target_key: Array
    is_ambiguous: Array
    waiting: Array
    waiting_key: Array
    onward_key: Array
    calls: Array
    parted: Array


class _Starts:
    """At which addresses fragments start, in code of which versions."""

    def __init__(self, pc: Array, version: Array, space: KeySpace) -> None:
        self._space = space
        self._is_of_one_version = not version.any()
        key = sorted_unique(space.key(version, pc))
        starts = space.pc(key)
        order = np.argsort(starts, kind="stable")
        self._pc, self._key = starts[order], key[order]

    def all_at(self, pc: Array) -> Array:
        """Keys of every start at the addresses `pc`."""
        first, last = np.searchsorted(self._pc, pc), np.searchsorted(self._pc, pc, "right")
        return self._key[spans(first, last - first)]

    def resolve(self, pc: Array, version: Array) -> tuple[Array, Array]:
        """Key of each address, and whether code of several versions starts there.

        Where nothing starts, `version` says which one is meant.
        """
        if self._is_of_one_version and not version.any():
            return self._space.key(version, pc), np.zeros(len(pc), bool)
        first, last = np.searchsorted(self._pc, pc), np.searchsorted(self._pc, pc, "right")
        starts = last > first
        key = self._space.key(version, pc)
        key[starts] = self._key[first[starts]]
        return key, last - first > 1


def find_entries(fragments: Fragments, flow: ProcessFlow, space: KeySpace, ends: Array) -> Entries:
    """Entries of a run, given its flow. `ends` are the time stamps at which the fragments went out of use."""
    edges, paths = flow.edges, flow.paths
    version = fragments.code_version
    waiting = np.flatnonzero((edges.kind == EdgeKind.SIGNAL) | (edges.kind == EdgeKind.FAULT))
    wanted = sorted_unique(edges.target_pc, edges.source_pc[waiting])
    first = np.searchsorted(fragments.app_pc, wanted)
    is_used = np.zeros(len(fragments), bool)
    is_used[spans(first, np.searchsorted(fragments.app_pc, wanted, "right") - first)] = True
    is_used[paths.fragment] = True
    is_used[edges.source[edges.source >= 0]] = True
    calls = _find_calls_of_parent(fragments, flow)
    is_used[calls] = True
    used = np.flatnonzero(is_used)

    starts = _Starts(fragments.app_pc[used], version[used], space)
    source_version = np.zeros(len(edges), np.int64)
    has_source = edges.source >= 0
    source_version[has_source] = version[edges.source[has_source]]
    # Where no code was ever read there is one place, whichever version of other code leads there.
    target_key, is_ambiguous = starts.resolve(edges.target_pc, np.zeros(len(edges), np.int64))
    key = space.key(version, fragments.app_pc)
    has_versions = bool(version[used].any())
    waiting_key, _ = starts.resolve(edges.source_pc[waiting], source_version[waiting])
    if has_versions:
        versions = _Versions(fragments, flow, key, ends)
        versions.choose_targets(target_key, is_ambiguous)
        versions.choose_sources(waiting, waiting_key)
        # Faults name the fragment of the instruction.
        is_named = has_source[waiting]
        named = waiting[is_named]
        waiting_key[is_named] = space.key(source_version[named], edges.source_pc[named])

    # The straight line makes no entry, but where it crosses between what is recorded and what is not.
    makes_entry = edges.kind != EdgeKind.FALL_THROUGH
    crosses = (edges.source_state == CodeState.RECORDED) != (edges.target_state == CodeState.RECORDED)
    makes_entry |= has_source & crosses
    stopping = np.flatnonzero(paths.stop_pc != fragments.end_pc[paths.fragment])
    stop_key = space.key(version[paths.fragment[stopping]], paths.stop_pc[stopping])
    parted_paths = np.zeros(0, np.int64)
    keys = [
        target_key[makes_entry & ~is_ambiguous],
        starts.all_at(flow.places[: flow.n_starts][flow.inflow_missing[: flow.n_starts] > 0]),
        stop_key,
        waiting_key,
    ]
    falls = np.flatnonzero((edges.kind == EdgeKind.FALL_THROUGH) & has_source)
    onward_key = key + (fragments.end_pc - fragments.app_pc)
    onward_key[edges.source[falls]] = target_key[falls]
    if has_versions:
        keys[1] = keys[1][_count_excess(flow, key, onward_key, keys[1]) > 0]
        shared = starts.all_at(sorted_unique(edges.target_pc[makes_entry & is_ambiguous]))
        keys.append(shared[_count_excess(flow, key, onward_key, shared) > 0])
        # One straight line that led to code of several versions, because what it leads to was written meanwhile.
        onward = starts.all_at(sorted_unique(edges.target_pc[is_ambiguous & (edges.kind == EdgeKind.FALL_THROUGH)]))
        parted = space.pc(onward[_count_excess(flow, key, onward_key, onward) != 0])
        keys.append(onward[np.isin(space.pc(onward), parted)])
        resumed = starts.all_at(sorted_unique(paths.stop_pc[stopping]))
        keys.append(resumed[_count_excess(flow, key, onward_key, resumed) > 0])
        parted_paths = stopping[_may_go_elsewhere(space, stop_key, sorted_unique(keys[-1], waiting_key))]
    return Entries(
        sorted_unique(*keys), used, target_key, is_ambiguous, waiting, waiting_key, onward_key, calls, parted_paths
    )


def _may_go_elsewhere(space: KeySpace, stop_key: Array, resumed: Array) -> Array:
    """Which of the instructions `stop_key`, in front of which a path stops, have another version among `resumed`."""
    pc, resumed_pc = space.pc(stop_key), np.sort(space.pc(resumed))
    n_resumed = np.searchsorted(resumed_pc, pc, "right") - np.searchsorted(resumed_pc, pc)
    elsewhere: Array = n_resumed > np.isin(stop_key, resumed)
    return elsewhere


def _find_calls_of_parent(fragments: Fragments, flow: ProcessFlow) -> Array:
    is_call = np.isin(fragments.exit_kind, (ExitKind.CALL, ExitKind.INDIRECT_CALL))
    has_run = np.zeros(len(fragments), bool)
    has_run[flow.paths.fragment] = True
    missing = sorted_unique(flow.places[flow.inflow_missing > 0])
    if not len(missing):
        return np.zeros(0, np.int64)
    # Where each fragment ends among what is missing. Where one that ran ends with a call, nothing is to be found.
    at = np.minimum(np.searchsorted(missing, fragments.end_pc), len(missing) - 1)
    ends_there = is_call & (missing[at] == fragments.end_pc)
    is_explained = np.zeros(len(missing), bool)
    is_explained[at[ends_there & has_run]] = True
    found: Array = np.flatnonzero(ends_there & ~has_run & ~is_explained[at])
    return found


class _Place:
    """The fragments that start at one address: `first` up to `last`, in the order in which they were made.

    Asked once for each edge to the address: were all of them gone through each time, code that is rewritten in one
    place again and again would take the square of that.
    """

    def __init__(self, tsc: Array, ends: Array, first: int, last: int) -> None:
        order = np.argsort(tsc[first:last], kind="stable")
        self._made = tsc[first:last][order]
        # The first one that was in use after a time is also the first at which this is later.
        self._latest_end = np.maximum.accumulate(ends[first:last][order])
        self._order: list[int] = (first + order).tolist()

    def find_in_use(self, tsc: np.uint64) -> int:
        """The fragment that was in use at `tsc`, or was made next."""
        at = int(np.searchsorted(self._latest_end, tsc, "right"))
        return self._order[min(at, len(self._order) - 1)]

    def iter_before(self, tsc: np.uint64) -> Iterator[int]:
        """The latest fragment made before `tsc`, those made after it, then those made before, the latest first."""
        latest = max(int(np.searchsorted(self._made, tsc)) - 1, 0)
        for at in itertools.chain(range(latest, len(self._order)), range(latest - 1, -1, -1)):
            yield self._order[at]


class _Versions:
    """Which version of the code an edge most likely led to, or came from, where there are several."""

    def __init__(self, fragments: Fragments, flow: ProcessFlow, key: Array, ends: Array) -> None:
        self._fragments, self._edges, self._key, self._ends = fragments, flow.edges, key, ends
        self._edge_total = flow.edge_total
        self._places: dict[int, _Place] = {}
        # Executions of each fragment that no edge was chosen for yet.
        self._left = np.zeros(len(fragments), np.int64)
        np.add.at(self._left, flow.paths.fragment, flow.path_total)

    def choose_targets(self, target_key: Array, is_ambiguous: Array) -> None:
        """Set `target_key`, where it is ambiguous.

        The runtime said which, when it first met the edge; or the exit is a direct one: a fragment is dropped together
        with those linked to it, so such an exit led to one fragment only: the latest made before its own went out of
        use, or, where it was in the middle of leaving just then, the one made next. How often that ran tells.
        """
        edges = self._edges
        said = is_ambiguous & (edges.target >= 0)
        target_key[said] = self._key[edges.target[said]]
        is_direct = ((edges.kind <= EdgeKind.CALL) | (edges.kind == EdgeKind.SYSCALL)) & (edges.source >= 0)
        for row in np.flatnonzero(is_ambiguous & ~said).tolist():
            place = self._place_at(*self._all_at(edges.target_pc[row]))
            if is_direct[row]:
                chosen = self._choose(place.iter_before(self._ends[edges.source[row]]), int(self._edge_total[row]))
            else:
                chosen = place.find_in_use(edges.tsc[row])
            target_key[row] = self._key[chosen]

    def _choose(self, candidates: Iterator[int], taken: int) -> int:
        """The first of the fragments `candidates` that ran so much oftener than edges lead to it; else the first."""
        likeliest = next(candidates)
        tried = itertools.chain([likeliest], itertools.islice(candidates, _MAX_CANDIDATES - 1))
        chosen = next((index for index in tried if self._left[index] >= taken), likeliest)
        self._left[chosen] -= taken
        return chosen

    def choose_sources(self, rows: Array, source_key: Array) -> None:
        """Set `source_key` of the edges `rows` that come from an address, by when the runtime first told of them."""
        for index, row in enumerate(rows.tolist()):
            first, last = self._all_at(self._edges.source_pc[row])
            if last - first > 1:
                source_key[index] = self._key[self._place_at(first, last).find_in_use(self._edges.tsc[row])]

    def _all_at(self, pc: np.uint64) -> tuple[int, int]:
        app_pc = self._fragments.app_pc
        return int(np.searchsorted(app_pc, pc)), int(np.searchsorted(app_pc, pc, "right"))

    def _place_at(self, first: int, last: int) -> _Place:
        """The place whose fragments are `first` up to `last`."""
        if first not in self._places:
            self._places[first] = _Place(self._fragments.tsc, self._ends, first, last)
        return self._places[first]


def _count_excess(flow: ProcessFlow, key: Array, onward_key: Array, wanted: Array) -> Array:
    """How many more executions start at each of the keys `wanted` than the straight line alone leads to.

    `key` and `onward_key` are by fragment: where it starts, and what the straight line out of it leads to.
    """
    together, place = np.unique(np.concatenate([wanted, key, onward_key]), return_inverse=True)
    n_wanted, n_keys = len(wanted), len(wanted) + len(key)
    wanted_at, key_at, onward_at = place[:n_wanted], place[n_wanted:n_keys], place[n_keys:]
    excess = np.zeros(len(together), np.int64)
    np.add.at(excess, key_at[flow.paths.fragment], flow.path_total)
    falls = np.flatnonzero((flow.edges.kind == EdgeKind.FALL_THROUGH) & (flow.edges.source >= 0))
    np.subtract.at(excess, onward_at[flow.edges.source[falls]], flow.edge_total[falls])
    counted: Array = excess[wanted_at]
    return counted
