"""Ordered paths out of records: the streams of each thread, and the code that they go through.

Runs in the controller, after the target ended. Records come from the target: what does not fit is left out, and the
path ends where it would have been.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.binary.path_codec import BLOCK, EVENT, NOWHERE, Action, Ending, PathCode, PathStreams
from clew.protocol._generated import (
    PATH_BUFFER_BYTES,
    PATH_DECISIONS_CELL,
    PATH_SURPRISES_CELL,
    PATH_SURPRISES_OFFSET,
    PATH_SYMBOLS_CELL,
    PATH_SYMBOLS_OFFSET,
    ExitKind,
    PathEventKind,
)
from clew.recording.assemble_records import Fragments
from clew.recording.blocks import Blocks

__all__ = ["ProcessCode", "build_code", "build_streams"]

Array = npt.NDArray[Any]

_MAX_INSTRUCTION_BYTES = 15

_ENDINGS = {
    ExitKind.FALL_THROUGH: Ending.FALL_THROUGH,
    ExitKind.JUMP: Ending.JUMP,
    ExitKind.CONDITIONAL: Ending.CONDITIONAL,
    ExitKind.CALL: Ending.CALL,
    ExitKind.INDIRECT_JUMP: Ending.INDIRECT_JUMP,
    ExitKind.INDIRECT_CALL: Ending.INDIRECT_CALL,
    ExitKind.RETURN: Ending.RETURN,
    ExitKind.SYSCALL: Ending.FALL_THROUGH,
    ExitKind.NONE: Ending.STOP,
}
"""Endings by exit kind. What may go either way forwards or backwards is told apart by its target."""


@dataclass(frozen=True)
class ProcessCode:
    """The blocks as the codec wants them, and the address of each one's last instruction, u64."""

    code: PathCode
    branch_pc: Array


def build_code(blocks: Blocks, fragments: Fragments, symbols: dict[tuple[int, int], int]) -> ProcessCode:
    """From basic blocks. `symbols` are numbers by (address of the branch, address of the target)."""
    n = len(blocks)
    table = np.zeros(n, BLOCK)
    table["pc"], table["end_pc"] = blocks.app_pc, blocks.end_pc
    table["n_instructions"] = blocks.n_instructions
    endings = np.zeros(max(ExitKind) + 1, np.uint8)
    for kind, ending in _ENDINGS.items():
        endings[kind] = ending
    table["ending"] = endings[blocks.exit_kind]
    has_code = blocks.part_first[1:] > blocks.part_first[:-1]
    last_part = blocks.parts[blocks.part_first[1:][has_code] - 1]
    last_fragment = blocks.code.fragment[last_part]
    target_pc = np.zeros(n, np.uint64)
    target_pc[has_code] = fragments.target_pc[last_fragment]
    branch_pc = _last_instructions(blocks, fragments)
    table["target"] = _find_blocks(blocks, target_pc)
    table["next"] = _find_blocks(blocks, blocks.end_pc)
    goes_back = target_pc <= branch_pc
    table["ending"][(table["ending"] == Ending.JUMP) & goes_back] = Ending.BACK_JUMP
    table["is_taken"] = (table["ending"] == Ending.CONDITIONAL) & goes_back

    by_branch: dict[int, dict[int, int]] = {}
    for (branch, target), number in symbols.items():
        by_branch.setdefault(branch, {})[number] = target
    targets: list[int] = []
    indirect = np.flatnonzero(np.isin(table["ending"], (Ending.INDIRECT_CALL, Ending.INDIRECT_JUMP)))
    for index in indirect.tolist():
        found = by_branch.get(int(branch_pc[index]), {})
        table["first_target"][index] = len(targets)
        table["n_targets"][index] = max(found, default=-1) + 1
        targets += [found.get(number, 0) for number in range(int(table["n_targets"][index]))]
    target_blocks = _find_blocks(blocks, np.array(targets, np.uint64))
    return ProcessCode(PathCode(table, target_blocks.astype(np.uint32)), branch_pc)


def build_streams(
    chunks: list[tuple[int, int, bytes]], events: Array, window: bytes, code: ProcessCode
) -> PathStreams:
    """A thread's streams: its chunks (stream, start, bytes), its path_event records, and the first bytes of its counters,
    which hold what has not left the buffers."""
    streams = [bytearray(), bytearray()]
    for stream, start, data in chunks:
        if stream < len(streams) and start == len(streams[stream]):
            streams[stream] += data
    cells = np.frombuffer(window, np.uint64, 8)
    places = ((PATH_SURPRISES_CELL, PATH_SURPRISES_OFFSET), (PATH_SYMBOLS_CELL, PATH_SYMBOLS_OFFSET))
    for stream, (cell, offset) in enumerate(places):
        left = (int(cells[cell]) + PATH_BUFFER_BYTES) % (1 << 64)
        if left <= PATH_BUFFER_BYTES + 16:
            streams[stream] += window[offset : offset + left]
    table = _convert_events(events, code)
    return PathStreams(bytes(streams[0]), bytes(streams[1]), table, int(cells[PATH_DECISIONS_CELL]))


def _convert_events(records: Array, process: ProcessCode) -> Array:
    code = process.code
    records = records[records["event_kind"] != PathEventKind.NOTE]
    table = np.zeros(len(records), EVENT)
    for name in ("surprise_bytes", "decisions", "symbol_bytes", "depth"):
        table[name] = records[name]
    actions = {
        PathEventKind.RESUME: Action.RESUME,
        PathEventKind.ELSEWHERE: Action.ELSEWHERE,
        PathEventKind.UNLIKE: Action.EXPECT,
        PathEventKind.END: Action.END,
    }
    start_of = {int(pc): index for index, pc in enumerate(code.blocks["pc"])}
    by_end = {int(pc): index for index, pc in enumerate(process.branch_pc)}
    expected = code.blocks["is_taken"].copy()
    for index, record in enumerate(records):
        kind = PathEventKind(int(record["event_kind"]))
        pc, value = int(record["pc"]), int(record["value"])
        table["action"][index] = actions.get(kind, Action.NOTE)
        table["block"][index] = start_of.get(pc, NOWHERE)
        if kind == PathEventKind.ELSEWHERE:
            table["block"][index] = by_end.get(pc, NOWHERE)
        if kind == PathEventKind.UNLIKE:
            subject = by_end.get(value, NOWHERE)
            if subject != NOWHERE:
                expected[subject] ^= 1
                table["value"][index] = expected[subject]
            table["subject"][index] = subject
        else:
            table["value"][index] = start_of.get(value, NOWHERE)
    return table


def _find_blocks(blocks: Blocks, pc: Array) -> Array:
    """The blocks that start at `pc`; NOWHERE where none does."""
    if not len(blocks):
        return np.full(len(pc), NOWHERE, np.uint32)
    at = np.minimum(np.searchsorted(blocks.app_pc, pc), len(blocks) - 1)
    found: Array = np.where(blocks.app_pc[at] == pc, at, NOWHERE)
    return found


def _last_instructions(blocks: Blocks, fragments: Fragments) -> Array:
    """Address of each block's last instruction; its own where it has no code."""
    found = blocks.app_pc.copy()
    has_code = np.flatnonzero(blocks.part_first[1:] > blocks.part_first[:-1])
    last_part = blocks.parts[blocks.part_first[1:][has_code] - 1]
    fragment, end_pc = blocks.code.fragment[last_part], blocks.end_pc[has_code]
    waiting = np.ones(len(has_code), bool)
    for distance in range(1, _MAX_INSTRUCTION_BYTES + 1):
        pc = end_pc - np.uint64(distance)
        waiting &= pc >= fragments.app_pc[fragment]
        here = np.flatnonzero(waiting)
        hits = here[fragments.starts_instruction(fragment[here], pc[here])]
        found[has_code[hits]] = pc[hits]
        waiting[hits] = False
    return found

