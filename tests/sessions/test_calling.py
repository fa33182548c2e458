"""Functions of the program that Python has a stopped thread call: they do what they do, and the thread is as it was."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

import clew
from clew.errors import ControlError, UsageError
from tests.programs.build import SOURCES, build_plain


@pytest.fixture(scope="module")
def calling() -> Path:
    """The program of tests/programs/sessions/calling.c."""
    return build_plain(SOURCES / "sessions/calling.c", "-O1", "-g", "-pthread")


@pytest.fixture(scope="module")
def alone(calling: Path) -> list[str]:
    """What it writes when nobody calls anything."""
    return subprocess.run([calling, "300"], capture_output=True, text=True, check=True, timeout=60).stdout.split()


def wait_until_both_run(session: clew.Session) -> None:
    """Until both threads compute: one that its C library has only just made is not ready for all functions."""
    for _ in range(1000):
        if int.from_bytes(session.read(session.find("n_working"), 4), "little") == 2:
            return
        time.sleep(0.01)
    raise AssertionError("its threads have not begun")


@pytest.mark.parametrize("mode", ["counts", pytest.param("full", marks=pytest.mark.long)])
def test_calls_change_nothing_else(calling: Path, alone: list[str], mode: str, tmp_path: Path) -> None:
    output = tmp_path / "called.clew"
    # However fast it is, it is there until it is told to end.
    words: list[str | Path] = [calling, "300", "waits"]
    with clew.spawn(words, mode=mode, stdout=subprocess.PIPE, output=output) as session:
        stream = session.follow(events={"call"}) if mode == "full" else None
        if stream is not None:
            session.on_receive(lambda batch: None)
        session.resume()
        wait_until_both_run(session)
        n_calls = 0
        for number in range(12):
            time.sleep(0.02)
            session.pause()
            before = {thread.tid: thread.registers for thread in session.threads}
            stopped = [tid for tid, registers in before.items() if registers is not None]
            tid = stopped[number % len(stopped)]
            assert session.call("mix", 1, 2, 3, 4, 5, 6, tid=tid) == 654321
            assert session.call("scale", 2.5, 4, 0.25, returns=float, tid=tid) == 10.25
            assert session.call("deeper", 300, tid=tid) == 300
            after = next(thread.registers for thread in session.threads if thread.tid == tid)
            assert session.state == "stopped" and after == before[tid]
            n_calls += 2
            session.resume()
        session.write(session.find("is_over"), b"\1\0\0\0")
        assert session.wait(60) == 0
        assert session.stdout is not None
        first, second, n_called = session.stdout.read().split()
    assert [first.decode(), second.decode()] == alone[:2] and int(n_called) == n_calls
    assert clew.Trace(output).verify() == []


def test_memory_is_allocated_and_given_back(calling: Path) -> None:
    with clew.spawn([calling], stdout=subprocess.DEVNULL) as session:
        session.resume()
        wait_until_both_run(session)
        session.pause()
        place = session.allocate(8192)
        session.write(place, b"twelve chars\0")
        assert session.call("length", place) == 12
        assert session.call("format", place + 4096, 2.5, 7) == 10
        assert session.read(place + 4096, 11) == b"2.50 and 7\0"
        code = session.allocate(4096, protection="rx")
        session.write(code, bytes.fromhex("488d047fc3"))  # lea rax, [rdi + rdi*2]; ret
        assert session.call(code, 14) == 42
        session.free(place, 8192)
        assert session.read(place, 1) == b""
        session.kill()


def test_probes_and_signals_come_meanwhile(calling: Path) -> None:
    with clew.spawn([calling], stdout=subprocess.DEVNULL) as session:
        seen: list[int] = []

        @session.on_call("mix")
        def note(call: object) -> None:
            seen.append(call.arguments[0])  # type: ignore[attr-defined]

        session.resume()
        wait_until_both_run(session)
        session.pause()
        assert session.call("mix", 7, 0, 0, 0, 0, 0) == 7
        assert seen == [7]
        # Handlers return by the same code while it runs.
        with pytest.raises(ControlError, match="not come back"):
            session.call("forever", timeout=0.2)
        session.write(session.find("is_over"), b"\1\0\0\0")
        session.resume()
        time.sleep(0.1)
        session.kill()


def test_what_can_not_be_called_is_told(calling: Path) -> None:
    with clew.spawn([calling], stdout=subprocess.DEVNULL) as session:
        session.resume()
        wait_until_both_run(session)
        with pytest.raises(ControlError, match="pause"):
            session.call("mix", 1)
        session.pause()
        with pytest.raises(UsageError, match="at most 6"):
            session.call("mix", *range(7))
        with pytest.raises(UsageError, match="at most 8"):
            session.call("scale", *([1.0] * 9))
        with pytest.raises(ControlError, match="nothing that is loaded"):
            session.call("nowhere_at_all")
        session.kill()
    with clew.spawn(["/bin/sleep", "20"]) as session:
        session.resume()
        time.sleep(0.2)
        session.pause()
        with pytest.raises(ControlError, match=r"system call|no thread"):
            session.call(session.find("libc.so.6!getpid"))
        session.kill()


@pytest.mark.parametrize(
    ("mode", "n_threads", "turns"),
    [("counts", 1, 40), ("full", 3, 10), pytest.param("full", 3, 40, marks=pytest.mark.long)],
)
def test_a_callback_has_its_thread_call_functions(called: Path, mode: str, n_threads: int, turns: int) -> None:
    expected = subprocess.run([called, str(turns), str(n_threads)], capture_output=True, check=False, timeout=60)
    results: list[tuple[int | float, ...]] = []
    met: list[int] = []
    with clew.spawn([called, str(turns), str(n_threads)], mode=mode, stdout=subprocess.PIPE) as session:
        # What the function comes to meanwhile calls nobody.
        session.on_call("add", lambda call: met.append(call.arguments[0]), condition="arg1 == 1000")
        log = session.log_calls("add", capture=["arg1"], condition="arg1 >= 1000")

        @session.on_call("handle", capture="*(int*)arg1")
        def ask(call: clew.Call) -> None:
            before = dict(call.registers)
            first = session.call("called!add", 1000, call["*(int*)arg1"], tid=call.tid)
            second = session.call("called!scale", 3, 1.5, 0.25, tid=call.tid, returns=float)
            results.append((first, second))
            assert dict(call.registers) == before and call.arguments[1] == 200

        @session.on_return("descend", condition="retval == 3")
        def come_back(call: clew.Call) -> None:
            assert session.call("called!add", 2000, 1, tid=call.tid) == 2001

        session.resume()
        assert session.wait(120) == expected.returncode
        assert session.stdout is not None and session.stdout.read() == expected.stdout
        assert not session.trace.verify()
        assert sorted(log.read()["arg1"].to_pylist()) == [1000] * turns * n_threads + [2000] * turns * n_threads
    wanted = [(1000 + number, 4.75) for number in range(turns) for _ in range(n_threads)]
    assert sorted(results) == wanted and not met


def test_a_function_that_does_not_come_back_keeps_no_callback(called: Path) -> None:
    with clew.spawn([called, "100000000"], stdout=subprocess.DEVNULL) as session:
        said: list[str] = []

        @session.on_call("add")
        def ask(call: clew.Call) -> None:
            with pytest.raises(ControlError) as told:
                session.call("called!turn" if said else "libc.so.6!pause", tid=call.tid, timeout=0.3)
            said.append(told.value.message)

        session.resume()
        deadline = time.monotonic() + 30
        while not said and time.monotonic() < deadline:
            time.sleep(0.05)
        assert said and "has not come back" in said[0]
        session.kill()
