"""A session of Python's has its program in its hands, from the first instruction to the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import clew
from clew.errors import ClewError, ControlError, UsageError
from tests.e2e.runs import wait_until


def test_a_program_waits_runs_and_ends(called: Path, capfd: pytest.CaptureFixture[str]) -> None:
    native = subprocess.run([called, "3"], capture_output=True, text=True)
    with clew.spawn([called, "3"]) as session:
        assert session.state == "stopped"
        session.resume()
        assert session.wait(20) == native.returncode
        assert session.state == "ended"
        assert session.exit_code == native.returncode
        assert session.trace.summary()["totals"]["instructions"] > 1000
        assert not session.trace.verify()
    assert capfd.readouterr().out == native.stdout


def test_it_is_stopped_in_front_of_its_first_instruction(called: Path) -> None:
    with clew.spawn([called]) as session:
        (thread,) = session.threads
        assert thread.state == "stopped"
        assert thread.registers is not None
        loader = next(image for image in session.images if image.name.startswith("ld-linux"))
        assert loader.start <= thread.registers["rip"] < loader.end
        assert thread.backtrace()[0].image == loader.name
        assert session.name(thread.registers["rip"]).startswith(loader.name)


def test_a_session_that_is_left_leaves_nothing(called: Path) -> None:
    with clew.spawn(["sleep", "1000"]) as session:
        session.resume()
        assert session.state == "running"
    assert session.exit_code == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(session.pid, 0)
    with pytest.raises(clew.ClewError):
        session.resume()


def test_the_trace_stays_where_it_is_wanted(called: Path, tmp_path: Path) -> None:
    with clew.spawn([called, "2"], mode="full", output=tmp_path / "kept.clew") as session:
        session.resume()
        session.wait(20)
    trace = clew.Trace(tmp_path / "kept.clew")
    assert trace.mode == "full"
    assert not trace.verify()


def test_threads_are_told_with_where_they_are(called: Path) -> None:
    with clew.spawn([called, "100000000", "4"]) as session:
        session.resume()
        wait_until(lambda: len(session.threads) == 4)
        assert {thread.state for thread in session.threads} <= {"running", "waiting"}

        def are_all_in_run() -> bool:
            # One that was just made is on its way there.
            session.resume()
            session.pause()
            return all("run" in [frame.function for frame in thread.backtrace()] for thread in session.threads)

        wait_until(are_all_in_run)
        stopped = session.threads
        assert [thread.state for thread in stopped] == ["stopped"] * 4
        assert {thread.name for thread in stopped} == {"called"}
        for thread in stopped:
            functions = [frame.function for frame in thread.backtrace()]
            assert functions[-1] in ("_start", "clone3", "__clone3", "clone"), functions
        before = stopped[0].registers
        moved = session.step(stopped[0].tid)
        assert moved.tid == stopped[0].tid
        assert moved.registers != before
        session.resume()
        assert session.state == "running"


def test_a_process_that_was_attached_to_goes_on(called: Path) -> None:
    process = subprocess.Popen([called, "100000000"], stdout=subprocess.DEVNULL)
    try:
        with clew.attach_session(process.pid) as session:
            assert session.state == "running"
            session.pause()
            assert session.state == "stopped"
            assert "run" in [frame.function for frame in session.threads[0].backtrace()]
            session.resume()
        assert session.state == "detached"
        assert process.poll() is None
        with pytest.raises(clew.ClewError, match="goes on without it"):
            session.wait(1)
    finally:
        process.kill()
        process.wait()


def test_memory_is_read_and_written(called: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with clew.spawn([called, "1"]) as session:
        address = session.find("called!add")
        assert session.name(address + 2) == "called!add+0x2"
        code = session.read(address, 16)
        assert code in called.read_bytes()
        assert session.read(1, 8) == b""
        with pytest.raises(clew.ClewError):
            session.write(1, b"x")
        # push 5; pop rax; ret: what is written to code is what runs.
        session.write(address, b"\x6a\x05\x58\xc3")
        session.resume()
        session.wait(20)
    changed = int(capfd.readouterr().out)
    native = int(subprocess.run([called, "1"], capture_output=True, text=True).stdout)
    assert changed == native - (1 + 2 + 3) + 3 * 5


def test_what_was_recorded_so_far_is_a_trace(called: Path, tmp_path: Path) -> None:
    def calls_of(trace: clew.Trace, function: str) -> int:
        rows = trace.report(by="function", n=10_000)
        return sum(int(row["calls"]) for row in rows if row["function"] == function)

    with clew.spawn([called, "100000000"]) as session:
        probe = session.on_call("scale", lambda call: None)
        session.resume()
        wait_until(lambda: probe.n_calls > 5)
        running = session.snapshot()
        probe.remove()
        session.pause()
        stopped = session.snapshot(tmp_path / "stopped.clew")
        assert not stopped.verify()
        again = session.snapshot()
        assert stopped.summary()["totals"] == again.summary()["totals"]
        assert calls_of(stopped, "scale") >= calls_of(running, "scale") > 5
        assert clew.diff(stopped, again).is_equal
        session.resume()
    assert not clew.Trace(tmp_path / "stopped.clew").verify()


def test_several_sessions_at_once(called: Path) -> None:
    with clew.spawn([called, "2"]) as one, clew.spawn([called, "3"]) as other:
        assert one.pid != other.pid
        other.resume()
        assert other.wait(20) == subprocess.run([called, "3"], capture_output=True).returncode
        assert one.state == "stopped"
        one.resume()
        assert one.wait(20) == subprocess.run([called, "2"], capture_output=True).returncode


def test_waiting_has_an_end(called: Path) -> None:
    with clew.spawn(["sleep", "1000"]) as session:
        session.resume()
        with pytest.raises(TimeoutError):
            session.wait(0.2)


def test_what_can_not_be_started_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(clew.ClewError, match="no such"):
        clew.spawn([tmp_path / "nothing"])
    with pytest.raises(clew.ClewError):
        clew.attach_session(1 << 22)


def test_a_process_goes_on_when_python_ends(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "30"])
    try:
        script = f"import clew, os; s = clew.attach_session({process.pid}); os._exit(0)"
        # Nobody is there to remove the session's folder.
        subprocess.run([sys.executable, "-c", script], check=True, env=os.environ | {"TMPDIR": str(tmp_path)})
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_the_program_goes_on_when_python_is_killed_in_a_callback(called: Path, tmp_path: Path) -> None:
    told, printed = tmp_path / "told", tmp_path / "printed"
    script = (
        "import clew, pathlib, sys, time\n"
        f"s = clew.spawn([{str(called)!r}, '2'])\n"
        f"s.on_call('scale', lambda call: (pathlib.Path({str(told)!r}).write_text(str(s.pid)), time.sleep(100)))\n"
        "s.resume()\n"
        "s.wait()\n"
    )
    with printed.open("w") as output:
        environment = os.environ | {"TMPDIR": str(tmp_path)}
        python = subprocess.Popen([sys.executable, "-c", script], stdout=output, env=environment)
    try:
        wait_until(lambda: told.exists() and told.read_text() != "")
    finally:
        python.kill()
        python.wait()
    native = subprocess.run([called, "2"], capture_output=True, text=True).stdout
    wait_until(lambda: printed.read_text() == native, 60.0)


def test_standard_streams_are_given_as_to_subprocess(tmp_path: Path) -> None:
    copies = "import sys, os; print(os.getcwd()); print(sys.stdin.read()[::-1]); print('told', file=sys.stderr)"
    command = [sys.executable, "-c", copies]
    pipe = subprocess.PIPE
    with clew.spawn(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, cwd=tmp_path, follow=False) as session:
        assert session.stdin is not None and session.stdout is not None and session.stderr is None
        session.resume()
        session.stdin.write(b"abc")
        session.stdin.close()
        assert session.stdout.read() in (f"{tmp_path}\ncba\ntold\n".encode(), f"told\n{tmp_path}\ncba\n".encode())
        assert session.wait(60) == 0
    log = tmp_path / "log"
    with (
        log.open("wb") as file,
        clew.spawn(["/bin/sh", "-c", "echo a; echo b >&2"], stdout=file, stderr=file) as session,
    ):
        session.resume()
        session.wait(60)
    assert log.read_bytes() == b"a\nb\n"
    with clew.spawn(["/bin/cat"], stdin=subprocess.DEVNULL, stdout=pipe) as session:
        session.resume()
        assert session.stdout is not None and session.stdout.read() == b""


def test_what_is_no_stream_or_directory_is_refused(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(UsageError, match="stdout: neither a file nor a descriptor"):
        clew.spawn(["/bin/true"], stdin=subprocess.PIPE, stdout="log")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no directory that can be entered"):
        clew.spawn(["/bin/true"], cwd=tmp_path / "none")
    with pytest.raises(ClewError):
        clew.spawn(["/none/at/all"], stdin=subprocess.PIPE)
    assert set(os.listdir("/proc/self/fd")) == before


def test_registers_of_a_stopped_thread_are_set(called: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with clew.spawn([called, "1"]) as session:
        start = session.find("add")
        session._target.ask({"command": "break", "address": start})
        session.resume()
        wait_until(lambda: session.state == "stopped")
        thread = session.threads[0]
        assert thread.registers is not None and thread.registers["rip"] == start
        before = thread.registers["rdi"] + thread.registers["rsi"]
        session.set_registers(thread.tid, {"rdi": 1000, "rsi": 2**64 - 1})
        told = session.threads[0].registers
        assert told is not None and (told["rdi"], told["rsi"]) == (1000, 2**64 - 1)
        while session.threads[0].registers["rip"] - start < 16 and session.threads[0].registers["rax"] != 999:  # type: ignore[index]
            session.step()
        assert session.threads[0].registers["rax"] == 999, before  # type: ignore[index]
        for name in ("rip", "none"):
            with pytest.raises(ControlError, match="can't be set"):
                session.set_registers(thread.tid, {name: 1})
        session._target.ask({"command": "delete", "address": start})
        session.set_registers(thread.tid, {"rax": 5})
        session.resume()
        session.wait(60)
        with pytest.raises(ControlError):
            session.set_registers(thread.tid, {"rax": 5})


def test_calls_are_summed_up_again_and_again(called: Path) -> None:
    told: list[dict[str, int]] = []
    with clew.spawn([called, "3000000", "2"]) as session:
        session.on_call_summary(told.append, interval=0.05)
        with pytest.raises(UsageError, match="already"):
            session.on_call_summary(told.append)
        session.resume()
        session.wait(60)
        folders = list(session._scratch().iterdir())
    assert len(told) > 1
    assert sum(part.get("called!add", 0) for part in told) == 3 * 2 * 3_000_000
    assert len(folders) < 4, "what was looked at is let go of"


def test_what_a_callback_of_summaries_raises_is_told(called: Path) -> None:
    def fail(calls: dict[str, int]) -> None:
        raise LookupError

    with pytest.raises(LookupError), clew.spawn([called, "3"]) as session:
        session.on_call_summary(fail, interval=0.01)
        session.resume()
        while True:
            session.wait(60)
            time.sleep(0.01)


def test_calls_are_summed_up_from_one_time_to_the_next(called: Path) -> None:
    with clew.spawn([called, "20"]) as session:
        first = session.call_summary()
        assert "called!add" not in first
        session.on_call("add", lambda call: halves.append(session.call_summary()) if call.arguments[0] == 10 else None)
        halves: list[dict[str, int]] = []
        session.resume()
        session.wait(60)
        rest = session.call_summary()
        assert session.call_summary() == {}
    parts = [first, *halves, rest]
    assert sum(part.get("called!add", 0) for part in parts) == 60
    assert sum(part.get("called!descend", 0) for part in parts) == 80


def test_what_has_ended_is_killed_no_more(called: Path) -> None:
    with clew.spawn([called, "1"], stdout=subprocess.DEVNULL) as session:
        session.resume()
        assert session.wait(60) is not None
        session.kill()
        session.kill()
    with subprocess.Popen([called, "1000000000"], stdout=subprocess.DEVNULL) as program:
        with clew.attach_session(program.pid) as session:
            session.detach()
            with pytest.raises(ControlError):
                session.kill()
        assert program.poll() is None
        program.kill()
