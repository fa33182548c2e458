"""Probes in the code of live processes: what programs do stays the same, and each execution is told.

Counts follow from what the programs do; what they print is compared with native runs.
"""

from __future__ import annotations

import collections
import random
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.address import Pid
from clew.errors import AttachError
from clew.sessions.probes.probe_launch import ProbedCommand
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ProbeSpec
from tests.e2e.process_code import maps_text, read_code_of

SOURCES = Path(__file__).parents[1] / "programs" / "probes"
KINDS = 16
COUNT = 16
FIBONACCI_CALLS = 89
"""The compiler makes a loop of the second of two recursive calls: recursive(10) is called as often as fib(11) says."""
COUNTS = {
    **dict.fromkeys(("one_first", "one_second", "one_third", "two_first", "two_second", "two_rest", "chosen"), COUNT),
    # `chosen` calls each of these for two of its arguments, and `may_leave` leaves to `add_one` where they are odd.
    **dict.fromkeys(("leaf_red", "may_leave", "loops"), COUNT + 2),
    "add_one": COUNT // 2 + 2 + 2,
    "recursive": FIBONACCI_CALLS,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs are."""
    made = tmp_path_factory.mktemp("probed")
    for name in ("probes_small", "probes_hammered"):
        flags = ["-O2", "-fno-inline", "-rdynamic", "-pthread"]
        subprocess.run(["gcc", *flags, "-o", made / name, SOURCES / f"{name}.c"], check=True)
    return made


def functions(*names: str) -> list[ProbeSpec]:
    """Probes of calls of functions."""
    return [ProbeSpec(name, name, is_function=True) for name in names]


def run(specs: Sequence[ProbeSpec], command: Sequence[str]) -> tuple[dict[str, int], int]:
    """Run a command with probes; how often each event came, and its status."""
    session = ProbeSession(specs)
    counts: collections.Counter[str] = collections.Counter()
    try:
        probed = ProbedCommand(session, command)
        assert not session.targets[0].remarks
        while not probed.wait(0):
            session.wait(0.02)
            counts += count(session)
        counts += count(session)
    finally:
        session.close()
    assert probed.exit_status is not None
    return counts, probed.exit_status


def count(session: ProbeSession) -> collections.Counter[str]:
    """How many events came of each name."""
    return collections.Counter({kind.name: len(table) for kind, table in session.read().tables})


@contextmanager
def hammered(folder: Path, n_threads: int) -> Iterator[subprocess.Popen[str]]:
    """The program whose threads check what functions return; that none returned anything wrong."""
    program = subprocess.Popen(
        [folder / "probes_hammered", str(n_threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    try:
        assert program.stdout.readline() == "ready\n"
        yield program
        output, _ = program.communicate("end\n", timeout=60)
        assert (output, program.returncode) == ("wrong 0\n", 0)
    finally:
        program.kill()
        program.wait()


@contextmanager
def attached(specs: Sequence[ProbeSpec], pid: int) -> Iterator[ProbeSession]:
    session = ProbeSession(specs)
    try:
        session.attach(Pid(pid))
        yield session
    finally:
        session.close()


def test_calls_are_counted_exactly(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Functions of one and two bytes beside each other, recursive ones, such as leave by jumps: all at once."""
    command = [str(folder / "probes_small"), str(COUNT)]
    native = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts, status = run(functions(*COUNTS), command)
    assert status == 0
    assert capfd.readouterr().out == native
    assert counts == {f"{name}_{end}": n for name, n in COUNTS.items() for end in ("entry", "exit")}


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_one_function_alone(folder: Path, name: str) -> None:
    counts, status = run(functions(name), [str(folder / "probes_small"), str(COUNT)])
    assert status == 0
    assert counts == {f"{name}_entry": COUNTS[name], f"{name}_exit": COUNTS[name]}


def test_probes_at_one_place_are_all_told(folder: Path) -> None:
    """Two probes of a function, and one of its first instruction."""
    specs = [*functions("leaf_red"), ProbeSpec("again", "leaf_red", True), ProbeSpec("point", "leaf_red")]
    counts, _ = run(specs, [str(folder / "probes_small"), str(COUNT)])
    names = ("leaf_red_entry", "leaf_red_exit", "again_entry", "again_exit", "point")
    assert counts == dict.fromkeys(names, COUNTS["leaf_red"])


@pytest.mark.parametrize("n_cycles", [12, pytest.param(150, marks=[pytest.mark.stress, pytest.mark.timeout(3600)])])
def test_probes_come_and_go_while_threads_run(folder: Path, n_cycles: int) -> None:
    """No thread returns anything wrong, none is held for it, and the code is as it was in the end."""
    chosen = random.Random(n_cycles)
    with hammered(folder, 8) as program:
        before, code = maps_text(program.pid), read_code_of(program.pid, folder / "probes_hammered")
        with attached([ProbeSpec(f"f{kind}", f"f_{kind}_*", True) for kind in range(KINDS)], program.pid) as session:
            target = session.owned[0]
            assert len(target.armed) >= 2 * KINDS * 10
            # What hears of libraries is in the dynamic linker.
            n_held = target.n_held
            assert n_held <= 1
            absent: set[int] = set()
            for _ in range(n_cycles):
                now = set(chosen.sample(range(KINDS), chosen.randrange(1, KINDS)))
                session.remove(now - absent)
                session.enable(absent - now)
                absent = now
                assert {one.name for one in target.armed} == {f"f{kind}" for kind in range(KINDS) if kind not in absent}
                session.read()
            assert target.n_held == n_held
        assert maps_text(program.pid) == before
        assert read_code_of(program.pid, folder / "probes_hammered") == code


@pytest.mark.parametrize("n_times", [5, pytest.param(50, marks=pytest.mark.stress)])
def test_left_while_threads_are_in_probed_code(folder: Path, n_times: int) -> None:
    with hammered(folder, 6) as program:
        before = maps_text(program.pid)
        for _ in range(n_times):
            with attached(functions("f_*"), program.pid) as session:
                time.sleep(0.01)
                session.read()
            assert program.poll() is None
            assert not session.left
            assert maps_text(program.pid) == before


def test_a_second_session_of_a_thread_is_told_of_the_first(folder: Path) -> None:
    """Which would have to have the second one's probes, and can't while it begins; the first one's probes go on."""
    with hammered(folder, 2) as program, attached(functions("f_1_3"), program.pid) as session:
        with pytest.raises(AttachError, match="in this very thread"):
            ProbeSession(functions("f_1_3")).attach(Pid(program.pid))
        time.sleep(0.05)
        assert sum(count(session).values()) > 0


def test_a_jump_of_somebody_else_is_displaced(folder: Path) -> None:
    """It is executed behind the probe, and is there again in the end."""
    with hammered(folder, 1) as program:
        with attached(functions("main", "f_2_1"), program.pid) as session:
            at, target = [
                next(one.address for one in session.targets[0].armed if (one.name, one.role) == (name, "entry"))
                for name in ("main", "f_2_1")
            ]
        jump = b"\xe9" + (target - at - 5).to_bytes(4, "little", signed=True)
        with open(f"/proc/{program.pid}/mem", "r+b", buffering=0) as memory:
            # Nobody calls it any more.
            memory.seek(at)
            memory.write(jump)
            with attached([ProbeSpec("point", "main")], program.pid) as session:
                (armed,) = session.targets[0].armed
                assert "somebody else's jump" in armed.reason
                memory.seek(at)
                assert memory.read(5) != jump
            memory.seek(at)
            assert memory.read(5) == jump


def test_a_breakpoint_of_somebody_else_is_refused(folder: Path) -> None:
    """A debugger's int3 stays what it is; other functions are probed."""
    with hammered(folder, 1) as program:
        with attached(functions("main"), program.pid) as session:
            address = next(one.address for one in session.targets[0].armed if one.role == "entry")
        # Nobody calls it any more.
        with open(f"/proc/{program.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            memory.write(b"\xcc")
        with attached(functions("main", "f_2_1"), program.pid) as session:
            (remark,) = session.targets[0].remarks
            assert remark.startswith("main: ")
            assert "breakpoint" in remark
            assert {one.name for one in session.targets[0].armed} == {"f_2_1"}
