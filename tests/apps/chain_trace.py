"""Makes good traces of any size: each process runs a chain of jumps once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from clew.store import columns
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace
from clew.store.writer import TraceWriter
from tests.unit.small_trace import make_manifest

BASE = 0x400000
FIRST_PID = 1000
JUMP = b"\xeb\x00"
CALL = b"\x0f\x05"


def write_chains(directory: Path, n_processes: int, n_blocks: int) -> Trace:
    """A trace of `n_processes`, each of `n_blocks` blocks, as many edges, and twice as many counts."""
    directory.mkdir()
    writer = TraceWriter(directory)
    for number in range(n_processes):
        for table, content in _make_tables(number, n_blocks).items():
            writer.write(table, pa.Table.from_arrays(list(content.values()), schema=SCHEMAS[table]))
    writer.finish(make_manifest([{"pid": FIRST_PID + number, "code": 0} for number in range(n_processes)]))
    return Trace(directory)


def _make_tables(number: int, n: int) -> dict[str, dict[str, pa.Array]]:
    """Tables of one process with their columns."""
    pid = FIRST_PID + number

    def same(table: str, n_rows: int, **values: int) -> dict[str, pa.Array]:
        return {
            name: columns.numbers(np.full(n_rows, value), SCHEMAS[table].field(name).type)
            for name, value in {"process_id": number, "pid": pid, **values}.items()
        }

    def rows(table: str, content: list[dict[str, object]]) -> dict[str, pa.Array]:
        made = pa.Table.from_pylist(content, SCHEMAS[table])
        return {
            name: made[name].chunk(0) if made.num_rows else made[name].combine_chunks() for name in made.schema.names
        }

    def sort(table: str, content: dict[str, pa.Array]) -> dict[str, pa.Array]:
        return {name: content[name] for name in SCHEMAS[table].names}

    whose = {"process_id": number, "pid": pid}
    life = {"start_ns": 1000, "end_ns": 9000}
    offset = 2 * np.arange(n)
    is_last = np.arange(n) == n - 1
    block_id = number * n + np.arange(n)
    edge_id = block_id
    blocks = same("blocks", n, image_id=number, code_version=0, size_bytes=2, n_instructions=1, first_ns=2000) | {
        "block_id": columns.numbers(block_id, pa.int64()),
        "offset": columns.numbers(offset, pa.uint64()),
        "app_pc": columns.numbers(BASE + offset, pa.uint64()),
        "bytes": columns.binaries(np.frombuffer(JUMP * (n - 1) + CALL, np.uint8), 2 * np.arange(n + 1)),
        "symbol": columns.words(np.arange(n) // 100, [f"f{index}" for index in range(-(-n // 100))]),
        "symbol_offset": columns.numbers(offset % 200, pa.int64()),
        "function_offset": columns.numbers(offset - offset % 200, pa.uint64()),
        "exit_kind": columns.words(is_last.astype(int), ["jump", "syscall"]),
        "is_recorded": columns.booleans(np.ones(n, bool)),
    }
    edges = same("edges", n) | {
        "edge_id": columns.numbers(edge_id, pa.int64()),
        "source_block_id": columns.numbers(block_id - 1, pa.int64(), np.arange(n) == 0),
        "target_block_id": columns.numbers(block_id, pa.int64()),
        "kind": columns.words((np.arange(n) > 0).astype(int), ["start", "jump"]),
        "callee_block_id": columns.numbers(np.zeros(n), pa.int64(), np.ones(n, bool)),
    }
    is_edge = np.arange(2 * n) >= n
    counts = same("counts", 2 * n, tid=pid, executions=1) | {
        "block_id": columns.numbers(np.append(block_id, block_id), pa.int64(), is_edge),
        "edge_id": columns.numbers(np.append(edge_id, edge_id), pa.int64(), ~is_edge),
    }
    process = {"parent_pid": 1, "executable": "/bin/chain", "command": ["chain"], "exit_code": 0, "signal": None}
    process["architecture"] = "x86_64"
    thread = {"tid": pid, "parent_tid": 0, "name": "chain", "end": "exit", "instructions": n, "block_executions": n}
    image = {"image_id": number, "path": "/bin/chain", "build_id": None, "base": BASE, "size_bytes": 2 * n}
    return {
        "processes": rows("processes", [whose | process | life]),
        "threads": rows("threads", [whose | thread | life | {"lost_records": 0}]),
        "images": rows("images", [whose | image | {"loaded_ns": 1000, "unloaded_ns": None}]),
        "blocks": sort("blocks", blocks),
        "edges": sort("edges", edges),
        "counts": sort("counts", counts),
    }
