"""The viewer as one file (`clew export --to html`): opened from a disk, by a browser that is watched for requests."""

from __future__ import annotations

import re
import xml.etree.ElementTree
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.replay.selected_tables import find_edges_at, tabulate
from clew.analysis.trace import Trace
from clew.server.query import Query
from clew.server.served_trace import ServedTrace
from clew.server.table_files import make_table_file, write_csv
from tests.e2e.runs import clew_command, run
from tests.web.calls_page import read_rows
from tests.web.graph_page import GraphPage
from tests.web.made_up_calls import HOSTILE_FILE
from tests.web.serving import Server
from tests.web.test_export import SVG, content_of, elements, open_dialog, take
from tests.web.traces import HOSTILE_NAMES, HOSTILE_TITLE, find_trace
from tests.web.viewer import Viewer

EVIL = (1, 2, 3, 4)


@dataclass
class PageFile:
    """A file that stands for a server: it has an address, and names of traces."""

    path: Path
    names: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"file://{self.path.parent}"

    @property
    def url(self) -> str:
        return f"file://{self.path}#"


OpenFile = Callable[..., Viewer]


@pytest.fixture(scope="session")
def make_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., PageFile]:
    """The file of a trace, made once by the command."""
    folder = tmp_path_factory.mktemp("files")
    made: dict[tuple[str, ...], PageFile] = {}

    def make(name: str, *options: str) -> PageFile:
        if (name, *options) not in made:
            path = folder / f"{name}-{len(made)}.html"
            done = run(clew_command("export", "--to", "html", "-o", path, *options, find_trace(name)))
            assert done.status == 0, done.stderr
            made[name, *options] = PageFile(path, [name])
        return made[name, *options]

    return make


@pytest.fixture
def open_file(browser: Browser, make_file: Callable[..., PageFile]) -> Iterator[OpenFile]:
    """Opens the file of a trace with a state.

    At the end nothing was asked for but that file, and nothing complained.
    """
    opened: list[tuple[Viewer, list[str]]] = []

    def make(name: str, *options: str, **words: object) -> Viewer:
        file = make_file(name, *options)
        viewer = Viewer(browser, cast(Server, file), offline=True)
        asked: list[str] = []
        viewer.page.on("request", lambda request: asked.append(request.url.partition("#")[0]))
        opened.append((viewer, asked))
        viewer.open(name, **words)
        return viewer

    yield make
    for viewer, asked in opened:
        page = f"file://{viewer.server.url[7:].partition('#')[0]}"
        assert asked[0] == page
        assert not [url for url in asked if url != page and not url.startswith("blob:")]
        viewer.close()


@pytest.mark.glance
def test_it_shows_the_graph_and_asks_nobody(open_file: OpenFile) -> None:
    viewer = open_file("hostile", select="f2")
    graph = GraphPage(viewer)
    for layout, dimensions in (("cylinder", 3), ("circle", 2), ("force", 2)):
        viewer.go("hostile", layout=layout, dimensions=dimensions, select="f2")
        graph.wait_for_whole()
        assert graph.number("drawnNodes") == ProcessGraph(Trace(find_trace("hostile")), 0).n_blocks
    expect(viewer.page.get_by_role("heading", name=HOSTILE_NAMES[2])).to_be_visible()
    # What a policy of the document's allows to nobody else.
    viewer.expected.append(r"violates the following Content Security Policy|Fetch API cannot load|Refused to connect")
    assert viewer.page.evaluate("() => fetch('file:///etc/hostname').then(() => 'read', () => 'refused')") == "refused"


def test_hostile_names_are_text_in_it(open_file: OpenFile) -> None:
    viewer = open_file("hostile")
    page = viewer.page
    for view in ("function", "listing", "processes"):
        for function in EVIL:
            viewer.go("hostile", view=view, select=f"f{function}")
            name = HOSTILE_NAMES[function]
            page.wait_for_function(
                "(name) => document.querySelector('[aria-label=Details] h2')?.textContent === name", arg=name
            )
            main = viewer.main(view)
            match view:
                case "function":
                    expect(main.get_by_text(name, exact=True).first).to_be_visible()
                case "listing":
                    expect(main.locator(".code-row.function .name").filter(has_text=name).first).to_be_visible()
                case _:
                    expect(main.locator(".tree-row").get_by_text(HOSTILE_TITLE).first).to_be_visible()
    assert page.locator("img, svg[onload], #app script, iframe, object, embed").count() == 0


def test_no_name_of_the_trace_stands_in_it(make_file: Callable[..., PageFile]) -> None:
    text = make_file("hostile").path.read_text()
    for name in (*HOSTILE_NAMES[1:5], HOSTILE_TITLE):
        assert name not in text
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    assert [attributes for attributes, _ in scripts if "octet-stream" not in attributes] == [' type="module"']
    for attributes, content in scripts:
        assert "module" in attributes or re.fullmatch(r"[A-Za-z0-9+/=]+", content)
    assert "unsafe" not in text.partition("</head>")[0].partition("<style>")[0]


def test_code_and_places_in_time_are_in_it(open_file: OpenFile) -> None:
    viewer = open_file("gzip", view="listing")
    page = viewer.page
    expect(viewer.main("listing").locator(".code-row").nth(5)).to_be_visible()
    viewer.go("gzip", view="function")
    page.locator("[data-flow-canvas][data-scale]").wait_for()
    lanes = page.locator("[data-timeline]")
    page.get_by_role("button", name="Step on").click()
    viewer.wait_for_data("[data-timeline]", "block", [str(n) for n in range(10_000)])
    first = int(lanes.get_attribute("data-position") or -1)
    assert first > 0
    page.get_by_role("button", name="Step on").click()
    page.wait_for_function(
        "(first) => Number(document.querySelector('[data-timeline]').dataset.position) > first", arg=first
    )
    page.get_by_role("button", name="Step back").click()
    viewer.wait_for_data("[data-timeline]", "position", [str(first)])
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(
        "(first) => Number(document.querySelector('[data-timeline]').dataset.position) > 2 * first", arg=first
    )


def test_calls_are_in_it(open_file: OpenFile) -> None:
    """As the server tells them: a row leads to its block, an entity to its calls, and the chart adds up."""
    trace = Trace(find_trace("calls"))
    viewer = open_file("calls", view="calls", process=0)
    page = viewer.page
    table = page.get_by_role("grid", name="Calls")
    own = sorted((row for row in trace.calls.to_pylist() if row["process_id"] == 0), key=lambda row: row["time_ns"])
    expect(table).to_have_attribute("aria-rowcount", str(len(own) + 1))
    index = {block_id: number for number, block_id in enumerate(ProcessGraph(trace, 0).block_id.tolist())}
    page.locator("[data-call='17']").click()
    viewer.wait_for_state(select=f"b{index[own[17]['block_id']]}", call=17)
    expect(page.locator("[data-open-call='17']")).to_be_visible()
    expect(page.locator("[data-chart-calls]")).to_have_attribute("data-chart-calls", str(len(own)))
    page.get_by_label("Name of calls").select_option("read")
    reads = [number for number, row in enumerate(own) if row["name"] == "read"]
    expect(table).to_have_attribute("aria-rowcount", str(len(reads) + 1))
    page.get_by_label("Name of calls").select_option("")
    number = {row["call_id"]: place for place, row in enumerate(own)}
    (entity,) = (row["entity_id"] for row in trace.entities.to_pylist() if row["name"] == HOSTILE_FILE)
    about = {row["call_id"] for row in trace.references.to_pylist() if row["entity_id"] == entity}
    wanted = sorted(number[call] for call in about if call in number)
    page.locator(f"[data-entity='{entity}']").click()
    expect(table).to_have_attribute("aria-rowcount", str(len(wanted) + 1))
    assert sorted(read_rows(page)) == wanted
    expect(page.locator("[data-life] li").first).to_be_visible()
    expect(page.locator("[data-chosen-entity]")).to_contain_text(f"{len(wanted)} of this process")
    page.get_by_role("button", name="Who did what").click()
    pairs = {(row["process_id"], row["entity_id"]) for row in trace.references.to_pylist()}
    expect(page.locator("[data-touch-table] tbody tr")).to_have_count(len(pairs))


def test_the_tree_and_the_bars_of_calls_are_in_it(open_file: OpenFile) -> None:
    trace = Trace(find_trace("api-full"))
    calls = sorted((row for row in trace.calls.to_pylist() if row["process_id"] == 0), key=lambda row: row["time_ns"])
    viewer = open_file("api-full", view="calls", process=0, calls="tree")
    page = viewer.page
    by_thread = Counter(row["tid"] for row in calls)
    expect(page.locator("[data-tree-thread]")).to_have_count(len(by_thread))
    for tid, n in by_thread.items():
        expect(page.locator(f"[data-tree-thread='{tid}'] [role=gridcell]").nth(1)).to_contain_text(f"{n}")
    # A call with others in it: they are there when it is opened.
    outer = next(row for row in calls if row["name"] == "fclose")
    within = [number for number, row in enumerate(calls) if row["parent_call_id"] == outer["call_id"]]
    assert within
    viewer.go("api-full", view="calls", process=0, calls="tree", calls_name=calls[within[0]]["name"])
    tree = page.get_by_role("treegrid", name="Tree of calls")
    page.locator(f"[data-tree-thread='{outer['tid']}'] .twist").click()
    index = calls.index(outer)
    page.locator(f"[data-tree-call='{index}'] .twist").click()
    expect(tree.locator(f"[data-tree-call='{within[0]}']")).to_have_attribute("data-depth", "2")
    page.get_by_label("Those of one name together").check()
    page.locator(f"[data-tree-thread='{outer['tid']}'] .twist").click()
    row = page.locator("[data-depth='1']").filter(has_text="fclose")
    n_outer = len(_around(calls, calls[within[0]]["name"], outer))
    expect(row.locator("[role=gridcell]").nth(1)).to_have_text(f"{n_outer}")
    # In the lanes of the timeline, and beside them, around the cursor.
    expect(page.locator(".swatch.recorded")).to_be_visible()
    page.get_by_role("button", name="API calls").click()
    page.get_by_role("button", name="Step on").click()
    near = page.locator("[data-near-call]").first
    expect(near).to_be_visible()
    tid = int(page.locator("[data-timeline]").get_attribute("data-thread") or -1)
    assert calls[int(near.get_attribute("data-near-call") or -1)]["tid"] == tid


def _around(calls: list[dict[str, Any]], name: str, outer: dict[str, Any]) -> set[int]:
    """The calls of the name and thread of `outer` that are within none, and around one called `name`."""
    kind = (outer["tid"], outer["name"], None)
    like = {row["call_id"] for row in calls if (row["tid"], row["name"], row["parent_call_id"]) == kind}
    return like & {row["parent_call_id"] for row in calls if row["name"] == name}


def test_system_calls_are_in_it(open_file: OpenFile) -> None:
    viewer = open_file("shapes-full", view="calls")
    page = viewer.page
    row = page.locator("[data-call='3']")
    block = row.get_attribute("data-block")
    row.click()
    viewer.wait_for_state(select=f"b{block}")
    expect(page.locator("[data-timeline]")).to_have_attribute("data-position", re.compile(r"[1-9]\d*"))
    page.get_by_role("button", name="By place").click()
    expect(page.get_by_role("listbox", name="Places of calls")).to_be_visible()


def test_its_tables_are_those_of_the_server(open_file: OpenFile) -> None:
    trace = Trace(find_trace("hostile"))
    graph = ProcessGraph(trace, 0)
    viewer = open_file("hostile", select="f3")
    dialog = open_dialog(viewer.page)
    expect(dialog.get_by_role("button", name="Arrow")).to_be_disabled()
    own = np.arange(graph.first_block[3], graph.first_block[4])
    wanted = {
        ("functions", "All of the process"): np.arange(graph.n_functions),
        ("blocks", "All of the process"): np.arange(graph.n_blocks),
        ("edges", "All of the process"): np.arange(graph.n_edges),
        ("blocks", "What is selected"): own,
        ("edges", "What is selected"): find_edges_at(graph, own),
    }
    for (of, scope), rows in wanted.items():
        dialog.get_by_label(re.compile(scope)).check()
        dialog.get_by_label("Rows").select_option(of)
        written = write_csv(tabulate(graph, graph.count(), of, rows, trace.manifest.start_ns))
        assert content_of(take(viewer.page, dialog, "CSV")) == written


def test_its_tables_of_calls_are_those_of_the_server(open_file: OpenFile) -> None:
    chosen = {"name": "write", "text": "out", "sort": "duration", "descending": "1"}
    state = {"calls_name": "write", "calls_text": "out", "calls_sort": "duration", "calls_down": "1"}
    for name, words, shown in (("calls", {}, {}), ("calls", chosen, state), ("shapes-full", {}, {})):
        served = ServedTrace(find_trace(name), 0)
        tables = {of: _table_of_calls(served, of, words) for of in ("calls", "places")}
        tables |= {"entities": _table_of_calls(served, "entities", {"own": "1"})}
        tables |= {"touches": _table_of_calls(served, "touches", {})}
        viewer = open_file(name, view="calls", process=0, **shown)
        n_calls = tables["calls"].count(b"\n")
        expect(viewer.page.get_by_role("grid", name="Calls")).to_have_attribute("aria-rowcount", str(n_calls))
        viewer.page.locator("[data-chart-calls]").wait_for()
        dialog = open_dialog(viewer.page)
        expect(dialog.get_by_role("button", name="Arrow")).to_be_disabled()
        for of, wanted in tables.items():
            dialog.get_by_label("Rows").select_option(of)
            download = take(viewer.page, dialog, "CSV")
            assert download.suggested_filename.endswith(f"-{of}.csv")
            assert content_of(download) == wanted
        # Pictures are made as with a server.
        root = xml.etree.ElementTree.fromstring(content_of(take(viewer.page, dialog, "SVG")).decode())
        bars = [bar.findtext(f"{SVG}title") or "" for bar in elements(root, "rect", "bar")]
        assert sum(int(bar.split("\n")[1].split(" call")[0]) for bar in bars) == n_calls - 1


def test_calls_of_all_processes_are_those_of_the_server(open_file: OpenFile) -> None:
    """In the table, the chart, the tree, and the life of what processes share; and a call leads to its process."""
    served = ServedTrace(find_trace("api-full"), 0)
    calls, entities = (_table_of_calls(served, of, {}, None) for of in ("calls", "entities"))
    viewer = open_file("api-full", view="calls")
    page = viewer.page
    n_calls = served.trace.n_rows("calls")
    expect(page.get_by_role("grid", name="Calls")).to_have_attribute("aria-rowcount", str(n_calls + 1))
    expect(page.locator("[data-chart-calls]")).to_have_attribute("data-chart-calls", str(n_calls))
    dialog = open_dialog(page)
    for of, wanted in (("calls", calls), ("entities", entities)):
        dialog.get_by_label("Rows").select_option(of)
        assert content_of(take(page, dialog, "CSV")) == wanted
    page.keyboard.press("Escape")
    users: dict[int, set[int]] = {}
    for row in served.trace.references.to_pylist():
        users.setdefault(row["entity_id"], set()).add(row["process_id"])
    shared = next(entity for entity, processes in users.items() if len(processes) == 2)
    page.locator(f"[data-entity='{shared}']").click()
    expect(page.locator("[data-shared-by]")).to_have_attribute("data-shared-by", "2")
    event = page.locator("[data-life] li").last
    event.get_by_role("button").click()
    expect(page.locator("[data-open-call]")).to_be_visible()
    process = page.locator("[data-call][aria-selected=true]").get_attribute("data-process")
    viewer.wait_for_state(process=process)
    page.get_by_role("button", name="Tree").click()
    expect(page.locator("[data-tree-thread]").nth(1)).to_be_visible()


def _table_of_calls(served: ServedTrace, of: str, words: dict[str, str], process: int | None = 0) -> bytes:
    """What the server would write."""
    path = {"trace": 0} | ({} if process is None else {"process": process})
    return make_table_file(Query(path, {"of": of, "as": "csv", **words}, [served])).content


def test_what_there_was_no_room_for_is_said(open_file: OpenFile) -> None:
    viewer = open_file("small", "--limit", "1")
    page = viewer.page
    assert Path(viewer.server.url[7:].partition("#")[0]).stat().st_size < 1.5 * (1 << 20)
    page.get_by_role("button", name="file", exact=True).click()
    left_out = page.locator("[data-left-out] li")
    expect(left_out.first).to_have_text(re.compile(r"^not in the file: .*(functions' code|listing)"))
    page.keyboard.press("Escape")
    viewer.go("small", view="calls")
    expect(page.locator(".calls-view")).to_contain_text(re.compile("calls|called"))
    viewer.go("small", view="listing")
    expect(page.get_by_role("alert")).to_have_text(re.compile("the listing of this process is not in this file"))
