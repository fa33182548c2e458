"""Which version of the code each fragment holds, where code changed while the program ran.

Runs in the controller, after the target ended. Pure.

The runtime numbers versions by the address at which a fragment starts, so two fragments that share instructions may
disagree. What counts for a trace is whether they can be the same code. So fragments that overlap are taken in the order
of their translation: each is of the newest version unless it contradicts that, byte by byte; then of an older one that
has the very same bytes, or of a new one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import ExitKind
from clew.recording.assembly.arrays.keys import gather, spans
from clew.recording.assembly.records.records import Fragments

__all__ = ["assign_versions", "find_ends"]

Array = npt.NDArray[Any]

_MAX_TRIES = 16
"""How many versions, the newest first, a fragment is compared with before it gets a new one."""
_PIECE_BYTES = 256
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
    last = np.concatenate((first[1:], [len(fragments)]))
    # Only where something went out of use there can be two versions.
    changed = np.add.reduceat((ends != _NEVER).astype(np.int64), first) > 0
    changed &= _contradict_themselves(fragments, first, last, changed)
    for begin, end in zip(first[changed].tolist(), last[changed].tolist(), strict=True):
        versions[begin:end] = _assign_in_cluster(fragments, begin, end, max_versions)
    return versions


def _contradict_themselves(fragments: Fragments, first: Array, last: Array, asked: Array) -> Array:
    """Which clusters have different code at one place in two fragments, of those that are `asked` for.

    What was laid out anew went out of use, too: most clusters have one version all the same.
    """
    found = np.zeros(len(first), bool)
    cluster = np.flatnonzero(asked & (last - first > 1))
    if not len(cluster):
        return found
    n_members = last[cluster] - first[cluster]
    member = spans(first[cluster], n_members)
    size = (fragments.end_pc[member] - fragments.app_pc[member]).astype(np.int64)
    # Each address of a cluster gets a place. The last one to write there wins, and all must agree with it.
    start = fragments.app_pc[first[cluster]]
    extent = (np.maximum.reduceat(fragments.end_pc, first)[cluster] - start).astype(np.int64)
    origin = np.repeat(np.cumsum(extent) - extent, n_members)
    place = spans(origin + (fragments.app_pc[member] - np.repeat(start, n_members)).astype(np.int64), size)
    code = gather(fragments.code, fragments.code_at[member], size)
    written = np.zeros(int(extent.sum()), np.uint8)
    written[place] = code
    differing = np.searchsorted(np.cumsum(size), np.flatnonzero(written[place] != code), "right")
    found[np.repeat(cluster, n_members)[differing]] = True
    return found


def _assign_in_cluster(fragments: Fragments, begin: int, end: int, max_versions: int) -> Array:
    """Versions of the fragments `begin` up to `end`, which overlap each other and nothing else."""
    versions = np.zeros(end - begin, np.int64)
    base = int(fragments.app_pc[begin])
    newest = 0
    # The newest first. Older ones are never asked again: a program that rewrites one place for hours has many.
    known = deque([_Version()], _MAX_TRIES)
    for member in np.argsort(fragments.tsc[begin:end], kind="stable").tolist():
        index = begin + member
        at = int(fragments.app_pc[index]) - base
        length = int(fragments.end_pc[index]) - int(fragments.app_pc[index])
        code_at = int(fragments.code_at[index])
        parts = list(_iter_parts(at, fragments.code[code_at : code_at + length].tobytes()))
        age = 0
        if not known[0].agrees(parts):
            # What was there before may be there again.
            age = next((age for age in range(1, len(known)) if known[age].holds(parts)), -1)
        if age < 0 and newest < max_versions - 1:
            newest += 1
            known.appendleft(_Version())
        age = max(age, 0)
        known[age].learn(parts)
        versions[member] = newest - age
    return versions


_Part = tuple[int, int, bytes]
"""Code inside one page: the page's number, where in the page, and the code."""


def _iter_parts(at: int, code: bytes) -> Iterator[_Part]:
    """`code`, which is at `at`, by page."""
    done = 0
    while done < len(code):
        page, inside = divmod(at + done, _PIECE_BYTES)
        part = code[done : done + _PIECE_BYTES - inside]
        yield page, inside, part
        done += len(part)


class _Version:
    """What is known of a cluster's code in one version. Places count from the cluster's start, in bytes.

    Only pages of which something is known take room: a cluster may be large, and each of its versions small.
    """

    def __init__(self) -> None:
        # The code of a page, and 1 for each byte of it that is known.
        self._pages: dict[int, tuple[bytearray, bytearray]] = {}

    def learn(self, parts: list[_Part]) -> None:
        """The code of `parts` is there."""
        for page, at, code in parts:
            if page not in self._pages:
                self._pages[page] = bytearray(_PIECE_BYTES), bytearray(_PIECE_BYTES)
            known_code, is_known = self._pages[page]
            known_code[at : at + len(code)] = code
            is_known[at : at + len(code)] = b"\1" * len(code)

    def agrees(self, parts: list[_Part]) -> bool:
        """Whether the code of `parts` may be there: nothing is known that contradicts it."""
        for page, at, code in parts:
            if page not in self._pages:
                continue
            known_code, is_known = self._pages[page]
            there = known_code[at : at + len(code)]
            if there != code and any(
                known and one != other
                for known, one, other in zip(is_known[at : at + len(code)], there, code, strict=True)
            ):
                return False
        return True

    def holds(self, parts: list[_Part]) -> bool:
        """Whether the code of `parts` is there, every byte."""
        for page, at, code in parts:
            if page not in self._pages:
                return False
            known_code, is_known = self._pages[page]
            if known_code[at : at + len(code)] != code or is_known.find(0, at, at + len(code)) >= 0:
                return False
        return True
