"""Writes recorded calls for a made up trace: the tables `entities`, `calls` and `references`, whose every row is known.

What a program does is made up: it opens files, reads and writes them, connects, and closes; every seventh call fails.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from clew.store.columns import Array
from clew.store.schema import SCHEMAS

__all__ = ["FILES", "HOSTILE_FILE", "make_call_tables"]

HOSTILE_FILE: Final = '<img src=x onerror=alert(6)>"\u202etxt'
"""A file as a program may name one."""

FILES: Final = ("/etc/passwd", "/tmp/out.log", "/usr/lib/libc.so.6", "/var/data/long name.db", HOSTILE_FILE)
_SOCKETS: Final = ("127.0.0.1:80", "[::1]:443", "unix:/run/daemon")
_LIBC: Final = "/usr/lib/libc.so.6"
_STEPS: Final = (
    ("openat", "system_call", 257, "opened"),
    ("read", "system_call", 0, "read"),
    ("malloc", "library", None, None),
    ("write", "system_call", 1, "written"),
    ("connect", "system_call", 42, "connected"),
    ("fopen", "library", None, "opened"),
    ("close", "system_call", 3, "closed"),
)
_INJECTED: Final = (None, "result", "delay_enter", "result,delay_enter,delay_exit,signal", None)
"""What was done to calls that fail, by turns."""

_FIRST_CHILD_ENTITY: Final = 1000


def make_call_tables(
    n_calls: int,
    *,
    whose: dict[str, int],
    tids: Sequence[int],
    children: Sequence[dict[str, Any]],
    executions: Array,
    life: tuple[int, int],
    seed: int,
) -> dict[str, pa.Table]:
    """Tables with `n_calls` calls by the threads `tids` in turn, and one of each child. No thread makes more calls out
    of a block than it executed it: [thread, block] `executions`."""
    chance = np.random.default_rng(seed)
    makers = [iter(_choose_blocks(n_calls // len(tids) + 1, own, chance)) for own in executions]
    start_ns, end_ns = life
    entities = _make_entities(whose, tids, children, start_ns, end_ns)
    files = [row["entity_id"] for row in entities if row["kind"] == "file"]
    sockets = [row["entity_id"] for row in entities if row["kind"] == "socket"]
    names = {row["entity_id"]: row["name"] for row in entities}
    step = max((end_ns - start_ns) // (n_calls + 2), 1)
    calls, references = [], []
    for number in range(n_calls + len(children)):
        is_own = number < n_calls
        name, kind, system_number, role = _STEPS[int(chance.integers(len(_STEPS)))] if is_own else _STEPS[0]
        entity = int(chance.choice(sockets if role == "connected" else files)) if role else None
        child = None if is_own else children[number - n_calls]
        failed = number % 7 == 6
        n_bytes = int(chance.integers(1, 5000)) if role in ("read", "written") and not failed else None
        arguments: list[dict[str, Any]] = [{"name": "n", "type": "size_t", "value": number}]
        if entity is not None:
            told = {"name": "what", "type": "const char *", "value": hex(0x7FF000 + number), "text": names[entity]}
            arguments.insert(0, told)
        calls.append(
            (whose if child is None else {"process_id": child["process_id"], "pid": child["pid"]})
            | {"call_id": number, "tid": tids[number % len(tids)] if child is None else child["pid"]}
            | {"parent_call_id": None, "time_ns": start_ns + step * (number + 1) if is_own else start_ns + 1}
            | {"duration_ns": None if number % 11 == 10 else int(chance.integers(0, 1000)), "kind": kind, "name": name}
            | {"number": system_number, "library": None if kind == "system_call" else _LIBC}
            | {"block_id": next(makers[number % len(tids)]) if is_own else None, "position": None}
            | {"arguments": json.dumps(arguments), "result": -1 if failed else n_bytes or 3}
            | {"result_text": None, "error": "ENOENT" if failed else None}
            | {"injected": _INJECTED[number // 7 % len(_INJECTED)] if failed else None}
        )
        if entity is not None:
            at = {"call_id": number, "entity_id": entity, "role": role, "argument": 0, "bytes": n_bytes}
            at |= {name: calls[-1][name] for name in ("process_id", "pid")}
            references.append(at)
            if number % 5 == 0:
                references.append(at | {"role": "changed", "argument": 1, "bytes": None})
    by_thread = sorted(calls, key=lambda row: (row["process_id"], row["tid"], row["call_id"]))
    return {
        "entities": pa.Table.from_pylist(entities, SCHEMAS["entities"]),
        "calls": pa.Table.from_pylist(by_thread, SCHEMAS["calls"]),
        "references": pa.Table.from_pylist(references, SCHEMAS["references"]),
    }


def _choose_blocks(n: int, executions: Array, chance: np.random.Generator) -> list[int]:
    """As many blocks, each at most as often as it was executed, and as evenly as that goes."""
    most = 1
    while (total := int(np.minimum(executions, most).sum())) < n:
        if most > executions.max(initial=0):
            raise ValueError(f"blocks that were executed {total} times can't make {n} calls")
        most *= 2
    pool = np.repeat(np.arange(len(executions)), np.minimum(executions, most))
    found: list[int] = chance.permutation(pool)[:n].tolist()
    return found


def _make_entities(
    whose: dict[str, int], tids: Sequence[int], children: Sequence[dict[str, Any]], start_ns: int, end_ns: int
) -> list[dict[str, Any]]:
    life = {"first_ns": start_ns, "last_ns": end_ns}
    nobody = {"process_id": None, "pid": None, "parent_entity_id": None}
    rows: list[dict[str, Any]] = [
        whose | {"parent_entity_id": None, "kind": "process", "name": "made-up", "details": json.dumps(whose)} | life
    ]
    rows += [
        whose | {"parent_entity_id": 0, "kind": "thread", "name": f"thread {tid}", "tid": tid, "details": "{}"} | life
        for tid in tids
    ]
    rows += [nobody | {"kind": "file", "name": name, "details": json.dumps({"path": name})} | life for name in FILES]
    rows += [nobody | {"kind": "socket", "name": name, "details": "no JSON"} | life for name in _SOCKETS]
    rows = [row | {"entity_id": number} for number, row in enumerate(rows)]
    return rows + [
        {"process_id": child["process_id"], "pid": child["pid"], "parent_entity_id": 0, "kind": "process"}
        | {"entity_id": _FIRST_CHILD_ENTITY + number, "name": f"child {child['pid']}", "details": "{}"}
        | life
        for number, child in enumerate(children)
    ]
