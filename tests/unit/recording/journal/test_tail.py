"""A journal is read while it is written: whole frames only, each once, in their order."""

from __future__ import annotations

import os
import random
from pathlib import Path

from clew.recording.journal.frames import FrameKind
from clew.recording.journal.tail import JournalTail
from clew.recording.journal.writer import JournalWriter


def test_each_frame_comes_once_however_the_file_grows(tmp_path: Path) -> None:
    rng, payloads = random.Random(1), []
    with JournalWriter(tmp_path / "whole") as writer:
        for number in range(60):
            payloads.append(rng.randbytes(rng.randrange(300)))
            writer.write(FrameKind.RECORDS, payloads[-1], process=number)
    content = (tmp_path / "whole").read_bytes()
    growing = tmp_path / "growing"
    growing.write_bytes(b"")
    tail, found, at = JournalTail(os.open(growing, os.O_RDONLY)), [], 0
    while at < len(content):
        size = rng.randrange(1, 400)
        with open(growing, "ab") as file:
            file.write(content[at : at + size])
        at += size
        found += [(frame.process, bytes(frame.payload)) for frame in tail.iter_new()]
    tail.close()
    assert found == list(enumerate(payloads))


def test_what_is_taken_back_is_waited_for(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "j") as writer:
        writer.write(FrameKind.RECORDS, b"a" * 64)
        tail = JournalTail(os.open(tmp_path / "j", os.O_RDONLY))
        assert len(list(tail.iter_new())) == 1
        writer.write(FrameKind.RECORDS, b"b" * 640)
        whole = (tmp_path / "j").read_bytes()
        (tmp_path / "j").write_bytes(whole[:-300])
        assert list(tail.iter_new()) == []
        (tmp_path / "j").write_bytes(whole)
        assert [bytes(frame.payload[:1]) for frame in tail.iter_new()] == [b"b"]
        tail.close()
