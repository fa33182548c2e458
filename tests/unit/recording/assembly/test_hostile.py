"""Records and counters come from the target: whatever they say, assembly ends, and what it writes can be read."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.address import Tid
from clew.analysis.invariants.check import check_invariants
from clew.protocol import _generated as protocol
from clew.protocol._generated import EdgeKind, ExitKind, RecordKind
from clew.recording.assembly.records.records import parse_records
from clew.recording.assembly.trace import assemble
from clew.recording.raw.process import Counters, RawProcess
from clew.store.trace import Trace
from tests.unit.recording.made_up_program import BASE
from tests.unit.recording.made_up_records import record, session_info
from tests.unit.recording.simulate import make_runtime


def make_process(seed: int, max_steps: int = 400) -> RawProcess:
    return make_runtime(seed, max_steps=max_steps).raw_process()


def assemble_anyway(process: RawProcess, directory: Path) -> Trace:
    directory.mkdir(exist_ok=True)
    assemble([process], directory, session_info())
    trace = Trace(directory)
    check_invariants(trace)  # It may find much; it may not fail.
    return trace


def fragment(app_pc: int, code: bytes, starts: list[int], /, **fields: int) -> bytes:
    """A fragment record of its own."""
    bits = np.zeros((len(code) + 7) // 8 * 8, np.uint8)
    bits[starts] = 1
    defaults = {
        "kind": RecordKind.FRAGMENT,
        "app_pc": app_pc,
        "size_bytes": len(code),
        "n_instructions": len(starts),
        "exit_kind": ExitKind.RETURN,
        "counter_index": 0,
    }
    payload = code + np.packbits(bits, bitorder="little").tobytes()
    return record(protocol.FRAGMENT_RECORD, payload, **(defaults | fields))


def parse(*records: bytes, n_counters: int = 16) -> tuple[int, int]:
    """How many fragments are believed, and how many records are damaged."""
    parsed = parse_records(np.frombuffer(b"".join(records), np.uint8).reshape(-1, 64), n_counters)
    return len(parsed.fragments), parsed.damaged_records


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), damage=st.integers(0, 1 << 32), n_bytes=st.integers(1, 200))
def test_damaged_bytes(seed: int, damage: int, n_bytes: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    process = make_process(seed)
    rng = np.random.default_rng(damage)
    records = process.records.copy()
    at = rng.integers(0, records.size, n_bytes)
    records.reshape(-1)[at] = rng.integers(0, 256, n_bytes)
    assemble_anyway(dataclasses.replace(process, records=records), tmp_path_factory.mktemp("damaged") / "t")


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), damage=st.integers(0, 1 << 32))
def test_damaged_fields(seed: int, damage: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whole fields with values that are likely to hurt."""
    process = make_process(seed)
    rng = np.random.default_rng(damage)
    records = process.records.copy()
    fragments = np.flatnonzero(records[:, 0] == RecordKind.FRAGMENT)
    assume(len(fragments))
    rows = records[fragments].reshape(-1).view(protocol.FRAGMENT_RECORD).copy()
    values = [0, 1, 2, BASE, 2**16 - 1, 2**31, 2**32 - 1, 2**47 - 1, 2**56, 2**63, 2**64 - 1]
    names = ["app_pc", "target_pc", "tsc", "fragment_id", "counter_index", "code_version", "exit_kind", "flags"]
    for _ in range(10):
        name = str(rng.choice(names))
        value = values[int(rng.integers(len(values)))]
        rows[name][int(rng.integers(len(rows)))] = value % (1 << 8 * rows[name].dtype.itemsize)
    records[fragments] = rows.view(np.uint8).reshape(-1, 64)
    assemble_anyway(dataclasses.replace(process, records=records), tmp_path_factory.mktemp("damaged") / "t")


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), damage=st.integers(0, 1 << 32))
def test_damaged_counters(seed: int, damage: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    process = make_process(seed)
    rng = np.random.default_rng(damage)
    threads = []
    for thread in process.threads:
        values = np.zeros(thread.counters.last + 1, np.uint64)
        values[thread.counters.index] = thread.counters.value
        if len(values):
            values[rng.integers(0, len(values), 3)] = rng.integers(0, 2**64 - 1, 3, dtype=np.uint64)
        counters = Counters.from_values(values)
        threads.append(dataclasses.replace(thread, counters=counters, tid=Tid(2**32 - 1), start_tsc=2**64 - 1))
    status = np.frombuffer(rng.bytes(protocol.STATUS_PAGE_BYTES), protocol.STATUS_PAGE)[0]
    damaged = dataclasses.replace(process, threads=threads, status=status)
    trace = assemble_anyway(damaged, tmp_path_factory.mktemp("damaged") / "t")
    assert trace.threads.num_rows == len(threads)


@settings(max_examples=25, deadline=None)
@given(damage=st.integers(0, 1 << 32), n=st.integers(0, 60))
def test_random_records(damage: int, n: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing but noise, with kinds that exist."""
    rng = np.random.default_rng(damage)
    records = rng.integers(0, 256, (n, 64), dtype=np.uint8)
    records[:, 0], records[:, 1] = rng.integers(0, 9, n), 0
    process = dataclasses.replace(make_process(1), records=records)
    assemble_anyway(process, tmp_path_factory.mktemp("noise") / "t")


def test_nothing_recorded(tmp_path: Path) -> None:
    process = dataclasses.replace(make_process(1), records=np.zeros((0, 64), np.uint8), threads=[])
    trace = assemble_anyway(process, tmp_path / "t")
    assert trace.blocks.num_rows == trace.edges.num_rows == trace.counts.num_rows == 0


def test_whole_fragment_is_believed() -> None:
    assert parse(fragment(BASE, b"\x90\xc3", [0, 1])) == (1, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"size_bytes": 0},
        {"size_bytes": 2049},
        {"size_bytes": 200},
        {"n_instructions": 0},
        {"n_instructions": 3},
        {"exit_kind": 99},
        {"app_pc": 2**64 - 1},
        {"app_pc": 2**57},
        {"target_pc": 2**60},
        {"continuations": 0},
        {"continuations": 2},
        {"fragment_id": 2**32 - 1},
    ],
)
def test_contradicting_fragment_is_damaged(fields: dict[str, int]) -> None:
    n, damaged = parse(fragment(BASE, b"\x90\xc3", [0, 1], **fields), fragment(BASE + 16, b"\xc3", [0], fragment_id=1))
    assert n == 1
    assert damaged >= 1


def test_first_byte_starts_an_instruction() -> None:
    assert parse(fragment(BASE, b"\x90\xc3", [1])) == (0, 1)


def test_number_given_twice_counts_once() -> None:
    assert parse(fragment(BASE, b"\xc3", [0]), fragment(BASE + 16, b"\xc3", [0])) == (1, 1)


def test_lost_continuation() -> None:
    whole = fragment(BASE, bytes(range(100)), [0, 50])
    assert len(whole) == 3 * 64
    assert parse(whole) == (1, 0)
    assert parse(whole[:128]) == (0, 1)
    assert parse(whole[:64] + whole[128:]) == (0, 2)
    assert parse(whole[64:]) == (0, 2)


def test_counter_that_does_not_exist_counts_nothing() -> None:
    records = np.frombuffer(fragment(BASE, b"\xc3", [0], counter_index=16), np.uint8).reshape(-1, 64)
    assert parse_records(records, 16).fragments.counter_index.tolist() == [-1]
    assert parse_records(records, 17).fragments.counter_index.tolist() == [16]


def test_wild_targets_are_damaged() -> None:
    def edge(**fields: int) -> bytes:
        return record(protocol.DYNAMIC_EDGE_RECORD, kind=RecordKind.DYNAMIC_EDGE, **fields)

    assert parse(edge(target_pc=2**57, edge_kind=EdgeKind.INDIRECT_CALL))[1] == 1
    assert parse(edge(target_pc=1, edge_kind=200))[1] == 1
    assert parse(edge(target_pc=0xFFFFFFFFFF600400, edge_kind=EdgeKind.INDIRECT_CALL))[1] == 0


def test_contradicting_fragments_of_one_version(tmp_path: Path) -> None:
    """The same address as two different instructions, with no change of the code announced: one is believed."""
    process = make_process(1)
    records = [
        fragment(BASE, b"\x90\x90\xc3", [0, 1, 2], fragment_id=0, counter_index=0),
        fragment(BASE, b"\x90\xc3", [0, 1], fragment_id=1, counter_index=1),
    ]
    thread = dataclasses.replace(process.threads[0], counters=Counters.from_values(np.array([5, 7])))
    rows = np.frombuffer(b"".join(records), np.uint8).reshape(-1, 64)
    trace = assemble_anyway(dataclasses.replace(process, records=rows, threads=[thread]), tmp_path / "t")
    assert trace.manifest.losses["damaged_records"] == 1
    assert trace.blocks.num_rows == 1


def test_many_fragments_inside_each_other(tmp_path: Path) -> None:
    """Every byte of a sled is where some fragment starts."""
    process = make_process(1)
    n = 2000
    code = b"\x90" * 2047 + b"\xc3"
    records = b"".join(
        fragment(BASE + at, code[at:][:200], list(range(min(200, 2048 - at))), fragment_id=at, counter_index=at)
        for at in range(n)
    )
    thread = dataclasses.replace(process.threads[0], counters=Counters.from_values(np.ones(n)))
    rows = np.frombuffer(records, np.uint8).reshape(-1, 64)
    trace = assemble_anyway(dataclasses.replace(process, records=rows, threads=[thread]), tmp_path / "t")
    assert trace.blocks.num_rows >= n - 200
