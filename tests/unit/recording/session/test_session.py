"""Whole runs of `clew record`, with stand-ins for the runtime and the assembler."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.store.names import JOURNAL_NAME
from tests.unit.process.fake_runtime import build_fake_runtime
from tests.unit.recording.session.driver import STAGES

ROOT = Path(__file__).resolve().parents[4]
DRIVER = Path(__file__).with_name("driver.py")
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(scope="module")
def runtimes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runtimes")
    for damage in range(5):
        build_fake_runtime(directory / str(damage), damage=damage)
    build_fake_runtime(directory / "many", records=60_000)
    return directory


@pytest.fixture
def start(runtimes: Path, tmp_path: Path) -> Start:
    def start_clew(
        *arguments: str, runtime: str = "0", output: str = "out.clew", **options: Any
    ) -> subprocess.Popen[bytes]:
        image = runtimes / runtime / "fake-runtime"
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "CLEW_RUNTIME": str(image)}
        environment |= options.pop("environment", {})
        command = [sys.executable, str(DRIVER), "record", "-o", output, *arguments]
        pipe = subprocess.PIPE
        started: subprocess.Popen[bytes] = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, **options
        )
        return started

    return start_clew


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=60)
    return process.returncode, output.decode(), errors.decode()


def raw(directory: Path, name: str = "out.clew") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((directory / name / "raw.json").read_text())
    return content


def test_output_status_and_records(start: Start, tmp_path: Path) -> None:
    status, output, errors = finish(start("--", "sh", "-c", "echo to-stdout; echo to-stderr >&2; exit 9"))
    assert (status, output) == (9, "to-stdout\n")
    assert errors.startswith("to-stderr\n")
    assert "wrote out.clew" in errors
    content = raw(tmp_path)
    assert (content["exit_code"], content["signal"], content["mode"]) == (9, None, "COUNTS")
    assert content["command"] == ["sh", "-c", "echo to-stdout; echo to-stderr >&2; exit 9"]
    assert os.path.samefile(content["executable"], "/bin/sh")
    assert content["executable"] in content["images"]
    assert (content["records"], content["in_order"], content["warnings"]) == (4, True, [])
    assert content["threads"] == [{"tid": content["pid"], "name": "sh", "lost": 0, "total": 85}]
    assert all(seconds > 0 for seconds in content["cpu"])
    assert not (tmp_path / "out.clew" / "recording.journal").exists()


def test_standard_input_passes_through(start: Start) -> None:
    process = start("-q", "cat", stdin=subprocess.PIPE)
    output, errors = process.communicate(b"some input", timeout=60)
    assert (process.returncode, output, errors) == (0, b"some input", b"")


def test_killed_by_a_signal(start: Start, tmp_path: Path) -> None:
    status, _, _ = finish(start("sh", "-c", "kill -SEGV $$"))
    assert (status, raw(tmp_path)["signal"]) == (128 + signal.SIGSEGV, signal.SIGSEGV)


def test_ignored_signals_stay_ignored_and_the_status_is_known(start: Start) -> None:
    def ignore() -> None:
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)

    status, output, _ = finish(start("-q", "grep", "SigIgn", "/proc/self/status", preexec_fn=ignore))
    ignored = int(output.split()[1], 16)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGQUIT):
        assert ignored >> (number - 1) & 1, number
    assert status == 0
    assert finish(start("-q", "sh", "-c", "exit 7", output="second.clew", preexec_fn=ignore))[0] == 7


def test_a_broken_pipe_kills_the_target_as_natively(start: Start, tmp_path: Path) -> None:
    status, output, _ = finish(start("sh", "-c", "yes | head -n 1; kill -PIPE $$"))
    assert (status, output) == (128 + signal.SIGPIPE, "y\n")


def test_a_target_faster_than_its_ring(start: Start, tmp_path: Path) -> None:
    status, _, _ = finish(start("true", runtime="many"))
    content = raw(tmp_path)
    assert (status, content["records"], content["in_order"]) == (0, 60_001, True)


@pytest.mark.parametrize("damage", [1, 2, 3, 4])
def test_a_runtime_that_breaks_the_rules(start: Start, tmp_path: Path, damage: int) -> None:
    status, _, _ = finish(start("sh", "-c", "exit 3", runtime=str(damage)))
    assert status == (127 if damage == 4 else 3)
    content = raw(tmp_path)
    if damage in (1, 2):
        assert content["threads"][0]["lost"] > 0
        assert "impossible" in content["warnings"][0]
    if damage == 4:
        assert "panic" in content["warnings"][0]


def test_statistics(start: Start) -> None:
    _, _, errors = finish(start("-q", "--stats", "true"))
    assert re.search(r"^clew:   counters_used +100001  counters given out", errors, re.MULTILINE)
    assert "clew: memory, added up over processes:\n" in errors
    assert "reserved" not in errors


def test_pause(start: Start, tmp_path: Path) -> None:
    status, _, errors = finish(start("--pause", "0.3", "true"))
    assert status == 0
    content = raw(tmp_path)
    assert content["seconds"] >= 0.3
    assert f"process {content['pid']} waits 0.3 s" in errors


def test_filters_that_hold_nothing_are_told(start: Start, tmp_path: Path) -> None:
    _, _, errors = finish(start("--exclude", "no-such-library*", "--include", "true", "true"))
    assert "'no-such-library*' held nothing" in errors
    assert "'true' held nothing" not in errors


def wait_for_target(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"


def test_interrupts_reach_the_target_and_lose_nothing(start: Start, tmp_path: Path) -> None:
    handler = "n=$((n+1)); echo got $n; test $n = 3 && exit 5"
    script = f"trap '{handler}' INT; echo ready; while :; do sleep 0.01; done"
    process = start("sh", "-c", script, start_new_session=True)
    wait_for_target(process)
    assert process.stdout is not None
    for number in (1, 2, 3):
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == f"got {number}\n".encode()
    assert finish(process)[0] == 5
    assert raw(tmp_path)["exit_code"] == 5


def test_an_interrupt_that_ends_the_target_ends_the_recording(start: Start, tmp_path: Path) -> None:
    process = start("sh", "-c", "echo ready; exec sleep 100", start_new_session=True)
    wait_for_target(process)
    os.killpg(process.pid, signal.SIGINT)
    assert finish(process)[0] == 128 + signal.SIGINT
    assert raw(tmp_path)["signal"] == signal.SIGINT


@pytest.mark.parametrize(
    "stage", [pytest.param(stage, marks=pytest.mark.long if n % 2 else ()) for n, stage in enumerate(STAGES)]
)
def test_an_interrupt_at_any_stage_of_the_start(start: Start, tmp_path: Path, stage: str) -> None:
    environment = {"SIGNAL_AT": f"{stage} {signal.SIGINT}"}
    status, _, errors = finish(start("-q", "sleep", "100", environment=environment, start_new_session=True))
    assert status == 128 + signal.SIGINT
    if stage == "before the fork":
        assert errors == "clew: interrupted\n"
        assert not (tmp_path / "out.clew").exists()
    else:
        assert raw(tmp_path)["signal"] == signal.SIGINT


@pytest.mark.parametrize(
    "stage", [pytest.param(stage, marks=() if n % 2 else pytest.mark.long) for n, stage in enumerate(STAGES)]
)
def test_a_termination_at_any_stage_of_the_start(start: Start, tmp_path: Path, stage: str) -> None:
    environment = {"SIGNAL_AT": f"{stage} {signal.SIGTERM}", "SIGNAL_ALONE": "1"}
    status, _, errors = finish(start("-q", "sleep", "100", environment=environment))
    if stage == "before the fork":
        assert (status, errors) == (130, "clew: interrupted\n")
        assert not (tmp_path / "out.clew").exists()
    else:
        assert status == 128 + signal.SIGTERM
        assert raw(tmp_path)["signal"] == signal.SIGTERM


def test_termination_is_handed_on(start: Start, tmp_path: Path) -> None:
    process = start("sh", "-c", "trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done")
    wait_for_target(process)
    process.terminate()
    assert finish(process)[0] == 6
    assert raw(tmp_path)["exit_code"] == 6


def test_a_second_termination_leaves_the_target_alone(start: Start, tmp_path: Path) -> None:
    script = "trap 'echo no' TERM; echo ready; while test ! -e stop; do sleep 0.01; done; echo stopped"
    process = start("sh", "-c", script)
    wait_for_target(process)
    assert process.stdout is not None
    process.terminate()
    assert process.stdout.readline() == b"no\n"
    process.terminate()
    process.wait(60)
    assert process.returncode == 128 + signal.SIGTERM
    content = raw(tmp_path)
    assert (content["exit_code"], content["signal"]) == (None, None)
    assert any("goes on without it" in warning for warning in content["warnings"])
    (tmp_path / "stop").touch()
    assert b"stopped\n" in process.communicate(timeout=60)[0]


def test_the_target_goes_on_when_clew_is_killed(start: Start, tmp_path: Path) -> None:
    process = start("sh", "-c", "echo ready; while test ! -e stop; do sleep 0.01; done; echo stopped")
    wait_for_target(process)
    process.kill()
    process.wait(60)
    (tmp_path / "stop").touch()
    assert process.communicate(timeout=60)[0] == b"stopped\n"


def refuse(start: Start, tmp_path: Path, *arguments: str, **options: Any) -> tuple[int, str]:
    """Run what has to be refused: one line, no traceback, nothing left behind; status and line."""
    before = sorted(os.listdir(tmp_path))
    status, output, errors = finish(start(*arguments, **options))
    assert output == ""
    assert errors.startswith("clew: ")
    assert errors.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before
    return status, errors


def test_no_such_command(start: Start, tmp_path: Path) -> None:
    status, line = refuse(start, tmp_path, "no-such-command")
    assert status == 2
    assert "no-such-command: no such command" in line


def test_not_a_program(start: Start, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    (tmp_path / "text").chmod(0o755)
    status, line = refuse(start, tmp_path, "./text")
    assert status == 2
    assert "neither an ELF program nor a script" in line


def test_names_can_not_drive_the_terminal(start: Start, tmp_path: Path) -> None:
    _, line = refuse(start, tmp_path, "evil\x1b[2J\nclew: fine")
    assert "\x1b" not in line
    assert "\\x1b[2J\\n" in line


def test_output_exists(start: Start, tmp_path: Path) -> None:
    (tmp_path / "out.clew").mkdir()
    status, line = refuse(start, tmp_path, "true")
    assert status == 2
    assert "exists already" in line


def test_output_in_no_directory(start: Start, tmp_path: Path) -> None:
    status, line = refuse(start, tmp_path, "true", output="none/out.clew")
    assert status == 1
    assert "does not exist" in line


def test_output_not_writable(start: Start, tmp_path: Path) -> None:
    # Not even root makes a directory there.
    status, line = refuse(start, tmp_path, "true", output="/proc/out.clew")
    assert status == 1
    assert "/proc/out.clew" in line


def test_runtime_missing_or_of_another_version(start: Start, tmp_path: Path) -> None:
    status, line = refuse(start, tmp_path, "true", runtime="none")
    assert status == 1
    assert "make build" in line
    other = build_fake_runtime(tmp_path / "other", schema_hash=bytes(32))
    status, line = refuse(start, tmp_path, "true", environment={"CLEW_RUNTIME": str(other)})
    assert status == 1
    assert "another protocol" in line


@pytest.mark.parametrize(
    "arguments", [("--mode", "every"), ("--on-full", "explode"), ("--pause", "-1"), ("--nothing",), ()]
)
def test_usage(start: Start, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    status, line = refuse(start, tmp_path, *arguments, *(("true",) if arguments else ()))
    assert status == 2
    assert "--help" in line


def test_a_filter_that_means_nothing(start: Start, tmp_path: Path) -> None:
    assert refuse(start, tmp_path, "--include", "!x", "true")[0] == 2


def test_too_little_address_space(start: Start, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    status, line = refuse(start, tmp_path, "true", preexec_fn=limit)
    assert status == 1
    assert "ulimit -v" in line


def test_a_limited_address_space_still_records(start: Start, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    status, _, errors = finish(start("true", preexec_fn=limit))
    assert status == 0, errors
    assert raw(tmp_path)["records"] == 4


def test_full_disk(start: Start, tmp_path: Path) -> None:
    """On a file system of 256 KiB: what fits nowhere is told, and the trace is whole up to there."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("only root can mount a small file system")
    try:
        status, _, errors = finish(start("sh", "-c", "exit 4", runtime="many", output="small/out.clew"))
        assert status == 4
        assert "No space left" in errors
        content = raw(small)
        assert (content["records"], content["in_order"], content["exit_code"]) == (60_001, True, 4)
        (small / "fill").write_bytes(bytes(100_000))
        for path in (small / "out.clew").iterdir():
            path.unlink()
        (small / "out.clew").rmdir()
        with open(small / "fill2", "wb", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(4096))
                except OSError:
                    break
        status, _, errors = finish(start("true", output="small/out.clew"))
        assert status == 1
        assert "the disk is full" in errors
        assert errors.count("\n") == 1
        assert not (small / "out.clew").exists()
    finally:
        subprocess.run(["umount", small], check=True)


def test_the_folder_is_removed_meanwhile(start: Start, tmp_path: Path) -> None:
    script = "echo ready; while test ! -e stop; do sleep 0.01; done; exit 5"
    for what, told in (("out.clew", "the folder"), (f"out.clew/{JOURNAL_NAME}", f"its {JOURNAL_NAME}")):
        process = start("sh", "-c", script)
        wait_for_target(process)
        subprocess.run(["rm", "-r", tmp_path / what], check=True)
        (tmp_path / "stop").touch()
        status, _, errors = finish(process)
        assert status == 5
        assert errors == f"clew: out.clew: {told} was removed meanwhile; all that was recorded is lost\n"
        (tmp_path / "stop").unlink()


def test_the_folder_is_moved_meanwhile(start: Start, tmp_path: Path) -> None:
    process = start("-q", "sh", "-c", "echo ready; while test ! -e stop; do sleep 0.01; done; exit 5")
    wait_for_target(process)
    (tmp_path / "out.clew").rename(tmp_path / "moved.clew")
    (tmp_path / "stop").touch()
    status, _, errors = finish(process)
    assert status == 5
    assert f"out.clew: the folder was moved meanwhile, to {tmp_path / 'moved.clew'}; no trace" in errors
    assert f"`clew recover {tmp_path / 'moved.clew'}` makes a trace of it" in errors
    assert (tmp_path / "moved.clew" / JOURNAL_NAME).stat().st_size > 0


def test_the_default_name_is_the_programs(runtimes: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    environment["CLEW_RUNTIME"] = str(runtimes / "0" / "fake-runtime")
    for _ in range(2):
        subprocess.run([sys.executable, DRIVER, "record", "-q", "/bin/true"], cwd=tmp_path, env=environment, check=True)
    assert sorted(os.listdir(tmp_path)) == ["true-2.clew", "true.clew"]


def test_the_target_starts_soon(start: Start, tmp_path: Path) -> None:
    begun = time.monotonic()
    assert finish(start("-q", "true"))[0] == 0
    assert time.monotonic() - begun < 20
