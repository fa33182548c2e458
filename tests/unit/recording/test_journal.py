"""The journal: what is written is read, up to the first damage; a full disk costs as little as can be."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.errors import OutputError, TraceDamagedError
from clew.recording import journal as journal_module
from clew.recording.journal import FrameKind, JournalWriter, ProcessJournal, iter_frames
from clew.recording.journal_reader import JournalReader


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


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room_bytes = 300
    real_writev = os.writev

    def writev(fd: int, parts: list[bytes]) -> int:
        data = b"".join(parts)
        if os.fstat(fd).st_size + len(data) > room_bytes:
            rest = room_bytes - os.fstat(fd).st_size
            if rest <= 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real_writev(fd, [data[:rest]])
        return real_writev(fd, parts)

    def write(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "writev", writev)
    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(journal_module, "MAX_OVERFLOW_RECORDS_BYTES", 250)
    with JournalWriter(tmp_path / "j") as journal:
        assert [journal.write(FrameKind.RECORDS, bytes([number]) * 100) for number in range(6)] == [
            *(True, True, True, False, False, False),
        ]
        assert ProcessJournal(journal, 0).write_json(FrameKind.THREAD, {"tid": 1})
        assert journal.failure is not None
    assert [bytes(frame.payload)[0] for frame in iter_frames(tmp_path / "j")] == [0]
    assert [frame.kind for frame in journal.overflow] == [FrameKind.RECORDS, FrameKind.RECORDS, FrameKind.THREAD]


def test_journals_without_a_beginning_are_damaged(tmp_path: Path) -> None:
    for content in (b"", b"nonsense" * 100):
        (tmp_path / "j").write_bytes(content)
        with pytest.raises(TraceDamagedError):
            JournalReader(tmp_path / "j")
    with pytest.raises(TraceDamagedError):
        JournalReader(tmp_path / "none")


def test_json_that_says_nonsense_is_damage(tmp_path: Path) -> None:
    contents: list[dict[str, Any]] = [{}, {"pid": []}, {"pid": 1, "initial_images": 5}]
    for number, content in enumerate(contents):
        path = tmp_path / f"j{number}"
        with JournalWriter(path) as journal:
            ProcessJournal(journal, 0).write_json(FrameKind.PROCESS, content)
        with pytest.raises(TraceDamagedError):
            list(JournalReader(path))
