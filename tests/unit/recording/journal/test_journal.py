"""The journal: what is written is read, up to the first damage; a full disk costs as little as can be."""

from __future__ import annotations

import errno
import os
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.errors import OutputError, TraceDamagedError
from clew.protocol._constants import MAX_COUNTER_BYTES, RECORD_BYTES
from clew.recording.journal import writer as writer_module
from clew.recording.journal.frames import Frame, FrameKind, iter_frames
from clew.recording.journal.sink import ProcessJournal
from clew.recording.journal.writer import JournalWriter
from clew.recording.reading.journal_reader import JournalReader, read_counters


def write(path: Path, payloads: list[bytes]) -> None:
    with JournalWriter(path) as journal:
        for index, payload in enumerate(payloads):
            first, second = payload[:3], payload[3:]
            assert journal.write(FrameKind.RECORDS, first, second=second, stream=index, slot=7, first=index * 9)


@settings(deadline=None, max_examples=60)
@given(payloads=st.lists(st.binary(max_size=200), max_size=6))
def test_frames_come_back(tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    write(path, payloads)
    frames = list(iter_frames(path))
    assert [bytes(frame.payload) for frame in frames] == payloads
    assert [(frame.kind, frame.stream, frame.slot, frame.first) for frame in frames] == [
        (FrameKind.RECORDS, index, 7, index * 9) for index in range(len(payloads))
    ]


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_damage_ends_the_journal_and_no_more(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    payloads = [bytes([number]) * 100 for number in range(5)]
    write(path, payloads)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] ^= data.draw(st.integers(1, 255))
    else:
        del content[at:]
    path.write_bytes(content)
    frame_bytes = 64 + 128
    read = [bytes(frame.payload) for frame in iter_frames(path)]
    # Padding, of a frame or of a header, is not covered by the checksum.
    assert read[: at // frame_bytes] == payloads[: at // frame_bytes]
    assert read == payloads[: len(read)]


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("precious")
    with pytest.raises(OutputError):
        JournalWriter(tmp_path / "j")


class Disk:
    """What files of the test have of a disk: `room_bytes` for each of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room_bytes: int) -> None:
        self.room_bytes = room_bytes
        self.taken_bytes = 0
        """What somebody else takes of it each time that it was full."""
        self._writev = os.writev
        monkeypatch.setattr(os, "writev", self.writev)
        monkeypatch.setattr(os, "write", lambda fd, data: self.writev(fd, [data]))

    def writev(self, fd: int, parts: list[bytes]) -> int:
        """As much as there is room for."""
        room_bytes = self.room_bytes - os.fstat(fd).st_size
        if room_bytes <= 0:
            self.room_bytes -= self.taken_bytes
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._writev(fd, [b"".join(parts)[:room_bytes]])


def records(number: int, n_records: int) -> bytes:
    return bytes([number]) * RECORD_BYTES * n_records


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Disk(monkeypatch, 300)
    monkeypatch.setattr(writer_module, "MAX_OVERFLOW_RECORDS_BYTES", 4 * RECORD_BYTES)
    with JournalWriter(tmp_path / "j") as journal:
        assert [journal.write(FrameKind.RECORDS, records(number, 2)) for number in range(4)] == [
            *(True, True, True, False),
        ]
        assert ProcessJournal(journal, 0).write_json(FrameKind.THREAD, {"tid": 1})
        assert journal.failure is not None
    assert [bytes(frame.payload) for frame in iter_frames(tmp_path / "j")] == [records(0, 2)]
    assert [frame.kind for frame in journal.overflow] == [FrameKind.RECORDS, FrameKind.RECORDS, FrameKind.THREAD]


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(0, 9), max_size=12),
    room_bytes=st.lists(st.integers(0, 4000), min_size=1, max_size=6),
    taken_bytes=st.integers(0, 300),
)
def test_nothing_is_lost_once_there_is_room(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[int],
    room_bytes: list[int],
    taken_bytes: int,
) -> None:
    """However the room grows meanwhile: what comes back is what was written, in its order, records perhaps in parts."""
    path = tmp_path_factory.mktemp("journal") / "j"
    with monkeypatch.context() as patch, JournalWriter(path) as journal:
        disk = Disk(patch, 0)
        disk.taken_bytes = taken_bytes
        written = []
        for number, n_records in enumerate(sizes):
            disk.room_bytes = max(room_bytes[: 1 + number % len(room_bytes)])
            journal.write(FrameKind.RECORDS, records(number, n_records), stream=number)
            journal.write(FrameKind.STATUS, bytes([number]) * 100, stream=number)
            written += [records(number, n_records), bytes([number]) * 100]
            if number % 3 == 2:
                journal.retry()
            read = b"".join(bytes(frame.payload) for frame in [*iter_frames(path), *journal.overflow])
            assert read == b"".join(written)
        disk.room_bytes, disk.taken_bytes = 1 << 20, 0
        assert journal.retry()
        assert journal.failure is None
        assert b"".join(bytes(frame.payload) for frame in iter_frames(path)) == b"".join(written)


def test_what_is_put_back_has_its_records_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with JournalWriter(tmp_path / "j") as journal:
        for number in range(3):
            journal.write(FrameKind.RECORDS, records(number, 2))
            journal.write(FrameKind.STATUS, bytes([number]) * 100)
        content = journal.withdraw()
        assert not (tmp_path / "j").read_bytes()
        # For three of the one kind, and a frame and a half of the other.
        Disk(monkeypatch, 3 * (64 + 128) + 64 + 128 + 64 + 64 + 63)
        journal.restore(content)
    assert [bytes(frame.payload) for frame in iter_frames(tmp_path / "j")] == [
        *(bytes([number]) * 100 for number in range(3)),
        records(0, 2),
        records(1, 1),
    ]
    assert [bytes(frame.payload) for frame in journal.overflow] == [records(1, 1), records(2, 2)]


def test_journals_without_a_beginning_are_damaged(tmp_path: Path) -> None:
    for content in (b"", b"nonsense" * 100):
        (tmp_path / "j").write_bytes(content)
        with pytest.raises(TraceDamagedError):
            JournalReader(tmp_path / "j")
    with pytest.raises(TraceDamagedError):
        JournalReader(tmp_path / "none")


def test_nobody_keeps_the_records_of_a_process_that_was_read(tmp_path: Path) -> None:
    """Nor is the memory needed until a fork of it is read, which finds in them what it inherited."""
    start = {"pid": 1, "parent_pid": 0, "executable": "", "command": [], "start_ns": 1, "mode": 0, "initial_images": []}
    with JournalWriter(tmp_path / "j") as journal:
        for number, more in enumerate(({}, {"inherits": 0, "fork_tsc": 5}, {"inherits": 1, "fork_tsc": 6})):
            own = ProcessJournal(journal, number)
            own.write_json(FrameKind.PROCESS, start | more)
            own.write(FrameKind.RECORDS, records(number, 3))
    n_records = []
    for process in JournalReader(tmp_path / "j"):
        n_records.append(len(process.records))
        kept = weakref.ref(process.records)
        del process
        assert kept() is None
    assert n_records == [3, 3, 3]


def test_json_that_says_nonsense_is_damage(tmp_path: Path) -> None:
    contents: list[dict[str, Any]] = [{}, {"pid": []}, {"pid": 1, "initial_images": 5}]
    for number, content in enumerate(contents):
        path = tmp_path / f"j{number}"
        with JournalWriter(path) as journal:
            ProcessJournal(journal, 0).write_json(FrameKind.PROCESS, content)
        with pytest.raises(TraceDamagedError):
            list(JournalReader(path))


@pytest.mark.parametrize("kind", [FrameKind.COUNTERS, FrameKind.SPARSE_COUNTERS])
@pytest.mark.parametrize("first", [MAX_COUNTER_BYTES // 8, 2**63, 2**64 - 1])
def test_counters_from_beyond_the_last_one_are_beyond_it(kind: FrameKind, first: int) -> None:
    frame = Frame(kind=kind, process=0, stream=0, slot=0, first=first, offset=0, payload=memoryview(bytes(24)))
    index, values = read_counters(frame)
    assert len(index) == len(values) > 0
    assert (index >= MAX_COUNTER_BYTES // 8).all()
