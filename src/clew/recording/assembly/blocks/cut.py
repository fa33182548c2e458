"""Fragments cut into pieces at the entries, and pieces joined into blocks.

Runs in the controller, after the target ended. Pure. See `blocks.py` for the method and the words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import ExitKind
from clew.recording.assembly.arrays.keys import KeySpace, sorted_unique, spans
from clew.recording.assembly.arrays.tallies import narrow
from clew.recording.assembly.records.records import Fragments

__all__ = ["NONE", "CutCode", "cut_fragments"]

Array = npt.NDArray[Any]

NONE = -1

_MAX_CUTS = 1 << 25
"""Fragments with more places to cut, taken together, were made up to exhaust memory."""


@dataclass(frozen=True)
class CutCode:
    """Fragments in pieces, and the segments that the pieces are copies of.

    A segment is named by the index of its first instruction in `cuts` (keys, sorted). Fragment i has the pieces
    `first[i]` up to `first[i + 1]`; `fragment`, `segment`, `start_pc` and `end_pc` are by piece; `is_alive` tells which
    pieces ran or are gone to. By segment: `copy` is one of its pieces (-1: there is none), `head` the segment that its
    block starts with, `continues` whether its block goes on after it. `damaged` are fragments (indices) that
    contradict others, and have no pieces.
    """

    cuts: Array
    first: Array
    fragment: Array
    segment: Array
    start_pc: Array
    end_pc: Array
    is_alive: Array
    copy: Array
    head: Array
    continues: Array
    damaged: Array


def cut_fragments(
    fragments: Fragments,
    space: KeySpace,
    used: Array,
    reach: Array,
    onward_key: Array,
    entries: Array,
    *,
    max_rounds: int = 8,
) -> CutCode:
    """Cut the fragments `used` (indices) at `entries` (keys, sorted), and join what only the straight line parts.

    By fragment: `reach` is how far it was run, an address; `onward_key` what the straight line out of it leads to.
    """
    damaged: list[Array] = []
    for _ in range(max_rounds):
        cutter = _Cutter(fragments, space, used, reach, onward_key, entries)
        bad = cutter.find_contradictions()
        if len(bad):
            damaged.append(bad)
            is_used = np.zeros(len(fragments), bool)
            is_used[used] = True
            is_used[bad] = False
            used = np.flatnonzero(is_used)
            continue
        converging = cutter.find_converging()
        if not len(converging):
            break
        entries = sorted_unique(entries, converging)
    return cutter.join(np.concatenate(damaged) if damaged else np.zeros(0, np.int64))


class _Cutter:
    """One round of cutting."""

    def __init__(
        self, fragments: Fragments, space: KeySpace, used: Array, reach: Array, onward_key: Array, entries: Array
    ) -> None:
        self.fragments, self.space = fragments, space
        key = space.key(fragments.code_version[used], fragments.app_pc[used])
        end_key = key + (fragments.end_pc[used] - fragments.app_pc[used])
        falls = fragments.exit_kind[used] == ExitKind.FALL_THROUGH
        cuts = sorted_unique(entries, key, end_key[falls], onward_key[used[falls]])
        inside = narrow(np.searchsorted(cuts, key, "right"))
        n_inside = np.searchsorted(cuts, end_key) - inside
        del key, end_key
        self.overflowing = used[np.cumsum(n_inside) > _MAX_CUTS]
        if len(self.overflowing):
            n_inside[np.cumsum(n_inside) > _MAX_CUTS] = 0
        fragment, cut = np.repeat(narrow(used), n_inside), narrow(spans(inside, n_inside))
        on_instruction = fragments.starts_instruction(fragment, space.pc(cuts[cut]))
        fragment, cut = fragment[on_instruction], cut[on_instruction]

        self.first = np.zeros(len(fragments) + 1, inside.dtype)
        n_pieces = self.first[1:]
        n_pieces[used] = 1
        np.add.at(n_pieces, fragment, 1)
        np.cumsum(n_pieces, out=n_pieces)
        n = int(self.first[-1])
        self.is_first = np.zeros(n, bool)
        self.is_first[self.first[used]] = True
        self.fragment = np.repeat(np.arange(len(fragments), dtype=inside.dtype), self.first[1:] - self.first[:-1])
        self.segment = np.zeros(n, inside.dtype)
        self.segment[self.is_first] = inside - 1
        self.segment[~self.is_first] = cut
        self.start_pc = space.pc(cuts[self.segment])
        self.is_last = np.concatenate((self.is_first[1:], [True]))[:n]
        self.end_pc = np.concatenate((self.start_pc[1:], [np.uint64(0)]))[:n]
        self.end_pc[self.is_last] = fragments.end_pc[used]
        self.cuts = cuts
        self.is_entry = np.zeros(len(cuts), bool)
        self.is_entry[np.searchsorted(cuts, entries)] = True
        has_run = self.start_pc < reach[self.fragment]
        self.is_alive = has_run | self.is_entry[self.segment]
        self.segment_has_run = np.zeros(len(cuts), bool)
        self.segment_has_run[self.segment[has_run]] = True
        # Of what was gone to and never run only the first instruction is known to be one.
        for piece in np.flatnonzero(self.is_alive & ~self.segment_has_run[self.segment]).tolist():
            self.end_pc[piece] = fragments.find_next_instruction(int(self.fragment[piece]), int(self.start_pc[piece]))
        alive = np.flatnonzero(self.is_alive)
        self.copy = np.full(len(cuts), NONE, inside.dtype)
        # Of several copies the first is kept.
        self.copy[self.segment[alive[::-1]]] = alive[::-1]

        # What the straight line leads on to, by piece: a segment.
        self.next_segment = np.full(n, NONE, inside.dtype)
        going_on = has_run & ~self.is_last
        self.next_segment[going_on] = self.segment[np.flatnonzero(going_on) + 1]
        ends = np.full(len(fragments), NONE, inside.dtype)
        ends[used[falls]] = np.searchsorted(cuts, onward_key[used[falls]])
        limited = np.flatnonzero(has_run & self.is_last)
        self.next_segment[limited] = ends[self.fragment[limited]]

    def find_contradictions(self) -> Array:
        """Fragments (indices) that disagree with another about the same instructions, or are too many."""
        alive = np.flatnonzero(self.is_alive)
        expected = self.end_pc[self.copy[self.segment[alive]]]
        differing = self.fragment[alive[self.end_pc[alive] != expected]]
        contradicting: Array = sorted_unique(self.overflowing, differing)
        return contradicting

    def find_converging(self) -> Array:
        """Keys of instructions that two others lead on to along the straight line, where decodings fall into step."""
        segments = np.flatnonzero((self.copy >= 0) & self.segment_has_run)
        if not len(segments):
            return np.zeros(0, np.uint64)
        piece = self.copy[segments]
        start = self.cuts[segments]
        end = start + (self.end_pc[piece] - self.start_pc[piece])
        overlaps = np.zeros(len(segments), bool)
        overlaps[1:] = start[1:] < np.maximum.accumulate(end)[:-1]
        overlaps[:-1] |= end[:-1] > start[1:]
        piece, start = piece[overlaps], start[overlaps]
        if not len(piece):
            return np.zeros(0, np.uint64)
        fragments, fragment = self.fragments, self.fragment[piece]
        size = (self.end_pc[piece] - self.start_pc[piece]).astype(np.int64)
        into = fragments.bit_at[fragment] + (self.start_pc[piece] - fragments.app_pc[fragment]).astype(np.int64)
        at = spans(into, size)
        starts = fragments.starts.is_set(at)
        key = (np.repeat(start, size) + (at - np.repeat(into, size)).astype(np.uint64))[starts]
        owner = np.repeat(np.arange(len(piece)), size)[starts]
        follows = np.flatnonzero(owner[1:] == owner[:-1]) + 1
        key, before = key[follows], key[follows - 1]
        order = np.lexsort((before, key))
        key, before = key[order], before[order]
        again = (key[1:] == key[:-1]) & (before[1:] != before[:-1])
        return sorted_unique(key[1:][again])

    def join(self, damaged: Array) -> CutCode:
        """Pieces and segments, with each segment's block."""
        onward = np.flatnonzero(self.next_segment >= 0)
        before = np.full(len(self.cuts), NONE, self.segment.dtype)
        before[self.next_segment[onward]] = self.segment[onward]
        # The straight line from two segments makes an entry, as any two ways do.
        meets = before[self.next_segment[onward]] != self.segment[onward]
        is_joint = ~self.is_entry & (before >= 0) & (self.copy >= 0)
        # A block is of one version of the code.
        version = self.space.version(self.cuts)
        is_joint &= version[before] == version
        is_joint[self.next_segment[onward[meets]]] = False
        # So do copies of one segment from which the straight line leads to different ones: what follows was written.
        after = np.full(len(self.cuts), NONE, self.segment.dtype)
        after[self.segment[onward]] = self.next_segment[onward]
        parts = np.isin(
            self.segment[onward], self.segment[onward[after[self.segment[onward]] != self.next_segment[onward]]]
        )
        is_joint[self.next_segment[onward[parts]]] = False
        head = np.where(is_joint, before, np.arange(len(self.cuts), dtype=before.dtype))
        continues = np.zeros(len(self.cuts), bool)
        continues[before[is_joint]] = True
        while not np.array_equal(further := head[head], head):
            head = further
        return CutCode(
            cuts=self.cuts,
            first=self.first,
            fragment=self.fragment,
            segment=self.segment,
            start_pc=self.start_pc,
            end_pc=self.end_pc,
            is_alive=self.is_alive,
            copy=self.copy,
            head=head,
            continues=continues,
            damaged=damaged,
        )
