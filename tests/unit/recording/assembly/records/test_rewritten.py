"""Code that is rewritten in one place, very often: assembly takes as much as was recorded, not the square of that."""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from clew.analysis.invariants.check import check_invariants
from clew.protocol import _generated as protocol
from clew.protocol._generated import NO_INDEX, EdgeKind, ExitKind, Mode, RecordKind
from clew.recording.assembly.trace import assemble
from clew.recording.raw.process import Counters, RawProcess
from clew.store.trace import Trace
from tests.unit.recording.made_up_program import BASE
from tests.unit.recording.made_up_records import record, session_info
from tests.unit.recording.simulate import make_runtime

N_VERSIONS = 5_000
MAX_BYTES_PER_VERSION = 4_000
"""The square would be 8 bytes for each pair of versions, 40,000 by version; and minutes instead of seconds."""
NEEDS_REAL_CODE = "an instruction lies in one block"

CALLER, CALLEE, RETURN_POINT = BASE, BASE + 0x100, BASE + 5


def repeat(n: int, one: bytes, /, **fields: Any) -> npt.NDArray[np.uint8]:
    """`n` times the record `one` and its continuations, shape (n, records, 64), with other values of `fields`."""
    dtypes = {
        RecordKind.FRAGMENT: protocol.FRAGMENT_RECORD,
        RecordKind.INVALIDATE: protocol.INVALIDATE_RECORD,
        RecordKind.DYNAMIC_EDGE: protocol.DYNAMIC_EDGE_RECORD,
        RecordKind.LINK: protocol.LINK_RECORD,
    }
    rows = np.tile(np.frombuffer(one, np.uint8).reshape(-1, 64), (n, 1, 1))
    heads = rows[:, 0].copy().reshape(-1).view(dtypes[RecordKind(one[0])])
    for name, value in fields.items():
        heads[name] = value
    rows[:, 0] = heads.view(np.uint8).reshape(n, 64)
    return rows


def fragment(app_pc: int, exit_kind: ExitKind, size: int, target_pc: int = 0) -> bytes:
    """A fragment of one instruction."""
    bits = 1 << 8 * size
    return record(
        protocol.FRAGMENT_RECORD,
        bits.to_bytes(size + 1, "little"),
        kind=RecordKind.FRAGMENT,
        app_pc=app_pc,
        target_pc=target_pc,
        size_bytes=size,
        n_instructions=1,
        exit_kind=exit_kind,
        counter_index=NO_INDEX,
    )


def make_process(n: int, mode: Mode) -> RawProcess:
    """A loop that calls a function and then rewrites it, `n` times.

    Each time the function is dropped, and the call that is linked to it; a jump then finds the call anew.
    """
    is_counted = mode == Mode.COUNTS
    turn = np.arange(n)
    tsc = 2000 + 100 * turn
    caller_id, callee_id, jump_id = 1 + 2 * turn, 2 + 2 * turn, 0
    counter = np.where(is_counted, 3 * turn, NO_INDEX)
    second, third = (np.where(is_counted, counter + more, NO_INDEX) for more in (1, 2))
    callers = repeat(
        n,
        fragment(CALLER, ExitKind.CALL, 5, CALLEE),
        fragment_id=caller_id,
        tsc=tsc,
        counter_index=counter,
    )
    callees = repeat(n, fragment(CALLEE, ExitKind.RETURN, 6), fragment_id=callee_id, tsc=tsc + 1, counter_index=second)
    # Each version has other bytes.
    callees[:, 1, 4:8] = turn.astype("<u4").view(np.uint8).reshape(n, 4)
    edge = record(
        protocol.DYNAMIC_EDGE_RECORD,
        kind=RecordKind.DYNAMIC_EDGE,
        edge_kind=EdgeKind.INDIRECT_JUMP,
        source_pc=RETURN_POINT,
        target_pc=CALLER,
        source_fragment_id=jump_id,
    )
    jumps = repeat(n, edge, target_fragment_id=caller_id, counter_index=third, tsc=tsc + 2)
    # It starts with a call: the first edge is no jump.
    heads = jumps[:1, 0].copy().reshape(-1).view(protocol.DYNAMIC_EDGE_RECORD)
    heads["edge_kind"], heads["source_pc"], heads["source_fragment_id"] = EdgeKind.START, 0, NO_INDEX
    jumps[:1, 0] = heads.view(np.uint8)
    turns = [callers, callees, jumps]
    if not is_counted:
        link = record(
            protocol.LINK_RECORD, kind=RecordKind.LINK, edge_kind=EdgeKind.CALL, source_pc=CALLER, target_pc=CALLEE
        )
        turns.append(repeat(n, link, source_fragment_id=caller_id, target_fragment_id=callee_id, tsc=tsc + 3))
    drop = record(protocol.INVALIDATE_RECORD, kind=RecordKind.INVALIDATE)
    turns += [
        repeat(n, drop, app_pc=CALLEE, fragment_id=callee_id, tsc=tsc + 5),
        repeat(n, drop, app_pc=CALLER, fragment_id=caller_id, tsc=tsc + 6),
    ]
    first = np.frombuffer(fragment(RETURN_POINT, ExitKind.INDIRECT_JUMP, 2), np.uint8).reshape(-1, 64)
    model = make_runtime(1, mode=mode, max_threads=1).raw_process()
    counters = Counters.from_values(np.ones(3 * n if is_counted else 0))
    return dataclasses.replace(
        model,
        records=np.concatenate([first, np.concatenate(turns, axis=1).reshape(-1, 64)]),
        threads=[dataclasses.replace(model.threads[0], counters=counters, end_tsc=0, end_kind=0)],
    )


@pytest.mark.timeout(30)
@pytest.mark.parametrize("mode", [Mode.COUNTS, pytest.param(Mode.COVERAGE, marks=pytest.mark.long)])
def test_many_versions_of_one_place(mode: Mode, tmp_path: Path) -> None:
    process = make_process(N_VERSIONS, mode)
    tracemalloc.start()
    try:
        assemble([process], tmp_path, session_info(mode))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MAX_BYTES_PER_VERSION * N_VERSIONS
    trace = Trace(tmp_path)
    assert not any(trace.manifest.losses.values())
    assert not [finding for finding in check_invariants(trace) if finding.invariant != NEEDS_REAL_CODE]
    blocks = trace.blocks.select(["app_pc", "code_version"]).to_pylist()
    assert [row["code_version"] for row in blocks if row["app_pc"] == CALLEE] == list(range(N_VERSIONS))
    assert len([row for row in blocks if row["app_pc"] != CALLEE]) == 2
    kinds = Counter(trace.edges["kind"].to_pylist())
    assert kinds == {"start": 1, "call": N_VERSIONS, "return": 1, "indirect_jump": 1}
