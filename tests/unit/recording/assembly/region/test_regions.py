"""The table of tags (mode region) of threads that had one number, one after another."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import numpy as np

from clew.address import Tid
from clew.analysis.invariants.check import check_invariants
from clew.protocol import _generated as protocol
from clew.protocol._generated import (
    REGION_KIND_SHIFT,
    REGION_WINDOW_BYTES,
    EdgeKind,
    EndKind,
    ExitKind,
    Mode,
    RecordKind,
    RegionWord,
)
from clew.recording.assembly.region.tag_chunks import TagChunks
from clew.recording.assembly.trace import assemble
from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.raw.process import Counters, RawThread
from clew.store.trace import Trace
from tests.unit.recording.made_up_program import BASE
from tests.unit.recording.made_up_records import record, session_info
from tests.unit.recording.simulate import make_runtime

SYSCALL = b"\x0f\x05"
BLOCK = 1
CALL_NUMBER = 60


def make_chunk(tid: int, stream: int, data: bytes) -> bytes:
    kind = RecordKind.REGION_CHUNK
    return record(protocol.REGION_CHUNK_RECORD, data, kind=kind, tid=tid, tsc=1, stream=stream, size_bytes=len(data))


def make_thread(stream: int, tid: int, start_tsc: int) -> RawThread:
    """A thread that makes one call, which ends it."""
    words = np.array([RegionWord.EXECUTED, RegionWord.SYSCALL], "<u4") << REGION_KIND_SHIFT
    words[0] |= BLOCK
    numbers = np.array([start_tsc + 5, CALL_NUMBER], "<u8")
    data = make_chunk(tid, 0, words.tobytes()) + make_chunk(tid, 1, numbers.tobytes())
    first = REGION_WINDOW_BYTES // 8
    return RawThread(
        slot=stream,
        tid=Tid(tid),
        parent_tid=Tid(0),
        name="it",
        start_tsc=start_tsc,
        end_tsc=start_tsc + 10,
        end_kind=EndKind.EXIT,
        lost_records=0,
        counters=Counters(np.array([first, first + 1]), np.ones(2, np.uint64)),
        stream=stream,
        tag_chunks=TagChunks([Frame(FrameKind.RECORDS, 0, stream, stream, 0, 0, memoryview(data))]),
    )


def write_trace(folder: Path, threads: list[RawThread]) -> Trace:
    """The trace of a process in which each of `threads` made its call."""
    first = REGION_WINDOW_BYTES // 8
    bits = np.packbits([1, 0, 0, 0, 0, 0, 0, 0], bitorder="little").tobytes()
    code = record(
        protocol.FRAGMENT_RECORD,
        SYSCALL + bits,
        kind=RecordKind.FRAGMENT,
        tid=threads[0].tid,
        app_pc=BASE,
        tsc=1000,
        counter_index=first,
        size_bytes=len(SYSCALL),
        n_instructions=1,
        exit_kind=ExitKind.SYSCALL,
        region_block=BLOCK,
    )
    start = record(
        protocol.DYNAMIC_EDGE_RECORD,
        kind=RecordKind.DYNAMIC_EDGE,
        tid=threads[0].tid,
        target_pc=BASE,
        tsc=1000,
        source_fragment_id=(1 << 32) - 1,
        counter_index=first + 1,
        edge_kind=EdgeKind.START,
    )
    records = np.frombuffer(code + start, np.uint8).reshape(-1, 64)
    made_up = make_runtime(1, max_steps=1).raw_process()
    made_up.status["last_tsc"] = 10_000
    folder.mkdir()
    process = dataclasses.replace(made_up, mode=Mode.REGION, records=records, threads=threads)
    assemble([process], folder, session_info(Mode.REGION))
    return Trace(folder)


def test_a_number_that_is_used_again_has_its_tags_in_one_place(tmp_path: Path) -> None:
    threads = [make_thread(0, 7, 1000), make_thread(1, 8, 1010), make_thread(2, 7, 1020)]
    trace = write_trace(tmp_path / "t", threads)
    assert check_invariants(trace) == []
    rows = trace.tags.select(["tid", "tag", "kind"]).to_pylist()
    assert [(row["tid"], row["tag"]) for row in rows] == [(7, 0), (7, 1), (7, 2), (7, 3), (8, 0), (8, 1)]


def test_tags_of_one_number_are_in_the_order_in_which_their_threads_were_there(tmp_path: Path) -> None:
    """Streams are numbered as slots are looked at: one that is used again may be looked at before the first."""
    trace = write_trace(tmp_path / "t", [make_thread(0, 7, 1030), make_thread(1, 8, 1010), make_thread(2, 7, 1000)])
    assert check_invariants(trace) == []
    times = [row["time_ns"] for row in trace.tags.to_pylist() if row["tid"] == 7 and row["kind"] == "syscall"]
    assert len(times) == 2 and all(first < second for first, second in pairwise(times))
