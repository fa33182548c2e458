"""What a fork's child takes over from its parent: the records of the code that it found in its copy of the cache.

Runs in the controller, after the targets ended. Works on whole records; what else is in them is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import (
    DYNAMIC_EDGE_RECORD,
    FRAGMENT_RECORD,
    IMAGE_RECORD,
    INVALIDATE_RECORD,
    LINK_RECORD,
    NO_INDEX,
    NO_SYMBOL,
    UNMAP_RECORD,
    ExitKind,
    Mode,
    RecordKind,
)
from clew.recording.assembly.arrays.keys import sorted_unique, spans
from clew.recording.assembly.arrays.rows import Rows
from clew.recording.assembly.images.mapped import MappedSpans
from clew.recording.raw.process import Counters

__all__ = ["Announced"]

Array = npt.NDArray[Any]

_NEVER = np.iinfo(np.uint64).max


class Announced:
    """The records of a process, shape (n, 64), looked through once for all its children."""

    def __init__(self, records: npt.NDArray[np.uint8]) -> None:
        self._records = records
        kind = records[:, :2].copy().view("<u2")[:, 0]
        # All of these have their time stamp at the same place.
        self._tsc = records[:, 24:32].copy().view("<u8")[:, 0]
        heads = np.flatnonzero(kind != RecordKind.CONTINUATION)
        self._length = np.ones(len(records), np.int64)
        self._length[heads] = np.concatenate((heads[1:], [len(records)])) - heads
        self._fragment_at = np.flatnonzero(kind == RecordKind.FRAGMENT)
        self._edge_at = np.flatnonzero(kind == RecordKind.DYNAMIC_EDGE)
        self._link_at = np.flatnonzero(kind == RecordKind.LINK)
        self._invalidate_at = np.flatnonzero(kind == RecordKind.INVALIDATE)
        fragments = records[self._fragment_at].reshape(-1).view(FRAGMENT_RECORD)
        edges = records[self._edge_at].reshape(-1).view(DYNAMIC_EDGE_RECORD)
        invalidates = records[self._invalidate_at].reshape(-1).view(INVALIDATE_RECORD)
        self._by_counter = Rows(_read_counters(fragments))
        self._edges_by_counter = Rows(_read_counters(edges))
        self._app_pc = fragments["app_pc"].copy()
        self._end_pc = _read_end_pc(fragments)
        calls = np.isin(fragments["exit_kind"], (ExitKind.CALL, ExitKind.INDIRECT_CALL))
        self._call = np.flatnonzero(calls)
        self._calls_by_return_point = Rows(self._end_pc[calls])
        self._by_number = Rows(fragments["fragment_id"])
        links = records[self._link_at].reshape(-1).view(LINK_RECORD)
        self._links_by_leader = Rows(self._by_number.find_first(links["source_fragment_id"]))
        self._follower = self._by_number.find_first(links["target_fragment_id"])
        self._source = self._by_number.find_first(edges["source_fragment_id"])
        # What returns write into paths, by where the return ends: it is told once, whichever fragments have it later.
        told = np.flatnonzero(
            (edges["counter_index"] == NO_INDEX) & (edges["symbol"] != NO_SYMBOL) & (self._source >= 0)
        )
        self._symbol_edge, self._symbols_by_end = told, Rows(self._end_pc[self._source[told]])
        self._invalidates_by_fragment = Rows(self._by_number.find_first(invalidates["fragment_id"]))
        self._find_what_is_mapped(kind)

    def find_inherited(
        self,
        before_tsc: int,
        mode: Mode,
        counters: Sequence[Counters],
        own: npt.NDArray[np.uint8],
    ) -> npt.NDArray[np.uint8]:
        """Those that say something of a child, with their continuations.

        They are of before the fork, `before_tsc`, and of code that the child's threads, which left `counters`, ran;
        `own` are the records that it wrote itself. In `coverage` the child tells of its code itself. Of what is
        mapped only that is among them which still was at the fork.
        """
        found: list[Array] = [] if mode is Mode.COVERAGE else self._find_executed(before_tsc, counters, own)
        return self._gather([self._find_mapped(before_tsc), *found])

    def find_before(self, tsc: int) -> npt.NDArray[np.uint8]:
        """All that a child forked at a time stamp found, for the children that it had itself."""
        code = (self._edge_at, self._fragment_at, self._invalidate_at, self._link_at)
        return self._gather([self._find_mapped(tsc), *(at[self._tsc[at] < tsc] for at in code)])

    def _gather(self, positions: list[Array]) -> npt.NDArray[np.uint8]:
        """The records at `positions`, each once, with their continuations, in their order."""
        at = sorted_unique(*positions)
        gathered: npt.NDArray[np.uint8] = self._records[spans(at, self._length[at])]
        return gathered

    def _find_what_is_mapped(self, kind: Array) -> None:
        """Look for when each mapping went, and for what tells of others than these going."""
        self._place_at = np.flatnonzero((kind == RecordKind.IMAGE) | (kind == RecordKind.UNMAP))
        self._place_at = self._place_at[np.argsort(self._tsc[self._place_at], kind="stable")]
        self._gone_tsc = np.full(len(self._place_at), _NEVER)
        mapped = MappedSpans()
        for number, at in enumerate(self._place_at.tolist()):
            dtype = IMAGE_RECORD if kind[at] == RecordKind.IMAGE else UNMAP_RECORD
            row = self._records[at].view(dtype)[0]
            start, end = int(row["start"]), int(row["start"]) + int(row["size_bytes"])
            if dtype is IMAGE_RECORD:
                mapped.add(start, end, number)
                continue
            gone = mapped.remove(start, end)
            if gone:
                self._gone_tsc[[number, *gone]] = self._tsc[at]

    def _find_mapped(self, tsc: int) -> Array:
        """Records of what was mapped at a time stamp, and of what was unmapped that no record had told of."""
        was_told = self._tsc[self._place_at] < tsc
        found: Array = self._place_at[was_told & (self._gone_tsc >= tsc)]
        return found

    def _with_followers(self, fragment: Array) -> Array:
        """Fragments, and those that were executed without counting for it since these led to them."""
        found = newest = fragment
        while len(newest):
            followers = self._follower[self._links_by_leader.find(newest)[0]]
            newest = np.setdiff1d(followers[followers >= 0], found)
            found = sorted_unique(found, newest)
        return found

    def _find_executed(self, before_tsc: int, counters: Sequence[Counters], own: npt.NDArray[np.uint8]) -> list[Array]:
        """Edges, fragments and what became of them: of code that ran, or of calls that ended in it.

        A child returns from what its parent called.
        """
        counted = sorted_unique(np.zeros(0, np.int64), *(one.index for one in counters))
        edge = self._edges_by_counter.find(counted)[0]
        edge = edge[self._tsc[self._edge_at[edge]] < before_tsc]
        kind = own[:, :2].copy().view("<u2")[:, 0]
        left = own[kind == RecordKind.DYNAMIC_EDGE].reshape(-1).view(DYNAMIC_EDGE_RECORD)["source_fragment_id"]
        fragment = sorted_unique(
            self._by_counter.find(counted)[0],
            self._by_counter.find(counted - 1)[0],
            self._source[edge],
            self._by_number.find_first(left),
        )
        fragment = self._with_followers(fragment[fragment >= 0])
        fragment = fragment[self._tsc[self._fragment_at[fragment]] < before_tsc]
        made = own[kind == RecordKind.FRAGMENT].reshape(-1).view(FRAGMENT_RECORD)
        resumed = self._calls_by_return_point.find(sorted_unique(self._app_pc[fragment], made["app_pc"]))[0]
        ends = sorted_unique(self._end_pc[fragment], _read_end_pc(made))
        symbol = self._symbol_edge[self._symbols_by_end.find(ends)[0]]
        edge = sorted_unique(edge, symbol[self._tsc[self._edge_at[symbol]] < before_tsc])
        fragment = sorted_unique(fragment, self._call[resumed], self._source[symbol])
        invalidate = self._invalidates_by_fragment.find(fragment)[0]
        link = self._links_by_leader.find(fragment)[0]
        at = self._edge_at[edge], self._fragment_at[fragment], self._invalidate_at[invalidate], self._link_at[link]
        return [one[self._tsc[one] < before_tsc] for one in at]


def _read_counters(rows: Array) -> Array:
    """The numbers of their counters, i64; -1 for none."""
    counters: Array = rows["counter_index"].astype(np.int64)
    counters[counters == NO_INDEX] = -1
    return counters


def _read_end_pc(fragments: Array) -> Array:
    end: Array = fragments["app_pc"] + fragments["size_bytes"].astype(np.uint64)
    return end
