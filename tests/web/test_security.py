"""Who may ask the server what. Raw requests, as no browser would send them, and what a hostile trace can do."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from clew.server.answers import ANSWERS
from tests.web.conftest import Serve
from tests.web.graph_page import GraphPage
from tests.web.serving import Server
from tests.web.traces import HOSTILE_NAMES, HOSTILE_TITLE, find_trace
from tests.web.viewer import Viewer

VIEWS = ("graph", "function", "listing", "processes")
EVIL = (1, 2, 3, 4)
EVIL_NAMES = [HOSTILE_NAMES[function] for function in EVIL]
LONG = max(range(len(HOSTILE_NAMES)), key=lambda function: len(HOSTILE_NAMES[function]))
_NO_PARAMETERS = {"process": "0", "block": "0", "function": "0", "thread": "0"}
PATHS = ["/api/traces"] + [
    "/api/traces/0" + re.sub(r"\{(\w+)(:\w+)?\}", lambda found: _NO_PARAMETERS.get(found[1], "0"), path)
    for path in ANSWERS
]


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve()


@pytest.mark.parametrize("path", PATHS)
def test_data_is_given_to_those_who_know_the_token(server: Server, path: str) -> None:
    assert server.get(path).status in (200, 400), "of some more must be asked than this"
    for refused in (
        server.get(path, token=""),
        server.get(path, token=server.token[:-1]),
        server.get(path, token=server.token + "x"),
        server.get(path, token="\xe9"),
        server.get(path, {"Authorization": server.token}),
        server.get(path, {"Authorization": f"Basic {server.token}"}),
        server.get(f"{path}?token={server.token}", token="wrong"),
    ):
        assert refused.status == 403
        assert set(refused.json()) == {"error"}


@pytest.mark.parametrize("path", ["/", "/index.html", "/api/traces", "/nothing"])
def test_hosts_and_origins_of_others_are_refused(server: Server, path: str) -> None:
    port = server.port
    for headers in (
        {"Host": f"evil.example:{port}"},
        {"Host": f"localhost.evil.example:{port}"},
        {"Host": f"127.0.0.1.evil.example:{port}"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://127.0.0.1:{port}"},
        {"Origin": f"http://127.0.0.1:{port + 1}"},
        {"Origin": f"http://127.0.0.1:{port}.evil.example"},
    ):
        assert server.get(path, headers).status == 403, headers
    for headers in ({"Host": f"localhost:{port}"}, {"Origin": server.origin}):
        assert server.get(path, headers).status == (404 if path == "/nothing" else 200), headers


def test_commands_are_taken_of_the_page_alone(server: Server) -> None:
    path = "/api/commands/stop"
    assert server.get(path).status == 404
    for headers, token in (
        ({}, ""),
        ({}, server.token[:-1]),
        ({"Origin": "http://evil.example"}, None),
        ({"Origin": "null"}, None),
        ({"Host": "evil.example"}, None),
    ):
        assert server.get(path, headers, token=token, method="POST").status == 403, headers
    assert server.get("/api/commands/nothing", method="POST").status == 404
    assert server.get("/api/commands/nothing", token="", method="POST").status == 403
    assert server.get("/api/traces").status == 200, "it was not stopped"


def test_two_hosts_or_none_are_refused(server: Server) -> None:
    good = f"Host: 127.0.0.1:{server.port}\r\n"
    for hosts in ("", good + good, good + "Host: evil.example\r\n"):
        text = f"GET / HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(text.encode())
            assert connection.recv(100).split()[1] in (b"400", b"403"), hosts


def test_every_answer_has_the_policy(server: Server) -> None:
    for path, token in (("/", None), ("/api/traces", None), ("/api/traces", "wrong"), ("/nothing", None)):
        headers = server.get(path, token=token).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("path", ["/../pyproject.toml", "/%2e%2e/errors.py", "/..%2f..%2ferrors.py", "//etc/passwd"])
def test_nothing_beside_the_page_is_served(server: Server, path: str) -> None:
    assert server.get(path).status in (400, 404)


def test_only_this_machine_is_listened_to(server: Server) -> None:
    addresses = {address[4][0] for address in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in addresses - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError):
            socket.create_connection((str(address), server.port), timeout=5).close()


@pytest.fixture
def hostile(viewer: Viewer) -> Iterator[Viewer]:
    """A trace whose symbols, command and threads would like to be more than text."""
    viewer.open("hostile")
    yield viewer
    # None of them became an element, and none ran: that would be a dialog, which the page may not open.
    assert viewer.page.locator("img, svg[onload], #app script, iframe, object, embed").count() == 0


@pytest.mark.glance
def test_symbols_are_text_in_tables_and_searches(hostile: Viewer) -> None:
    page = hostile.page
    search = page.get_by_role("searchbox", name="Filter functions")
    for name in EVIL_NAMES:
        search.fill(name)
        expect(hostile.rows).to_have_count(1)
        assert hostile.rows.first.locator(".name").text_content() == name
    search.fill("")
    page.get_by_role("button", name="Search", exact=True).click()
    for name in EVIL_NAMES:
        page.get_by_role("combobox", name="Search").fill(name)
        found = page.get_by_role("listbox", name="Results").locator(".name")
        expect(found.first).to_have_text(name)


@pytest.mark.parametrize("view", VIEWS)
def test_symbols_are_text_in_every_view(hostile: Viewer, view: str) -> None:
    page = hostile.page
    # The panel beside the view is the same one in all of them: it has all names once.
    for function in range(1, len(HOSTILE_NAMES)) if view == "graph" else (*EVIL, LONG):
        hostile.go("hostile", view=view, select=f"f{function}")
        expect(hostile.main(view)).to_be_visible()
        name = HOSTILE_NAMES[function]
        # What has no name is told by its address, and what is very long is cut.
        if 0 < len(name) < 1000:
            # HTML has no NUL: the browser shows what stands for it.
            page.wait_for_function(
                r"(name) => document.querySelector('[aria-label=Details] h2')?.textContent"
                r".replace('\ufffd', '\0') === name",
                arg=name,
            )
        hostile.wait_for_quiet()
        # However long a name is, it makes no page wider than the window.
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), name[:50]
        if function in EVIL:
            _check_text(hostile, view, name)


def _check_text(viewer: Viewer, view: str, name: str) -> None:
    """What the view itself has of the name of what is selected, or of the program."""
    main = viewer.main(view)
    match view:
        case "graph":
            expect(main.locator("canvas").first).to_be_visible()  # Names over the picture are pixels.
        case "listing":
            expect(main.locator(".code-row.function .name").filter(has_text=name).first).to_be_visible()
        case "processes":
            expect(main.locator(".tree-row").get_by_text(HOSTILE_TITLE).first).to_be_visible()
        case _:
            expect(main.get_by_text(name, exact=True).first).to_be_visible()


def test_symbols_are_text_in_the_tooltip_and_the_table_of_the_graph(hostile: Viewer) -> None:
    function = EVIL[0]
    block = int(ProcessGraph(Trace(find_trace("hostile")), 0).first_block[function])
    hostile.go("hostile", layout="circle", dimensions=2, select=f"b{block}")
    graph = GraphPage(hostile)
    graph.wait_for_whole()
    x, y = graph.place_of_selected()
    graph.canvas.hover(position={"x": x, "y": y})
    expect(hostile.page.get_by_role("tooltip").locator("strong")).to_have_text(HOSTILE_NAMES[function])
    hostile.main("graph").locator(".graph-table summary").click()
    shown = hostile.main("graph").locator(".graph-table .symbol").all_text_contents()
    assert {text.partition("+0x")[0] for text in shown} & set(HOSTILE_NAMES)
