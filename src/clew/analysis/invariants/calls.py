"""Invariants of recorded calls: what made them, when, and what they are about.

Runs in the controller. Calls and what they refer to are checked with the process that made them; entities, which
several processes may have to do with, as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from clew.analysis.invariants.structure import find_duplicates
from clew.analysis.tables.arrays import Array, TraceArrays, find_rows, pack_threads, to_words
from clew.analysis.tables.broken_places import Places, places_of_rows
from clew.protocol._constants import Injected
from clew.protocol.words import CALL_WORDS
from clew.store.columns import distinct, to_numpy
from clew.store.trace import Trace

__all__ = ["CALL_INVARIANTS", "check_entities"]

_MAX_TOLD: Final = 20
"""Of what is wrong with entities no more is told."""


def check_calls(arrays: TraceArrays) -> Iterator[Places]:
    def numbers(name: str) -> Array:
        return arrays.numbers("calls", name)

    call_id, process, tid = numbers("call_id"), numbers("process_id"), numbers("tid")
    time_ns, duration_ns = numbers("time_ns"), numbers("duration_ns")

    def found(wrong: Array, says: str) -> Places:
        return places_of_rows(arrays, "calls", wrong, lambda row, _: f"call {call_id[row]}: {says}")

    yield found(find_duplicates(call_id), "its number again")
    kind = to_words(arrays.column("calls", "kind"), CALL_WORDS)
    yield found(kind < 0, "an unknown kind")
    yield found(_is_unknown_injection(arrays), "an unknown word of what was done to it")
    block_id = numbers("block_id")
    block = find_rows(arrays.block_id, block_id)
    yield found((block_id >= 0) & (block < 0), "no such block")
    apart = (block >= 0) & (np.append(arrays.block_process, -1)[block] != process)
    yield found(apart, "another process' block")
    thread = find_rows(arrays.thread_key, pack_threads(process, tid))
    yield found(thread < 0, "no such thread")
    start, end = (np.append(arrays.numbers("threads", f"{name}_ns"), 0)[thread] for name in ("start", "end"))
    known_ns = np.maximum(duration_ns, 0)
    yield found((thread >= 0) & ((time_ns < start) | (time_ns > end)), "made outside of its thread's life")
    # Null is -1; what was given as that is no duration either.
    is_null = _is_null(arrays, "calls", "duration_ns")
    yield found(~is_null & (duration_ns < 0), "it ends before it starts")
    yield found((thread >= 0) & (time_ns <= end) & (known_ns > end - time_ns), "it returned behind its thread's end")
    same = (process[1:] == process[:-1]) & (tid[1:] == tid[:-1])
    yield found(np.append(False, same & (time_ns[1:] < time_ns[:-1]))[: len(tid)], "made before the one in front of it")
    parent_id = numbers("parent_call_id")
    parent = find_rows(call_id, parent_id)
    yield found((parent_id >= 0) & (parent < 0), "made within a call that there is not")
    has_parent = parent >= 0
    at = np.where(has_parent, parent, 0)
    other = has_parent & ((process[at] != process) | (tid[at] != tid))
    yield found(other, "made within another thread's call")
    too_late = ~is_null[at] & (time_ns - time_ns[at] > known_ns[at])
    outside = has_parent & ~other & ((time_ns < time_ns[at]) | too_late)
    yield found(outside, "made outside of the call that it was made within")


def _is_unknown_injection(arrays: TraceArrays) -> Array:
    """Which calls have a word of what was done to them that means nothing, or one twice."""
    column = arrays.column("calls", "injected").combine_chunks()
    if not len(column):
        return np.zeros(0, bool)
    known = [one.name.lower() for one in Injected]
    told = [str(text).split(",") for text in column.dictionary.to_pylist()]
    is_wrong = np.array([*(words != [one for one in known if one in words] for words in told), False], bool)
    # Null is none of them.
    return is_wrong[to_numpy(column.indices.fill_null(len(told)))]


def check_references(arrays: TraceArrays) -> Iterator[Places]:
    call_id, entity_id = arrays.numbers("references", "call_id"), arrays.numbers("references", "entity_id")

    def found(wrong: Array, says: str) -> Places:
        return places_of_rows(arrays, "references", wrong, lambda _, row: f"references, row {row}: {says}")

    call = find_rows(arrays.numbers("calls", "call_id"), call_id)
    yield found(call < 0, "no such call")
    process = np.append(arrays.numbers("calls", "process_id"), -1)[call]
    yield found((call >= 0) & (process != arrays.numbers("references", "process_id")), "another process' call")
    role = arrays.column("references", "role").combine_chunks()
    words = to_numpy(role.indices) if len(role) else np.zeros(0, np.int64)
    argument = arrays.numbers("references", "argument")
    yield found(find_duplicates(call_id, entity_id, words, argument), "the same again")
    n_bytes = arrays.numbers("references", "bytes")
    yield found(~_is_null(arrays, "references", "bytes") & (n_bytes < 0), "bytes are 0 and above")


def check_entities(trace: Trace) -> list[str]:
    """Of the whole trace: each entity once, of a process of the trace, and each that is named there."""
    wrong: list[str] = []
    ids, told = [np.zeros(0, np.int64)], []
    processes = to_numpy(trace.read("processes", ["process_id"])["process_id"])
    names = ["entity_id", "process_id", "parent_entity_id", "first_ns", "last_ns"]
    for piece in trace.iter_pieces("entities", names):
        entity_id, process, parent, first, last = (to_numpy(piece[name]) for name in names)
        ids.append(entity_id)
        told.append(np.stack([entity_id[parent >= 0], parent[parent >= 0]], axis=1))
        unknown = (process >= 0) & ~np.isin(process, processes)
        wrong += [f"entity {number}: no such process" for number in entity_id[unknown][:_MAX_TOLD].tolist()]
        late = entity_id[first > last][:_MAX_TOLD].tolist()
        wrong += [f"entity {number}: it ends before it starts" for number in late]
    every = np.sort(np.concatenate(ids))
    known = distinct(every)
    again = distinct(every[1:][every[1:] == every[:-1]])[:_MAX_TOLD]
    wrong += [f"entity {number}: its number again" for number in again.tolist()]
    for pairs in told:
        unknown = pairs[~np.isin(pairs[:, 1], known)][:_MAX_TOLD]
        wrong += [f"entity {number}: it is of {parent}, which is none" for number, parent in unknown.tolist()]
    row = 0
    for piece in trace.iter_pieces("references", ["entity_id"]):
        missing = np.flatnonzero(~np.isin(to_numpy(piece["entity_id"]), known))[:_MAX_TOLD]
        wrong += [f"references, row {row + at}: no such entity" for at in missing.tolist()]
        row += piece.num_rows
    return wrong


def _is_null(arrays: TraceArrays, table: str, column: str) -> Array:
    """Where a column is null."""
    values = arrays.column(table, column)
    found: Array = to_numpy(values, -1) != to_numpy(values, -2)
    return found


CALL_INVARIANTS: Final[list[tuple[str, Callable[[TraceArrays], Iterator[Places]]]]] = [
    ("calls are of threads and blocks of the trace, each once and in its time", check_calls),
    ("references are of calls and entities of the trace, each once", check_references),
]
