"""Where sessions are found: names that can be none, and who has one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.errors import ControlError, UsageError
from clew.recording.control import sockets
from clew.sessions.probes.background.state_folder import find_names, place_of


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(sockets, "_folders", lambda: [Path(folder) / "clew", Path(folder) / "clew-2"])
        yield Path(folder)


def test_what_names_can_be() -> None:
    assert place_of("a-b.c_9").name == "a-b.c_9"
    for name in ("", ".", "..", "../a", "a/b", "a b", "-a", "a" * 49, "a\n", "\u00e4"):
        with pytest.raises(UsageError):
            place_of(name)


def test_a_name_is_had_once_until_it_is_let_go() -> None:
    place = place_of("one")
    log = place.take()
    assert log is not None
    os.write(log, b"told")
    assert place.take() is None
    # The log of one that was killed stays, and is the next one's.
    os.close(log)
    again = place.take()
    assert again is not None
    assert place.log.read_bytes() == b""
    # Who takes a log away that somebody waits for does not let two have the name.
    place.log.unlink()
    other = place.take()
    assert other is not None
    assert place.take() is None
    os.close(again)
    os.close(other)


def test_sessions_are_named_by_their_sockets() -> None:
    assert find_names() == []
    for name in ("b", "a.socket"):
        place_of(name).socket.touch()
    place_of("b").socket.with_name("no name.socket").touch()
    place_of("c").log.touch()
    assert find_names() == ["a.socket", "b"]


def test_nobody_else_can_reach_into_the_folder(state: Path) -> None:
    socket = place_of("a").socket
    for folder in (socket.parent, socket.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    (state / "clew").chmod(0o777)
    # It is somebody's that is no one's alone: another place is taken.
    assert place_of("a").socket.parent.parent == state / "clew-2"


def test_a_path_that_no_socket_can_have_is_told(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "_folders", lambda: [state / ("d" * 100)])
    with pytest.raises(ControlError, match="XDG_RUNTIME_DIR"):
        place_of("a")
