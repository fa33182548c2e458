"""Small processes assembled together come out as each of them does alone, whatever is in their records."""

from __future__ import annotations

import dataclasses
import random
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.address import Pid
from clew.protocol._generated import DYNAMIC_EDGE_RECORD, EdgeKind, Mode, RecordKind
from clew.recording.assembly.records import bundles
from clew.recording.assembly.records.bundles import iter_bundles
from clew.recording.assembly.trace import assemble
from clew.recording.raw.process import RawProcess
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace
from tests.unit.recording.made_up_records import record, session_info
from tests.unit.recording.simulate import make_runtime


def make_process(seed: int, mode: Mode = Mode.COUNTS, **options: Any) -> RawProcess:
    return dataclasses.replace(make_runtime(seed, mode=mode, **options).raw_process(), pid=Pid(1000 + seed))


def assemble_all(processes: list[RawProcess], folder: Path, max_members: int) -> dict[str, Any]:
    """The rows of all tables, and what the manifest tells of losses and ends."""
    folder.mkdir(parents=True)
    with mock.patch.object(bundles, "MAX_MEMBERS", max_members):
        assemble(processes, folder, session_info(processes[0].mode))
    trace = Trace(folder)
    rows: dict[str, Any] = {name: trace.read(name).to_pylist() for name in SCHEMAS if trace.n_rows(name)}
    manifest = trace.manifest
    return rows | {"losses": manifest.losses, "ends": manifest.processes, "warnings": manifest.warnings}


def check_alike(processes: list[RawProcess], folder: Path) -> None:
    together = assemble_all(processes, folder / "together", bundles.MAX_MEMBERS)
    assert together == assemble_all(processes, folder / "alone", 1)


def damage(process: RawProcess, seed: int) -> RawProcess:
    """`process` with some bytes of its records overwritten."""
    source = random.Random(seed)
    records = process.records.copy()
    for _ in range(source.randrange(1, 20)):
        row, column = source.randrange(len(records)), source.randrange(64)
        records[row, column] = source.choice([0, 1, 0x7F, 0xFF, source.randrange(256)])
    return dataclasses.replace(process, records=records)


@given(st.lists(st.integers(0, 2**16), min_size=2, max_size=5), st.sampled_from([Mode.COUNTS, Mode.COVERAGE]))
@settings(max_examples=6, deadline=None)
def test_as_alone(tmp_path_factory: Any, seeds: list[int], mode: Mode) -> None:
    processes = [make_process(seed, mode, max_steps=200) for seed in seeds]
    assert len(list(iter_bundles(processes))) == 1
    check_alike(processes, tmp_path_factory.mktemp("bundles"))


@given(st.lists(st.integers(0, 2**16), min_size=2, max_size=4))
@settings(max_examples=8, deadline=None)
def test_damaged_as_alone(tmp_path_factory: Any, seeds: list[int]) -> None:
    processes = [damage(make_process(seed, max_steps=150), seed) for seed in seeds]
    check_alike(processes, tmp_path_factory.mktemp("bundles"))


def test_nothing_leads_to_another_process(tmp_path: Path) -> None:
    """Numbers that no record of a process announced are those of its neighbours' in a bundle."""
    processes = [make_process(seed, max_steps=100) for seed in (1, 2, 3)]
    stray = b"".join(
        record(
            DYNAMIC_EDGE_RECORD,
            kind=RecordKind.DYNAMIC_EDGE,
            source_fragment_id=number,
            target_fragment_id=number,
            counter_index=number,
            edge_kind=EdgeKind.INDIRECT_JUMP,
            source_pc=0x1000,
            target_pc=0x1000,
        )
        for number in range(2000)
    )
    rows = np.frombuffer(stray, np.uint8).reshape(-1, 64)
    first = dataclasses.replace(processes[0], records=np.concatenate([processes[0].records, rows]))
    check_alike([first, *processes[1:]], tmp_path)


def test_bundled(tmp_path: Path) -> None:
    """Who is bundled: not what is large, of another mode, or at addresses that would reach into a neighbour's."""
    small = [make_process(seed, max_steps=50) for seed in range(5)]
    large = dataclasses.replace(small[0], records=np.repeat(small[0].records, 1 << 14, axis=0))
    ordered = dataclasses.replace(small[0], mode=Mode.FULL)
    far = np.frombuffer(
        record(DYNAMIC_EDGE_RECORD, kind=RecordKind.DYNAMIC_EDGE, target_pc=(1 << 47) + 0x1000), np.uint8
    ).reshape(-1, 64)
    wild = dataclasses.replace(small[0], records=np.concatenate([small[0].records, far]))
    processes = [small[0], small[1], large, small[2], ordered, wild, small[3], small[4]]
    assert [len(bundle.processes) for bundle in iter_bundles(processes)] == [2, 1, 1, 1, 1, 2]
    kept = [process for bundle in iter_bundles(processes) for process in bundle.processes]
    assert [one.threads for one in kept] == [one.threads for one in processes]
    assert not any(len(process.records) for process in kept)
    assert [len(bundle.processes) for bundle in iter_bundles([small[0]] * (bundles.MAX_MEMBERS + 1))] == [
        bundles.MAX_MEMBERS,
        1,
    ]


def test_whoever_takes_the_records_has_all_there_is() -> None:
    """A large process takes hundreds of MiB while it is assembled, and its records are of no use any more."""
    small = make_process(0, max_steps=50)

    def give() -> Iterator[RawProcess]:
        for number, repeats in enumerate((1, 1 << 14, 1)):
            yield dataclasses.replace(small, number=number, records=np.repeat(small.records, repeats, axis=0))

    for bundle in iter_bundles(give()):
        taken = bundle.take_records()
        is_large = len(taken) > bundles.MAX_RECORDS
        assert is_large == (bundle.processes[0].number == 1)
        assert not len(bundle.records)
        kept = weakref.ref(taken)
        del taken
        assert not is_large or kept() is None
