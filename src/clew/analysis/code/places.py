"""What blocks are and where they lie.

Runs in the controller. Addresses are hexadecimal strings, names are as in the files: mangled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from clew.binary.architectures.architecture import Architecture
from clew.store.columns import to_numpy
from clew.store.trace import Trace

__all__ = ["describe_blocks", "find_block_architectures", "find_blocks", "place_of"]

Row = dict[str, Any]

_COLUMNS: Final = (
    *("pid", "block_id", "symbol", "symbol_offset", "image_id", "offset", "app_pc"),
    *("code_version", "n_instructions", "size_bytes", "bytes", "exit_kind"),
)


def find_block_architectures(trace: Trace, block_ids: Sequence[int]) -> dict[int, Architecture]:
    """What the code of some blocks is for, by their ids."""
    rows = trace.find_first("blocks", "block_id", block_ids)
    processes = trace.read_rows("blocks", list(rows.values()), ["process_id"])
    return {block: trace.architecture_of(process["process_id"]) for block, process in zip(rows, processes, strict=True)}


def describe_blocks(trace: Trace, rows: Sequence[int]) -> list[Row]:
    """What the blocks of some rows are, whatever they did."""
    paths = _find_paths(trace)
    return [
        {
            "pid": block["pid"],
            "block": block["block_id"],
            "symbol": block["symbol"],
            "symbol_offset": block["symbol_offset"],
            "image": paths.get(block["image_id"]),
            "offset": None if block["offset"] is None else hex(block["offset"]),
            "app_pc": hex(block["app_pc"]),
            "code_version": block["code_version"],
            "n_instructions": block["n_instructions"],
            "size_bytes": block["size_bytes"],
            "bytes": block["bytes"].hex(),
            "exit": block["exit_kind"],
        }
        for block in trace.read_rows("blocks", rows, _COLUMNS)
    ]


def find_blocks(trace: Trace, block_ids: Iterable[int | None]) -> dict[int | None, Row]:
    """What blocks are, by their ids; those that there are not are left out."""
    found = trace.find_first("blocks", "block_id", {number for number in block_ids if number is not None})
    return dict(zip(found, describe_blocks(trace, list(found.values())), strict=True))


def place_of(block: Row) -> Row:
    """Where a block lies, of what it is."""
    return {name: block[name] for name in ("symbol", "symbol_offset", "image", "offset", "app_pc")}


def _find_paths(trace: Trace) -> dict[int | None, str]:
    """Paths of images by their ids; of several with one id the first."""
    images = trace.read("images", ["image_id", "path"])
    pairs = list(zip(to_numpy(images["image_id"]).tolist(), images["path"].to_pylist(), strict=True))
    return dict(reversed(pairs))
