"""Who a session of probes hears, what it is not to be told, and what becomes of it where it can't write."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.errors import ControlError
from clew.recording.control.sockets import ask
from tests.e2e import runs
from tests.e2e.probe_sessions import Sessions, told_program, turns_program
from tests.e2e.process_code import dirty_code

DESTROY = b'{"command": "destroy"}\n'
NOBODY = 65534
UNHEARD = (b"b''", b"ConnectionResetError", b"BrokenPipeError")
QUESTIONS: list[dict[str, Any]] = [
    {},
    {"command": "no"},
    {"command": ["status"]},
    {"command": "enable"},
    {"command": "enable", "event": None},
    {"command": "enable", "event": {"name": "b", "where": "turn", "path": "/bin/ls", "contexts": [[]]}},
    {"command": "enable", "event": {"name": "a_entry", "where": "turn", "pid": 1 << 40}},
    {"command": "disable", "name": 7},
    {"command": "add-context", "name": "a", "contexts": []},
    {"command": "add-context", "name": "a", "contexts": [{}]},
    {"command": "start", "output": "relative", "format": "json"},
    {"command": "start", "output": "/nowhere/there", "format": "json"},
    {"command": "attach"},
    {"command": "attach", "pid": "1"},
    {"command": "attach", "pid": -1},
    {"command": "detach", "pid": 1},
    {"command": "arrive", "pid": 1},
    {"command": "arrive", "pid": 1 << 21, "mask": []},
    {"command": "stop"},
]
SPEAK = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
try:
    connection.connect(sys.argv[1])
    connection.sendall(b'{"command": "destroy"}\\n')
    print(connection.recv(100))
except OSError as error:
    print(type(error).__name__)
"""


def make_session(sessions: Sessions) -> Path:
    """A session with an event of a file; its socket."""
    sessions.run("enable-event", "a", "--path", turns_program(), "--probe", "turn")
    return sessions.state / "clew" / "probes" / "default.socket"


@pytest.mark.parametrize("is_started", [False, pytest.param(True, marks=pytest.mark.long)])
def test_processes_of_a_session_are_not_heard(is_started: bool, sessions: Sessions) -> None:
    path = make_session(sessions)
    if is_started:
        sessions.run("start", "-o", "trace")
    speaks = [sys.executable, "-c", SPEAK, str(path)]
    done = sessions.run("probe", "run", "--", *speaks)
    assert done.stdout.strip() in UNHEARD
    # Nor are children that it has forked, and programs that these execute, where they are followed.
    if is_started:
        forks = f"import os; os.fork() and os._exit(os.waitstatus_to_exitcode(os.wait()[1])); {SPEAK}"
        for words in ([sys.executable, "-c", forks, str(path)], ["sh", "-c", '"$@"; true', "sh", *speaks]):
            done = sessions.run("probe", "run", "--", *words)
            assert done.stdout.strip() in UNHEARD
    assert sessions.listed()["is_active"] is is_started
    assert subprocess.run(speaks, capture_output=True, check=True).stdout.startswith(b"b'{")


def test_other_users_are_not_heard(sessions: Sessions) -> None:
    if os.geteuid():
        pytest.skip("other users were not tried: only root can be them")
    path = make_session(sessions)
    assert speak_as_nobody(path) == b"PermissionError"
    # Nor would they be if they could come to the socket.
    modes = {one: one.stat().st_mode for one in (path, path.parent)}
    try:
        for one in modes:
            one.chmod(0o777)
        assert speak_as_nobody(path, is_there=True) in UNHEARD
    finally:
        for one, mode in modes.items():
            one.chmod(mode)
    assert sessions.listed()["events"]


def speak_as_nobody(path: Path, *, is_there: bool = False) -> bytes:
    """What somebody else is answered who would destroy the session. `is_there`: in the socket's folder already."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        told = b"nothing"
        try:
            if is_there:
                os.chdir(path.parent)
            os.setuid(NOBODY)
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path.name if is_there else str(path))
                connection.sendall(DESTROY)
                told = repr(connection.recv(100)).encode()
        except OSError as error:
            told = type(error).__name__.encode()
        finally:
            os.write(write, told)
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as told_by_it:
        answer = told_by_it.read()
    os.waitpid(pid, 0)
    return answer


def test_what_is_no_command_is_refused(sessions: Sessions) -> None:
    path = make_session(sessions)
    for question in QUESTIONS:
        with pytest.raises(ControlError):
            ask(path, question)
            pytest.fail(f"{question}: was done")
    answer = ask(path, {"command": "status"})
    assert answer is not None
    assert [one["name"] for one in answer["events"]] == ["a"]
    assert not answer["is_active"]
    assert not answer["processes"]


def test_a_disk_that_is_full_ends_what_is_written_and_nothing_else(sessions: Sessions) -> None:
    with told_program() as program:
        sessions.run("enable-event", "a", "--pid", str(program.pid), "--probe", "turn")
        sessions.run("start", "--format", "json", "-o", "out.json")
        controller = sessions.listed()["controller_pid"]
        limits = resource.prlimit(controller, resource.RLIMIT_FSIZE)
        resource.prlimit(controller, resource.RLIMIT_FSIZE, (4096, limits[1]))
        assert dirty_code(program.pid)
        for n in range(200):
            program.turn(n)
        runs.wait_until(lambda: not sessions.listed()["is_active"])
        assert any("File too large" in text for text in sessions.listed()["remarks"])
        assert not dirty_code(program.pid)
        assert program.turn(1) == 8
        # There is nothing in the way of another try.
        resource.prlimit(controller, resource.RLIMIT_FSIZE, limits)
        sessions.run("start", "--format", "json", "-o", "other.json")
        program.turn(1)
        assert sessions.run("stop").stdout.strip() == str(sessions.folder / "other.json").encode()
    assert len((sessions.folder / "other.json").read_text().splitlines()) == 1


@pytest.mark.long
def test_a_process_that_can_not_be_stopped_is_left_later(sessions: Sessions) -> None:
    pipe = sessions.folder / "pipe"
    os.mkfifo(pipe)
    with told_program() as program:
        sessions.run("enable-event", "a", "--pid", str(program.pid), "--probe", "turn")
        sessions.run("start", "-o", "trace")
        program.turn(1)
        program.tell(f"vfork {pipe}")
        status = Path(f"/proc/{program.pid}/stat")
        runs.wait_until(lambda: status.read_text().rpartition(")")[2].split()[0] == "D")
        assert b"can't be stopped" in sessions.run("stop").stderr
        refused = sessions.run("start", status=1)
        assert b"has no probes until it could be stopped" in refused.stderr
        assert not sessions.listed()["is_active"]
        pipe.open("wb").close()
        assert program.answer() == "done"
        runs.wait_until(lambda: not dirty_code(program.pid))
        assert program.turn(2) == 15
        sessions.run("start")
        program.turn(3)
        assert sessions.event("a")["events"] == 2
        sessions.run("destroy")
        assert not dirty_code(program.pid)


def test_signals_destroy_a_session(sessions: Sessions) -> None:
    path = make_session(sessions)
    with told_program() as program:
        sessions.run("probe", "attach", str(program.pid))
        sessions.run("start", "-o", "trace")
        assert dirty_code(program.pid)
        os.kill(sessions.listed()["controller_pid"], 15)
        runs.wait_until(lambda: not path.exists())
        runs.wait_until(lambda: not dirty_code(program.pid))
        assert b"there is no session" in sessions.run("start", status=1).stderr


def test_a_socket_that_does_not_answer_is_told(sessions: Sessions) -> None:
    """Whoever made it: it is no session, and it keeps others from none."""
    folder = make_session(sessions).parent
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "other.socket"))
        listener.listen()
        listener.settimeout(20)
        with subprocess.Popen(
            runs.clew_command("list"), env=sessions.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as listing:
            connection, _ = listener.accept()
            assert connection.recv(100) == b'{"command": "status"}\n'
            connection.sendall(b'["no answer"]\n')
            connection.close()
            told, errors = listing.communicate(timeout=60)
    assert b"session default" in told
    assert b"session other: session other answered what it should not" in errors
