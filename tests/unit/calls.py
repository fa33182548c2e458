"""Recorded calls for the small trace of the unit tests: rows to look at, to add up by hand, and to damage."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.small_trace import Rows

__all__ = ["add_calls"]


def add_calls(rows: Rows) -> Rows:
    """The small trace with five calls of its thread: a file is opened, read twice and closed, a library allocates.

    `fopen` (call 0) opens it by a system call (call 1), which fails; block 0 calls, block 2 makes a system call.
    """
    whose = {"process_id": 0, "pid": 7}
    life = {"first_ns": 1000, "last_ns": 8000}
    shared = {"process_id": None, "pid": None, "tid": None, "parent_entity_id": None} | life
    entities: list[dict[str, Any]] = [
        whose | life | {"tid": None, "parent_entity_id": None, "kind": "process", "name": "it", "details": '{"a": 1}'},
        whose | life | {"tid": 7, "parent_entity_id": 0, "kind": "thread", "name": "It 7", "details": "[]"},
        shared | {"kind": "file", "name": "/etc/passwd", "details": json.dumps({"path": "/etc/passwd", "inode": 5})},
        shared | {"kind": "socket", "name": "127.0.0.1:80", "details": "broken"},
    ]
    arguments = [{"name": "path", "type": "const char *", "value": "0x1000", "text": "/etc/Passwd"}, {"value": 3}]
    call = whose | {"tid": 7, "parent_call_id": None, "kind": "system_call", "number": 0, "library": None} | {
        "block_id": 2, "position": None, "arguments": "[]", "result": 0, "result_text": None, "error": None
    }  # fmt: skip
    library = {"kind": "library", "number": None, "library": "/lib/libc.so.6", "block_id": 0}
    calls: list[dict[str, Any]] = [
        call | library | {"time_ns": 2000, "duration_ns": 500, "name": "fopen", "arguments": json.dumps(arguments)},
        call | {"time_ns": 2100, "duration_ns": 300, "name": "openat", "number": 257, "parent_call_id": 0}
        | {"block_id": None, "result": -2, "error": "ENOENT", "arguments": json.dumps(arguments)},
        call | {"time_ns": 3000, "duration_ns": 10, "name": "read", "result": 100},
        call | {"time_ns": 4000, "duration_ns": None, "name": "read", "result": None, "block_id": None},
        call | library | {"time_ns": 5000, "duration_ns": 0, "name": "malloc", "result_text": "0xdead"},
    ]  # fmt: skip
    reference = whose | {"argument": 0, "bytes": None}
    references: list[dict[str, Any]] = [
        reference | {"call_id": 0, "entity_id": 2, "role": "opened"},
        reference | {"call_id": 1, "entity_id": 2, "role": "opened", "argument": 1},
        reference | {"call_id": 2, "entity_id": 2, "role": "read", "bytes": 100},
        reference | {"call_id": 2, "entity_id": 2, "role": "written", "argument": 1, "bytes": 7},
        reference | {"call_id": 3, "entity_id": 2, "role": "read"},
        reference | {"call_id": 4, "entity_id": 1, "role": "subject", "argument": None},
    ]
    return rows | {
        "entities": [row | {"entity_id": number} for number, row in enumerate(entities)],
        "calls": [row | {"call_id": number} for number, row in enumerate(calls)],
        "references": references,
    }
