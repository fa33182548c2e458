"""What a page may tell a recorder: from whom it is taken, what is refused, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.address import Pid
from clew.errors import ControlError
from clew.recording.control import client as control_client
from clew.recording.control.client import COMMAND_ARGUMENTS
from clew.recording.control.commands import COMMANDS
from clew.server.app import make_app
from clew.server.live_control import (
    MAX_BODY_BYTES,
    MAX_TOLD_FILTERS,
    MAX_TOLD_THREADS,
    MAX_WORD_LENGTH,
    LiveControl,
)
from tests.unit.server.asking import LOOPBACK, TOKEN, Answer, ask

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from clew.server.live_session import LiveSession

PATH = "/api/live/control"
RECORDER, TARGET = 4_000_000, 4_000_001
HEADERS = (("Host", "127.0.0.1:7777"), ("Authorization", f"Bearer {TOKEN}"))


class Recorder:
    """Answers as a recorder would, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.process = {
            "pid": TARGET,
            "executable": "/made/up\udcff",
            "is_held": True,
            "breakpoints": [0xFFFF_FFFF_FFFF],
            "threads": [
                {"tid": 100_000 + number, "reason": "asked", "registers": {"rip": number, "rflags": 2**64 - 1}}
                for number in range(MAX_TOLD_THREADS + 5)
            ],
            "elsewhere": [{"tid": 1, "system_call": 0}, {"tid": 2, "system_call": None}],
        }
        self.process["threads"][-1]["reason"] = "breakpoint"  # type: ignore[index]

    def answer(self, path: Path, question: dict[str, Any]) -> dict[str, Any]:
        """In the place of `clew.recording.control_sockets.ask`."""
        assert path.stem == str(RECORDER)
        self.asked.append(question)
        if question["command"] == "exclude":
            return {"places": 3}
        if question["command"] == "step":
            raise ControlError("thread 7 runs \udcfe")
        return {
            "controller_pid": RECORDER,
            "mode": "full",
            "budget": 5,
            "is_paused": False,
            "include": [],
            "exclude": [str(number) for number in range(MAX_TOLD_FILTERS + 1)],
            # Copied: whoever asks changes it.
            "processes": json.loads(json.dumps([self.process])),
        }


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    """The one recorder that there is."""
    made = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        others = [Path("/nowhere/1.socket"), Path(f"/nowhere/{RECORDER}.socket")]
        patch.setattr(control_client, "find_sessions", lambda: iter(others))
        patch.setattr(control_client, "ask", made.answer)
        yield made


@pytest.fixture(scope="module")
def app(recorder: Recorder, page: Path) -> Starlette:
    """Serves a recording that goes on."""
    session = cast("LiveSession", SimpleNamespace(state="running"))
    return make_app([], TOKEN, LOOPBACK, page, control=LiveControl(session, Pid(RECORDER)))


def tell(app: Starlette, said: object, headers: tuple[tuple[str, str], ...] = HEADERS) -> Answer:
    """Send a command; bytes as they are."""
    return ask(app, PATH, headers, said if isinstance(said, bytes) else json.dumps(said).encode())


@pytest.mark.parametrize(
    "headers",
    [
        HEADERS[:1],
        HEADERS[1:],
        (HEADERS[0], ("Authorization", f"Bearer {TOKEN}x")),
        (("Host", "elsewhere.example"), HEADERS[1]),
        (*HEADERS, ("Origin", "http://elsewhere.example")),
        (*HEADERS, ("Origin", "null")),
    ],
)
def test_who_may_not_ask_is_not_heard(app: Starlette, recorder: Recorder, headers: tuple[tuple[str, str], ...]) -> None:
    recorder.asked.clear()
    assert tell(app, {"command": "kill"}, headers).status == 403
    assert ask(app, PATH, headers).status == 403
    assert recorder.asked == []


def test_a_viewer_of_finished_traces_controls_nothing(page: Path) -> None:
    app = make_app([], TOKEN, LOOPBACK, page)
    assert tell(app, {"command": "kill"}).status == 404
    assert "clew record --view" in ask(app, PATH, HEADERS).json()["error"]


@pytest.mark.parametrize("state", ["ended", "published", "failed"])
def test_a_program_that_has_ended_is_not_controlled(recorder: Recorder, page: Path, state: str) -> None:
    recorder.asked.clear()
    session = cast("LiveSession", SimpleNamespace(state=state))
    app = make_app([], TOKEN, LOOPBACK, page, control=LiveControl(session, Pid(RECORDER)))
    refused = tell(app, {"command": "kill"})
    assert (refused.status, list(refused.json())) == (409, ["error"])
    # To look is no failure.
    seen = ask(app, PATH, HEADERS)
    assert (seen.status, seen.json()["status"]) == (200, None)
    assert recorder.asked == []


def test_what_is_too_much_is_not_taken(app: Starlette, recorder: Recorder) -> None:
    recorder.asked.clear()
    body = json.dumps({"command": "exclude", "what": "w"}).encode()
    assert tell(app, body.ljust(MAX_BODY_BYTES)).status == 200
    assert recorder.asked
    recorder.asked.clear()
    assert tell(app, body.ljust(MAX_BODY_BYTES + 1)).status == 413
    assert tell(app, {"command": "exclude", "what": "w" * (MAX_WORD_LENGTH + 1)}).status == 400
    assert recorder.asked == []


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xff",
        b"[" * 10_000,
        [],
        {},
        {"command": "shell"},
        {"command": None},
        {"command": ["kill"]},
        {"command": "kill", "tid": 1},
        {"command": "kill", "pid": -1},
        {"command": "kill", "pid": True},
        {"command": "kill", "pid": 1 << 40},
        {"command": "step", "tid": "1"},
        {"command": "step", "tid": 1.5},
        {"command": "break"},
        {"command": "break", "place": " "},
        {"command": "break", "place": "a\0b"},
        {"command": "break", "place": "\ud800"},
        {"command": "include", "what": 3},
        {"command": "budget"},
        {"command": "budget", "budget": -2},
        {"command": "budget", "budget": "all"},
        {"command": "mode"},
        {"command": "mode", "mode": ["full"]},
        {"command": "mode", "mode": "region"},
        {"command": "mode", "mode": "auto", "budget": 5},
    ],
)
def test_what_means_nothing_is_refused(app: Starlette, recorder: Recorder, said: object) -> None:
    recorder.asked.clear()
    answer = tell(app, said)
    assert (answer.status, list(answer.json())) == (400, ["error"])
    assert recorder.asked == []


_VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.lists(st.integers())


@settings(deadline=None, max_examples=60)
@given(
    command=st.sampled_from([*COMMAND_ARGUMENTS]) | st.text(max_size=5),
    words=st.dictionaries(
        st.sampled_from(["pid", "tid", "place", "what", "mode", "budget", "more"]), _VALUES, max_size=3
    ),
)
def test_whatever_is_said_is_answered(app: Starlette, command: str, words: dict[str, Any]) -> None:
    answer = tell(app, {**words, "command": command})
    # A place has to be in a process that is there.
    assert answer.status in (200, 400, 422)
    assert (answer.status == 200) == ("error" not in answer.json())


@pytest.mark.parametrize("pid", ["-1", "x", "", "9" * 30, "\u0663"])
def test_a_process_is_a_number(app: Starlette, pid: str) -> None:
    assert ask(app, f"{PATH}?pid={pid.encode().decode('latin-1')}", HEADERS).status == 400


def test_how_it_stands_is_told_in_bounds(app: Starlette) -> None:
    status = ask(app, PATH, HEADERS).json()["status"]
    assert status == ask(app, f"{PATH}?pid={TARGET}", HEADERS).json()["status"]
    assert status["pid"] == TARGET
    assert status["executable"] == "/made/up\\xff"
    assert status["breakpoints"] == [{"address": "0xffffffffffff", "symbol": ""}]
    assert len(status["stopped"]) == MAX_TOLD_THREADS < status["n_stopped"]
    # The one that came to a breakpoint is among them, although others come before it.
    assert [thread["reason"] for thread in status["stopped"][:2]] == ["breakpoint", "asked"]
    assert status["stopped"][0]["registers"]["rflags"] == "0xffffffffffffffff"
    assert status["elsewhere"] == [{"tid": 1, "system_call": "read"}, {"tid": 2, "system_call": None}]
    assert status["exclude"][-1] == str(MAX_TOLD_FILTERS)
    assert len(status["exclude"]) == MAX_TOLD_FILTERS
    assert ask(app, f"{PATH}?pid=1", HEADERS).json()["status"] is None


def test_a_command_reaches_the_recorder_with_its_argument(app: Starlette, recorder: Recorder) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"command": "pause"}, {}),
        ({"command": "next", "tid": 8}, {"tid": 8}),
        ({"command": "break", "place": " 0x401000 "}, {"address": 0x401000}),
        ({"command": "delete", "place": "010+0x0a"}, {"address": 20}),
        ({"command": "budget", "budget": -1}, {"bytes": -1}),
        ({"command": "mode", "mode": "counts"}, {"mode": "counts"}),
        ({"command": "mode", "mode": "full"}, {"mode": "full"}),
        ({"command": "mode", "mode": "auto"}, {"mode": "full", "bytes": 4_000_000}),
    ]
    for said, told in cases:
        recorder.asked.clear()
        answer = tell(app, {**said, "pid": TARGET})
        assert (answer.status, answer.json()["status"]["pid"]) == (200, TARGET)
        assert recorder.asked[-1] == {"command": said["command"], "pid": TARGET, **told}
    answer = tell(app, {"command": "exclude", "what": "libc.so.6"})
    assert (answer.json()["places"], answer.json()["status"]["mode"]) == (3, "full")


def test_what_the_recorder_refuses_is_told(app: Starlette) -> None:
    answer = tell(app, {"command": "step", "tid": 7})
    assert (answer.status, answer.json()) == (422, {"error": "thread 7 runs \\xfe"})
    answer = tell(app, {"command": "break", "place": "9" * 4000})
    assert (answer.status, "no program has code there" in answer.json()["error"]) == (422, True)


def test_the_commands_are_those_of_the_recorder() -> None:
    assert COMMAND_ARGUMENTS.keys() == COMMANDS.keys()
