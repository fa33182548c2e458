"""What differs between two traces, as rows for people and programs: functions, blocks and edges.

Runs in the controller. A row has what both traces share, and an object for each of them, `a` and `b`, which is None
where it did not run. Addresses are hexadecimal strings, names are as in the files: mangled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clew.analysis.code.functions import NO_OFFSET, name_function
from clew.analysis.code.places import describe_blocks, place_of
from clew.analysis.comparison.content import SIDES
from clew.protocol.words import EDGE_WORDS
from clew.store.columns import Array

if TYPE_CHECKING:
    from clew.analysis.comparison.trace_diff import TraceDiff

__all__ = ["describe_pieces", "list_alone", "list_differing"]

Row = dict[str, Any]


def list_differing(diff: TraceDiff, by: str, n: int) -> list[Row]:
    """What ran in both and not as often, the greatest difference first."""
    if by == "function":
        functions = diff.functions
        _, start = diff.place
        rows = np.flatnonzero((functions.blocks > 0).all(axis=0) & _differ(diff))
        best = _find_best(rows, functions.difference, start[functions.piece], n)
        return _describe_functions(diff, best)
    side_by_side = diff.blocks if by == "block" else diff.edges
    rows = np.flatnonzero(side_by_side.ran.all(axis=0) & side_by_side.differs)
    values = side_by_side.instructions if by == "block" else side_by_side.executions
    best = _find_best(rows, np.abs(values[0] - values[1]), _ties(diff, by), n)
    return _DESCRIBE[by](diff, best)


def list_alone(diff: TraceDiff, side: int, by: str, n: int) -> list[Row]:
    """What ran only in A (0) or B (1), what ran the most first; of functions all that have such code."""
    if by == "function":
        functions = diff.functions
        rows = np.flatnonzero(functions.only_blocks[side])
        _, start = diff.place
        best = _find_best(rows, functions.only_instructions[side], start[functions.piece], n)
        described = _describe_functions(diff, best)
        for row, function in zip(described, best.tolist(), strict=True):
            row["only"] = {
                "blocks": int(functions.only_blocks[side, function]),
                **({"executions": int(functions.only_executions[side, function])} if diff.is_counted else {}),
                "instructions": int(functions.only_instructions[side, function]),
            }
        return described
    side_by_side = diff.blocks if by == "block" else diff.edges
    values = side_by_side.instructions if by == "block" else side_by_side.executions
    rows = np.flatnonzero(side_by_side.is_only_in(side))
    return _DESCRIBE[by](diff, _find_best(rows, values[side], _ties(diff, by), n))


def _differ(diff: TraceDiff) -> Array:
    """Which functions have a piece that did not run as often in both."""
    functions = diff.functions
    differs = np.zeros(len(functions.piece), bool)
    differs[functions.of_piece[diff.blocks.differs]] = True
    return differs


def _ties(diff: TraceDiff, by: str) -> Array:
    """What equals are sorted by: the place; of edges that of their target."""
    _, start = diff.place
    if by == "block":
        return start
    places = np.zeros(len(diff.edges.is_comparable), np.int64)
    for flow, first in zip(diff.flows, diff.edges.first, strict=True):
        known = np.flatnonzero(first >= 0)
        places[known] = start[flow.target[first[known]]]
    return places


def _find_best(rows: Array, values: Array, ties: Array, n: int) -> Array:
    """The `n` of `rows` with the highest values, the highest first."""
    if len(rows) > 4 * n:
        # Only what reaches the n-th highest is to be sorted.
        rows = rows[values[rows] >= np.partition(values[rows], len(rows) - n)[len(rows) - n]]
    best: Array = rows[np.lexsort((ties[rows], -values[rows]))][:n]
    return best


def _describe_functions(diff: TraceDiff, numbers: Array) -> list[Row]:
    functions = diff.functions
    # Of each trace a block of the function, to be named by; the lowest that ran there.
    blocks = [_find_blocks(diff, side, numbers) for side in (0, 1)]
    rows = []
    for index, function in enumerate(numbers.tolist()):
        row: Row = {"function": None, "image": None}
        sides: Row = {}
        for side, name in enumerate(SIDES):
            block = blocks[side][index]
            sides[name] = None
            if block is not None and functions.blocks[side, function]:
                offset = None
                if block["offset"] is not None and block["symbol_offset"] is not None:
                    offset = int(block["offset"], 16) - block["symbol_offset"]
                elif functions.offset[function] >= 0:
                    offset = int(functions.offset[function])
                sides[name] = {
                    **({} if diff.is_merged else {"pid": block["pid"]}),
                    "image": block["image"],
                    "offset": None if offset is None else hex(offset),
                    "blocks": int(functions.blocks[side, function]),
                    **({"executions": int(functions.executions[side, function])} if diff.is_counted else {}),
                    "instructions": int(functions.instructions[side, function]),
                }
                if row["function"] is None:
                    row["function"] = name_function(
                        block["symbol"], block["image"], NO_OFFSET if offset is None else offset
                    )
                    row["image"] = block["image"]
        a, b = functions.instructions[:, function].tolist()
        rows.append({**row, **_compare(diff, a, b, int(functions.difference[function])), **sides})
    return rows


def _find_blocks(diff: TraceDiff, side: int, functions: Array) -> list[Row | None]:
    """Of each function the lowest block that ran in a trace."""
    ran = np.flatnonzero(diff.blocks.ran[side] & diff.blocks.is_comparable)
    ran = ran[np.isin(diff.functions.of_piece[ran], functions)]
    _, start = diff.place
    ran = ran[np.argsort(start[ran], kind="stable")[::-1]]
    lowest = np.full(len(diff.functions.piece), -1)
    lowest[diff.functions.of_piece[ran]] = ran
    wanted = lowest[functions]
    known = np.flatnonzero(wanted >= 0)
    described = describe_pieces(diff, side, diff.blocks.first[side, wanted[known]])
    found: list[Row | None] = [None] * len(functions)
    for index, block in zip(known.tolist(), described, strict=True):
        found[index] = block
    return found


def describe_pieces(diff: TraceDiff, side: int, pieces: Array) -> list[Row]:
    """What pieces of a trace are, as `describe_blocks` has it of blocks; of their block, in `block`."""
    table = diff.pieces[side]
    blocks = describe_blocks(diff.traces[side], table.block[pieces].tolist())
    for block, piece in zip(blocks, pieces.tolist(), strict=True):
        into, size = int(table.into[piece]), int(table.size_bytes[piece])
        if block["symbol_offset"] is not None:
            block["symbol_offset"] += into
        for name in ("offset", "app_pc"):
            if block[name] is not None:
                block[name] = hex(int(block[name], 16) + into)
        block["bytes"] = block["bytes"][2 * into : 2 * (into + size)]
        block["size_bytes"], block["n_instructions"] = size, int(table.n_instructions[piece])
    return blocks


def _describe_blocks(diff: TraceDiff, numbers: Array) -> list[Row]:
    rows: list[Row] = [{} for _ in numbers]
    for side, name in enumerate(SIDES):
        ran = diff.blocks.ran[side, numbers]
        described = iter(describe_pieces(diff, side, diff.blocks.first[side, numbers[ran]]))
        for row, number, has_run in zip(rows, numbers.tolist(), ran.tolist(), strict=True):
            row[name] = None
            if has_run:
                block = next(described)
                row.setdefault("symbol", block["symbol"])
                row.setdefault("symbol_offset", block["symbol_offset"])
                row.setdefault("image", block["image"])
                row[name] = {
                    **({} if diff.is_merged else {"pid": block["pid"]}),
                    **{key: block[key] for key in ("block", "image", "offset", "app_pc", "code_version")},
                    **{key: block[key] for key in ("size_bytes", "n_instructions", "bytes")},
                    **({"executions": int(diff.blocks.executions[side, number])} if diff.is_counted else {}),
                    "instructions": int(diff.blocks.instructions[side, number]),
                }
    return [
        _put_together(diff, row, diff.blocks.instructions[:, number]) for row, number in zip(rows, numbers, strict=True)
    ]


def _describe_edges(diff: TraceDiff, numbers: Array) -> list[Row]:
    rows: list[Row] = [{} for _ in numbers]
    for side, name in enumerate(SIDES):
        flow = diff.flows[side]
        ran = diff.edges.ran[side, numbers]
        edges = diff.edges.first[side, numbers[ran]]
        ends = [flow.source_piece[edges], flow.target_piece[edges], flow.callee_piece[edges]]
        known = np.concatenate([end[end >= 0] for end in ends])
        described = dict(zip(known.tolist(), describe_pieces(diff, side, known), strict=True))
        of_ends = iter(list(zip(*(end.tolist() for end in ends), edges.tolist(), strict=True)))
        for row, number, has_run in zip(rows, numbers.tolist(), ran.tolist(), strict=True):
            row[name] = None
            if has_run:
                *pieces, edge = next(of_ends)
                source, target, callee = (described.get(piece) for piece in pieces)
                kind = int(flow.kind[edge])
                row.setdefault("kind", EDGE_WORDS[kind] if kind >= 0 else None)
                row[name] = {
                    **({} if diff.is_merged or target is None else {"pid": target["pid"]}),
                    "source": source and place_of(source),
                    "target": target and place_of(target),
                    "callee": callee and place_of(callee),
                    **({"executions": int(diff.edges.executions[side, number])} if diff.is_counted else {}),
                }
    return [
        _put_together(diff, row, diff.edges.executions[:, number]) for row, number in zip(rows, numbers, strict=True)
    ]


_DESCRIBE: Final[dict[str, Callable[[TraceDiff, Array], list[Row]]]] = {
    "block": _describe_blocks,
    "edge": _describe_edges,
}


def _put_together(diff: TraceDiff, row: Row, values: Array) -> Row:
    a, b = values.tolist()
    sides = {name: row.pop(name) for name in SIDES}
    return {**row, **_compare(diff, a, b, abs(a - b)), **sides}


def _compare(diff: TraceDiff, a: int, b: int, difference: int) -> Row:
    """What is said of two numbers: B's is `ratio` times A's, None if A's is 0."""
    if not diff.is_counted:
        return {}
    return {"difference": difference, "ratio": round(b / a, 6) if a else None}
