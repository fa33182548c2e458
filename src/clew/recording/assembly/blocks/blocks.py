"""Basic blocks out of overlapping fragments.

Runs in the controller, after the target ended. Pure: knows fragments and the flow between them; images, symbols and
tables are not known here.

A basic block is a longest straight run of instructions entered only at its first and left only at its last, given every
entry seen in the run. Fragments are none: one may start inside another, and a size limit may end one anywhere. So:

1. Every fragment is cut where an *entry* is one of its instructions, and also where another fragment starts or was
   ended by a limit. The *pieces* of all fragments that start at one instruction then have one end: they are copies of
   one *segment*.
2. Segments between which nothing but the straight line leads are joined again: a *joint* is no entry.
3. Decodings that overlap out of step are different segments. Where they fall into step again, the instruction they
   share is reached from two others: it is an entry too, and the cutting starts again with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import EdgeKind, ExitKind
from clew.recording.assembly.arrays.keys import KeySpace, is_vsyscall, sorted_unique
from clew.recording.assembly.arrays.tallies import narrow
from clew.recording.assembly.blocks.cut import NONE, CutCode, cut_fragments
from clew.recording.assembly.blocks.entries import Entries, find_entries
from clew.recording.assembly.flow.flow import ProcessFlow
from clew.recording.assembly.records.records import Fragments

__all__ = ["INSIDE_BLOCK", "NO_BLOCK", "Blocks", "CutBlocks", "build_blocks"]

Array = npt.NDArray[Any]

NO_BLOCK = -1
INSIDE_BLOCK = -2


@dataclass(frozen=True)
class Blocks:
    """Basic blocks, one element each, sorted by (address, version).

    `first_tsc` is the time stamp at which the first fragment with the block was made. A block of size 0 is an address
    that was gone to and where no instruction was ever read; one in the vsyscall page, whose code the kernel runs, ends
    in a return.
    """

    app_pc: Array
    end_pc: Array
    code_version: Array
    n_instructions: Array
    exit_kind: Array
    first_tsc: Array
    is_recorded: Array

    def __len__(self) -> int:
        return len(self.app_pc)

    def at(self, pc: int) -> Array:
        """Blocks (indices) that start at address `pc`, one for each version of the code."""
        address = np.uint64(pc)
        return np.arange(np.searchsorted(self.app_pc, address), np.searchsorted(self.app_pc, address, "right"))


@dataclass(frozen=True)
class CutBlocks:
    """Basic blocks, with what they were made of and what the flow's edges are among them.

    `parts[part_first[i] : part_first[i + 1]]` are pieces (of `code`) that make up block i, in order.

    By piece: `piece_block` is the block it is part of (NO_BLOCK for one that never ran), `piece_starts` and
    `piece_ends` tell whether it holds the block's first and last instruction.

    By edge of the flow: `edge_source` is the block left (NO_BLOCK: none), `edge_target` the block entered (INSIDE_BLOCK
    for a straight line inside one). Where `is_shared`, code of several versions starts there, and it is the likeliest.
    So it may at the end of the paths (of the flow, indices) `parted`, which stop inside their fragment.
    """

    blocks: Blocks
    part_first: Array
    parts: Array
    code: CutCode
    piece_block: Array
    piece_starts: Array
    piece_ends: Array
    edge_source: Array
    edge_target: Array
    is_shared: Array
    parted: Array


def build_blocks(fragments: Fragments, flow: ProcessFlow, space: KeySpace, ends: Array) -> CutBlocks:
    """Basic blocks of what ran, and where the flow's edges start and end among them.

    `ends` are the time stamps at which the fragments went out of use.
    """
    entries = find_entries(fragments, flow, space, ends)
    reach = _find_reach(fragments, flow, entries)
    code = cut_fragments(fragments, space, entries.used, reach, entries.onward_key, entries.keys)
    del reach
    key, block_of_segment = _number(space, code, _find_unread_keys(flow, entries, code))
    part_first, parts = _list_parts(space, code, block_of_segment, len(key))
    piece_block = np.where(code.is_alive, block_of_segment[code.segment], block_of_segment.dtype.type(NO_BLOCK))
    del block_of_segment
    edge_source, edge_target = _find_ends(flow, entries, code, piece_block, key)
    return CutBlocks(
        blocks=_describe(fragments, space, code, piece_block, part_first, parts, key),
        part_first=part_first,
        parts=parts,
        code=code,
        piece_block=piece_block,
        piece_starts=code.head[code.segment] == code.segment,
        piece_ends=~code.continues[code.segment],
        edge_source=edge_source,
        edge_target=edge_target,
        is_shared=entries.is_ambiguous,
        parted=entries.parted,
    )


def _find_reach(fragments: Fragments, flow: ProcessFlow, entries: Entries) -> Array:
    """How far each fragment was run: an address."""
    reach = fragments.app_pc.copy()
    reach[fragments.is_excluded] = fragments.end_pc[fragments.is_excluded]
    reach[entries.calls] = fragments.end_pc[entries.calls]
    np.maximum.at(reach, flow.paths.fragment, flow.paths.stop_pc)
    return reach


def _number(space: KeySpace, code: CutCode, unread: Array) -> tuple[Array, Array]:
    """Keys of the blocks, by address and then by key; and the block (or NO_BLOCK) of each segment.

    `unread` are keys at which no instruction was ever read: blocks as well, of nothing.
    """
    heads = np.flatnonzero((code.copy >= 0) & (code.head == np.arange(len(code.head))))
    key = np.concatenate([code.cuts[heads], unread])
    order = narrow(np.lexsort((key, space.pc(key))))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    block_of_head = np.full(len(code.cuts), NO_BLOCK, order.dtype)
    block_of_head[heads] = place[: len(heads)]
    return key[order], np.where(code.copy >= 0, block_of_head[code.head], order.dtype.type(NO_BLOCK))


def _list_parts(space: KeySpace, code: CutCode, block_of_segment: Array, n_blocks: int) -> tuple[Array, Array]:
    """The pieces of each block in order, and where among them each block's begin."""
    segments = np.flatnonzero(code.copy >= 0)
    owner = block_of_segment[segments]
    part_first = np.zeros(n_blocks + 1, block_of_segment.dtype)
    np.cumsum(np.bincount(owner, minlength=n_blocks), out=part_first[1:])
    return part_first, code.copy[segments[np.lexsort((space.pc(code.cuts[segments]), owner))]]


def _describe(
    fragments: Fragments,
    space: KeySpace,
    code: CutCode,
    piece_block: Array,
    part_first: Array,
    parts: Array,
    key: Array,
) -> Blocks:
    n_blocks = len(key)
    app_pc = space.pc(key)
    has_code = part_first[1:] > part_first[:-1]
    last_part = parts[part_first[1:][has_code] - 1]
    end_pc = app_pc.copy()
    end_pc[has_code] = code.end_pc[last_part]
    exit_kind = np.full(n_blocks, ExitKind.NONE, np.uint8)
    last_fragment = code.fragment[last_part]
    leaves = code.end_pc[last_part] == fragments.end_pc[last_fragment]
    exit_kind[has_code] = np.where(leaves, fragments.exit_kind[last_fragment], ExitKind.FALL_THROUGH)
    exit_kind[is_vsyscall(app_pc)] = ExitKind.RETURN
    del last_part, last_fragment, leaves

    n_instructions = np.zeros(n_blocks, np.int32)
    counted = fragments.count_instructions(code.fragment[parts], code.start_pc[parts], code.end_pc[parts])
    np.add.at(n_instructions, piece_block[parts], counted)
    first_tsc = np.full(n_blocks, np.iinfo(np.uint64).max, np.uint64)
    is_recorded = ~has_code
    alive = np.flatnonzero(code.is_alive)
    owner, fragment = piece_block[alive], code.fragment[alive]
    np.minimum.at(first_tsc, owner, fragments.tsc[fragment])
    is_recorded[owner[~fragments.is_left_out[fragment]]] = True
    return Blocks(
        app_pc=app_pc,
        end_pc=end_pc,
        code_version=narrow(space.version(key)),
        n_instructions=n_instructions,
        exit_kind=exit_kind,
        first_tsc=first_tsc,
        is_recorded=is_recorded,
    )


def _find_ends(
    flow: ProcessFlow, entries: Entries, code: CutCode, piece_block: Array, key: Array
) -> tuple[Array, Array]:
    """The blocks that each edge of the flow leaves and enters."""
    by_key = narrow(np.argsort(key, kind="stable"))
    sorted_key = key[by_key]

    def find(wanted: Array) -> Array:
        at = np.minimum(np.searchsorted(sorted_key, wanted), len(key) - 1)
        found: Array = np.where(sorted_key[at] == wanted, by_key[at], by_key.dtype.type(INSIDE_BLOCK))
        return found

    edge_target = find(entries.target_key) if len(key) else np.zeros(0, by_key.dtype)
    edge_source = np.full(len(flow.edges), NO_BLOCK, by_key.dtype)
    leaving = np.flatnonzero((flow.edges.source >= 0) & (flow.edges.kind != EdgeKind.START))
    source = flow.edges.source[leaving]
    whole = code.first[source + 1] > code.first[source]
    edge_source[leaving[whole]] = piece_block[code.first[source[whole] + 1] - 1]
    if len(entries.waiting):
        edge_source[entries.waiting] = find(entries.waiting_key)
    return edge_source, edge_target


def _find_unread_keys(flow: ProcessFlow, entries: Entries, code: CutCode) -> Array:
    """Keys of what edges lead to or leave and where no instruction was ever read."""
    wanted: Array = sorted_unique(entries.target_key, entries.waiting_key)
    if not len(code.cuts):
        return wanted
    at = np.minimum(np.searchsorted(code.cuts, wanted), len(code.cuts) - 1)
    is_read = (code.cuts[at] == wanted) & (code.copy[at] != NONE)
    unread: Array = wanted[~is_read]
    return unread
