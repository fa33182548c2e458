"""Threads that ended unseen, as a frame of the journal has them."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.journal.sink import ProcessJournal
from clew.recording.journal.writer import JournalWriter
from clew.recording.raw.ended_threads import ENDED_THREAD, EndedThreads, pack_ended
from clew.recording.raw.process import RawThread
from clew.recording.reading.journal_reader import JournalReader
from tests.unit.recording.live_journal import make_frames, pack_threads
from tests.unit.recording.simulate import make_runtime


def make_frame(payload: bytes, n_threads: int) -> Frame:
    return Frame(FrameKind.ENDED, 0, 0, 0, n_threads, 0, memoryview(payload))


def tell(thread: RawThread) -> dict[str, object]:
    counters = dict(zip(thread.counters.index.tolist(), thread.counters.value.tolist(), strict=True))
    return vars(dataclasses.replace(thread)) | {"counters": counters, "path_records": None}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_packed_is_read(seed: int) -> None:
    threads = make_runtime(seed, max_threads=8, max_steps=2000).raw_process().threads
    threads = [dataclasses.replace(one, stream=stream) for stream, one in enumerate(threads, 3)]
    payload = pack_threads(threads, [bytes([stream]) * 64 * stream for stream in range(len(threads))])
    ended = EndedThreads.parse(make_frame(payload, len(threads)))
    assert [tell(one) for one in ended.iter_threads()] == [tell(one) for one in threads]
    assert ended.records[:, 0].tolist() == [stream for stream in range(len(threads)) for _ in range(stream)]
    assert bytes(ended.record_frame.payload) == ended.records.tobytes()
    assert ended.record_frame.offset == len(threads) * ENDED_THREAD.itemsize


@given(st.binary(max_size=400), st.integers(0, 6))
def test_what_contradicts_itself_is_refused_or_read(payload: bytes, n_threads: int) -> None:
    try:
        ended = EndedThreads.parse(make_frame(payload, n_threads))
    except ValueError:
        return
    assert len(list(ended.iter_threads())) == n_threads


def test_sizes_that_wrap_around_are_refused() -> None:
    rows = np.zeros(3, ENDED_THREAD)
    rows["n_records"] = 0xFFFFFFFF
    with pytest.raises(ValueError, match="contradicts"):
        EndedThreads.parse(make_frame(pack_ended(rows, b"", np.zeros(0), np.zeros(0), b""), 3))
    with pytest.raises(ValueError, match="cut off"):
        EndedThreads.parse(make_frame(rows.tobytes()[:-1], 3))


def test_the_journal_reads_the_same_either_way(tmp_path: Path) -> None:
    raw = make_runtime(8, max_threads=8, max_steps=3000).raw_process()
    assert len(raw.threads) > 2
    read = []
    for name, is_together in (("apart", False), ("together", True)):
        with JournalWriter(tmp_path / name) as writer:
            own = ProcessJournal(writer, 0)
            for frame in make_frames(raw, random.Random(8), is_together=is_together):
                own.write(FrameKind(frame.kind), frame.payload, stream=frame.stream, slot=frame.slot, first=frame.first)
        (process,) = JournalReader(tmp_path / name)
        read.append(([tell(one) for one in process.threads], process.records.tobytes()))
    assert read[0] == read[1]
