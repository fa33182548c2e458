"""`clew view` on the command line: its port, its address, its end."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.runs import clew_command, run
from tests.web.conftest import OpenViewer
from tests.web.serving import Server
from tests.web.traces import find_trace


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_to(with_signal: signal.Signals) -> None:
    server = Server([find_trace("hostile")])
    assert server.get("/").status == 200
    # A connection that is open, as a browser's are, is no reason to stay.
    with socket.create_connection(("127.0.0.1", server.port)):
        assert server.stop(with_signal) in ((0, 130) if with_signal == signal.SIGINT else (0, 143, -15))
    assert "Traceback" not in server.said
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


def test_a_signal_that_is_ignored_is_not_the_page() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        server = Server([find_trace("hostile")])
    finally:
        signal.signal(signal.SIGINT, before)
    assert server.get("/").status == 200
    assert server.stop(signal.SIGINT) == 0
    assert server.said == "clew: stopped\n"


def test_a_port_in_use_is_said_with_one_that_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(clew_command("view", "--port", str(port), "--no-browser", find_trace("hostile")))
    assert done.status == 2
    found = re.fullmatch(rb"clew: port (\d+) is in use; (\d+) is free: --port (\d+)\n", done.stderr)
    assert found is not None, done.stderr
    assert int(found[1]) == port < int(found[2]) == int(found[3])
    Server([find_trace("hostile")], "--port", found[2].decode()).stop()


def test_every_start_has_another_token() -> None:
    servers = [Server([find_trace("hostile")]) for _ in range(2)]
    for server in servers:
        server.stop()
    assert servers[0].token != servers[1].token


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    for words in ([tmp_path], [tmp_path / "none.clew"], [find_trace("hostile"), tmp_path]):
        done = run(clew_command("view", "--port", "0", "--no-browser", *words))
        assert done.status != 0
        assert done.stdout == b""
        assert re.fullmatch(rb"clew: .*trace.*\n", done.stderr), done.stderr


def test_the_traces_are_listed_in_the_order_given() -> None:
    names = ("small", "hostile", "shapes-counts")
    server = Server([find_trace(name) for name in names])
    try:
        listed = server.get("/api/traces").json()["traces"]
        assert [(one["index"], one["name"]) for one in listed] == [
            (number, f"{name}.clew") for number, name in enumerate(names)
        ]
    finally:
        server.stop()


@pytest.mark.glance
def test_the_page_stops_the_viewer(open_viewer: OpenViewer) -> None:
    server = Server([find_trace("hostile")])
    viewer = open_viewer(server)
    page = viewer.open("hostile", view="processes")
    page.get_by_role("button", name="Stop the viewer").click()
    dialog = page.get_by_role("dialog", name="Stop the viewer")
    dialog.get_by_role("button", name="Go on looking").click()
    expect(dialog).to_have_count(0)
    assert server.get("/api/traces").status == 200
    page.get_by_role("button", name="Stop the viewer").click()
    dialog.get_by_role("button", name="Stop the viewer").click()
    expect(page.get_by_role("heading", name="The viewer was stopped")).to_be_visible()
    expect(page.get_by_text("clew view hostile.clew")).to_be_visible()
    assert server.process.wait(20) == 0
    server.stop()
    assert server.said == "clew: stopped by the page\n"
