"""Totals of a trace: what `clew info` tells.

Runs in the controller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.analysis.arrays import TraceArrays, find_rows, to_numpy
from clew.store.trace import Trace

__all__ = ["summarize_totals", "summarize_trace"]


def summarize_totals(arrays: TraceArrays) -> dict[str, int]:
    """Totals over all processes. In mode coverage nothing was counted: executions and instructions are 0."""
    is_counted = arrays.trace.mode != "coverage"
    executions = arrays.block_executions
    return {
        "instructions": int((executions * arrays.n_instructions).sum()) if is_counted else 0,
        "block_executions": int(executions.sum()) if is_counted else 0,
        "blocks": int(np.count_nonzero(executions)),
        "edges": arrays.n_edges,
        "edge_executions": int(arrays.edge_executions.sum()) if is_counted else 0,
        "lost_records": arrays.trace.manifest.lost_records,
    }


def summarize_trace(trace: Trace) -> dict[str, Any]:
    """Everything that `clew info --json` prints; addresses are hexadecimal strings."""
    arrays = TraceArrays(trace)
    manifest = trace.manifest
    images = _summarize_images(arrays)
    unfollowed = {index for index, row in enumerate(manifest.processes) if row.get("went_on_unfollowed")}
    threads: dict[int, list[dict[str, Any]]] = {}
    for row in trace.threads.to_pylist():
        threads.setdefault(row["process_id"], []).append(
            {
                "tid": row["tid"],
                "name": row["name"],
                "instructions": row["instructions"],
                "block_executions": row["block_executions"],
                "tags": 0,
                "stored_bytes": 0,
                "end": row["end"],
                "start_ns": row["start_ns"],
                "end_ns": row["end_ns"],
                "lost_records": row["lost_records"],
            }
        )
    processes = [
        {
            "pid": row["pid"],
            "parent_pid": row["parent_pid"],
            "executable": row["executable"],
            "command": row["command"],
            "start_ns": row["start_ns"],
            "end_ns": row["end_ns"],
            "exit": _describe_exit(row),
            "went_on_unfollowed": row["process_id"] in unfollowed,
            "threads": threads.get(row["process_id"], []),
            "images": images.get(row["process_id"], []),
        }
        for row in trace.processes.to_pylist()
    ]
    return {
        "format": manifest.format,
        "command": manifest.command,
        "mode": manifest.mode,
        "include": manifest.include,
        "exclude": manifest.exclude,
        "clew_version": manifest.clew_version,
        "machine": manifest.machine,
        "start_ns": manifest.start_ns,
        "end_ns": manifest.end_ns,
        "totals": summarize_totals(arrays),
        "losses": manifest.losses,
        "warnings": manifest.warnings,
        "processes": processes,
        "cpu": manifest.cpu,
        "stored_bytes": sum(file.stat().st_size for file in trace.path.rglob("*") if file.is_file()),
    }


def _describe_exit(row: dict[str, Any]) -> dict[str, int | None]:
    return {"signal": row["signal"]} if row["signal"] is not None else {"code": row["exit_code"]}


def _summarize_images(arrays: TraceArrays) -> dict[int, list[dict[str, Any]]]:
    """Images by process_id, with what ran in each; those in which nothing ran as well."""
    table = arrays.trace.images
    row_of_block = find_rows(to_numpy(table["image_id"]), to_numpy(arrays.blocks["image_id"]))
    n = table.num_rows
    inside = row_of_block >= 0
    executions, instructions, blocks = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    counted = arrays.block_executions if arrays.trace.mode != "coverage" else np.zeros(arrays.n_blocks, np.int64)
    np.add.at(executions, row_of_block[inside], counted[inside])
    np.add.at(instructions, row_of_block[inside], (counted * arrays.n_instructions)[inside])
    np.add.at(blocks, row_of_block[inside], (arrays.block_executions > 0)[inside].astype(np.int64))
    images: dict[int, list[dict[str, Any]]] = {}
    for index, row in enumerate(table.to_pylist()):
        images.setdefault(row["process_id"], []).append(
            {
                "path": row["path"],
                "base": hex(row["base"]),
                "size_bytes": row["size_bytes"],
                "build_id": row["build_id"],
                "instructions": int(instructions[index]),
                "block_executions": int(executions[index]),
                "blocks": int(blocks[index]),
            }
        )
    return images
