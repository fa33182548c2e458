"""However many tags a journal holds (mode region): a trace is made of it in the same memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from clew.protocol import _generated as protocol
from clew.protocol._generated import REGION_KIND_SHIFT, Mode, RecordKind, RegionWord
from clew.recording.journal.frames import FrameKind
from clew.recording.journal.sink import ProcessJournal
from clew.recording.journal.writer import JournalWriter
from clew.store.names import JOURNAL_NAME
from clew.store.trace import Trace
from tests.unit.recording.made_up_records import record

CHUNK_BYTES = 8192
CHUNKS_A_FRAME = 64


def write_journal(folder: Path, n_chunks: int) -> int:
    """A journal of one thread with so many chunks of words; how many tags these are."""
    folder.mkdir()
    words = np.full(CHUNK_BYTES // 4, RegionWord.EXECUTED << REGION_KIND_SHIFT | 1, "<u4").tobytes()
    fields = {"kind": RecordKind.REGION_CHUNK, "tid": 7, "tsc": 1, "size_bytes": CHUNK_BYTES}
    one = record(protocol.REGION_CHUNK_RECORD, words, **fields)
    rows = np.frombuffer(one * CHUNKS_A_FRAME, np.uint8).reshape(CHUNKS_A_FRAME, -1).copy()
    facts = {"command": ["it"], "mode": int(Mode.REGION), "start_ns": 1}
    session = facts | {"include": [], "exclude": [], "clew_version": "0", "machine": {}}
    process = facts | {"pid": 7, "parent_pid": 1, "executable": "/it", "initial_images": []}
    with JournalWriter(folder / JOURNAL_NAME) as writer:
        writer.write(FrameKind.SESSION, json.dumps(session).encode())
        journal = ProcessJournal(writer, 0)
        journal.write_json(FrameKind.PROCESS, process)
        for first in range(0, n_chunks, CHUNKS_A_FRAME):
            starts = (first + np.arange(CHUNKS_A_FRAME, dtype="<u8")) * CHUNK_BYTES
            rows[:, 16:24] = starts.reshape(-1, 1).view(np.uint8)
            journal.write(FrameKind.RECORDS, rows.tobytes())
        journal.write_json(FrameKind.THREAD, {"tid": 7, "start_tsc": 1})
    return n_chunks * CHUNK_BYTES // 4


def recover(folder: Path) -> int:
    """Make a trace of the journal in `folder`; the most memory that took, in KiB."""
    process = subprocess.Popen([sys.executable, "-m", "clew", "recover", folder])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss


@pytest.mark.parametrize("most_chunks", [2048, pytest.param(4096, marks=pytest.mark.long)])
def test_memory_does_not_grow_with_the_number_of_tags(tmp_path: Path, most_chunks: int) -> None:
    taken_kib = []
    for n_chunks in (512, most_chunks):
        folder = tmp_path / str(n_chunks)
        n_tags = write_journal(folder, n_chunks)
        taken_kib.append(recover(folder))
        assert Trace(folder).n_rows("tags") == n_tags
    assert taken_kib[1] - taken_kib[0] < 32 << 10, taken_kib
