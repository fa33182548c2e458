"""Code of a process for the page: of a function, of a part of the listing, its source lines, and cross references.

Runs in the controller. What is asked for is checked here; numbers that name nothing raise UsageError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from clew.analysis.graph.function_code import CodeText
from clew.analysis.graph.graph import GraphCounts
from clew.analysis.graph.instruction_lines import InstructionLines
from clew.analysis.graph.listing import Listing
from clew.errors import UsageError
from clew.server.container import encode_container
from clew.server.served_trace import ServedTrace
from clew.store.columns import Array

__all__ = [
    "answer_function_code",
    "answer_function_lines",
    "answer_listing",
    "answer_listing_lines",
    "answer_references",
    "encode_listing_index",
]

MAX_FUNCTION_BLOCKS: Final = 5000
"""Blocks of a function that are told; of those that have more the first."""

MAX_LISTED: Final = 1024
"""Blocks in a part of the listing."""

MAX_REFERENCES: Final = 200
"""Cross references of a block, each way."""

Threads = Sequence[int] | None


def answer_function_code(served: ServedTrace, process_id: int, function: int, threads: Threads) -> dict[str, Any]:
    """Blocks of a function with their instructions, and the edges between them."""
    _check("function", function, served.graph(process_id).n_functions)
    counts = _count(served, process_id, threads)
    return _text(served, process_id).describe_function(function, counts, MAX_FUNCTION_BLOCKS)


def answer_function_lines(served: ServedTrace, process_id: int, function: int) -> dict[str, Any]:
    """Source lines of a function's instructions. May take long, and lets others be answered meanwhile."""
    graph = served.graph(process_id)
    _check("function", function, graph.n_functions)
    first, last = int(graph.first_block[function]), int(graph.first_block[function + 1])
    return _lines(served, process_id).find(range(first, min(last, first + MAX_FUNCTION_BLOCKS)))


def encode_listing_index(served: ServedTrace, process_id: int) -> bytes:
    """What the listing has at each of its places, but for the code itself."""
    listing = _listing(served, process_id)
    arrays: dict[str, Array] = {
        "block": listing.block.astype(np.uint32),
        "flags": listing.flags.astype(np.uint8),
        "gap_bytes": listing.gap_bytes.astype(np.float64),
        "n_rows": listing.n_rows.astype(np.uint32),
    }
    return encode_container("listing", {"process_id": process_id}, arrays)


def answer_listing(served: ServedTrace, process_id: int, start: int, count: int, threads: Threads) -> dict[str, Any]:
    """Code of `count` blocks from place `start` of the listing on; of fewer where it ends."""
    blocks = _take(served, process_id, start, count)
    rows = _text(served, process_id).describe_blocks(blocks, _count(served, process_id, threads))
    return {"start": start, "blocks": rows}


def answer_listing_lines(served: ServedTrace, process_id: int, start: int, count: int) -> dict[str, Any]:
    """Source lines of the same blocks. May take long, and lets others be answered meanwhile."""
    return _lines(served, process_id).find(_take(served, process_id, start, count))


def answer_references(served: ServedTrace, process_id: int, block: int, threads: Threads) -> dict[str, Any]:
    """Who comes to a block, and where it leads."""
    _check("block", block, served.graph(process_id).n_blocks)
    counts = _count(served, process_id, threads)
    return _text(served, process_id).find_references(block, counts, MAX_REFERENCES)


def _take(served: ServedTrace, process_id: int, start: int, count: int) -> list[int]:
    listing = _listing(served, process_id)
    if not 0 <= start <= len(listing):
        raise UsageError(f"start: the listing has {len(listing)} blocks")
    if not 1 <= count <= MAX_LISTED:
        raise UsageError(f"count: 1 to {MAX_LISTED}")
    found: list[int] = listing.block[start : start + count].tolist()
    return found


def _check(name: str, index: int, n: int) -> None:
    if not 0 <= index < n:
        raise UsageError(f"{name}: there are {n}")


def _text(served: ServedTrace, process_id: int) -> CodeText:
    return served.once(("code-text", process_id), lambda: CodeText(served.graph(process_id)))


def _listing(served: ServedTrace, process_id: int) -> Listing:
    return served.once(("listing", process_id), lambda: Listing(served.graph(process_id)))


def _lines(served: ServedTrace, process_id: int) -> InstructionLines:
    return served.once(("lines", process_id), lambda: InstructionLines(served.graph(process_id)))


def _count(served: ServedTrace, process_id: int, threads: Threads) -> GraphCounts:
    key = None if threads is None else tuple(sorted(set(threads)))
    return served.once(("graph-counts", process_id, key), lambda: served.graph(process_id).count(key))
