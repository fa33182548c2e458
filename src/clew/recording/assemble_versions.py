"""Which version of the code each fragment holds, where code changed while the program ran.

Runs in the controller, after the target ended. Pure.

The runtime numbers versions by the address at which a fragment starts, so two fragments that share instructions may
disagree. What counts for a trace is whether they can be the same code: fragments are taken in the order of their
translation, and each gets the newest version that it does not contradict, byte by byte, or a new one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.recording.assemble_records import Fragments

__all__ = ["assign_versions", "find_ends"]

Array = npt.NDArray[Any]

_PAGE_BITS = 12
_PAGE_BYTES = 1 << _PAGE_BITS
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
    gone = np.flatnonzero(ends != _NEVER)
    if not len(gone):
        return versions
    # Only code that shares a page with something that went out of use can have two versions.
    first, last = fragments.app_pc >> np.uint64(_PAGE_BITS), (fragments.end_pc - np.uint64(1)) >> np.uint64(_PAGE_BITS)
    pages = np.unique(np.concatenate([first[gone], last[gone]]))
    concerned = np.flatnonzero(np.isin(first, pages) | np.isin(last, pages))
    concerned = concerned[np.argsort(fragments.tsc[concerned], kind="stable")]
    known: defaultdict[int, list[_PageVersion]] = defaultdict(list)
    for index in concerned.tolist():
        start, end = int(fragments.app_pc[index]), int(fragments.end_pc[index])
        at = int(fragments.code_at[index])
        code = fragments.code[at : at + end - start]
        version = 0
        spans = [
            (page, max(start, page << _PAGE_BITS), min(end, (page + 1) << _PAGE_BITS))
            for page in range(start >> _PAGE_BITS, ((end - 1) >> _PAGE_BITS) + 1)
        ]
        newest = max(len(known[page]) for page, _, _ in spans) - 1
        for version in range(newest, max(newest - _MAX_TRIES, -1), -1):
            if all(_agrees(known[page], version, low, code[low - start : high - start]) for page, low, high in spans):
                break
        else:
            version = min(newest + 1, max_versions - 1)
        for page, low, high in spans:
            while len(known[page]) <= version:
                known[page].append(_PageVersion())
            known[page][version].learn(low, code[low - start : high - start])
        versions[index] = version
    return versions


class _PageVersion:
    """What is known of a page's code in one version."""

    def __init__(self) -> None:
        self.code = np.zeros(_PAGE_BYTES, np.uint8)
        self.is_known = np.zeros(_PAGE_BYTES, bool)

    def learn(self, address: int, code: Array) -> None:
        at = address & (_PAGE_BYTES - 1)
        self.code[at : at + len(code)] = code
        self.is_known[at : at + len(code)] = True

    def agrees(self, address: int, code: Array) -> bool:
        at = address & (_PAGE_BYTES - 1)
        differs = self.is_known[at : at + len(code)] & (self.code[at : at + len(code)] != code)
        return not differs.any()


def _agrees(versions: list[_PageVersion], version: int, address: int, code: Array) -> bool:
    return version >= len(versions) or versions[version].agrees(address, code)
