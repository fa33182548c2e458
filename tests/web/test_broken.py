"""What can't be shown is said: damaged traces, a browser without WebGL2, a server that is gone."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.e2e.runs import clew_command, run
from tests.web.conftest import OpenViewer, Serve
from tests.web.graph_page import CANVAS, GraphPage
from tests.web.serving import Server
from tests.web.traces import find_trace
from tests.web.viewer import Viewer

TABLES = ("processes", "threads", "images", "blocks", "edges", "counts", "events")
_NO_WEBGL = """
const context = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
  return kind.startsWith("webgl") ? null : context.call(this, kind, ...rest);
};
OffscreenCanvas.prototype.getContext = () => null;
"""


def test_a_damaged_trace_gives_a_message(open_viewer: OpenViewer, serve: Serve) -> None:
    server = serve("damaged")
    viewer = open_viewer(server)
    viewer.expected.append("status of 422")
    viewer.page.goto(server.url)
    expect(viewer.page.get_by_role("alert").first).to_contain_text("part-00000.parquet")
    assert server.get("/api/traces/0/processes/0/blocks").status == 422
    assert "Traceback" not in server.said


def test_any_cut_table_is_an_answer(tmp_path: Path) -> None:
    traces = {table: tmp_path / f"{table}.clew" for table in TABLES}
    for table, trace in traces.items():
        shutil.copytree(find_trace("hostile"), trace)
        part = next((trace / table).glob("part-*.parquet"))
        os.truncate(part, part.stat().st_size // 2)
    server = Server(list(traces.values()))
    try:
        for number, table in enumerate(TABLES):
            trace_path = f"/api/traces/{number}"
            paths = [trace_path] + [f"{trace_path}/processes/0/{what}" for what in ("functions", "blocks", "counts")]
            answers = [server.get(path) for path in paths]
            for answer in answers:
                assert answer.status in (200, 422), answer.content
                assert answer.status == 200 or f"{table}/" in answer.json()["error"]
            assert table in ("threads", "events") or any(answer.status == 422 for answer in answers), table
        assert "Traceback" not in server.said
    finally:
        server.stop()


@pytest.mark.parametrize("kept", [0, 1, 300, -1])
def test_a_cut_manifest_is_refused(tmp_path: Path, kept: int) -> None:
    trace = tmp_path / "cut.clew"
    shutil.copytree(find_trace("hostile"), trace)
    manifest = trace / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().rstrip()[:kept])
    done = run(clew_command("view", "--port", "0", "--no-browser", trace))
    assert done.status != 0
    assert re.fullmatch(rb"clew: .*manifest\.json.*\n", done.stderr), done.stderr


@pytest.mark.glance
def test_without_webgl_the_tables_are_there(open_viewer: OpenViewer) -> None:
    viewer = open_viewer()
    viewer.context.add_init_script(_NO_WEBGL)
    page = viewer.open("small", view="graph")
    expect(page.get_by_text(re.compile("WebGL")).first).to_be_visible()
    viewer.rows.nth(3).click()
    assert viewer.number("instructions") > 0
    for view in ("function", "listing", "processes", "graph"):
        page.get_by_role("navigation", name="Views").get_by_role("button", name=view.title()).click()
        expect(viewer.main(view)).to_be_visible()
        expect(viewer.rows.first).to_be_visible()


def test_a_lost_graphics_context_comes_back_as_it_was(viewer: Viewer) -> None:
    page = viewer.open("shapes-counts", select="b9", layout="circle", mode="structure")
    graph = GraphPage(viewer)
    graph.wait_for_whole()
    graph.canvas.focus()
    for key in ("+", "+", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_url("**&camera=*")
    graph.wait_for_whole()
    state, place = viewer.state(), graph.place_of_selected()
    seen = graph.pixels(place, 30)
    page.evaluate(
        "(selector) => document.querySelector(selector).getContext('webgl2')"
        ".getExtension('WEBGL_lose_context').loseContext()",
        CANVAS,
    )
    expect(page.get_by_role("alert")).to_contain_text("took the graphics context away")
    expect(page.get_by_role("region", name="The hottest nodes of the picture")).to_be_visible()
    page.get_by_role("button", name="Try again").click()
    graph.wait_for_whole()
    assert (viewer.state(), graph.place_of_selected()) == (state, place)
    assert np.abs(graph.pixels(place, 30).astype(int) - seen.astype(int)).max() <= 8


def test_when_the_server_is_gone_the_page_says_so(open_viewer: OpenViewer) -> None:
    server = Server([find_trace("hostile"), find_trace("small")])
    viewer = open_viewer(server)
    viewer.expected.append("ERR_CONNECTION_REFUSED")
    page = viewer.open("hostile")
    server.stop()
    page.get_by_role("combobox", name="Trace").select_option("small.clew")
    expect(page.get_by_role("alert").first).to_contain_text("clew view")
