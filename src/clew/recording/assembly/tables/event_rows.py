"""The table of events: signals, faults, births and ends, what was released, as the runtime told them.

Runs in the controller, after the target ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.protocol._generated import EndKind, EventKind, ReleaseReason
from clew.protocol.words import EVENT_WORDS
from clew.recording.assembly.blocks.blocks import Blocks
from clew.recording.assembly.tables.members import Members, make_table
from clew.store.columns import numbers, repeated_texts, words

__all__ = ["event_tables"]

Array = npt.NDArray[Any]

_EVENTS_ROWS = 1 << 14
_WORDS: dict[int, str] = {EventKind[word.upper()]: word for word in EVENT_WORDS}
_MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd number without a pattern: multiplying by it spreads what is in the low bits."""


def event_tables(members: Members, events: Array, blocks: Blocks, block_id: Array) -> Iterator[pa.Table]:
    """Events by process and time, some at a time: a program may have taken millions of signals."""
    chunks = members.processes[0].event_chunks
    if chunks is not None:
        for part in chunks.iter_with(events):
            yield _events_table(members, part, np.zeros(len(part), np.int64), blocks, block_id)
        return
    owner = members.bundle.owner_of(events["app_pc"])
    order = np.lexsort((events["tsc"], owner))
    for first in range(0, max(len(order), 1), _EVENTS_ROWS):
        chosen = order[first : first + _EVENTS_ROWS]
        yield _events_table(members, events[chosen], owner[chosen], blocks, block_id)


def _events_table(members: Members, events: Array, owner: Array, blocks: Blocks, block_id: Array) -> pa.Table:
    app_pc = events["app_pc"].astype(np.uint64)
    at = np.searchsorted(blocks.app_pc, app_pc, "right") - 1
    block = block_id[at]
    is_known = (at >= 0) & (block >= 0)
    if len(blocks):
        is_known &= blocks.app_pc[at] == app_pc
    own_pc = members.bundle.own_pc(app_pc)
    # A signal that comes over and over comes with the same words.
    told, alike = _find_alike(events["event_kind"], events["a"], events["b"], events["c"], own_pc)
    kinds = events["event_kind"][told].tolist()
    details = [_details(*row) for row in zip(kinds, events[told], own_pc[told].tolist(), strict=True)]
    return make_table(
        "events",
        time_ns=numbers(members.to_ns(events["tsc"].astype(np.uint64), owner), pa.int64()),
        **members.columns(owner),
        tid=numbers(events["tid"] & 0x7FFFFFFF, pa.int32()),
        kind=words(alike, [_WORDS.get(kind, f"kind_{kind}") for kind in kinds]),
        block_id=numbers(block, pa.int64(), ~is_known),
        details=repeated_texts([json.dumps(one) for one in details], alike),
    )


def _find_alike(*columns: Array) -> tuple[Array, Array]:
    """Some of the rows of `columns`, all of which are different; and of each row which of these it is like."""
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * _MIXER
        mixed ^= mixed >> np.uint64(32)
    order = np.argsort(mixed, kind="stable")
    sorted_mixed = mixed[order]
    is_first = np.concatenate(([True], sorted_mixed[1:] != sorted_mixed[:-1]))[: len(order)]
    for column in columns:
        # Different ones may be mixed alike: those that don't follow one like them stand for themselves.
        in_order = column[order]
        is_first[1:] |= in_order[1:] != in_order[:-1]
    alike = np.empty(len(order), np.int64)
    alike[order] = np.cumsum(is_first) - 1
    return order[is_first], alike


def _details(kind: int, row: np.void, app_pc: int) -> dict[str, Any]:
    a, b, c = int(row["a"]), int(row["b"]), int(row["c"])
    has_place = app_pc != 0 or kind in (EventKind.SIGNAL, EventKind.FAULT)
    details: dict[str, Any] = {"app_pc": hex(app_pc)} if has_place else {}
    if kind in (EventKind.SIGNAL, EventKind.FAULT):
        details |= {"signal": a, "code": b - (1 << 64) if b >> 63 else b}
        if kind == EventKind.FAULT:
            details["address"] = hex(c)
    elif kind == EventKind.FORK:
        details |= {"child_pid": a, "is_followed": b == 1}
    elif kind == EventKind.EXECVE:
        details["is_followed"] = a == 1
    elif kind == EventKind.EXECVE_FAILED:
        details["errno"] = a
    elif kind == EventKind.RELEASED:
        details["reason"] = ReleaseReason(a).name.lower() if a in set(ReleaseReason) else a
    elif kind == EventKind.EXIT_GROUP:
        details["status"] = a
    elif kind == EventKind.THREAD_START:
        details |= {"parent_tid": a, "slot": b}
    elif kind == EventKind.THREAD_END:
        details["end"] = EndKind(a).name.lower() if a in set(EndKind) else a
    elif kind == EventKind.RECORDING_CHANGED:
        details |= {"was_recorded": a == 1, "is_recorded": b == 1}
    else:
        details |= {"a": hex(a), "b": hex(b), "c": hex(c)}
    return details
