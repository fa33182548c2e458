"""What the application answers: to whom, to what, and with which numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from clew.server.app import make_app
from clew.server.security import HostNames
from clew.server.served_trace import ServedTrace
from tests.unit.server.asking import LOOPBACK, TOKEN, Answer, ask, ask_well
from tests.unit.small_trace import repeated_trace, small_trace, write_trace

if TYPE_CHECKING:
    from starlette.applications import Starlette

GRAPH = "/api/traces/0/processes/0"


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory, page: Path) -> Starlette:
    """Serves a trace of one process, and one of three."""
    folder = tmp_path_factory.mktemp("traces")
    write_trace(small_trace(), folder / "one.clew")
    write_trace(repeated_trace(3), folder / "three.clew")
    served = [ServedTrace(folder / name, index) for index, name in enumerate(("one.clew", "three.clew"))]
    return make_app(served, TOKEN, LOOPBACK, page)


Get = Callable[[str], Answer]


@pytest.fixture
def get(app: Starlette) -> Get:
    return lambda target: ask_well(app, target)


# Who may ask.

GOOD_HOSTS = ("127.0.0.1:7777", "localhost:7777", "LOCALHOST", "[::1]:80", "127.0.0.1")


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_the_page_is_given_to_who_names_the_host(app: Starlette, host: str) -> None:
    assert ask(app, "/", [("Host", host)]).content == b"the page"
    assert ask(app, "/", [("Host", host), ("Origin", f"http://{host}")]).status == 200


@settings(deadline=None)
@given(host=st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=30))
def test_any_other_host_is_refused(app: Starlette, host: str) -> None:
    name = host.lower().rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host.lower()
    expected = 200 if name in ("127.0.0.1", "localhost", "[::1]") else 403
    assert ask(app, "/", [("Host", host)]).status == expected


@pytest.mark.parametrize("n_hosts", [0, 2])
def test_just_one_host_is_named(app: Starlette, n_hosts: int) -> None:
    assert ask(app, "/", n_hosts * [("Host", "localhost")]).status == 403


@settings(deadline=None)
@given(origin=st.text(st.characters(max_codepoint=255), max_size=40))
def test_any_other_origin_is_refused(app: Starlette, origin: str) -> None:
    assert ask(app, "/", [("Host", "localhost:7777"), ("Origin", origin)]).status == 403


@settings(deadline=None)
@given(word=st.text(st.characters(max_codepoint=255), max_size=40))
def test_any_other_token_is_refused(app: Starlette, word: str) -> None:
    for authorization in (word, f"Bearer {word}", f"Basic {TOKEN}", f"Bearer  {TOKEN}"):
        answer = ask(app, "/api/traces", [("Host", "localhost"), ("Authorization", authorization)])
        assert answer.status == 403 or word == TOKEN


def test_listening_at_any_address_is_listening_to_numbers_only(tmp_path: Path, page: Path) -> None:
    app = make_app([], TOKEN, HostNames(frozenset({"myhost"}), any_address=True), page)
    for host, status in (("10.1.2.3:7777", 200), ("[fe80::1]", 200), ("myhost", 200), ("evil.example", 403)):
        assert ask(app, "/", [("Host", host)]).status == status


@pytest.mark.parametrize("path", ["/", "/api/traces", "/api/traces/9", "/nothing", "/api/nothing"])
def test_every_answer_tells_the_browser_to_trust_nothing(app: Starlette, path: str) -> None:
    for answer in (ask_well(app, path), ask(app, path, [("Host", "evil.example")])):
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


# What may be asked.


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/traces/2", 400),
        ("/api/traces/1", 200),
        ("/api/traces/x", 404),
        ("/api/traces/99999999999999999999", 400),
        ("/api/traces/0/processes/1/functions", 400),
        ("/api/traces/1/processes/2/functions", 200),
        (f"{GRAPH}/blocks?functions=0-2", 200),
        (f"{GRAPH}/blocks?functions=0-0", 200),
        (f"{GRAPH}/blocks?functions=0-3", 400),
        (f"{GRAPH}/blocks?functions=2-1", 400),
        (f"{GRAPH}/blocks?functions=-1-1", 400),
        (f"{GRAPH}/blocks?functions=a-b", 400),
        (f"{GRAPH}/blocks?functions=%C2%B2-2", 400),
        (f"{GRAPH}/blocks?functions=0-{'9' * 5000}", 400),
        (f"/api/traces/{'9' * 5000}", 404),
        (f"{GRAPH}/counts?threads=7", 200),
        (f"{GRAPH}/counts?threads=7,8,99", 200),
        (f"{GRAPH}/counts?threads=7,-5", 400),
        (f"{GRAPH}/counts?threads={(1 << 32) + 7}", 400),
        (f"{GRAPH}/counts?threads=all", 200),
        (f"{GRAPH}/counts?threads=seven", 400),
        (f"{GRAPH}/counts?threads={','.join(['7'] * 9000)}", 400),
        (f"{GRAPH}/counts?threads=99999999999999999999", 400),
    ],
)
def test_what_makes_no_sense_is_the_askers_fault(get: Get, path: str, status: int) -> None:
    answer = get(path)
    assert answer.status == status, answer.content
    if status == 400:
        assert set(answer.json()) == {"error"}


def test_traces_are_listed_with_their_names(get: Get) -> None:
    listed = get("/api/traces").json()["traces"]
    assert [(one["index"], one["name"], one["processes"]) for one in listed] == [
        (0, "one.clew", 1),
        (1, "three.clew", 3),
    ]


def test_times_count_from_the_beginning_of_the_recording(get: Get) -> None:
    summary = get("/api/traces/0").json()
    thread = summary["processes"][0]["threads"][0]
    assert (summary["start_ns"], summary["started"], summary["ended"]) == ("1000", 0, 8000)
    assert (thread["start_ns"], thread["started"], thread["ended"]) == ("1000", 0, 7000)
    assert thread["instructions"] == 37


# What is answered, of a trace small enough to be added up by hand: see small_trace.


def test_functions_of_the_small_trace(get: Get) -> None:
    meta, found = get(f"{GRAPH}/functions").arrays()
    assert found["name.bytes"].tobytes() == b"mainf"
    assert found["name.ends"].tolist() == [4, 5]
    assert (meta["n_blocks"], meta["n_edges"], meta["threads"], meta["main_image"]) == (4, 5, [7], 0)
    assert found["address"].tolist() == [0x400010, 0x400040]
    assert found["first_block"].tolist() == [0, 3, 4]
    assert found["discovered"].tolist() == [500.0, 500.0]
    assert (found["caller"].tolist(), found["depth"].tolist()) == ([-1, 0], [0, 1])
    links = zip(*(found[f"link_{name}"].tolist() for name in ("source", "target", "call")), strict=True)
    assert list(links) == [(0, 1, 1)]


def test_blocks_of_the_small_trace(get: Get) -> None:
    meta, found = get(f"{GRAPH}/blocks").arrays()
    assert meta["first_block"] == 0
    assert found["address"].tolist() == [0x400010, 0x400018, 0x40001A, 0x400040]
    assert found["n_instructions"].tolist() == [4, 1, 2, 2]
    assert found["edge_source"].tolist() == [-1, 0, 0, 1, 1]
    assert found["edge_target"].tolist() == [0, 3, 1, 0, 2]
    assert found["edge_callee"].tolist() == [-1, -1, 3, -1, -1]


def test_blocks_of_one_function_come_with_the_edges_that_touch_them(get: Get) -> None:
    meta, found = get(f"{GRAPH}/blocks?functions=1-2").arrays()
    assert (meta["first_block"], found["address"].tolist()) == (3, [0x400040])
    assert found["edge_index"].tolist() == [1]


def test_counts_of_the_small_trace(get: Get) -> None:
    _, found = get(f"{GRAPH}/counts?blocks=1&owners=1").arrays()
    assert found["block_executions"].tolist() == [5, 5, 1, 5]
    assert found["edge_executions"].tolist() == [1, 5, 5, 4, 1]
    assert found["function_instructions"].tolist() == [27, 10]
    # It starts once, and the loop is no entry.
    assert found["function_entries"].tolist() == [1, 5]
    assert found["link_executions"].tolist() == [5]
    assert found["block_owner"].tolist() == [0, 0, 0, 0]
    _, none = get(f"{GRAPH}/counts?threads=8&blocks=1").arrays()
    assert none["block_executions"].tolist() == [0, 0, 0, 0]
    _, few = get(f"{GRAPH}/counts").arrays()
    assert "block_executions" not in few


def test_each_process_has_its_own_graph(get: Get) -> None:
    for process in range(3):
        _, found = get(f"/api/traces/1/processes/{process}/counts?blocks=1&threads={7 + process}").arrays()
        assert found["block_executions"].tolist() == [5, 5, 1, 5]
        _, functions = get(f"/api/traces/1/processes/{process}/functions").arrays()
        assert len(functions["image"]) == 2


def test_arrays_are_those_of_the_graph(app: Starlette, tmp_path: Path) -> None:
    graph = ProcessGraph(Trace(write_trace(repeated_trace(2), tmp_path / "t.clew").directory), 1)
    _, blocks = ask_well(app, "/api/traces/1/processes/1/blocks").arrays()
    for name, expected in (("address", graph.app_pc), ("function", graph.function), ("block_id", graph.block_id)):
        np.testing.assert_array_equal(blocks[name], expected)
