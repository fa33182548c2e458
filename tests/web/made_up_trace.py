"""Writes traces of any size whose every number is known: of programs that were made up, with threads and names.

Flow is conserved in every thread, so `clew verify` finds nothing. A trace of a million blocks takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from clew.protocol.words import EDGE_WORDS
from clew.store import columns
from clew.store.columns import Array
from clew.store.schema import SCHEMAS
from clew.store.writer import TraceWriter
from tests.unit.small_trace import make_manifest
from tests.web.made_up_calls import make_call_tables
from tests.web.made_up_program import BLOCK_BYTES, EXITS, IMAGES, START_NS, Program

__all__ = ["START_NS", "MadeUpTrace", "write_made_up_trace"]

PID: Final = 1000
CHILD_STEP: Final = 1000

# What a block of each exit holds: bytes, with 4 of 0 where the way to its target comes, and how many instructions.
_CODE: Final = {
    "fall_through": (b"\x48\x83\xc0\x01\x48\x83\xc0\x01", 2),  # add rax, 1; add rax, 1
    "conditional": (b"\x85\xc0\x0f\x84" + bytes(4), 2),  # test eax, eax; je
    "call": (b"\x48\x89\xc7\xe8" + bytes(4), 2),  # mov rdi, rax; call
    "jump": (b"\x48\x89\xc7\xe9" + bytes(4), 2),  # mov rdi, rax; jmp
    "indirect_jump": (b"\x48\x89\xc7\x48\x89\xc6\xff\xe0", 3),  # mov rdi, rax; mov rsi, rax; jmp rax
    "return": (b"\x48\x83\xc0\x01\x48\x89\xc7\xc3", 3),  # add rax, 1; mov rdi, rax; ret
    "syscall": (b"\x48\x89\xc7\x48\x89\xc6\x0f\x05", 3),  # mov rdi, rax; mov rsi, rax; syscall
}
_BY_TARGET: Final = ("conditional", "call", "jump")


@dataclass(frozen=True)
class MadeUpTrace:
    """What was written: `executions` of blocks by thread, i64, [thread, block], and how many of what there is."""

    directory: Path
    n_functions: int
    n_blocks: int
    n_edges: int
    threads: list[int]
    executions: Array


def write_made_up_trace(
    directory: Path,
    n_blocks: int,
    *,
    n_threads: int = 1,
    n_children: int = 0,
    n_calls: int = 0,
    names: Sequence[str] = (),
    title: str = "made-up",
    seed: int = 1,
) -> MadeUpTrace:
    """Write a trace, of mode counts, of a process with `n_blocks` blocks into `directory`, which is made.

    It has `n_children` processes below it, of one thread each, which executed nothing that was counted. With `n_calls`
    it has recorded calls, so many and one of each child (see `made_up_calls`).

    `names` are symbols of the first functions, `title` is in the command and in the names of threads. Everything
    follows from the arguments. Raises ValueError where `n_blocks` are too few for the names and threads.
    """
    directory.mkdir()
    program = Program(n_blocks, n_threads, max(len(names), 2 * n_threads), np.random.default_rng(seed))
    writer = TraceWriter(directory)
    for table, content in _make_tables(program, names, title, n_children).items():
        writer.write(table, content)
    if n_calls:
        own = make_call_tables(
            n_calls,
            whose={"process_id": 0, "pid": PID},
            tids=[PID + number for number in range(n_threads)],
            children=_list_children(n_children),
            executions=program.executions,
            life=(START_NS, program.end_ns),
            seed=seed,
        )
        for table, content in own.items():
            writer.write(table, content)
    end_ns = program.end_ns
    pids = [PID, *(child["pid"] for child in _list_children(n_children))]
    ends = [{"pid": pid, "code": 0} for pid in pids]
    writer.finish(make_manifest(ends, start_ns=START_NS, end_ns=end_ns, command=[title]))
    return MadeUpTrace(
        directory,
        program.n_functions,
        program.n_blocks,
        len(program.edges["kind"]),
        list(range(PID, PID + n_threads)),
        program.executions,
    )


def _make_tables(program: Program, names: Sequence[str], title: str, n_children: int) -> dict[str, pa.Table]:
    life = {"start_ns": START_NS, "end_ns": program.end_ns}
    whose = {"process_id": 0, "pid": PID}
    n_instructions = np.array([_CODE[word][1] for word in EXITS])[program.exit]
    totals = program.executions.sum(axis=1), (program.executions * n_instructions).sum(axis=1)
    threads: list[dict[str, Any]] = [
        whose
        | life
        | {"tid": PID + number, "parent_tid": PID if number else 0, "name": f"{title} {number}", "end": "exit"}
        | {"block_executions": int(totals[0][number]), "instructions": int(totals[1][number]), "lost_records": 0}
        for number in range(program.n_threads)
    ]
    process = {"parent_pid": 1, "executable": IMAGES[0][0], "command": [title, title], "exit_code": 0, "signal": None}
    process["architecture"] = "x86_64"
    children = [child | life for child in _list_children(n_children)]
    threads += [
        child
        | {"tid": child["pid"], "parent_tid": PID, "name": f"{title} child", "end": "exit"}
        | {"block_executions": 0, "instructions": 0, "lost_records": 0}
        for child in children
    ]
    images = [
        whose
        | {"image_id": number, "path": path, "build_id": None, "base": base, "size_bytes": program.image_bytes[number]}
        | {"loaded_ns": START_NS, "unloaded_ns": None}
        for number, (path, base) in enumerate(IMAGES)
    ]
    return {
        "processes": pa.Table.from_pylist(
            [whose | process | life, *(child | process | {"parent_pid": PID} for child in children)],
            SCHEMAS["processes"],
        ),
        "threads": pa.Table.from_pylist(threads, SCHEMAS["threads"]),
        "images": pa.Table.from_pylist(images, SCHEMAS["images"]),
        "blocks": _make_blocks(program, names, n_instructions),
        "edges": _make_edges(program),
        "counts": _make_counts(program),
    }


def _list_children(n: int) -> list[dict[str, int]]:
    return [{"process_id": number, "pid": PID + CHILD_STEP * number} for number in range(1, n + 1)]


def _make_blocks(program: Program, names: Sequence[str], n_instructions: Array) -> pa.Table:
    n, function = program.n_blocks, program.block_function
    code = np.array([list(_CODE[word][0]) for word in EXITS], np.uint8)[program.exit]
    leads = np.isin(program.exit, [EXITS.index(word) for word in _BY_TARGET])
    way = program.address[program.target[leads]] - (program.address[leads] + BLOCK_BYTES)
    # What is further away than a branch can reach gets what fits: the bytes are to be read, not to be run.
    code[leads, 4:] = way.astype(np.int32).view(np.uint8).reshape(-1, 4)
    numbers = np.arange(program.n_functions)
    symbols = [*names, *(f"work_on_{number}" for number in range(len(names), program.n_functions))]
    is_nameless = (numbers % 17 == 16) & (numbers >= len(names))
    offset = program.offset - program.function_offset[function]
    return _table(
        "blocks",
        n,
        image_id=program.function_image[function],
        block_id=np.arange(n),
        code_version=0,
        size_bytes=BLOCK_BYTES,
        n_instructions=n_instructions,
        offset=program.offset,
        app_pc=program.address,
        bytes=columns.binaries(code.reshape(-1), BLOCK_BYTES * np.arange(n + 1)),
        symbol=columns.words(function, symbols, is_nameless[function]),
        symbol_offset=columns.numbers(offset, pa.int64(), is_nameless[function]),
        function_offset=program.function_offset[function],
        exit_kind=columns.words(program.exit, EXITS),
        is_recorded=columns.booleans(np.ones(n, bool)),
        first_ns=START_NS + 1000 * (1 + np.arange(n)),
    )


def _make_edges(program: Program) -> pa.Table:
    source, callee = program.edges["source"], program.edges["callee"]
    return _table(
        "edges",
        len(source),
        edge_id=np.arange(len(source)),
        source_block_id=columns.numbers(source, pa.int64(), source < 0),
        target_block_id=program.edges["target"],
        kind=columns.words(program.edges["kind"], EDGE_WORDS),
        callee_block_id=columns.numbers(callee, pa.int64(), callee < 0),
    )


def _make_counts(program: Program) -> pa.Table:
    """Rows of each thread one after the other, blocks in front of edges."""
    tids, ids, times, are_edges = [], [], [], []
    for thread in range(program.n_threads):
        for executions, of_edges in ((program.executions[thread], False), (program.edges["executions"][thread], True)):
            ran = np.flatnonzero(executions)
            tids.append(np.full(len(ran), PID + thread))
            ids.append(ran)
            times.append(executions[ran])
            are_edges.append(np.full(len(ran), of_edges))
    is_edge = np.concatenate(are_edges)
    number = np.concatenate(ids)
    return _table(
        "counts",
        len(number),
        tid=np.concatenate(tids),
        block_id=columns.numbers(number, pa.int64(), is_edge),
        edge_id=columns.numbers(number, pa.int64(), ~is_edge),
        executions=np.concatenate(times),
    )


def _table(name: str, n: int, **values: Any) -> pa.Table:
    """A table of `n` rows of the one process; columns are given as they are, as arrays of numbers, or as one number."""
    schema = SCHEMAS[name]
    made = []
    for column, value in ({"process_id": 0, "pid": PID} | values).items():
        if not isinstance(value, pa.Array):
            value = columns.numbers(np.broadcast_to(value, n), schema.field(column).type)
        made.append((column, value))
    content = dict(made)
    return pa.Table.from_arrays([content[column] for column in schema.names], schema=schema)
