"""What happens where probes are: threads do otherwise, events start and stop, the newest are kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain

RECORD_BYTES = 64
NATIVE = "0 3 6 9 executed 4 words 0x1111111111111111 0x2222222222222222 fixed 5 signals 0"
Event = dict[str, Any]


def program() -> Path:
    return build_plain(SOURCES / "probes" / "probed_changes.c", "-O1", "-g", "-pthread", "-no-pie")


def run(*options: str | Path, words: tuple[str, ...] = ()) -> str:
    """What the program prints with these probes."""
    traced = [*runs.CLEW, "trace", "--format", "json", "-o", "/dev/null"]
    command: list[str | Path] = [*traced, *options, "--", program(), *words]
    done = subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def follow(path: Path, *options: str, words: tuple[str, ...] = (), status: int = 0) -> list[Event]:
    """The events of the program."""
    command: list[str | Path] = [*runs.CLEW, "trace", "--format", "json", "-o", path, *options, "--", program(), *words]
    done = subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr
    return [json.loads(line) for line in path.read_text().splitlines()]


def change(*options: str) -> str:
    return run("--unsafe", "--function", "scale", *options)


def test_a_register_is_another_one() -> None:
    assert change("--set", "rsi=10").startswith("0 10 20 30 executed 4")
    assert change("--set", "rsi=rdi * 2", "--set", "scale_exit:rax=retval + 1").startswith("1 3 9 19 executed 4")
    assert run("--unsafe", "--probe", "scale", "--set", "$rdi=7", "--filter", "rdi == 2").startswith("0 3 21 9 exec")


def test_a_result_comes_without_the_function() -> None:
    """Its stack and its caller's registers are as if it had returned."""
    assert change("--return", "rdi + 100").startswith("100 101 102 103 executed 0")
    assert change("--return", "-1", "--filter", "rdi == 1").startswith("0 -1 6 9 executed 3")


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("u8", "0x11111111111111fe"),
        ("i16", "0x111111111111fffe"),
        ("uint32_t", "0x11111111fffffffe"),
        ("u64", "0xfffffffffffffffe"),
    ],
)
def test_memory_is_written_as_far_as_asked(kind: str, word: str) -> None:
    assert f"words {word} 0x2222222222222222" in change("--poke", f"{kind}:words=-2", "--filter", "rdi == 2")


def test_memory_that_cannot_be_written_stays() -> None:
    assert change("--poke", "u64:*(u64 *)fixed=6", "--poke", "u64:0=1", "--poke", "u64:0xffffffffffffff00=1") == NATIVE


def test_a_thread_waits(tmp_path: Path) -> None:
    out = tmp_path / "events.json"
    events = follow(out, "--unsafe", "--function", "scale", "--delay", "20ms", "--filter", "rdi == 3")
    [duration] = [one["fields"]["duration"] for one in events if one["event"] == "scale_exit"]
    assert duration >= 20_000_000


def test_changes_need_to_be_allowed() -> None:
    """The program is not run then."""
    for options in (["--set", "rdi=1"], ["--return", "1"], ["--delay", "1ms"], ["--poke", "u8:words=1"]):
        command: list[str | Path] = [*runs.CLEW, "trace", "--function", "scale", *options, "--", program()]
        done = subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=60)
        assert done.returncode != 0 and b"--unsafe" in done.stderr and not done.stdout


@pytest.mark.parametrize(
    "options",
    [
        ["--set", "rsp=1"],
        ["--set", "nobody:rdi=1"],
        ["--set", "rdi==1"],
        ["--poke", "words=1"],
        ["--poke", "u7:words=1"],
        ["--delay", "soon"],
        ["--return", "scale_exit:1"],
        ["--on", "nobody", "stop"],
        ["--on", "scale", "dance"],
        ["--on", "scale", "signal"],
        ["--on", "scale", "signal:SIGNOBODY"],
        ["--on", "scale", "snapshot"],
        ["--snapshot", "much"],
    ],
)
def test_what_makes_no_sense_is_refused(options: list[str]) -> None:
    command: list[str | Path] = [*runs.CLEW, "trace", "--unsafe", "--function", "scale", *options, "--", program()]
    done = subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=60)
    assert done.returncode != 0 and done.stderr.startswith(b"clew: ") and not done.stdout


def test_events_start_and_stop_where_said(tmp_path: Path) -> None:
    """The thread waits meanwhile: from the return on none is missing, and behind the last one there is none."""
    triggers = ("--on", "scale_exit:retval == 9", "start", "--on", "scale_entry:rdi == 7", "stop")
    events = follow(tmp_path / "out", "--function", "scale", "-t", "rdi", *triggers, words=("20",))
    assert [one["fields"].get("rdi", one["fields"].get("retval")) for one in events] == [4, 12, 5, 15, 6, 18, 7]


def test_a_thread_gets_a_signal_where_said() -> None:
    assert run("--function", "scale", "--on", "scale:rdi > 1", "signal:USR2").endswith("signals 2")


def test_a_process_pauses_where_said(tmp_path: Path) -> None:
    words = ["--probe", "scale", "-t", "pid", "--on", "scale:rdi == 2", "pause", "--format", "json", "-o"]
    command: list[str | Path] = [*runs.CLEW, "trace", *words, tmp_path / "out", "--", program()]
    with subprocess.Popen(command, env=runs.environment(), stdout=subprocess.PIPE) as clew:
        [pid] = paused(clew.pid)
        os.kill(pid, signal.SIGCONT)
        printed, _ = clew.communicate(timeout=60)
    assert printed.decode().strip() == NATIVE


def paused(parent: int) -> list[int]:
    """The children of a process, once all of them are stopped."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = [int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
        states = [Path(f"/proc/{one}/stat").read_bytes().rpartition(b") ")[2][:1] for one in found]
        if found and set(states) == {b"T"}:
            return found
        time.sleep(0.01)
    raise AssertionError(f"process {parent} has no child that is stopped")


def entries(events: list[Event]) -> list[int]:
    return [one["fields"]["rdi"] for one in events if one["event"] == "scale"]


def test_the_newest_events_are_kept(tmp_path: Path) -> None:
    """Those of the last so many bytes, when the program has ended."""
    events = follow(tmp_path / "out", "--probe", "scale", "-t", "rdi", "--snapshot", "4k", words=("1000",))
    assert entries(events) == [*range(1000 - 4096 // RECORD_BYTES, 1000)]


def test_the_newest_events_are_there_when_a_program_has_aborted(tmp_path: Path) -> None:
    words, status = ("1000", "0", "abort"), 128 + signal.SIGABRT
    events = follow(tmp_path / "out", "--probe", "scale", "-t", "rdi", "--snapshot", "8k", words=words, status=status)
    assert entries(events) == [*range(1000 - 8192 // RECORD_BYTES, 1000)]


def test_a_snapshot_is_taken_where_said(tmp_path: Path) -> None:
    """No event is written twice."""
    options = ("--probe", "scale", "-t", "rdi", "--snapshot", "4k", "--on", "scale:rdi == 500", "snapshot")
    events = follow(tmp_path / "out", *options, "--on", "scale:rdi == 510", "snapshot", words=("1000",))
    n = 4096 // RECORD_BYTES
    assert entries(events) == [*range(501 - n, 511), *range(1000 - n, 1000)]


def test_snapshots_of_busy_threads_are_whole(tmp_path: Path) -> None:
    """While threads write over their rings: each thread's events of a snapshot are those of one stretch of its own."""
    out = tmp_path / "out"
    words = ["--probe", "scale", "-t", "rdi", "--snapshot", "64k", "--on", "scale:rdi == 0", "snapshot"]
    words += ["--format", "json"]
    command: list[str | Path] = [*runs.CLEW, "trace", *words, "-o", out, "--", program(), "6000000", "2"]
    with subprocess.Popen(command, env=runs.environment(), stdout=subprocess.PIPE) as clew:
        while clew.poll() is None:
            # It takes them from then on.
            if out.exists() and out.stat().st_size:
                clew.send_signal(signal.SIGUSR1)
            time.sleep(0.02)
        assert clew.returncode == 0
    stretches: dict[int, list[list[int]]] = defaultdict(list)
    for line in out.read_text().splitlines():
        event = json.loads(line)
        own, n = stretches[event["tid"]], event["fields"]["rdi"]
        if not own or own[-1][-1] + 1 != n:
            own.append([])
        own[-1].append(n)
    assert len(stretches) == 2
    for own in stretches.values():
        assert own[-1][-1] == 6_000_000 - 1 and len(own) > 3
        assert [one for stretch in own for one in stretch] == sorted({one for stretch in own for one in stretch})
