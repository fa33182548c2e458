"""The hottest functions, blocks, edges, images and threads of a trace, as rows.

Runs in the controller. Hottest is what ran most instructions; in mode coverage, where nothing is counted, what has most
of them. Addresses in rows are hexadecimal strings, names are as in the files: mangled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from clew.analysis.arrays import Array, TraceArrays, find_rows, to_numpy
from clew.analysis.functions import FunctionTable
from clew.analysis.hot_lines import rank_lines

__all__ = ["RANKINGS", "rank_blocks", "rank_edges", "rank_functions", "rank_images", "rank_threads"]

Row = dict[str, Any]


def rank_functions(arrays: TraceArrays, n: int) -> list[Row]:
    """Functions, by instructions.

    `entries` is how often control came to its start from another function, by whatever way; `calls` are calls that name
    it, `returns` those of them that returned.
    """
    functions = FunctionTable(arrays)
    executions = functions.add_up(arrays.block_executions)
    instructions = functions.add_up(arrays.block_executions * arrays.n_instructions)
    blocks = functions.add_up((arrays.block_executions > 0).astype(np.int64))
    calls, returns = functions.count_calls()
    entries = functions.count_entries()
    total = int(instructions.sum())
    return [
        {
            "pid": int(functions.pid[row]),
            "function": functions.name(row),
            "image": functions.image_path(row),
            "offset": hex(int(functions.offset[row])) if functions.offset[row] < 1 << 63 else None,
            "instructions": int(instructions[row]),
            "share": _share(int(instructions[row]), total),
            "executions": int(executions[row]),
            "entries": int(entries[row]),
            "calls": int(calls[row]),
            "returns": int(returns[row]),
            "blocks": int(blocks[row]),
        }
        for row in _top(instructions, n)
    ]


def rank_blocks(arrays: TraceArrays, n: int) -> list[Row]:
    """Blocks, by instructions run in them."""
    instructions = arrays.block_executions * arrays.n_instructions
    total = int(instructions.sum())
    return [
        {
            **describe_block(arrays, row),
            "instructions": int(instructions[row]),
            "share": _share(int(instructions[row]), total),
            "executions": int(arrays.block_executions[row]),
        }
        for row in _top(instructions, n)
    ]


def describe_block(arrays: TraceArrays, row: int) -> Row:
    """What a block is, whatever it did."""
    block = {
        name: arrays.blocks[name][row].as_py() for name in ("symbol", "symbol_offset", "image_id", "offset", "bytes")
    }
    image = find_rows(to_numpy(arrays.trace.images["image_id"]), np.array([block["image_id"] or 0]))[0]
    path = arrays.trace.images["path"][int(image)].as_py() if block["image_id"] is not None and image >= 0 else None
    return {
        "pid": int(arrays.block_pid[row]),
        "block": int(arrays.block_id[row]),
        "symbol": block["symbol"],
        "symbol_offset": block["symbol_offset"],
        "image": path,
        "offset": None if block["offset"] is None else hex(block["offset"]),
        "app_pc": hex(int(arrays.app_pc[row])),
        "code_version": arrays.blocks["code_version"][row].as_py(),
        "n_instructions": int(arrays.n_instructions[row]),
        "size_bytes": int(arrays.size_bytes[row]),
        "bytes": block["bytes"].hex(),
        "exit": arrays.blocks["exit_kind"][row].as_py(),
    }


def rank_edges(arrays: TraceArrays, n: int) -> list[Row]:
    """Edges, by executions; `instructions` are those of the block entered, as often as the edge was taken."""
    executions = arrays.edge_executions
    rows = []
    for row in _top(executions, n):
        source, target = int(arrays.edge_source[row]), int(arrays.edge_target[row])
        callee = int(arrays.callee[row])
        length = int(arrays.n_instructions[target]) if target >= 0 else 0
        rows.append(
            {
                "pid": arrays.edges["pid"][row].as_py(),
                "source": _place(arrays, source),
                "target": _place(arrays, target),
                "kind": arrays.edges["kind"][row].as_py(),
                "callee": _place(arrays, callee),
                "source_block": None if source < 0 else int(arrays.block_id[source]),
                "target_block": None if target < 0 else int(arrays.block_id[target]),
                "instructions": int(executions[row]) * length,
                "executions": int(executions[row]),
            }
        )
    return rows


def _place(arrays: TraceArrays, block: int) -> Row | None:
    if block < 0:
        return None
    return {key: value for key, value in describe_block(arrays, block).items()
            if key in ("symbol", "symbol_offset", "image", "offset", "app_pc")}  # fmt: skip


def rank_images(arrays: TraceArrays, n: int) -> list[Row]:
    """Images, by instructions; code outside of images is a row with the image null."""
    table = arrays.trace.images
    pids = np.unique(arrays.block_pid)
    row_of_block = find_rows(to_numpy(table["image_id"]), to_numpy(arrays.blocks["image_id"]))
    # One more row for each process: what lies in no image.
    group = np.where(row_of_block >= 0, row_of_block, table.num_rows + np.searchsorted(pids, arrays.block_pid))
    totals = np.zeros((3, table.num_rows + len(pids)), np.int64)
    for index, values in enumerate(
        (arrays.block_executions * arrays.n_instructions, arrays.block_executions, arrays.block_executions > 0)
    ):
        np.add.at(totals[index], group, values.astype(np.int64))
    total = int(totals[0].sum())
    rows = []
    for row in _top(totals[0], n):
        known = row < table.num_rows
        rows.append(
            {
                "pid": table["pid"][row].as_py() if known else int(pids[row - table.num_rows]),
                "image": table["path"][row].as_py() if known else None,
                "base": hex(table["base"][row].as_py()) if known else None,
                "instructions": int(totals[0][row]),
                "share": _share(int(totals[0][row]), total),
                "executions": int(totals[1][row]),
                "blocks": int(totals[2][row]),
            }
        )
    return rows


def rank_threads(arrays: TraceArrays, n: int) -> list[Row]:
    """Threads, by instructions."""
    table = arrays.trace.threads
    instructions = to_numpy(table["instructions"])
    order = np.argsort(-instructions, kind="stable")
    if arrays.pid is not None:
        order = order[to_numpy(table["pid"])[order] == arrays.pid]
    total = int(instructions[order].sum())
    return [
        {
            "pid": table["pid"][row].as_py(),
            "tid": table["tid"][row].as_py(),
            "name": table["name"][row].as_py(),
            "end": table["end"][row].as_py(),
            "instructions": int(instructions[row]),
            "share": _share(int(instructions[row]), total),
            "executions": table["block_executions"][row].as_py(),
        }
        for row in order[:n].tolist()
    ]


def _top(values: Array, n: int) -> list[int]:
    """Rows of the `n` highest values above 0, the highest first; the first of equals first."""
    rows = np.flatnonzero(values > 0)
    order: list[int] = rows[np.argsort(-values[rows], kind="stable")[:n]].tolist()
    return order


def _share(part: int, total: int) -> float:
    return round(part / total, 6) if total else 0.0


RANKINGS: Final[dict[str, Callable[[TraceArrays, int], list[Row]]]] = {
    "function": rank_functions,
    "block": rank_blocks,
    "edge": rank_edges,
    "line": rank_lines,
    "image": rank_images,
    "thread": rank_threads,
}
