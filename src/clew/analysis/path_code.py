"""The code of a process as the path codec wants it, out of a trace's tables.

Pure but for reading the tables, which may be damaged or made up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from clew.binary.path_codec import BLOCK, EVENT, NOWHERE, Action, Ending, PathCode
from clew.protocol._generated import PathEventKind
from clew.store.columns import to_numpy
from clew.store.trace import Trace

__all__ = ["ProcessCode", "load_process_code"]

Array = npt.NDArray[Any]

_ENDINGS: Final = {ending.name.lower(): ending for ending in Ending}
MAX_TARGETS: Final = 1 << 16

_ACTIONS: Final = {
    PathEventKind.RESUME: Action.RESUME,
    PathEventKind.ELSEWHERE: Action.ELSEWHERE,
    PathEventKind.UNLIKE: Action.EXPECT,
    PathEventKind.END: Action.END,
}


@dataclass(frozen=True)
class ProcessCode:
    """The blocks of a process, in the order of their addresses, and what goes with them.

    `block_id` and `n_instructions` (i64) are theirs; `branch_pc` (u64) is the address of each one's last instruction.
    """

    code: PathCode
    block_id: Array
    n_instructions: Array
    branch_pc: Array

    def find(self, address: Array) -> Array:
        """The blocks (u32) that start at addresses; NOWHERE where none does."""
        return _find(self.code.blocks["pc"], address)

    def find_around(self, address: Array) -> Array:
        """The blocks (u32) that have code at addresses; NOWHERE where none has."""
        blocks = self.code.blocks
        if not len(blocks):
            return np.full(len(address), NOWHERE, np.uint32)
        at = np.maximum(np.searchsorted(blocks["pc"], address, "right") - 1, 0)
        inside = (blocks["pc"][at] <= address) & ((address < blocks["end_pc"][at]) | (blocks["pc"][at] == address))
        found: Array = np.where(inside, at, NOWHERE).astype(np.uint32)
        return found

    def find_ending(self, address: Array) -> Array:
        """The blocks (u32) whose last instruction is at addresses; NOWHERE where there is none."""
        order = np.argsort(self.branch_pc, kind="stable")
        found = _find(self.branch_pc[order], address)
        inside = found != NOWHERE
        found[inside] = order[found[inside]]
        return found

    def expecting(self, branches: Array) -> PathCode:
        """The code once the ways expected of the branches at `branches` have changed, of one as often as it is there."""
        address, n = np.unique(branches, return_counts=True)
        changed = self.find_ending(address[n % 2 == 1])
        blocks = self.code.blocks.copy()
        blocks["is_taken"][changed[changed != NOWHERE]] ^= 1
        return PathCode(blocks, self.code.targets)

    def convert_events(self, records: Array, expected: PathCode) -> Array:
        """Events of dtype PATH_EVENT_RECORD as the codec wants them, at whose beginning the code is `expected`."""
        records = records[np.isin(records["event_kind"], list(_ACTIONS))]
        table = np.zeros(len(records), EVENT)
        for name in ("surprise_bytes", "decisions", "symbol_bytes", "depth"):
            table[name] = records[name]
        kind = records["event_kind"]
        for number, action in _ACTIONS.items():
            table["action"][kind == number] = action
        table["block"] = self.find(records["pc"])
        leaves, changes = np.flatnonzero(kind == PathEventKind.ELSEWHERE), np.flatnonzero(kind == PathEventKind.UNLIKE)
        table["block"][leaves] = self.find_ending(records["pc"][leaves])
        # What changes inside a block, where two fragments meet, concerns its end as well as the start.
        table["block"][changes] = self.find_around(records["pc"][changes])
        table["value"] = self.find(records["value"])
        subject = self.find_ending(records["value"][changes])
        is_taken = expected.blocks["is_taken"].copy()
        for at, block in zip(changes.tolist(), subject.tolist(), strict=True):
            if block != NOWHERE:
                is_taken[block] ^= 1
                table["value"][at] = is_taken[block]
        table["subject"][changes] = subject
        return table


def load_process_code(trace: Trace, process_id: int) -> ProcessCode:
    """The code of a process that was recorded in mode full. Raises TraceDamagedError."""
    blocks = _rows(trace, "blocks", ["block_id", "app_pc", "size_bytes", "n_instructions"], process_id)
    ends = _rows(trace, "path_blocks", ["block_id", "ending", "branch_pc", "target_pc", "is_taken"], process_id)
    targets = _rows(trace, "path_targets", ["block_id", "number", "target_pc"], process_id)
    order = np.argsort(to_numpy(blocks["app_pc"]), kind="stable")
    blocks = blocks.take(order)
    block_id = to_numpy(blocks["block_id"]).astype(np.int64)
    table = np.zeros(len(order), BLOCK)
    table["pc"] = to_numpy(blocks["app_pc"])
    table["end_pc"] = table["pc"] + to_numpy(blocks["size_bytes"]).astype(np.uint64)
    n_instructions = to_numpy(blocks["n_instructions"]).astype(np.int64)
    table["n_instructions"] = n_instructions
    table["ending"], table["target"], table["next"] = Ending.STOP, NOWHERE, _find(table["pc"], table["end_pc"])

    by_id = np.argsort(block_id, kind="stable")
    sorted_id = block_id[by_id]

    def rows_of(ids: Array) -> tuple[Array, Array]:
        at = np.minimum(np.searchsorted(sorted_id, ids), max(len(sorted_id) - 1, 0))
        known = np.flatnonzero(sorted_id[at] == ids) if len(sorted_id) else np.zeros(0, np.int64)
        return by_id[at[known]], known

    row, known = rows_of(to_numpy(ends["block_id"]).astype(np.int64))
    ending = ends["ending"].combine_chunks()
    if isinstance(ending, pa.DictionaryArray):
        names = [_ENDINGS.get(name, Ending.STOP) for name in ending.dictionary.to_pylist()]
        table["ending"][row] = np.array([*names, Ending.STOP], np.uint8)[to_numpy(ending.indices)[known]]
    target_pc = to_numpy(pc.fill_null(ends["target_pc"], 0)).astype(np.uint64)
    table["target"][row] = _find(table["pc"], target_pc[known])
    table["is_taken"][row] = to_numpy(ends["is_taken"])[known]
    branch_pc = table["pc"].copy()
    branch_pc[row] = to_numpy(ends["branch_pc"])[known]

    row, known = rows_of(to_numpy(targets["block_id"]).astype(np.int64))
    number = to_numpy(targets["number"]).astype(np.int64)[known]
    target = _find(table["pc"], to_numpy(targets["target_pc"]).astype(np.uint64)[known])
    inside = (number >= 0) & (number < MAX_TARGETS)
    row, number, target = row[inside], number[inside], target[inside]
    n_targets = np.zeros(len(table), np.int64)
    np.maximum.at(n_targets, row, number + 1)
    first = np.cumsum(n_targets) - n_targets
    all_targets = np.full(int(n_targets.sum()), NOWHERE, np.uint32)
    all_targets[first[row] + number] = target
    table["first_target"], table["n_targets"] = first, n_targets
    return ProcessCode(PathCode(table, all_targets), block_id, n_instructions, branch_pc)


def _rows(trace: Trace, table: str, columns: list[str], process_id: int) -> pa.Table:
    found = trace.read(table, [*columns, "process_id"])
    return found.filter(pc.equal(found["process_id"], process_id))


def _find(sorted_pc: Array, address: Array) -> Array:
    if not len(sorted_pc):
        return np.full(len(address), NOWHERE, np.uint32)
    at = np.minimum(np.searchsorted(sorted_pc, address), len(sorted_pc) - 1)
    found: Array = np.where(sorted_pc[at] == address, at, NOWHERE).astype(np.uint32)
    return found
