"""The tables of a trace: names, columns, types.

Runs in the controller. A column is never removed or given another type within a format version; new ones may come.
Ids are unique in a trace, over all its processes. Times are CLOCK_REALTIME in nanoseconds.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

__all__ = ["FORMAT_VERSION", "LATER_COLUMNS", "OPTIONAL_TABLES", "SCHEMAS"]

FORMAT_VERSION: Final = 1

_WORD = pa.dictionary(pa.int32(), pa.string())


def _schema(**columns: pa.DataType | tuple[pa.DataType, str]) -> pa.Schema:
    """A schema; a column given as (type, "null") may be null."""
    fields = []
    for name, kind in columns.items():
        nullable = isinstance(kind, tuple)
        fields.append(pa.field(name, kind[0] if isinstance(kind, tuple) else kind, nullable=nullable))
    return pa.schema(fields)


_I32, _I64, _U32, _U64, _TEXT = pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.string()

SCHEMAS: Final[dict[str, pa.Schema]] = {
    # process_id, here and below: unique in a trace. Each program that a process executes is a row of its own, with the
    # same pid; exit_code and signal are those of the last one. architecture: as uname(2) has it.
    "processes": _schema(
        process_id=_I32,
        pid=_I32,
        parent_pid=_I32,
        executable=_TEXT,
        command=pa.list_(_TEXT),
        start_ns=_I64,
        end_ns=_I64,
        exit_code=(_I32, "null"),
        signal=(_I32, "null"),
        architecture=_TEXT,
    ),
    # end: exit, killed (from outside, or by another thread's exit), detached (goes on untraced), lost (not known).
    "threads": _schema(
        process_id=_I32,
        pid=_I32,
        tid=_I32,
        parent_tid=_I32,
        name=_TEXT,
        start_ns=_I64,
        end_ns=_I64,
        end=_WORD,
        instructions=_I64,
        block_executions=_I64,
        lost_records=_I64,
    ),
    # base: where the lowest page is loaded; offsets in an image count from there. [vdso] has no file.
    "images": _schema(
        image_id=_I32,
        process_id=_I32,
        pid=_I32,
        path=_TEXT,
        build_id=(_TEXT, "null"),
        base=_U64,
        size_bytes=_U64,
        loaded_ns=_I64,
        unloaded_ns=(_I64, "null"),
    ),
    # Outside images image_id and offset are null, and app_pc and code_version tell blocks apart. exit_kind: how the
    # block ends. is_recorded false: code that a filter left out, here because an edge touches it. first_ns: when it was
    # first come to. symbol: as in the symbol table, mangled. function_offset: where the function starts in the image,
    # by symbol or unwind table. A block of size 0 is an address gone to where no instruction could be read.
    "blocks": _schema(
        block_id=_I64,
        process_id=_I32,
        pid=_I32,
        image_id=(_I32, "null"),
        offset=(_U64, "null"),
        app_pc=_U64,
        code_version=_U32,
        size_bytes=_I32,
        n_instructions=_I32,
        bytes=pa.binary(),
        symbol=(_WORD, "null"),
        symbol_offset=(_I64, "null"),
        function_offset=(_U64, "null"),
        exit_kind=_WORD,
        is_recorded=pa.bool_(),
        first_ns=_I64,
    ),
    # source_block_id is null for a start. callee_block_id: returns only, null where it could not be told.
    "edges": _schema(
        edge_id=_I64,
        process_id=_I32,
        pid=_I32,
        source_block_id=(_I64, "null"),
        target_block_id=_I64,
        kind=_WORD,
        callee_block_id=(_I64, "null"),
    ),
    # One of block_id and edge_id is null. Empty in mode coverage.
    "counts": _schema(
        process_id=_I32, pid=_I32, tid=_I32, block_id=(_I64, "null"), edge_id=(_I64, "null"), executions=_I64
    ),
    # Only in mode region. tag: its number, from 0, in the order in which the thread made them. A block, here, is what
    # runs from where it is entered to the next branch: block_id is the basic block with which that begins,
    # target_block_id where it went. kind: executed (the target is null where it was stopped on the way); became_busy
    # (from here on the block is counted); counts (how often it ran until left_busy: a row for each target that is
    # known, and one without for the rest, all with one number); left_busy; signal, fault (value: the signal); syscall
    # (value: its number).
    "tags": _schema(
        process_id=_I32,
        pid=_I32,
        tid=_I32,
        tag=_I64,
        kind=_WORD,
        block_id=(_I64, "null"),
        target_block_id=(_I64, "null"),
        executions=(_I64, "null"),
        value=(_I64, "null"),
        time_ns=(_I64, "null"),
    ),
    # details: a JSON object.
    "events": _schema(
        time_ns=_I64, process_id=_I32, pid=_I32, tid=_I32, kind=_WORD, block_id=(_I64, "null"), details=_TEXT
    ),
    # Mode full: the file of each thread's ordered path, relative to the trace; docs/format/paths.md. The tables from
    # here on are empty in other modes.
    "paths": _schema(
        process_id=_I32,
        pid=_I32,
        tid=_I32,
        start_ns=_I64,
        file=_TEXT,
        stored_bytes=_I64,
        instructions=_I64,
        block_executions=_I64,
    ),
    # How each block ends, as far as paths are concerned. branch_pc: its last instruction. target_pc: where its direct
    # branch leads. is_taken: which way of a conditional branch is expected at a path's beginning.
    "path_blocks": _schema(
        process_id=_I32,
        pid=_I32,
        block_id=_I64,
        ending=_WORD,
        branch_pc=_U64,
        target_pc=(_U64, "null"),
        is_taken=pa.bool_(),
    ),
    # Where the indirect branch at a block's end leads, by the number that paths have for it.
    "path_targets": _schema(process_id=_I32, pid=_I32, block_id=_I64, number=_I32, target_pc=_U64),
    # How often a block was executed more for each count of a counter: checkpoints of paths tell how counters rose.
    "path_counters": _schema(process_id=_I32, pid=_I32, counter=_U32, block_id=_I64, weight=_I32),
    # What is executed from start_pc up to end_pc once a path's event says that of fragment_id.
    "path_code": _schema(process_id=_I32, pid=_I32, fragment_id=_I64, start_pc=_U64, end_pc=_U64, code_version=_U32),
    # The three tables from here on are of recorded calls; a trace may lack them. What calls are about: processes,
    # threads, files, sockets. process_id and pid: whose it is; null where it may be several processes'. tid: of a
    # thread. parent_entity_id: the process of a thread, the listening socket of a connection. details: a JSON object.
    "entities": _schema(
        entity_id=_I64,
        process_id=(_I32, "null"),
        pid=(_I32, "null"),
        tid=(_I32, "null"),
        parent_entity_id=(_I64, "null"),
        kind=_WORD,
        name=_TEXT,
        details=_TEXT,
        first_ns=_I64,
        last_ns=_I64,
    ),
    # Calls of functions of libraries and of the system, those of a thread in the order in which they were made. number:
    # of a system call; library: the image that has the function. block_id: the block that made the call. position:
    # where that is in the thread's order, as paths (mode full) or tags (region) count. parent_call_id: the call of the
    # same thread that was open. duration_ns is null where a call did not return. filter: what descriptions have it
    # under. arguments: a JSON array. result: as
    # the register had it.
    "calls": _schema(
        call_id=_I64,
        process_id=_I32,
        pid=_I32,
        tid=_I32,
        parent_call_id=(_I64, "null"),
        time_ns=_I64,
        duration_ns=(_I64, "null"),
        kind=_WORD,
        name=_WORD,
        number=(_I32, "null"),
        library=(_WORD, "null"),
        block_id=(_I64, "null"),
        position=(_I64, "null"),
        arguments=_TEXT,
        result=(_I64, "null"),
        result_text=(_TEXT, "null"),
        error=(_WORD, "null"),
        injected=(_WORD, "null"),
        filter=(_WORD, "null"),
    ),
    # What a call did with an entity; the rows of a call follow one another. process_id and pid are those of the call.
    # argument: which one named the entity, from 0; null for the result. bytes: how many were read, written or mapped.
    "references": _schema(
        process_id=_I32,
        pid=_I32,
        call_id=_I64,
        entity_id=_I64,
        role=_WORD,
        argument=(_I32, "null"),
        bytes=(_I64, "null"),
    ),
}

OPTIONAL_TABLES: Final = frozenset(
    {"tags", "paths", "path_blocks", "path_targets", "path_counters", "path_code", "entities", "calls", "references"}
)
"""Those that a trace may lack: they are empty then."""

LATER_COLUMNS: Final = frozenset({("processes", "architecture"), ("calls", "injected"), ("calls", "filter")})
"""Columns of text that came within this version, by table: the first traces lack them, and are read with one word for
all rows that stands for it (`Trace`), or as null."""
