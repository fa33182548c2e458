"""What commands say of traces that are none, or none yet, or damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.recording.journal.writer import JournalWriter
from clew.store.names import JOURNAL_NAME, MANIFEST_NAME
from tests.unit.cli.running import Captured, run

COMMANDS = [["info"], ["report"], ["verify"], ["export", "--to", "drcov", "-o", "-"]]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_no_trace(capsys: Captured, words: list[str], tmp_path: Path) -> None:
    status, out, err = run(capsys, *words, str(tmp_path / "nothing"))
    assert (status, out) == (2, "")
    assert "no such trace" in err
    assert err.count("\n") == 1
    assert run(capsys, *words, str(tmp_path))[0] == 2


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_trace_being_written(capsys: Captured, words: list[str], tmp_path: Path) -> None:
    (tmp_path / JOURNAL_NAME).touch()
    status, _, err = run(capsys, *words, str(tmp_path))
    assert status == 1
    assert "being written" in err
    assert "`clew record` or `clew attach`" in err
    assert err.count("\n") == 1


def test_a_recording_that_goes_on_can_not_be_recovered(capsys: Captured, tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / JOURNAL_NAME)
    status, _, err = run(capsys, "recover", str(tmp_path))
    assert status == 1
    assert err == f"clew: {tmp_path}: is being recorded; end that `clew record` or `clew attach` first\n"
    journal.close()
    assert "after `clew record` or `clew attach` was" in " ".join(run(capsys, "recover", "--help")[1].split())


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_newer_trace(capsys: Captured, words: list[str], trace: str) -> None:
    path = Path(trace) / MANIFEST_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
    status, _, err = run(capsys, *words, trace)
    assert status == 1
    assert "newer clew" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("kept", [0, 50, -5])
def test_truncated_trace(capsys: Captured, words: list[str], trace: str, kept: int) -> None:
    path = Path(trace) / "blocks" / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[:kept])
    status, _, err = run(capsys, *words, trace)
    assert status == 1
    assert "damaged or truncated" in err
    assert err.count("\n") == 1
