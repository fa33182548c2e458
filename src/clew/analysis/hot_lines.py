"""The hottest source lines of a trace.

Runs in the controller. Reads the files of the images as they are now; one that has changed since it was recorded, by
its build-id, gives no lines.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from pathlib import Path
from typing import Any, Literal

import numpy as np

from clew.analysis.arrays import TraceArrays, find_rows, to_numpy
from clew.binary.disassembly import instruction_starts
from clew.binary.elf import open_elf
from clew.binary.lines import SourceLine, find_lines
from clew.errors import BinaryError

__all__ = ["find_block_lines", "find_lost_images", "rank_lines"]

Loss = Literal["changed", "gone", "unreadable"]
"""Why a file gives no lines: by its build-id it is another by now, or there is none, or it may not be read."""

_MAX_BLOCKS = 50_000
"""Blocks of an image, the hottest first, whose instructions are looked up."""


def rank_lines(arrays: TraceArrays, n: int) -> list[dict[str, Any]]:
    """Lines, by instructions; code without lines is a row with file and line null. `executions` is that of its
    instruction that ran most.
    """
    instructions: defaultdict[tuple[int, str | None, int | None], int] = defaultdict(int)
    executions: defaultdict[tuple[int, str | None, int | None], int] = defaultdict(int)
    ran = arrays.block_executions
    image = find_rows(to_numpy(arrays.trace.images["image_id"]), to_numpy(arrays.blocks["image_id"]))
    for row in range(-1, arrays.trace.images.num_rows):
        blocks = np.flatnonzero((image == row) & (ran > 0))
        blocks = blocks[np.argsort(-(ran * arrays.n_instructions)[blocks], kind="stable")]
        looked_up = blocks[:_MAX_BLOCKS].tolist() if row >= 0 else []
        found = find_block_lines(arrays, row, looked_up) if looked_up else {}
        for block in blocks.tolist():
            pid, count = int(arrays.block_pid[block]), int(ran[block])
            lines = found.get(block)
            if lines is None:
                instructions[pid, None, None] += count * int(arrays.n_instructions[block])
                executions[pid, None, None] = max(executions[pid, None, None], count)
                continue
            for line in lines:
                key = (pid, None, None) if line is None else (pid, line.file, line.line)
                instructions[key] += count
                executions[key] = max(executions[key], count)
    total = sum(instructions.values())
    order = sorted(instructions, key=lambda key: (-instructions[key], key[1] is None, str(key[1]), key[2] or 0))
    return [
        {
            "pid": pid,
            "file": file,
            "line": line,
            "instructions": instructions[pid, file, line],
            "share": round(instructions[pid, file, line] / total, 6) if total else 0.0,
            "executions": executions[pid, file, line],
        }
        for pid, file, line in order[:n]
    ]


def find_block_lines(arrays: TraceArrays, image: int, blocks: list[int]) -> dict[int, list[SourceLine | None]]:
    """Source lines of every instruction of `blocks` (rows), which lie in the image of row `image`.

    Blocks of an image without lines are left out.
    """
    images = arrays.trace.images
    path = Path(images["path"][image].as_py())
    if not _is_same_file(path, images["build_id"][image].as_py()):
        return {}
    offsets: list[int] = []
    lengths: list[int] = []
    for block in blocks:
        start = arrays.blocks["offset"][block].as_py()
        starts = instruction_starts(arrays.blocks["bytes"][block].as_py(), start or 0)
        offsets += starts
        lengths.append(len(starts))
    lines = find_lines(path, offsets)
    if not any(lines):
        return {}
    found = {}
    at = 0
    for block, length in zip(blocks, lengths, strict=True):
        found[block] = lines[at : at + length]
        at += length
    return found


def find_lost_images(arrays: TraceArrays) -> list[tuple[str, Loss]]:
    """Paths of the files that code ran from, and that give no lines because they are not what they were, and why."""
    images = arrays.trace.images
    rows = find_rows(to_numpy(images["image_id"]), to_numpy(arrays.blocks["image_id"])[arrays.block_executions > 0])
    known = {(images["path"][row].as_py(), images["build_id"][row].as_py()) for row in np.unique(rows[rows >= 0])}
    lost = {(path, _find_loss(path, build_id)) for path, build_id in known if _is_file_name(path)}
    return sorted((path, loss) for path, loss in lost if loss is not None)


def _is_file_name(path: str) -> bool:
    # Not what the kernel maps by itself, nor memory that has no name in any folder.
    return path.startswith("/") and not path.startswith("/memfd:")


def _find_loss(path: str, build_id: str | None) -> Loss | None:
    if not os.path.exists(path):
        return "gone"
    if not os.access(path, os.R_OK):
        return "unreadable"
    return "changed" if build_id not in (None, _read_build_id(path)) else None


def _read_build_id(path: str) -> str | None:
    """None where there is none, or no ELF file that can be read."""
    with contextlib.suppress(BinaryError), open_elf(Path(path)) as elf:
        return elf.build_id
    return None


def _is_same_file(path: Path, build_id: str | None) -> bool:
    try:
        with open_elf(path) as elf:
            return elf.build_id == build_id
    except BinaryError:
        return False
