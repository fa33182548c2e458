"""A small good trace, as rows: to look at, to add up by hand, and to damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from clew.store.manifest import Manifest
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace
from clew.store.writer import PART_ROWS, TraceWriter

BASE = 0x400000

Rows = dict[str, list[dict[str, Any]]]
MakeTrace = Callable[..., Trace]


def small_trace() -> Rows:
    """A thread that runs a loop of three blocks five times, calls a function in it, and exits.

    main: 0x10 (call) -> 0x20 -> 0x10 four times, then 0x30 (syscall). The function: 0x40, which returns.
    """
    block = {
        "process_id": 0,
        "pid": 7,
        "image_id": 0,
        "code_version": 0,
        "symbol": "main",
        "function_offset": 0x10,
        "is_recorded": True,
        "first_ns": 1500,
    }
    code = {0x10: b"\x90" * 3 + b"\xe8" + bytes(4), 0x18: b"\x75\xf6", 0x1A: b"\x90\x0f\x05", 0x40: b"\x31\xc0\xc3"}
    exits = {0x10: ("call", 4), 0x18: ("conditional", 1), 0x1A: ("syscall", 2), 0x40: ("return", 2)}
    blocks = []
    for number, (offset, content) in enumerate(code.items()):
        names = (
            {"symbol": "main", "symbol_offset": offset - 0x10} if offset < 0x40 else {"symbol": "f", "symbol_offset": 0}
        )
        blocks.append(
            block
            | names
            | {
                "block_id": number,
                "offset": offset,
                "app_pc": BASE + offset,
                "size_bytes": len(content),
                "n_instructions": exits[offset][1],
                "bytes": content,
                "exit_kind": exits[offset][0],
                "function_offset": 0x40 if offset == 0x40 else 0x10,
            }
        )
    edge = {"process_id": 0, "pid": 7, "callee_block_id": None}
    edges: list[dict[str, Any]] = [
        edge | {"edge_id": 0, "source_block_id": None, "target_block_id": 0, "kind": "start"},
        edge | {"edge_id": 1, "source_block_id": 0, "target_block_id": 3, "kind": "call"},
        edge | {"edge_id": 2, "source_block_id": 0, "target_block_id": 1, "kind": "return", "callee_block_id": 3},
        edge | {"edge_id": 3, "source_block_id": 1, "target_block_id": 0, "kind": "taken"},
        edge | {"edge_id": 4, "source_block_id": 1, "target_block_id": 2, "kind": "not_taken"},
    ]
    count = {"process_id": 0, "pid": 7, "tid": 7, "block_id": None, "edge_id": None}
    counts = [count | {"block_id": number, "executions": n} for number, n in enumerate([5, 5, 1, 5])]
    counts += [count | {"edge_id": number, "executions": n} for number, n in enumerate([1, 5, 5, 4, 1])]
    return {
        "processes": [
            {
                "process_id": 0,
                "pid": 7,
                "parent_pid": 1,
                "executable": "/bin/it",
                "command": ["it", "-x"],
                "start_ns": 1000,
                "end_ns": 9000,
                "exit_code": 0,
                "signal": None,
                "architecture": "x86_64",
            }
        ],
        "threads": [
            {
                "process_id": 0,
                "pid": 7,
                "tid": 7,
                "parent_tid": 0,
                "name": "it",
                "start_ns": 1000,
                "end_ns": 8000,
                "end": "exit",
                "instructions": 37,
                "block_executions": 16,
                "lost_records": 0,
            }
        ],
        "images": [
            {
                "image_id": 0,
                "process_id": 0,
                "pid": 7,
                "path": "/bin/it",
                "build_id": None,
                "base": BASE,
                "size_bytes": 0x1000,
                "loaded_ns": 1000,
                "unloaded_ns": None,
            }
        ],
        "blocks": blocks,
        "edges": edges,
        "counts": counts,
        "events": [],
    }


def repeated_trace(n: int) -> Rows:
    """`n` processes that did the same: pids and tids from 7 on, ids one after another."""
    one = small_trace()
    sizes = {"block": len(one["blocks"]), "edge": len(one["edges"])}
    return put_together([small_trace() for _ in range(n)], sizes)


def put_together(processes: list[Rows], sizes: dict[str, int]) -> Rows:
    """One trace of several, each of one process: pids and tids are one more in each, ids by one, or by `sizes`."""
    rows: Rows = {table: [] for table in processes[0]}
    for number, process in enumerate(processes):
        for table, content in process.items():
            for row in content:
                for name in row:
                    if row[name] is None:
                        continue
                    if name in ("pid", "tid"):
                        row[name] += number
                    elif name.endswith("_id") and name != "build_id":
                        kind = name.removesuffix("_id").rpartition("_")[2]
                        row[name] += number * sizes.get(kind, 1)
            rows[table] += content
    return rows


def make_manifest(processes: list[dict[str, Any]], **fields: Any) -> Manifest:
    """A manifest of a trace without losses. Keywords replace fields."""
    content: dict[str, Any] = {
        "command": ["it", "-x"],
        "mode": "counts",
        "include": [],
        "exclude": [],
        "start_ns": 1000,
        "end_ns": 9000,
        "clew_version": "0",
        "machine": {},
        "cpu": {"target_seconds": 1.0, "controller_seconds": 0.5},
        "losses": {"dropped_records": 0, "damaged_records": 0},
        "processes": processes,
        "warnings": [],
    }
    return Manifest(**(content | fields))


def write_trace(tables: Rows, directory: Path, part_rows: int = PART_ROWS, **fields: Any) -> Trace:
    """Write rows as a trace into `directory`, which is made, and open it. Keywords replace fields of the manifest."""
    directory.mkdir()
    writer = TraceWriter(directory, part_rows)
    for table, content in tables.items():
        of_process: list[list[dict[str, Any]]] = []
        for row in content:
            if not of_process or of_process[-1][-1]["process_id"] != row["process_id"]:
                of_process.append([])
            of_process[-1].append(row)
        for rows in of_process:
            writer.write(table, pa.Table.from_pylist(rows, SCHEMAS[table]))
    writer.finish(make_manifest([{"pid": row["pid"], "code": 0} for row in tables["processes"]], **fields))
    return Trace(directory)
