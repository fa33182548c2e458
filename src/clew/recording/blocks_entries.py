"""Where basic blocks begin: every instruction that the run came to otherwise than along the straight line.

Runs in the controller, after the target ended. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import EdgeKind
from clew.recording.assemble_flow import ProcessFlow
from clew.recording.assemble_records import Fragments
from clew.recording.blocks_keys import KeySpace, sorted_unique, spans

__all__ = ["Entries", "find_entries"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Entries:
    """Where blocks begin, and where the edges lead.

    `keys` are entries, u64, sorted, each once. `used` are the fragments that matter (indices): what ran, and what is
    gone to. `target_key` has the instruction each edge of the flow leads to; where `is_ambiguous`, code of several
    versions starts there, and it is the likeliest of them. `waiting` are the edges (indices) of kind signal and fault,
    and `waiting_key` the instructions that they came before.
    """

    keys: Array
    used: Array
    target_key: Array
    is_ambiguous: Array
    waiting: Array
    waiting_key: Array


class _Starts:
    """At which addresses fragments start, in code of which versions."""

    def __init__(self, pc: Array, version: Array, space: KeySpace) -> None:
        self._space = space
        key = sorted_unique(space.key(version, pc))
        starts = space.pc(key)
        order = np.argsort(starts, kind="stable")
        self._pc, self._key = starts[order], key[order]

    def all_at(self, pc: Array) -> Array:
        """Keys of every start at the addresses `pc`."""
        first, last = np.searchsorted(self._pc, pc), np.searchsorted(self._pc, pc, "right")
        return self._key[spans(first, last - first)]

    def resolve(self, pc: Array, version: Array) -> tuple[Array, Array, Array]:
        """Key of each address, whether anything starts there, and whether several versions do.

        Where nothing starts, `version` says which one is meant.
        """
        first, last = np.searchsorted(self._pc, pc), np.searchsorted(self._pc, pc, "right")
        starts = last > first
        key = self._space.key(version, pc)
        key[starts] = self._key[first[starts]]
        return key, starts, last - first > 1


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
    used = np.flatnonzero(is_used)

    starts = _Starts(fragments.app_pc[used], version[used], space)
    source_version = np.zeros(len(edges), np.int64)
    has_source = edges.source >= 0
    source_version[has_source] = version[edges.source[has_source]]
    target_key, target_starts, is_ambiguous = starts.resolve(edges.target_pc, source_version)
    _choose_versions(fragments, flow, space.key(version, fragments.app_pc), ends, target_key, is_ambiguous)
    waiting_key, _, _ = starts.resolve(edges.source_pc[waiting], source_version[waiting])

    # The straight line makes no entry, but where it crosses between what is recorded and what is not.
    makes_entry = edges.kind != EdgeKind.FALL_THROUGH
    excluded_pc = fragments.app_pc[fragments.is_excluded]
    if len(excluded_pc):
        makes_entry |= np.isin(edges.target_pc, excluded_pc)
        makes_entry[has_source] |= fragments.is_excluded[edges.source[has_source]]
    is_partial = paths.stop_pc != fragments.end_pc[paths.fragment]
    left = paths.fragment[is_partial]
    keys = [
        target_key[makes_entry & (~target_starts | ~is_ambiguous)],
        starts.all_at(edges.target_pc[makes_entry & is_ambiguous]),
        starts.all_at(flow.places[: flow.n_starts][flow.inflow_missing[: flow.n_starts] > 0]),
        space.key(version[left], paths.stop_pc[is_partial]),
        waiting_key,
    ]
    return Entries(sorted_unique(*keys), used, target_key, is_ambiguous, waiting, waiting_key)


def _choose_versions(
    fragments: Fragments, flow: ProcessFlow, key: Array, ends: Array, target_key: Array, is_ambiguous: Array
) -> None:
    """Set `target_key`, where it is ambiguous, to the version that an edge most likely led to.

    The runtime said which, when it first met the edge; or the exit is a direct one: a fragment is dropped together with
    those linked to it, so such an exit led to the latest version that was made before its fragment went out of use.
    """
    edges = flow.edges
    said = is_ambiguous & (edges.target >= 0)
    target_key[said] = key[edges.target[said]]
    is_direct = (edges.kind <= EdgeKind.CALL) | (edges.kind == EdgeKind.SYSCALL)
    for row in np.flatnonzero(is_ambiguous & ~said & is_direct & (edges.source >= 0)).tolist():
        target_pc = edges.target_pc[row]
        first = int(np.searchsorted(fragments.app_pc, target_pc))
        last = int(np.searchsorted(fragments.app_pc, target_pc, "right"))
        made = fragments.tsc[first:last]
        in_time = np.flatnonzero(made < ends[edges.source[row]])
        if len(in_time):
            target_key[row] = key[first + in_time[np.argmax(made[in_time])]]
