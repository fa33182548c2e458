"""Where the threads of two traces part, as rows for people and programs.

Runs in the controller. Addresses are hexadecimal strings, names are as in the files: mangled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clew.analysis.code.places import describe_blocks, place_of
from clew.analysis.comparison.content import SIDES
from clew.analysis.comparison.order import FoundParting, OrderOfThreads
from clew.analysis.comparison.order_lines import add_lines
from clew.analysis.comparison.rows import describe_pieces
from clew.analysis.order.thread_path import PathPlace, ThreadPath

if TYPE_CHECKING:
    from clew.analysis.comparison.trace_diff import TraceDiff

__all__ = ["describe_order"]

Row = dict[str, Any]


def describe_order(diff: TraceDiff, order: list[OrderOfThreads]) -> list[Row]:
    """A row for each pair of threads, as `clew diff --json` has it."""
    places = [_find_places(diff, threads) for threads in order]
    calls = [_find_calls(diff, threads) for threads in order]
    returns = [row for of_threads in calls for row in of_threads.values()]
    for side, trace in enumerate(diff.traces):
        told = [row for of_threads in places for row in of_threads[side].values()]
        add_lines(trace, told, returns if side == 0 else ())
    return [_describe_threads(*of_threads) for of_threads in zip(order, places, calls, strict=True)]


def _describe_threads(threads: OrderOfThreads, places: tuple[dict[int, Row], ...], calls: dict[int, Row]) -> Row:
    sides: Row = {}
    for side, name in enumerate(SIDES):
        path = threads.paths[side]
        sides[name] = None
        if path is not None:
            sides[name] = {
                "pid": path.pid,
                "tid": path.tid,
                "instructions": path.instructions,
                "block_executions": path.block_executions,
                "start": _describe_place(threads.starts and threads.starts[side]),
                "end": _describe_place(threads.ends and threads.ends[side]),
            }
    return {
        "start": threads.start,
        "without_c_library": threads.has_left_out,
        "end": threads.end,
        "last": None if threads.last is None else places[0][threads.last],
        **sides,
        "partings": [_describe_parting(parting, places, calls) for parting in threads.partings],
    }


def _describe_parting(parting: FoundParting, places: tuple[dict[int, Row], ...], calls: dict[int, Row]) -> Row:
    sides: Row = {}
    for name, side, of_side in zip(SIDES, parting.sides, places, strict=True):
        ran = met = None
        if side.met is not None:
            met = PathPlace(side.met.execution, side.met.instruction)
            ran = PathPlace(met.execution - side.at.execution, met.instruction - side.at.instruction)
        sides[name] = {
            "at": _describe_place(side.at),
            "next": [of_side[piece] for piece in side.next_pieces],
            "ran": _describe_place(ran),
            "met": _describe_place(met),
        }
    met_at = parting.sides[0].met
    return {
        "last": None if parting.last is None else places[0][parting.last],
        "n_calls": parting.n_calls,
        "calls": [calls[address] for address in parting.calls],
        "met": None if met_at is None else places[0][met_at.piece],
        **sides,
    }


def _describe_place(place: PathPlace | None) -> Row | None:
    return None if place is None else {"instruction": place.instruction, "execution": place.execution}


def _find_places(diff: TraceDiff, threads: OrderOfThreads) -> tuple[dict[int, Row], dict[int, Row]]:
    """Where the pieces lie that are told, those of A and those of B."""
    wanted: tuple[set[int], set[int]] = (set(), set())
    wanted[0].update(parting.last for parting in threads.partings if parting.last is not None)
    if threads.last is not None:
        wanted[0].add(threads.last)
    for parting in threads.partings:
        for of_side, side in zip(wanted, parting.sides, strict=True):
            of_side.update(side.next_pieces)
            if side.met is not None:
                of_side.add(side.met.piece)
    found = []
    for number, of_side in enumerate(wanted):
        rows = sorted(of_side)
        described = describe_pieces(diff, number, np.array(rows, np.int64)) if rows else []
        found.append({row: place_of(block) for row, block in zip(rows, described, strict=True)})
    return found[0], found[1]


def _find_calls(diff: TraceDiff, threads: OrderOfThreads) -> dict[int, Row]:
    """Where return addresses of A's thread lie: behind which call."""
    path = threads.paths[0]
    addresses = sorted({address for parting in threads.partings for address in parting.calls})
    nowhere = {"symbol": None, "symbol_offset": None, "image": None, "offset": None}
    found: dict[int, Row] = {address: {**nowhere, "app_pc": hex(address)} for address in addresses}
    if path is None or not addresses:
        return found
    known = _find_blocks_ending(path, addresses)
    rows = diff.code[0].arrays.block_id
    order = np.argsort(rows, kind="stable")
    row_of = {address: int(order[np.searchsorted(rows[order], block)]) for address, block in known.items()}
    described = describe_blocks(diff.traces[0], list(row_of.values()))
    for address, block in zip(row_of, described, strict=True):
        place = place_of(block)
        if place["symbol_offset"] is not None:
            place["symbol_offset"] += block["size_bytes"]
        if place["offset"] is not None:
            place["offset"] = hex(int(place["offset"], 16) + block["size_bytes"])
        found[address] = {**place, "app_pc": hex(address)}
    return found


def _find_blocks_ending(path: ThreadPath, addresses: list[int]) -> dict[int, int]:
    """Ids of the blocks that end at addresses, as far as there are some."""
    ends = path.code.code.blocks["end_pc"][: len(path.code)]
    order = np.argsort(ends, kind="stable")
    wanted = np.array(addresses, np.uint64)
    at = np.minimum(np.searchsorted(ends[order], wanted), max(len(order) - 1, 0))
    if not len(order):
        return {}
    chosen = order[at]
    block_ids = path.code.block_id[chosen].tolist()
    hits = (ends[chosen] == wanted).tolist()
    return {address: block for address, block, is_hit in zip(addresses, block_ids, hits, strict=True) if is_hit}
