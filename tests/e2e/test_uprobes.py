"""The kernel's uprobes as a backend: the same events, of what the kernel can say. Skipped where it offers none."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.probing.locations.image_file import open_image
from clew.probing.locations.resolve import resolve_in_image
from clew.probing.locations.syntax import parse_location
from clew.process.perf_uprobes import UprobeHit, Uprobes
from clew.process.processors.chosen import native_processor
from tests.e2e.probed_program import calls_program, run_clew
from tests.programs.build import SOURCES, build_plain

OPTIONS = ["--function", "add", "--function", "descend", "--probe", "probed_calls.c:12", "-t", "rdi", "-t", "reg:rsi"]
OWN = ("duration",)


@pytest.fixture(scope="module", autouse=True)
def uprobes_are_there() -> None:
    """Skips where the kernel has none, or none for who runs this."""
    try:
        uprobes = Uprobes()
    except OSError as error:
        pytest.skip(f"no uprobes here, or not for who runs this: {error.strerror}")
    uprobes.close()


def run_trace(*words: str | Path, status: int = 3) -> subprocess.CompletedProcess[str]:
    return run_clew("trace", *words, status=status)


def events_by(backend: str, path: Path, command: list[str | Path], *options: str, status: int = 3) -> list[Any]:
    out = path / f"{backend}.json"
    run_trace(*options, "--backend", backend, "--format", "json", "-o", out, "--", *command, status=status)
    events = [json.loads(line) for line in out.read_text().splitlines()]
    assert not [one for one in events if "lost" in one]
    return events


def told(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (one["event"], one["sequence"], {name: value for name, value in one["fields"].items() if name not in OWN})
        for one in events
    ]


@pytest.mark.parametrize("options", [OPTIONS, [*OPTIONS, "--filter", "rdi % 2 == 1", "-r", "retval", "-r", "tid"]])
def test_the_same_events_come_by_the_kernel(options: list[str], tmp_path: Path) -> None:
    command: list[str | Path] = [calls_program()]
    usual = events_by("auto", tmp_path, command, *options)
    events = events_by("uprobe", tmp_path, command, *options)
    own = {one["tid"] for one in events}
    for one in [*usual, *events]:
        one["fields"].pop("tid", None)
    assert told(events) == told(usual) and len(own) == 1
    names = {one["comm"] for one in events}
    assert names == {one["comm"] for one in usual}
    assert all(one["fields"]["duration"] > 0 for one in events if one["kind"] == "return")


def test_all_that_descends_from_a_program_is_met(tmp_path: Path) -> None:
    program = build_plain(SOURCES / "probes/probed_children.c", "-O1", "-pthread")
    events = events_by("uprobe", tmp_path, [program], "--probe", "work", "-t", "rsi", status=0)
    by_process: Counter[int] = Counter(one["pid"] for one in events)
    first = min(by_process)
    assert by_process.pop(first) > 0
    assert list(by_process.values()) == [10] * 50
    assert {one["fields"]["rsi"] for one in events if one["pid"] != first} == {*range(50)}


@pytest.fixture
def threads() -> Iterator[subprocess.Popen[bytes]]:
    """A process three of whose threads call `leaf` all the while; it is well afterwards."""
    program = build_plain(SOURCES / "probes/probed_threads.c", "-O2", "-pthread")
    with subprocess.Popen([program, "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process
        written, _ = process.communicate(b"\n", timeout=60)
        assert (written, process.returncode) == (b"0\n", 0)


def test_threads_of_a_running_process_are_met_and_left(threads: subprocess.Popen[bytes], tmp_path: Path) -> None:
    out, target = tmp_path / "events.json", ["-p", str(threads.pid)]
    words = ["--backend", "uprobe", "--probe", "leaf", "-t", "rsi", "--format", "json", "-o", str(out)]
    run_trace(*words, *target, "--duration", "0.5", status=0)
    events = [one for one in map(json.loads, out.read_text().splitlines()) if "event" in one]
    tids = {int(tid) for tid in os.listdir(f"/proc/{threads.pid}/task")} - {threads.pid}
    assert events and {one["tid"] for one in events} <= tids and {one["fields"]["rsi"] for one in events} == {3}
    # Nothing of the kernel's stands in the way of what comes next.
    done = run_trace("--probe", "leaf", *target, "--duration", "0.1", status=0)
    assert "leaf" in done.stdout and done.stderr == ""


def test_what_has_no_room_is_counted(threads: subprocess.Popen[bytes]) -> None:
    program = Path(os.readlink(f"/proc/{threads.pid}/exe"))
    uprobes = Uprobes(ring_bytes=mmap.PAGESIZE)
    try:
        with open_image(program) as image:
            [place] = resolve_in_image(image, parse_location("leaf")).places
        tids = [int(tid) for tid in os.listdir(f"/proc/{threads.pid}/task")]
        uprobes.add(7, str(program), place.file_offset, tids, is_return=False)
        hits: list[UprobeHit] = []
        seen: set[int] = set()
        # Each ring begins again at its start many times; a busy machine may keep a thread from running for long.
        while uprobes.n_lost == 0 or len(hits) < 500 or len(seen) < 3:
            hits = [*hits[-500:], *uprobes.read()]
            seen |= {one.tid for one in hits}
    finally:
        uprobes.close()
    second = native_processor().definition.held_registers.index("rsi")
    assert {(one.pid, one.registers is not None and one.registers[second]) for one in hits} == {(threads.pid, 3)}
    assert {one.key for one in hits} == {7} and seen == {*tids} - {threads.pid}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-t", "str(rdi)"], "str(rdi): a uprobe takes registers, and what is worked out of them: no memory"),
        (["-t", "int:count:counter"], "no memory"),
        (["--filter", "*(int *)rdi == 1"], "no memory"),
        (["-t", "xmm0"], "xmm0: a uprobe takes registers"),
        (["-t", "backtrace"], "no backtrace"),
        (["-r", "entry(rdi)"], "entry(rdi): a uprobe takes registers"),
    ],
)
def test_what_the_kernel_does_not_say_is_refused(words: list[str], why: str) -> None:
    done = run_trace("--backend", "uprobe", "--function", "add", *words, "--", calls_program(), status=2)
    assert why in done.stderr and done.stdout == "", "the program has not run"


def test_no_byte_within_an_instruction_is_written_over() -> None:
    done = run_trace("--backend", "uprobe", "--probe", "main+1", "--probe", "add+0x1", "--", calls_program())
    assert "inside of the instruction" in done.stderr and "event" not in done.stdout
