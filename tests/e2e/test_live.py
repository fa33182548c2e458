"""A recording is watched while it goes on: by whom it may be, as it is, and at no cost to it."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.store.trace import Trace
from tests.e2e import runs
from tests.e2e.attaching import LIMIT_SECONDS
from tests.e2e.live_client import LiveClient, LivePicture, RefusedError
from tests.e2e.live_recording import LiveRecording, build_new_code, describe_picture, describe_trace
from tests.programs.build import find

Start = Callable[..., LiveRecording]
PYTHON = [sys.executable, "-c", "import json; json.loads('[1, 2, {\"a\": 3}]'); import threading"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts recordings with a live view, which end with the test."""
    running: list[LiveRecording] = []

    def make(command: list[Any], *options: str, **how: Any) -> LiveRecording:
        running.append(LiveRecording(["--", *command], tmp_path / f"{len(running)}.clew", *options, **how))
        return running[-1]

    yield make
    for one in running:
        one.kill()


def is_published(picture: LivePicture) -> bool:
    return bool(picture.meta and picture.meta["state"] == "published")


def has(name: str) -> Callable[[LivePicture], bool]:
    return lambda picture: picture.named().get(name, 0) > 0


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("program", "mode"),
    [("python", "counts"), ("signal_threads", "region"), ("new_code", "full"), ("new_code", "coverage")],
)
@pytest.mark.long
def test_what_is_told_in_the_end_is_the_trace(start: Start, program: str, mode: str) -> None:
    """The connection breaks now and then; what is told after it goes on where it was (`LivePicture.apply` looks)."""
    known: dict[str, list[Any]] = {"python": PYTHON, "new_code": [build_new_code()]}
    command = known[program] if program in known else [find(program).path]
    # It begins when it is watched: of a recording that was over before only the trace is told.
    recording = start(command, "--mode", mode, "--pause", "60")
    lines = [f"{how}{number}" for number, how in zip(range(10, 16), " tf tf", strict=True)]
    lines = lines if program == "new_code" else []
    picture, rng, n_resumed = LivePicture(), random.Random(7), 0
    while not is_published(picture):
        client = LiveClient(recording.url)
        client.begin(picture)
        n_resumed += picture.sequence >= 0
        if n_resumed == 3:
            recording.end_pause()
        for _ in range(rng.randint(1, 6) if n_resumed > 2 else 1):
            frame = client.read_frame()
            if n_resumed > 2 and rng.random() < 0.2:
                break  # It never arrived.
            picture.apply(frame)
            client.say(ack=picture.sequence)
            if is_published(picture):
                break
        client.close()
        if lines:
            recording.say(lines.pop(0))
        else:
            recording.close_input()
    assert picture.meta["trouble"] == ""
    assert n_resumed > 2
    assert describe_picture(picture) == describe_trace(recording.trace, picture.process)
    assert recording.stop() == (3 if program == "new_code" else 0)
    runs.read(recording.trace)


def test_new_code_is_told_of_as_it_runs_in_threads_and_children_too(start: Start) -> None:
    recording = start([build_new_code()])
    picture, client = LivePicture(), LiveClient(recording.url)
    assert client.subprotocol == "clew.live"
    client.begin(picture)
    client.follow(picture, has("main"))
    assert not any(name.startswith("found_") for name in picture.named())
    for line, name in (("12", "found_12"), ("t13", "found_13")):
        recording.say(line)
        assert recording.hear() == line
        client.follow(picture, has(name))
    before = picture.named().get("spin", 0.0)
    recording.say("s100")
    assert recording.hear() == "s100"
    client.follow(picture, lambda one: one.named().get("spin", 0) >= before + 100_000)
    assert [thread["running"] for thread in picture.threads] == [1, 0]
    recording.say("f14")
    assert recording.hear() == "f14"
    client.follow(picture, lambda one: len(one.processes) == 2)
    assert "found_14" not in picture.named()
    # The child, which has ended by now, is one of the others that can be looked at.
    child = next(row["number"] for row in picture.processes if row["parent_pid"] == picture.processes[0]["pid"])
    client.say(process=child)
    client.follow(picture, lambda one: one.process == child and has("found_14")(one))
    assert "found_12" not in picture.named()
    recording.close_input()
    client.follow(picture, is_published)
    assert describe_picture(picture) == describe_trace(recording.trace, child)
    client.close()
    assert recording.stop() == 3


def test_a_frame_tells_what_changed_since_the_last_one(start: Start) -> None:
    recording = start([build_new_code()])
    picture, client = LivePicture(), LiveClient(recording.url)
    client.begin(picture)
    client.follow(picture, has("main"))
    # It counts up all the time, and is acknowledged at once.
    recording.say("s1000000000")
    client.follow(picture, lambda one: one.named().get("spin", 0) > 0)
    sizes, changed = [], 0
    limit = time.monotonic() + LIMIT_SECONDS
    while changed <= 5:
        assert time.monotonic() < limit
        before = picture.named()["spin"]
        frame = client.read_frame()
        picture.apply(frame)
        assert picture.meta["since"] >= 0
        changed += picture.named()["spin"] > before
        client.say(ack=picture.sequence)
        sizes.append(len(frame))
    whole, known = LivePicture(), LiveClient(recording.url)
    known.begin(whole)
    first = known.read_frame()
    assert max(sizes) < len(first) / 4
    known.close()
    client.close()


def test_who_may_not_watch_is_refused(start: Start) -> None:
    recording = start([build_new_code()])
    LiveClient(recording.url).close()
    port = recording.url.split(":")[2].split("/")[0]
    refused: list[dict[str, Any]] = [
        {"token": ""},
        {"token": "wrong"},
        {"headers": [(b"Origin", b"http://evil.example")]},
        {"headers": [(b"Origin", b"null")]},
        {"headers": [(b"Origin", f"https://127.0.0.1:{port}".encode())]},
        {"host": f"evil.example:{port}"},
        {"path": "/api/live/other"},
        {"path": "/"},
    ]
    for how in refused:
        with pytest.raises(RefusedError) as error:
            LiveClient(recording.url, **how)
        assert error.value.status == 403, how
    LiveClient(recording.url, headers=[(b"Origin", f"http://127.0.0.1:{port}".encode())]).close()


def test_what_pages_say_is_checked(start: Start) -> None:
    recording = start([build_new_code()])
    for said in (
        "[]",
        "no JSON",
        '{"process": "x"}',
        '{"process": -2}',
        '{"epoch": 1, "sequence": 1e99}',
        "1" * 100_000,
    ):
        client = LiveClient(recording.url)
        client.say_text(said)
        with pytest.raises(ConnectionError):
            while True:
                client.read_frame()
        client.close()
    picture, client = LivePicture(), LiveClient(recording.url)
    # Of a process that there is not nothing is told; and what an unknown epoch knows is told anew.
    client.say(epoch="other", sequence=5, has=0, process=4711)
    picture.apply(client.read_frame())
    assert (picture.meta["since"], picture.meta["totals"]) == (-1, None)
    client.say(ack=0, process=-1)
    client.follow(picture, has("main"))
    client.close()


def test_a_viewer_that_is_killed_costs_the_recording_nothing(start: Start) -> None:
    recording = start([build_new_code()])
    viewer = find_viewer(recording)
    os.kill(viewer, signal.SIGKILL)
    recording.say("12")
    assert recording.hear() == "12"
    recording.close_input()
    assert recording.process.wait(30) == 3
    assert "the live view" in recording.said
    assert Trace(recording.trace).mode == "counts"


def test_the_viewer_ends_with_clew(start: Start) -> None:
    recording = start([build_new_code()])
    viewer = os.pidfd_open(find_viewer(recording))
    recording.process.kill()
    recording.process.wait()
    assert wait_for_end(viewer), "the viewer goes on without its recorder"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.long
def test_what_ends_clew_ends_the_viewer_that_shows_the_trace(start: Start, number: signal.Signals) -> None:
    recording = start([build_new_code()])
    viewer = os.pidfd_open(find_viewer(recording))
    client = LiveClient(recording.url)
    client.begin(LivePicture())
    recording.close_input()
    limit = time.monotonic() + 30
    while "shows it until Ctrl-C" not in recording.said:
        assert time.monotonic() < limit, recording.said
        time.sleep(0.02)
    assert recording.stop(number) == (-signal.SIGKILL if number == signal.SIGKILL else 3)
    assert wait_for_end(viewer), "the viewer goes on without clew"
    client.close()


def test_who_can_t_be_interrupted_says_what_ends_the_view(start: Start) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        recording = start([build_new_code()])
    finally:
        signal.signal(signal.SIGINT, before)
    recording.close_input()
    limit = time.monotonic() + 30
    while f"shows it until SIGTERM to clew (kill {recording.process.pid})" not in recording.said:
        assert time.monotonic() < limit, recording.said
        time.sleep(0.02)
    assert recording.stop(signal.SIGTERM) == 3


def test_a_trace_that_can_t_be_written_is_told_of(start: Start) -> None:
    recording = start([build_new_code()])
    picture, client = LivePicture(), LiveClient(recording.url)
    client.begin(picture)
    client.follow(picture, has("main"))
    shutil.rmtree(recording.trace)
    recording.close_input()
    client.follow(picture, lambda one: one.meta["state"] == "failed")
    assert "removed" in picture.meta["reason"]
    assert has("main")(picture)
    client.close()
    assert recording.stop() == 3


def test_a_process_that_runs_is_watched_and_left(tmp_path: Path) -> None:
    with subprocess.Popen([build_new_code()], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None and running.stdout is not None
        recording = LiveRecording([str(running.pid)], tmp_path / "t.clew", words=("attach",))
        try:
            picture, client = LivePicture(), LiveClient(recording.url)
            client.begin(picture)
            running.stdin.write(b"21\n")
            running.stdin.flush()
            assert running.stdout.readline() == b"21\n"
            client.follow(picture, has("found_21"))
            recording.process.send_signal(signal.SIGINT)
            client.follow(picture, is_published)
            client.close()
            assert describe_picture(picture) == describe_trace(recording.trace, picture.process)
            assert recording.stop() == 0
            running.stdin.write(b"22\n")
            running.stdin.flush()
            assert running.stdout.readline() == b"22\n"
        finally:
            recording.kill()
            running.stdin.close()


def test_nothing_is_started_where_it_can_t_be_shown(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        trace, made = tmp_path / "t.clew", tmp_path / "made"
        done = runs.run(runs.clew_command("record", "--view", "--port", port, "-o", trace, "--", "touch", made))
    assert done.status == 2
    assert b"is in use" in done.stderr
    assert not trace.exists()
    assert not made.exists()


@pytest.mark.parametrize("option", [["--port", "0"], ["--host", "localhost"], ["--no-browser"]])
def test_options_of_the_view_need_it(tmp_path: Path, option: list[str]) -> None:
    done = runs.run(runs.clew_command("record", *option, "-o", tmp_path / "t.clew", "--", "true"))
    assert (done.status, b"add --view" in done.stderr) == (2, True)


def find_viewer(recording: LiveRecording) -> int:
    """The viewer's process, as soon as it is one."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        text = Path(f"/proc/{recording.process.pid}/task/{recording.process.pid}/children").read_text()
        for child in map(int, text.split()):
            if b"live-viewer" in Path(f"/proc/{child}/cmdline").read_bytes():
                return child
        time.sleep(0.01)
    raise AssertionError("no viewer")


def wait_for_end(pidfd: int) -> bool:
    return bool(select.select([pidfd], [], [], 20)[0])
