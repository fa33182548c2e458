"""Probes where there is no room for a jump, in programs of Go, beside a debugger, and in one that may make no calls."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import struct
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from clew.address import Pid
from clew.errors import AttachError
from clew.probing.native import Technique
from clew.process.maps import read_maps
from clew.sessions.aggregate_table import AggregateWish
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ContextField, ProbeSpec
from tests.e2e.probed_program import PROBES, at_once, calls_of, calls_program, hears, points, started
from tests.e2e.process_code import dirty_code, read_code
from tests.programs.build import BIN, build_plain, may_set_probes

N_REQUESTS = 80
"""That the program of Go makes for a line."""
LINES = 3


@pytest.mark.parametrize("flags", ["-pie", "-no-pie"])
def test_all_that_a_jump_reaches_is_taken(flags: str) -> None:
    """Threads trap, and are led to where there is room. An instruction that names memory by its distance can't be
    executed there, which is told."""
    program = build_plain(PROBES / "probed_crowded.c", "-O2", flags, name=f"probed_crowded{flags}")
    with started(program) as running:
        native = running.ask("fill")
        code = read_code(running.pid)
        specs = [*calls_of("added"), *points("referring"), *points("referring+7")]
        with at_once(running.pid, specs, remarks=["there is no room where a copy of it could be"]) as one:
            assert {armed.technique for armed in one.target.armed} == {Technique.TRAP}
            said, events = hears(running, LINES, one)
        assert said == [native] * LINES
        counts = Counter(event["event"] for event in events)
        assert counts == dict.fromkeys(("added_entry", "added_exit", "referring+7"), 10 * LINES)
        assert read_code(running.pid) == code
        assert not dirty_code(running.pid)
        assert running.ask() == native


@pytest.fixture(scope="module")
def server() -> Path:
    if shutil.which("go") is None:
        pytest.skip("go is not installed: no program of Go was probed")
    source, program = PROBES / "probed_server.go", BIN / "probed_server"
    if not program.exists() or program.stat().st_mtime_ns < source.stat().st_mtime_ns:
        BIN.mkdir(exist_ok=True)
        subprocess.run(["go", "build", "-o", program, source], check=True)
    return program


@pytest.mark.parametrize("where", ["main.*", pytest.param("net/http.*", marks=pytest.mark.long)])
def test_functions_of_go(server: Path, where: str) -> None:
    """Goroutines change threads, their stacks are moved, and they are interrupted by signals; nothing stays behind."""

    counted = ProbeSpec(where, where, is_function=True, wish=AggregateWish([], None, None, 1, False))
    session = ProbeSession([counted, ProbeSpec("recovered", "main.recovered", is_function=True)])
    n_recovered = 0
    with started(server) as running:
        native = running.ask()
        code = read_code(running.pid)
        try:
            target = session.attach(Pid(running.pid))
            assert not target.remarks
            for _ in range(LINES):
                assert running.ask() == native
                batch = session.read()
                assert not batch.losses
                n_recovered += sum(len(table) for kind, table in batch.tables if kind.name.endswith("recovered_entry"))
            [(_, found)] = session.sums()
            returned = sum(found.read()["count"].to_pylist())
        finally:
            session.close()
        assert not session.left
        # Once for each call, though the stack is moved when some of them begin.
        assert n_recovered == LINES * N_REQUESTS
        assert returned > LINES * N_REQUESTS * (100 if where == "main.*" else 50)
        assert read_code(running.pid) == code
        assert not dirty_code(running.pid)
        assert running.ask() == native
        assert running.end() == 0


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_a_debugger_stops_where_a_probe_is(tmp_path: Path) -> None:
    """Its breakpoint lies over the jump, and is taken back; the program goes on with the probe, and then without."""
    program = build_plain(PROBES / "probes_hammered.c", "-O2", "-fno-inline", "-rdynamic", "-pthread")
    with started(program, "3") as running:
        code = read_code(running.pid)
        fields = (ContextField("n", "arg1"),)
        with at_once(running.pid, points("f_3_4", "f_1_1", fields=fields)) as one:
            address = next(armed.address for armed in one.target.armed if armed.name == "f_3_4")
            commands = [f"break *{address:#x}", "continue", 'printf "at %lx\\n", $pc', "continue", "bt 1", "detach"]
            words = [word for command in commands for word in ("-ex", command)]
            gdb = subprocess.run(
                ["gdb", "-nx", "-batch", "-p", str(running.pid), *words], capture_output=True, text=True, timeout=120
            )
            assert f"at {address:x}" in gdb.stdout, gdb.stdout + gdb.stderr
            assert "f_3_4" in gdb.stdout
            one.session.read()
            one.session.wait(0.2)
            names = {kind.name for kind, _ in one.session.read().tables}
            assert names == {"f_3_4", "f_1_1"}
        assert read_code(running.pid) == code
        running.tell("end")
        assert running.hear() == "wrong 0"


def test_the_heap_has_room_to_grow() -> None:
    """Of a program that lies low jumps lead up, to where brk(2) takes memory from."""
    program = calls_program()
    # Without luck: the heap begins right behind the program then.
    with started("setarch", "-R", program, "wait") as running, at_once(running.pid, points("add")):
        mapped = read_maps(Pid(running.pid))
        end = next(one.end for one in mapped if one.path == "[heap]")
        assert not [one for one in mapped if end <= one.start < end + (1 << 28)]


@pytest.fixture
def strict() -> Path:
    return build_plain(PROBES / "probed_strict.c", "-O2")


def test_a_program_that_may_make_no_calls_is_refused(strict: Path) -> None:
    """It goes on as if nothing had been."""
    with started(strict) as running:
        native = running.ask("strict")
        with pytest.raises(AttachError, match="strict seccomp"):
            ProbeSession(points("worked")).attach(Pid(running.pid))
        assert running.ask() == native
        assert running.end() == 0


def test_a_program_forbids_itself_all_calls_while_it_counts(strict: Path) -> None:
    """What is added up needs none. None is made in it either when the probes are taken out: what was mapped stays."""
    spec = ProbeSpec("worked", "worked", wish=AggregateWish([], None, None, 1, False))
    session = ProbeSession([spec])
    with started(strict) as running:
        code = read_code(running.pid)
        try:
            session.attach(Pid(running.pid))
            native = running.ask()
            assert [running.ask(line) for line in ("strict", "", "")] == [native] * 3
            [(_, found)] = session.sums()
            assert found.read()["count"].to_pylist() == [80]
        finally:
            session.close()
        assert ["seccomp" in text for text in session.left] == [True]
        assert read_code(running.pid) == code
        assert running.ask() == native
        assert running.end() == 0


@pytest.mark.parametrize("how", ["strict", "clockless"])
def test_events_end_where_a_program_forbids_itself_time_stamps(strict: Path, how: str) -> None:
    """By allowing itself hardly any calls, or outright. It is as ever, and that is told; no event comes back."""
    session = ProbeSession(points("worked"))
    with started(strict) as running:
        try:
            session.attach(Pid(running.pid))
            native = running.ask()
            running.tell(how)
            n_events = 0
            told: list[str] = []
            deadline = time.monotonic() + 30
            while not told and time.monotonic() < deadline:
                session.wait(0.02)
                n_events += sum(len(table) for _, table in session.read().tables)
                told = session.take_remarks()
            assert ["time stamps" in text for text in told] == [True]
            assert running.hear() == native
            session.remove([0])
            session.enable([0])
            assert running.ask() == native
            assert n_events == 20 and not session.read().tables
        finally:
            session.close()
        assert running.end() == 0


def set_uprobe(pid: int, program: Path, offset: int) -> int:
    """A probe of the kernel that counts in a process, at an offset of its program's file; its descriptor."""
    perf_event_open, attribute_bytes, exclude_kernel_and_hv = 298, 72, 3 << 5
    path = ctypes.create_string_buffer(os.fsencode(program))
    kind = int(Path("/sys/bus/event_source/devices/uprobe/type").read_text())
    head = (kind, attribute_bytes, 0, 0, 0, 0, exclude_kernel_and_hv, 0, 0)
    attributes = struct.pack("=IIQQQQQIIQQ", *head, ctypes.addressof(path), offset)
    descriptor: int = ctypes.CDLL(None).syscall(perf_event_open, attributes, pid, -1, -1, 0)
    assert descriptor >= 0
    return descriptor


@pytest.mark.skipif(not may_set_probes(), reason="no probes of the kernel can be set here: none was beside a probe")
@pytest.mark.parametrize("is_first", [True, False])
def test_a_probe_of_the_kernel_is_at_the_same_place(is_first: bool) -> None:
    """It keeps the place, whichever was there first, and the program goes on right; what is beside it is told."""
    program = calls_program()
    native = subprocess.run([program], capture_output=True, text=True, check=False).stdout.splitlines()
    symbols = subprocess.run(["nm", program], capture_output=True, check=True, text=True).stdout
    address = int(next(line for line in symbols.splitlines() if line.endswith(" T add")).split()[0], 16)
    with started(program, "waits") as running, contextlib.ExitStack() as opened:
        lines = Path(f"/proc/{running.pid}/maps").read_text().splitlines()
        start, offset = next((line.split()[0], line.split()[2]) for line in lines if " r-xp " in line)
        at = address - int(start.split("-")[0], 16) + int(offset, 16)

        def set_one() -> int:
            descriptor = set_uprobe(running.pid, program, at)
            opened.callback(os.close, descriptor)
            return descriptor

        descriptor = set_one() if is_first else -1
        session = ProbeSession(points("add", "descend"))
        try:
            target = session.attach(Pid(running.pid))
            assert ["breakpoint of somebody else's" in text for text in target.remarks] == [True] * is_first
            if not is_first:
                descriptor = set_one()
            running.tell()
            assert [running.hear() for _ in native] == native
            tables = session.read().tables
            assert {kind.name: len(table) for kind, table in tables} == {"descend": 7}
        finally:
            session.close()
        assert int.from_bytes(os.read(descriptor, 8), "little") == 5
        assert running.end() == 3


def test_a_program_that_may_have_no_time_stamps_is_probed(strict: Path) -> None:
    """What is added up needs none; events would be its end. The programs that it executes have none either."""
    counts = ProbeSpec("counted", "worked", wish=AggregateWish([], None, None, 1, False))
    session = ProbeSession([*points("worked"), counts])
    with started(strict) as running:
        native = running.ask("clockless")
        try:
            session.attach(Pid(running.pid))
            assert ["time stamps" in text for text in session.take_remarks()] == [True]
            assert running.ask() == native
            [(_, found)] = session.sums()
            assert found.read()["count"].to_pylist() == [20] and not session.read().tables
        finally:
            session.close()
        assert running.ask() == native
        assert running.end() == 0
