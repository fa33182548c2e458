"""Source lines of single blocks, instruction by instruction.

Runs in the controller. Reads the files of the images as they are now; one that has changed since it was recorded, by
its build-id, gives no lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from clew.analysis.code.lost_images import is_same_file
from clew.analysis.code.places import find_block_architectures
from clew.analysis.ranking.ranking import Row
from clew.binary.disassembly import instruction_starts
from clew.binary.lines import SourceLine, find_lines
from clew.store.trace import Trace

__all__ = ["find_block_lines"]


def find_block_lines(trace: Trace, blocks: Sequence[Row]) -> dict[int, list[SourceLine | None]]:
    """Source lines of the instructions of some blocks, rows of a ranking, by their ids; none where none is known."""
    rows = trace.find_first("blocks", "block_id", [block["block"] for block in blocks])
    image_ids = [row["image_id"] for row in trace.read_rows("blocks", list(rows.values()), ["image_id"])]
    image_of = dict(zip(rows, image_ids, strict=True))
    image_rows = trace.find_first("images", "image_id", {number for number in image_ids if number is not None})
    images = trace.read_rows("images", list(image_rows.values()), ["path", "build_id"])
    files: dict[int | None, tuple[str, str | None]] = {
        number: (image["path"], image["build_id"]) for number, image in zip(image_rows, images, strict=True)
    }
    architectures = find_block_architectures(trace, [block["block"] for block in blocks])
    found: dict[int, list[SourceLine | None]] = {}
    for file in set(files.values()):
        inside = [block for block in blocks if block["offset"] and files.get(image_of.get(block["block"])) == file]
        if not is_same_file(Path(file[0]), file[1]):
            continue
        starts = [
            instruction_starts(bytes.fromhex(block["bytes"]), int(block["offset"], 16), architectures[block["block"]])
            for block in inside
        ]
        lines = find_lines(Path(file[0]), [offset for of_block in starts for offset in of_block])
        ends = np.cumsum([0, *map(len, starts)]).tolist()
        for index, block in enumerate(inside):
            found[block["block"]] = lines[ends[index] : ends[index + 1]]
    return found
