"""Who is no guest of a session that has a process: the process itself, other users, and who tells nonsense."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clew.sessions.probes.sharing.channel import Channel, Message
from clew.sessions.probes.sharing.guests import VERSION_TOLD
from tests.e2e import runs
from tests.e2e.probe_sessions import Sessions, told_program
from tests.e2e.probe_tracing import BOTH, Tracing, is_left, tracing, turn_all
from tests.e2e.process_code import dirty_code
from tests.e2e.test_probe_sessions_refused import UNHEARD, speak_as_nobody

JOIN: dict[str, object] = {"do": "join", "pid": 0, "version": [], "choice": {"backend": "auto", "requires_jump": False}}
NONSENSE = [
    b"",
    b"no message",
    b"\xff" * 64,
    struct.pack("<III", 2, 0, 0) + b"[]",
    struct.pack("<III", 1 << 30, 0, 0),
    struct.pack("<III", 2, 0, 3) + b"{}",
]
WISHES: list[dict[str, object]] = [
    {},
    {"do": "add"},
    {"do": "add", "probes": [[0, {}]]},
    {"do": "add", "probes": [[-1, {}], 7]},
    {"do": "add", "probes": [[0, {"name": "a", "where": 3}]]},
    {"do": "remove", "indices": "all"},
    {"do": "remove", "indices": [-1, "0", 5]},
    {"do": "reply", "held": 1 << 70},
    {"do": "no such"},
]


def test_who_tells_nonsense_harms_nobody(sessions: Sessions) -> None:
    with told_program() as program, tracing(sessions, "first", program, *BOTH) as first:
        (path,) = (sessions.state / "clew").glob("*.probes")
        for data in NONSENSE:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.sendall(data)
        nobodys = JOIN | {"pid": 1, "version": VERSION_TOLD}
        for join in (JOIN | {"pid": program.pid}, nobodys, JOIN | {"pid": "no number"}):
            with spoken_to(path, join) as channel:
                message = hear(channel)
                assert message is None or message.do == "refused"
        with spoken_to(path, JOIN | {"pid": program.pid, "version": VERSION_TOLD}) as channel:
            joined = hear(channel)
            assert joined is not None
            assert joined.do == "joined"
            for fd in joined.fds:
                os.close(fd)
            for wish in WISHES:
                channel.send({"ask": 1} | wish)
            channel.send({"do": "read", "ask": 2})
            answers = []
            while (message := hear(channel)) is not None and message.told.get("to") != 2:
                answers += [message.told] if message.do == "answer" else []
            # What is left out is nothing that is answered, or nothing wrong: indices of none.
            assert len([one for one in answers if "error" in one]) == len(WISHES) - 2
        turn_all(program, range(100))
        assert not first.end()
        assert first.arguments() == list(range(100))
        runs.wait_until(lambda: is_left(sessions, program))


@contextmanager
def spoken_to(path: Path, first: dict[str, object]) -> Iterator[Channel]:
    """Somebody who says that first."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    channel = Channel(connection)
    try:
        channel.send(first)
        yield channel
    finally:
        channel.close()


def hear(channel: Channel) -> Message | None:
    """What is said next; None: nothing more."""
    deadline = time.monotonic() + 20
    while not channel.is_closed and time.monotonic() < deadline:
        message = channel.receive_one()
        if message is not None:
            return message
        channel.wait(0.1)
    return None


def test_the_program_itself_and_other_users_are_not_heard(sessions: Sessions) -> None:
    """Neither is answered, whatever they ask."""
    speak = (
        "import socket, sys, time\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "connection = socket.socket(socket.AF_UNIX)\n"
        "try:\n"
        "    connection.connect(sys.argv[1])\n"
        "    print(connection.recv(100), flush=True)\n"
        "except OSError as error:\n"
        "    print(type(error).__name__, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    path = sessions.folder / "link"
    with told_program(sys.executable, "-c", speak, str(path)) as program:
        tracer = Tracing(sessions, "first", program.pid, "--probe", "libc.so.6!connect")
        try:
            runs.wait_until(lambda: bool(dirty_code(program.pid)))
            (own,) = (sessions.state / "clew").glob("*.probes")
            path.symlink_to(own)
            assert program.ask("") in ("b''", "ConnectionResetError")
            if not os.geteuid():
                assert speak_as_nobody(own) == b"PermissionError"
                # Nor would they be if they could come to the socket.
                own.chmod(0o777)
                own.parent.chmod(0o777)
                assert speak_as_nobody(own, is_there=True) in UNHEARD
                own.parent.chmod(0o700)
            tracer.end()
        finally:
            tracer.process.kill()
            tracer.process.communicate()


def test_a_child_that_has_its_parent_s_probes_gets_no_others(sessions: Sessions) -> None:
    with told_program() as program, tracing(sessions, "first", program, *BOTH) as first:
        child = int(program.ask("fork 5"))
        refused = sessions.run("trace", "-p", str(child), *BOTH, status=1)
        assert b"is a forks' child of a process with probes" in refused.stderr
        assert program.ask("child") == "done"
        first.end()
        assert len([one for one in first.events() if one["pid"] == child]) == 5
