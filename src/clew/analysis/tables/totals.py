"""Totals of a trace: what `clew info` tells.

Runs in the controller.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.analysis.tables.arrays import TraceArrays
from clew.analysis.tables.split import iter_by_pid
from clew.store.columns import to_numpy
from clew.store.trace import Trace

__all__ = ["Totals", "summarize_totals", "summarize_trace"]


class Totals:
    """Totals over all processes: `add` every piece of a trace.

    In mode coverage nothing was counted: executions and instructions are 0.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._sums = dict.fromkeys(("instructions", "block_executions", "blocks", "edges", "edge_executions"), 0)

    def add(self, arrays: TraceArrays) -> None:
        """Take in a piece."""
        arrays.load("blocks", "block_id", "n_instructions")
        executions = arrays.block_executions
        self._sums["blocks"] += int(np.count_nonzero(executions))
        if self._trace.mode == "coverage":
            self._sums["edges"] += arrays.n_edges
        else:
            # With the order there are edges of what is not recorded, too.
            self._sums["edges"] += int(np.count_nonzero(arrays.edge_executions))
            self._sums["instructions"] += int((executions * arrays.n_instructions).sum())
            self._sums["block_executions"] += int(executions.sum())
            self._sums["edge_executions"] += int(arrays.edge_executions.sum())

    def to_dict(self) -> dict[str, int]:
        """The totals by name, and `lost_records`."""
        return self._sums | {"lost_records": self._trace.manifest.lost_records}


class _ImageTotals:
    """What ran in each image, by its row: `executions`, `instructions` and `blocks`."""

    def __init__(self, n_images: int) -> None:
        self.executions, self.instructions, self.blocks = (np.zeros(n_images, np.int64) for _ in range(3))

    def add(self, arrays: TraceArrays) -> None:
        """Take in a piece."""
        inside = np.flatnonzero(arrays.block_image >= 0)
        image = arrays.trace.whole_rows("images", arrays.block_image[inside])
        ran = arrays.block_executions[inside]
        np.add.at(self.blocks, image, (ran > 0).astype(np.int64))
        if arrays.trace.mode != "coverage":
            np.add.at(self.executions, image, ran)
            np.add.at(self.instructions, image, ran * arrays.n_instructions[inside])


def summarize_totals(arrays: TraceArrays) -> dict[str, int]:
    """Totals of a trace that is looked at as a whole."""
    totals = Totals(arrays.trace)
    totals.add(arrays)
    return totals.to_dict()


def summarize_trace(trace: Trace) -> dict[str, Any]:
    """Everything that `clew info --json` prints; addresses are hexadecimal strings."""
    manifest = trace.manifest
    totals, of_images = Totals(trace), _ImageTotals(trace.n_rows("images"))
    for piece in iter_by_pid(trace):
        arrays = TraceArrays(piece)
        arrays.load("blocks", "block_id", "image_id", "n_instructions")
        totals.add(arrays)
        of_images.add(arrays)
    images = _describe_images(trace, of_images)
    threads = _describe_threads(trace)
    unfollowed = {index for index, row in enumerate(manifest.processes) if row.get("went_on_unfollowed")}
    processes = [
        {
            "process_id": row["process_id"],
            "pid": row["pid"],
            "parent_pid": row["parent_pid"],
            "executable": row["executable"],
            "command": row["command"],
            "architecture": row["architecture"],
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
        "totals": totals.to_dict(),
        "losses": manifest.losses,
        "releases": manifest.releases,
        "warnings": manifest.warnings,
        "processes": processes,
        "cpu": manifest.cpu,
        "stored_bytes": sum(file.stat().st_size for file in trace.directory.rglob("*") if file.is_file()),
    }


def _describe_exit(row: dict[str, Any]) -> dict[str, int | None]:
    return {"signal": row["signal"]} if row["signal"] is not None else {"code": row["exit_code"]}


def _describe_threads(trace: Trace) -> dict[int, list[dict[str, Any]]]:
    """Threads by process_id."""
    threads: dict[int, list[dict[str, Any]]] = {}
    n_tags, stored_bytes = _count_tags(trace), _stored_bytes(trace)
    for row in trace.threads.to_pylist():
        threads.setdefault(row["process_id"], []).append(
            {
                "tid": row["tid"],
                "name": row["name"],
                "parent_tid": row["parent_tid"],
                "instructions": row["instructions"],
                "block_executions": row["block_executions"],
                "tags": n_tags.get((row["process_id"], row["tid"]), 0),
                "stored_bytes": stored_bytes.get((row["process_id"], row["tid"], row["start_ns"]), 0),
                "end": row["end"],
                "start_ns": row["start_ns"],
                "end_ns": row["end_ns"],
                "lost_records": row["lost_records"],
            }
        )
    return threads


def _stored_bytes(trace: Trace) -> dict[tuple[int, int, int], int]:
    """Bytes of each thread's ordered path, by process_id, tid and start_ns."""
    rows = trace.paths.to_pylist()
    return {(row["process_id"], row["tid"], row["start_ns"]): row["stored_bytes"] for row in rows}


def _count_tags(trace: Trace) -> dict[tuple[int, int], int]:
    """Tags by process_id and tid."""
    counted: dict[tuple[int, int], int] = {}
    for piece in trace.iter_pieces("tags", ["process_id", "tid", "tag"]):
        process_id, tid, tag = (to_numpy(piece[name]).astype(np.int64) for name in piece.column_names)
        changes = np.flatnonzero((np.diff(process_id) != 0) | (np.diff(tid) != 0))
        for row in [*changes.tolist(), len(tag) - 1]:
            counted[int(process_id[row]), int(tid[row])] = int(tag[row]) + 1
    return counted


def _describe_images(trace: Trace, totals: _ImageTotals) -> dict[int, list[dict[str, Any]]]:
    """Images by process_id, with what ran in each; those in which nothing ran as well."""
    images: dict[int, list[dict[str, Any]]] = {}
    sums = zip(totals.instructions.tolist(), totals.executions.tolist(), totals.blocks.tolist(), strict=True)
    for row, (instructions, executions, blocks) in zip(trace.images.to_pylist(), sums, strict=True):
        images.setdefault(row["process_id"], []).append(
            {
                "path": row["path"],
                "base": hex(row["base"]),
                "size_bytes": row["size_bytes"],
                "build_id": row["build_id"],
                "instructions": instructions,
                "block_executions": executions,
                "blocks": blocks,
            }
        )
    return images
