"""Tables of files for unwinding: made once, and beside where that is to be."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from clew.binary.elf import open_elf
from clew.sessions.probes import unwinding
from clew.sessions.probes.unwinding import KnownFrames

FILE = Path(shutil.which("bash") or "/bin/sh").resolve()


def wait_for(known: KnownFrames, n_made: int) -> None:
    deadline = time.monotonic() + 20
    while known.n_made < n_made:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_file_has_one_table(tmp_path: Path) -> None:
    known = KnownFrames()
    copy = tmp_path / "copy"
    shutil.copy(FILE, copy)
    with open_elf(FILE) as elf, open_elf(FILE) as again, open_elf(copy) as other:
        key, table = known.find(elf)
        assert table is not None and len(table) > 1000
        same = known.find(again)
        assert same[0] == key and same[1] is table
        # It says that it is the same; who believes that believes what any file says of itself.
        assert known.find(other) != (key, table) and known.find(other)[1] == table


def test_what_is_late_or_large_is_made_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownFrames()
    with open_elf(FILE) as elf:
        key, table = known.find(elf, in_time=False)
        assert table is None
        wait_for(known, 1)
        found = known.find(elf, in_time=False)
        assert found[0] == key and found[1]
        monkeypatch.setattr(unwinding, "_LARGE_BYTES", 1 << 10)
        other = KnownFrames()
        assert other.find(elf)[1] is None
        wait_for(other, 1)
        assert other.find(elf)[1] == found[1]


def test_tables_that_were_not_used_for_long_are_forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = KnownFrames()
    monkeypatch.setattr(unwinding, "_MAX_KEPT_BYTES", 1)
    copy = tmp_path / "copy"
    shutil.copy(FILE, copy)
    with open_elf(FILE) as elf, open_elf(copy) as other:
        first = known.find(elf)[1]
        assert known.find(elf)[1] is first
        known.find(other)
        made_anew = known.find(elf)[1]
        assert made_anew == first and made_anew is not first
