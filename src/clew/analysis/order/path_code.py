"""The code of a process as the path codec wants it, out of a trace's tables.

Pure but for reading the tables, which may be damaged or made up.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from clew.analysis.order.path_changes import Changes, HeldCode, find_turned
from clew.binary.path_codec import PathCode
from clew.protocol._generated import PathEventKind
from clew.protocol.codec import NOWHERE, Action, Ending
from clew.protocol.codec_layouts import BLOCK, EVENT
from clew.protocol.words import ENDING_WORDS
from clew.store.columns import to_numpy
from clew.store.trace import Trace

__all__ = ["BlockRows", "ProcessCode", "build_process_code", "load_process_code", "read_process_rows"]

Array = npt.NDArray[Any]

_ENDINGS: Final[dict[str, Ending]] = {word: Ending[word.upper()] for word in ENDING_WORDS}
MAX_TARGETS: Final = 1 << 16

# Not system calls: one may be given up for a signal after it was noted, and then the path is in front of it still.
_ACTIONS: Final = {
    PathEventKind.RESUME: Action.RESUME,
    PathEventKind.ELSEWHERE: Action.ELSEWHERE,
    PathEventKind.UNLIKE: Action.EXPECT,
    PathEventKind.CODE: Action.CODE,
    PathEventKind.END: Action.END,
}


@dataclass(frozen=True)
class ProcessCode:
    """The blocks of a process, in the order of their addresses and versions, and what goes with them.

    `code` has a slot behind the blocks for each address that held several. `block_id` and `n_instructions` (i64) are
    the blocks'; `branch_pc` (u64) is the address of each one's last instruction. `later` are rows of `path_code`:
    fragment (i64), start and end (u64), version (u32).
    """

    code: PathCode
    block_id: Array
    n_instructions: Array
    branch_pc: Array
    code_version: Array
    later: tuple[Array, Array, Array, Array]

    def __len__(self) -> int:
        return len(self.block_id)

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """Addresses, rising, and what a path finds there: a block or a slot."""
        table = self.code.blocks
        is_place = np.ones(len(table), bool)
        slots = table["pc"][len(self) :]
        is_place[: len(self)] = ~np.isin(table["pc"][: len(self)], slots)
        chosen = np.flatnonzero(is_place)
        chosen = chosen[np.argsort(table["pc"][chosen], kind="stable")]
        return table["pc"][chosen], chosen.astype(np.uint32)

    @cached_property
    def _by_branch(self) -> tuple[Array, Array]:
        order = np.argsort(self.branch_pc, kind="stable")
        return self.branch_pc[order], order

    @cached_property
    def _by_id(self) -> tuple[Array, Array]:
        order = np.argsort(self.block_id, kind="stable")
        return self.block_id[order], order

    def find(self, address: Array) -> Array:
        """The blocks or slots (u32) at addresses; NOWHERE where none starts."""
        return _find(*self._places, address)

    def find_ids(self, block_id: Array) -> tuple[Array, Array]:
        """The blocks (i64) that ids mean, and which of the ids these are."""
        return _find_ids(*self._by_id, block_id)

    def find_around(self, address: Array) -> Array:
        """The blocks (u32) that have code at addresses; NOWHERE where none has."""
        places, index = self._places
        if not len(places):
            return np.full(len(address), NOWHERE, np.uint32)
        at = np.maximum(np.searchsorted(places, address, "right") - 1, 0)
        end = np.maximum(self.code.blocks["end_pc"][index[at]], places[at] + np.uint64(1))
        found: Array = np.where((places[at] <= address) & (address < end), index[at], NOWHERE).astype(np.uint32)
        return found

    @cached_property
    def _held(self) -> HeldCode:
        n = len(self)
        pc = self.code.blocks["pc"][:n]
        slot = self.find(pc).astype(np.int64)
        return HeldCode(self.later, pc, self.code_version, np.where((slot >= n) & (slot != NOWHERE), slot, -1))

    def find_changes(self, kind: Array, value: Array, blocks: Array) -> Changes:
        """What events with these kinds and values change of `blocks`, the code's as they are in front of them."""
        turning, holding = np.flatnonzero(kind == PathEventKind.UNLIKE), np.flatnonzero(kind == PathEventKind.CODE)
        turned = find_turned(self._by_branch, value[turning].astype(np.uint64), blocks["is_taken"])
        held = self._held.find(value[holding].astype(np.int64))
        row = np.concatenate([turning[turned[0]], holding[held[0]]])
        order = np.argsort(row, kind="stable")
        return Changes(
            row=row[order],
            action=np.repeat(np.array([Action.EXPECT, Action.CODE], np.uint8), [len(turned[0]), len(held[0])])[order],
            subject=np.concatenate([turned[1], held[1]])[order],
            value=np.concatenate([turned[2], held[2]])[order],
        )

    def convert_events(
        self, records: Array, blocks: Array, *, keeps: Collection[PathEventKind] = ()
    ) -> tuple[Array, Array]:
        """Events of dtype PATH_EVENT_RECORD as the codec wants them, and which record (i64) each comes from.

        In front of them the code has `blocks`. Checkpoints and notes are left out, for they change nothing, unless they
        are among those that it `keeps`.
        """
        numbers = np.flatnonzero(np.isin(records["event_kind"], [*_ACTIONS, *keeps]))
        records = records[numbers]
        kind = records["event_kind"]
        table = np.zeros(len(records), EVENT)
        for name in ("surprise_bytes", "decisions", "symbol_bytes", "depth"):
            table[name] = records[name]
        for number, action in _ACTIONS.items():
            table["action"][kind == number] = action
        table["block"], table["value"] = self.find(records["pc"]), self.find(records["value"])
        # What changes inside a block, where two fragments meet, concerns its end as well as the start. A thread that
        # made single steps may be left inside one, which is not executed then.
        is_change = (kind == PathEventKind.UNLIKE) | (kind == PathEventKind.CODE)
        inside = np.flatnonzero(is_change | (kind == PathEventKind.END))
        table["block"][inside] = self.find_around(records["pc"][inside])
        if not is_change.any():
            return table, numbers
        changes = self.find_changes(kind, records["value"], blocks)
        times = np.ones(len(records), np.int64)
        times[is_change] = np.bincount(changes.row, minlength=len(records))[is_change]
        table = np.repeat(table, times)
        made = np.flatnonzero(np.repeat(is_change, times))
        table["action"][made], table["subject"][made] = changes.action, changes.subject
        table["value"][made] = changes.value
        return table, np.repeat(numbers, times)


@dataclass(frozen=True)
class BlockRows:
    """Blocks as they are known, one element each, in any order.

    `pc`, `end_pc`, `branch_pc` (of the last instruction) and `target_pc` (of a direct branch) are u64, `block_id` and
    `n_instructions` i64, `code_version` u32, `ending` (of Ending) u8; `is_taken`: what ends it is expected to be.
    """

    block_id: Array
    pc: Array
    end_pc: Array
    branch_pc: Array
    target_pc: Array
    n_instructions: Array
    code_version: Array
    ending: Array
    is_taken: Array


def build_process_code(
    rows: BlockRows, targets: tuple[Array, Array, Array], later: tuple[Array, Array, Array, Array]
) -> ProcessCode:
    """The code of a process.

    `targets` of indirect branches: of which of the rows (an index), by which number (i64), at which address (u64).
    `later` are those of ProcessCode, in any order.
    """
    order = np.lexsort((rows.code_version, rows.pc))
    n = len(order)
    starts = rows.pc[order]
    is_again = np.zeros(n, bool)
    is_again[1:] = starts[1:] == starts[:-1]
    slot_pc = np.unique(starts[is_again])
    table = np.zeros(n + len(slot_pc), BLOCK)
    table["pc"][:n], table["pc"][n:] = starts, slot_pc
    table["ending"][n:] = Ending.SLOT
    table["target"], table["next"] = NOWHERE, NOWHERE
    for name in ("end_pc", "n_instructions", "ending", "is_taken"):
        table[name][:n] = getattr(rows, name)[order]
    # At first each holds what was there first.
    table["target"][n:] = np.searchsorted(starts, slot_pc)
    by_fragment = np.argsort(later[0], kind="stable")
    fragment, start, end, version = (row[by_fragment] for row in later)
    code = ProcessCode(
        PathCode(table, np.zeros(0, np.uint32)),
        rows.block_id[order],
        rows.n_instructions[order],
        rows.branch_pc[order],
        rows.code_version[order],
        (fragment, start, end, version),
    )
    table["next"][:n] = code.find(table["end_pc"][:n])
    table["target"][:n] = code.find(rows.target_pc[order])

    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    row, number, target = place[targets[0]], targets[1], code.find(targets[2])
    inside = (number >= 0) & (number < MAX_TARGETS)
    row, number, target = row[inside], number[inside], target[inside]
    n_targets = np.zeros(len(table), np.int64)
    np.maximum.at(n_targets, row, number + 1)
    first = np.cumsum(n_targets) - n_targets
    all_targets = np.full(int(n_targets.sum()), NOWHERE, np.uint32)
    all_targets[first[row] + number] = target
    table["first_target"], table["n_targets"] = first, n_targets
    return replace(code, code=PathCode(table, all_targets))


def load_process_code(trace: Trace, process_id: int) -> ProcessCode:
    """The code of a process that was recorded in mode full. Raises TraceDamagedError."""
    columns = ["block_id", "app_pc", "size_bytes", "n_instructions", "code_version"]
    blocks = read_process_rows(trace, "blocks", columns, process_id)
    ends = read_process_rows(
        trace, "path_blocks", ["block_id", "ending", "branch_pc", "target_pc", "is_taken"], process_id
    )
    block_id, pc_of, sizes, n_instructions, versions = (to_numpy(blocks[name]) for name in columns)
    block_id, n = block_id.astype(np.int64), len(block_id)
    by_id = np.argsort(block_id, kind="stable")
    row, known = _find_ids(block_id[by_id], by_id, to_numpy(ends["block_id"]).astype(np.int64))
    rows = BlockRows(
        block_id=block_id,
        pc=pc_of,
        end_pc=pc_of + sizes.astype(np.uint64),
        branch_pc=pc_of.copy(),
        target_pc=np.zeros(n, np.uint64),
        n_instructions=n_instructions.astype(np.int64),
        code_version=versions.astype(np.uint32),
        ending=np.full(n, Ending.STOP, np.uint8),
        is_taken=np.zeros(n, np.uint8),
    )
    rows.ending[row] = _read_endings(ends)[known]
    rows.target_pc[row] = to_numpy(pc.fill_null(ends["target_pc"], 0)).astype(np.uint64)[known]
    rows.is_taken[row] = to_numpy(ends["is_taken"])[known]
    rows.branch_pc[row] = to_numpy(ends["branch_pc"])[known]

    targets = read_process_rows(trace, "path_targets", ["block_id", "number", "target_pc"], process_id)
    row, known = _find_ids(block_id[by_id], by_id, to_numpy(targets["block_id"]).astype(np.int64))
    number = to_numpy(targets["number"]).astype(np.int64)[known]
    target_pc = to_numpy(targets["target_pc"]).astype(np.uint64)[known]
    later = read_process_rows(trace, "path_code", ["fragment_id", "start_pc", "end_pc", "code_version"], process_id)
    fragment, start, end, version = (
        to_numpy(later[name]) for name in ("fragment_id", "start_pc", "end_pc", "code_version")
    )
    return build_process_code(rows, (row, number, target_pc), (fragment, start, end, version))


def _read_endings(ends: pa.Table) -> Array:
    """The endings (u8, of Ending) of rows of `path_blocks`."""
    ending = ends["ending"].combine_chunks()
    if isinstance(ending, pa.ChunkedArray):
        ending = ending.chunk(0) if ending.num_chunks else pa.array([], pa.string()).dictionary_encode()
    names = [_ENDINGS.get(name, Ending.STOP) for name in ending.dictionary.to_pylist()]
    found: Array = np.array([*names, Ending.STOP], np.uint8)[to_numpy(ending.indices)]
    return found


def read_process_rows(trace: Trace, table: str, columns: list[str], process_id: int) -> pa.Table:
    """Columns of the rows of a process."""
    found = trace.read(table, [*columns, "process_id"])
    return found.filter(pc.equal(found["process_id"], process_id))


def _find_ids(known: Array, order: Array, block_id: Array) -> tuple[Array, Array]:
    """As `find_ids`; `known` are ids, rising, and `order` which block each is of."""
    if not len(known):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    at = np.minimum(np.searchsorted(known, block_id), len(known) - 1)
    inside = np.flatnonzero(known[at] == block_id)
    return order[at[inside]], inside


def _find(places: Array, index: Array, address: Array) -> Array:
    if not len(places):
        return np.full(len(address), NOWHERE, np.uint32)
    at = np.minimum(np.searchsorted(places, address), len(places) - 1)
    found: Array = np.where(places[at] == address, index[at], NOWHERE).astype(np.uint32)
    return found
