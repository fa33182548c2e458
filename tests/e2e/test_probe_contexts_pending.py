"""What probes take may be of libraries that a program has not loaded yet when its probes are made."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import clew
from tests.e2e import runs
from tests.e2e.probed_program import calls_program

TURNS = 5


def trace(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [*runs.CLEW, "trace", *words, "--", calls_program()]
    return subprocess.run(command, env=runs.environment(), capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("where", [["--probe", "add"], ["--function", "add"]])
def test_words_of_libraries_are_taken_at_places_of_the_program(where: list[str], tmp_path: Path) -> None:
    out = tmp_path / "events.json"
    contexts = ["-t", "errno", "-t", "long:names:libc.so.6!environ", "--filter", "libc.so.6!environ != 0"]
    done = trace(*where, *contexts, "--format", "json", "-o", out)
    assert (done.returncode, done.stderr) == (3, "")
    entries = [one for one in map(json.loads, out.read_text().splitlines()) if one["kind"] != "return"]
    assert len(entries) == TURNS
    assert {one["fields"]["errno"] for one in entries} == {0}
    assert all(one["fields"]["names"] > 0 for one in entries)


def test_what_no_library_has_is_told_once_they_are_loaded() -> None:
    done = trace("--probe", "add", "-t", "long:x:libc.so.6!no_such_word")
    assert done.returncode == 3 and len(done.stdout.splitlines()) == TURNS + 1
    assert "add: no probe at probed_calls!add" in done.stderr and "no_such_word" in done.stderr


def test_a_running_process_has_all_that_it_will_have() -> None:
    with subprocess.Popen([calls_program(), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        with clew.probe_session(process.pid) as session:
            with pytest.raises(clew.ClewError, match="no_such_word"):
                session.probe("add", capture="libc.so.6!no_such_word")
            probe = session.probe("add", capture=["errno", "libc.so.6!environ != 0"])
            process.communicate(b"\n", timeout=60)
            session.wait(60)
        rows = probe.read().to_pylist()
    assert [(row["errno"], row["libc.so.6!environ != 0"]) for row in rows] == [(0, 1)] * TURNS


def test_until_then_a_session_says_why_a_probe_is_nowhere() -> None:
    with clew.probe_session([calls_program()], stdout=subprocess.DEVNULL) as session:
        probe, never = session.probe("add", capture="errno"), session.probe("add", capture="libc.so.6!no_such_word")
        assert "errno" in probe.missing or "not loaded yet" in probe.missing
        assert not probe.places and "no_such_word" in never.missing
        session.resume()
        assert session.wait(60) == 3
        assert probe.n_events == TURNS and probe.read()["errno"].to_pylist() == [0] * TURNS
        assert never.n_events == 0
        assert any("no_such_word" in text for text in session.warnings)
