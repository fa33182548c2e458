"""Which version of the code each fragment holds, where code changed while the program ran.

Runs in the controller, after the target ended. Pure.

The runtime numbers versions by the address at which a fragment starts, so two fragments that share instructions may
disagree. What counts for a trace is whether they can be the same code. So fragments that overlap are taken in the order
of their translation: each is of the newest version unless it contradicts that, byte by byte; then of an older one that
has the very same bytes, or of a new one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import ExitKind
from clew.recording.assemble_records import Fragments

__all__ = ["assign_versions", "find_ends"]

Array = npt.NDArray[Any]

_MAX_TRIES = 16
"""How many versions, the newest first, a fragment is compared with before it gets a new one."""
_NEVER = np.iinfo(np.uint64).max


def find_ends(fragments: Fragments, invalidates: Array) -> Array:
    """Time stamps at which the fragments went out of use, u64; the highest number for those that never did."""
    ends = np.full(len(fragments), _NEVER, np.uint64)
    if not len(invalidates):
        return ends
    order = np.argsort(fragments.fragment_id)
    ids = fragments.fragment_id[order]
    at = np.searchsorted(ids, invalidates["fragment_id"])
    known = at < len(ids)
    known[known] = ids[at[known]] == invalidates["fragment_id"][known]
    np.minimum.at(ends, order[at[known]], invalidates["tsc"][known].astype(np.uint64))
    return ends


def assign_versions(fragments: Fragments, ends: Array, max_versions: int) -> Array:
    """Versions of the fragments, i64, below `max_versions`; 0 wherever the code was never seen to change.

    `ends` are the time stamps at which the fragments went out of use.
    """
    versions = np.zeros(len(fragments), np.int64)
    if not (ends != _NEVER).any():
        return versions
    # Fragments are sorted by address; a cluster is what hangs together by overlapping, or by running on.
    reach = np.maximum.accumulate(fragments.end_pc)
    goes_on = np.isin(fragments.app_pc, fragments.end_pc[fragments.exit_kind == ExitKind.FALL_THROUGH])
    starts_cluster = np.ones(len(fragments), bool)
    starts_cluster[1:] = (fragments.app_pc[1:] > reach[:-1]) | ((fragments.app_pc[1:] == reach[:-1]) & ~goes_on[1:])
    first = np.flatnonzero(starts_cluster)
    last = np.append(first[1:], len(fragments))
    # Only where something went out of use there can be two versions.
    changed = np.add.reduceat((ends != _NEVER).astype(np.int64), first) > 0
    for begin, end in zip(first[changed].tolist(), last[changed].tolist(), strict=True):
        if end - begin > 1:
            versions[begin:end] = _assign_in_cluster(fragments, begin, end, max_versions)
    return versions


def _assign_in_cluster(fragments: Fragments, begin: int, end: int, max_versions: int) -> Array:
    """Versions of the fragments `begin` up to `end`, which overlap each other and nothing else."""
    versions = np.zeros(end - begin, np.int64)
    base = int(fragments.app_pc[begin])
    size = int(fragments.end_pc[begin:end].max()) - base
    known = [_Version(size)]
    for member in np.argsort(fragments.tsc[begin:end], kind="stable").tolist():
        index = begin + member
        at = int(fragments.app_pc[index]) - base
        length = int(fragments.end_pc[index]) - int(fragments.app_pc[index])
        code = fragments.code[int(fragments.code_at[index]) :][:length]
        newest = len(known) - 1
        if known[newest].agrees(at, code):
            version = newest
        else:
            # What was there before may be there again.
            older = range(newest - 1, max(newest - _MAX_TRIES, -1), -1)
            version = next((number for number in older if known[number].holds(at, code)), newest + 1)
        version = min(version, max_versions - 1)
        if version == len(known):
            known.append(_Version(size))
        known[version].learn(at, code)
        versions[member] = version
    return versions


class _Version:
    """What is known of a cluster's code in one version. Places count from the cluster's start, in bytes."""

    def __init__(self, size_bytes: int) -> None:
        self._code = np.zeros(size_bytes, np.uint8)
        self._is_known = np.zeros(size_bytes, bool)

    def learn(self, at: int, code: Array) -> None:
        """`code` is at `at`."""
        self._code[at : at + len(code)] = code
        self._is_known[at : at + len(code)] = True

    def agrees(self, at: int, code: Array) -> bool:
        """Whether `code` may be at `at`: nothing is known that contradicts it."""
        differs = self._is_known[at : at + len(code)] & (self._code[at : at + len(code)] != code)
        return not differs.any()

    def holds(self, at: int, code: Array) -> bool:
        """Whether `code` is at `at`, every byte."""
        return bool(self._is_known[at : at + len(code)].all()) and self.agrees(at, code)
