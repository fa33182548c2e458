"""The socket of a recording: who is heard, what bad questions get, and that nothing there ever waits."""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.address import Pid
from clew.errors import ControlError
from clew.recording.control import sockets as control_sockets
from clew.recording.control.server import MAX_CLIENTS, ControlServer
from clew.recording.control.sockets import ask, find_sessions, folder_to_listen_in, peer_of, remove_left


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sockets are made."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(control_sockets, "_folders", lambda: [tmp_path / "clew"])
    return tmp_path / "clew"


def do(question: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
    """Answers in three steps, as what has to wait does."""
    yield None
    yield None
    if question.get("command") == "fail":
        raise ControlError("it can't")
    if question.get("command") == "break down":
        raise RuntimeError("out of order")
    yield {"asked": question}


class Served:
    """A server and who listens for it."""

    def __init__(self, *, refused: bool = False) -> None:
        self.watched: set[int] = set()
        self.server = ControlServer(do, lambda pid: refused, self.watched.add, self.watched.discard)

    def connect(self) -> socket.socket:
        """Somebody who speaks to it."""
        assert self.server.path is not None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(os.fspath(self.server.path))
        return connection

    def answer(self, connection: socket.socket, line: bytes) -> dict[str, Any]:
        """What it answers a line; it is tended as often as that takes."""
        connection.sendall(line)
        for _ in range(10):
            self.server.advance()
            if select.select([connection], [], [], 0)[0]:
                answer: dict[str, Any] = json.loads(connection.recv(1 << 16))
                return answer
        raise AssertionError("no answer")


@pytest.fixture
def served() -> Iterator[Served]:
    one = Served()
    yield one
    one.server.close()
    assert not one.watched


def test_questions_are_answered_step_by_step(served: Served) -> None:
    with served.connect() as connection:
        assert served.answer(connection, b'{"command": "status"}\n') == {"asked": {"command": "status"}}
        assert not served.server.is_busy
        assert served.answer(connection, b'{"command": "fail"}\n') == {"error": "it can't"}
        assert "RuntimeError" in served.answer(connection, b'{"command": "break down"}\n')["error"]


@pytest.mark.parametrize("line", [b"nothing\n", b"[1, 2]\n", b"\n", b'"words"\n', b"\xff\xfe\n"])
def test_bad_questions_are_refused(served: Served, line: bytes) -> None:
    with served.connect() as connection:
        assert "error" in served.answer(connection, line)
        assert served.answer(connection, b'{"a": 1}\n') == {"asked": {"a": 1}}


def test_half_a_question_keeps_nobody_waiting(served: Served) -> None:
    with served.connect() as slow, served.connect() as quick:
        slow.sendall(b'{"command": ')
        assert served.answer(quick, b'{"b": 2}\n') == {"asked": {"b": 2}}
        assert served.answer(slow, b'"c"}\n') == {"asked": {"command": "c"}}


def test_recorded_processes_are_not_heard() -> None:
    served = Served(refused=True)
    with served.connect() as connection:
        served.server.advance()
        assert connection.recv(1) == b""
    served.server.close()


def test_no_more_are_heard_than_there_is_room_for(served: Served) -> None:
    connections = [served.connect() for _ in range(MAX_CLIENTS)]
    served.server.advance()
    assert len(served.watched) == 1 + MAX_CLIENTS
    for connection in connections:
        connection.close()
    served.server.advance()
    assert len(served.watched) == 1


def test_what_is_gone_is_no_session(served: Served, folder: Path) -> None:
    left = folder / "4711.socket"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(os.fspath(left))
    assert left in set(find_sessions())
    assert ask(left, {"command": "status"}) is None
    assert set(find_sessions()) == {served.server.path}


def test_a_folder_that_others_can_reach_is_not_used(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    assert folder_to_listen_in() == folder
    folder.chmod(0o755)
    assert folder_to_listen_in() is None
    assert list(find_sessions()) == []
    server = ControlServer(do, lambda pid: pid == Pid(0), lambda fd: None, lambda fd: None)
    assert server.path is None
    server.advance()
    server.close()


def test_the_peer_of_a_pair_is_who_made_it() -> None:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        assert peer_of(one) == peer_of(other) == (os.getpid(), os.geteuid())


def test_sockets_of_recordings_that_were_killed_go(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed, socket.socket(socket.AF_UNIX) as running:
        killed.bind(str(tmp_path / "1.socket"))
        running.bind(str(tmp_path / "2.socket"))
        running.listen(1)
        (tmp_path / "3.other").touch()
        remove_left(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["2.socket", "3.other"]
