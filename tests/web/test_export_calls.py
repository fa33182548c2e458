"""What is taken out of the view of calls: its pictures and its tables, against the trace's own."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Locator, Page, expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from tests.web.conftest import OpenViewer
from tests.web.made_up_calls import HOSTILE_FILE
from tests.web.test_export import SVG, content_of, elements, open_dialog, pixels_of, take
from tests.web.traces import find_trace
from tests.web.viewer import Viewer

Rows = list[dict[str, Any]]
FILTERS = {"connect": "Network", "malloc": "Memory"} | dict.fromkeys(
    ("openat", "read", "write", "fopen", "close"), "File"
)


@cache
def calls_of_trace() -> Rows:
    """Rows of the table of all calls as it is to be: those of the process in the order of time."""
    trace = Trace(find_trace("calls"))
    graph = ProcessGraph(trace, 0)
    index = {block_id: number for number, block_id in enumerate(graph.block_id.tolist())}
    stored = sorted((row for row in trace.calls.to_pylist() if row["process_id"] == 0), key=lambda row: row["time_ns"])
    found = []
    for number, row in enumerate(stored):
        told = [f"{one['name']}={one.get('text', one['value'])}" for one in json.loads(row["arguments"])]
        kept = {name: row[name] for name in ("duration_ns", "tid", "kind", "name", "library", "error", "injected")}
        block = index[row["block_id"]]
        place = {"block": block, "function": graph.names[int(graph.function[block])]}
        said = {"arguments": ", ".join(told), "result": str(row["result"]), "filter": FILTERS[row["name"]]}
        found.append(
            {"call": number, "process_id": 0, "pid": row["pid"], "time_ns": row["time_ns"] - trace.manifest.start_ns}
            | kept
            | said
            | place
        )
    return found


def in_calls(row: dict[str, Any], text: str) -> bool:
    return text in row["name"] or text in row["arguments"].lower()


def touches_of_trace() -> Counter[tuple[int, int]]:
    """In how many calls a process had to do with an entity, by both."""
    rows = Trace(find_trace("calls")).references.to_pylist()
    return Counter(
        (process, entity) for process, entity, _ in {(r["process_id"], r["entity_id"], r["call_id"]) for r in rows}
    )


def open_calls(viewer: Viewer, n_rows: int, **words: object) -> Page:
    """The view of calls with its chart, and so many calls in its table."""
    page = viewer.open("calls", view="calls", process=0, **words)
    expect(page.get_by_role("grid", name="Calls")).to_have_attribute("aria-rowcount", str(n_rows + 1))
    expect(page.locator("[data-chart-calls]")).to_have_attribute("data-chart-calls", re.compile(r"^[1-9]"))
    return page


def take_table(page: Page, dialog: Locator, of: str) -> tuple[Rows, pa.Table]:
    """The rows of the CSV file, as texts, and the Arrow file's table."""
    dialog.get_by_label("Rows").select_option(label=of)
    rows = list(csv.DictReader(io.StringIO(content_of(take(page, dialog, "CSV")).decode(), newline="")))
    return rows, pa.ipc.open_file(pa.BufferReader(content_of(take(page, dialog, "Arrow")))).read_all()


def as_csv(row: dict[str, Any]) -> dict[str, str]:
    """What CSV has of a row: no text in it is a formula."""
    found = {}
    for name, value in row.items():
        text = "" if value is None else str(value)
        found[name] = f"'{text}" if isinstance(value, str) and text[:1] in ("-", "=", "+", "@") else text
    return found


def color_of(page: Page, variable: str) -> str:
    """What the theme has, `#rrggbb`."""
    found: str = page.evaluate("(name) => getComputedStyle(document.body).getPropertyValue(name).trim()", variable)
    return found


def check_only_draws(root: xml.etree.ElementTree.Element) -> None:
    """Nothing in it runs, or asks for anything."""
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {"svg", "rect", "path", "text", "title"}
    assert not [name for one in root.iter() for name in one.attrib if name.startswith("on") or "href" in name]


def test_the_chart_as_svg_has_every_call(viewer: Viewer) -> None:
    every = calls_of_trace()
    stretch = (every[300]["time_ns"], every[700]["time_ns"])
    page = open_calls(viewer, 400, range=f"{stretch[0]}-{stretch[1]}")
    dialog = open_dialog(page)
    download = take(page, dialog, "SVG")
    assert re.fullmatch(r"calls-\d+-calls\.svg", download.suggested_filename)
    root = xml.etree.ElementTree.fromstring(content_of(download).decode())
    check_only_draws(root)
    # The chart has all of time; the stretch that is chosen is marked. Bars are as its table has them.
    total: Counter[str] = Counter()
    bars = elements(root, "rect", "bar")
    for bar in bars:
        name, told = (bar.findtext(f"{SVG}title") or "").split("\n")
        total[name] += int(told.split(" call")[0].replace(",", ""))
    assert total == Counter(row["name"] for row in every)
    cells = page.locator("[data-chart-table] tbody td:not(:nth-child(2))").all_text_contents()
    assert len(bars) == sum(cell != "0" for cell in cells)
    # Those of a series stand over those of the one before, up to the top of the highest.
    column: dict[float, list[tuple[float, float]]] = {}
    for bar in bars:
        column.setdefault(float(bar.attrib["x"]), []).append((float(bar.attrib["y"]), float(bar.attrib["height"])))
    for stacked in column.values():
        for (below, _), (top, height) in pairwise(stacked):
            assert top + height == pytest.approx(below, abs=0.03)
    marked = [one for one in root.iter(f"{SVG}rect") if one.get("fill") == color_of(page, "--picked")]
    assert len(marked) == 1
    width = max(column) + float(bars[0].attrib["width"]) - min(column)
    assert float(marked[0].attrib["width"]) / width == pytest.approx(400 / len(every), abs=2 / 120)
    # Labels: what it tells apart, the legend with the colours of the bars, and the axis.
    texts = [one.text or "" for one in root.iter(f"{SVG}text")]
    assert texts[0] == "Calls over time by name"
    legend = page.get_by_label("Legend of the chart")
    names = legend.locator("bdi").all_inner_texts()
    assert sorted(names) == sorted(total)
    assert texts[1:15:2] == names
    assert texts[2:15:2] == [f"{total[name]:,}" for name in names]
    assert texts[15:] == page.locator(".calls-axis span").all_inner_texts()
    swatches = legend.locator(".swatch")
    colors = swatches.evaluate_all("(all) => all.map((one) => getComputedStyle(one).backgroundColor)")
    fills = {(bar.findtext(f"{SVG}title") or "").split("\n")[0]: bar.attrib["fill"] for bar in bars}
    parts = [[int(fills[name][at : at + 2], 16) for at in (1, 3, 5)] for name in names]
    assert colors == [f"rgb({', '.join(map(str, part))})" for part in parts]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_the_chart_as_a_picture(open_viewer: OpenViewer, theme: str) -> None:
    viewer = open_viewer(color_scheme=theme)
    page = open_calls(viewer, len(calls_of_trace()))
    dialog = open_dialog(page)
    root = xml.etree.ElementTree.fromstring(content_of(take(page, dialog, "SVG")).decode())
    assert next(root.iter(f"{SVG}rect")).attrib["fill"] == color_of(page, "--ground")
    assert next(root.iter(f"{SVG}text")).attrib["fill"] == color_of(page, "--text")
    dialog.get_by_label("Scale").select_option("3")
    download = take(page, dialog, "PNG")
    assert re.fullmatch(r"calls-\d+-calls\.png", download.suggested_filename)
    pixels = pixels_of(viewer, content_of(download)).astype(np.uint32)
    assert pixels.shape[:2] == (3 * int(root.attrib["height"]), 3 * int(root.attrib["width"]))
    words = pixels @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    area: dict[str, float] = defaultdict(float)
    for bar in elements(root, "rect", "bar"):
        area[bar.attrib["fill"]] += 9 * float(bar.attrib["width"]) * float(bar.attrib["height"])
    assert len(area) == 7
    for color, wanted in area.items():
        # Swatches have it as well; where bars meet colours mix.
        assert 0.5 * wanted < np.count_nonzero(words == int(color[1:], 16)) < 1.1 * wanted + 1000
    assert words[2, 2] == int(color_of(page, "--ground")[1:], 16)
    assert np.count_nonzero(words == int(color_of(page, "--text")[1:], 16)) > 200


@pytest.mark.glance
def test_who_did_what_as_svg(viewer: Viewer) -> None:
    trace = Trace(find_trace("calls"))
    entities = {row["entity_id"]: row for row in trace.entities.to_pylist()}
    touches = touches_of_trace()
    page = viewer.open("calls", view="calls", process=0, calls="touches")
    expect(page.locator("[data-touch-lines]")).to_have_attribute("data-touch-lines", str(len(touches)))
    expect(page.locator("[data-chart-calls]")).to_be_visible()
    dialog = open_dialog(page)
    root = xml.etree.ElementTree.fromstring(content_of(take(page, dialog, "SVG")).decode())
    check_only_draws(root)
    assert elements(root, "rect", "bar")
    lines = [line.findtext(f"{SVG}title") or "" for line in elements(root, "path", "touch")]
    pids = {row["process_id"]: row["pid"] for row in trace.processes.to_pylist()}
    told = [
        (
            int(line.split(" ", 1)[0]),
            line.partition(" → ")[2].split("\n")[0],
            int(line.split("\n")[1].split(" call")[0]),
        )
        for line in lines
    ]
    assert sorted(told) == sorted((pids[one], entities[entity]["name"], n) for (one, entity), n in touches.items())
    shown = {one.findtext(f"{SVG}title") or "": "".join(one.itertext()) for one in elements(root, "text", "entity")}
    by_entity: Counter[int] = Counter()
    for (_, entity), n in touches.items():
        by_entity[entity] += n
    assert sorted(shown) == sorted(
        f"{entities[entity]['name']}\n{entities[entity]['kind']}, {n:,} calls" for entity, n in by_entity.items()
    )
    (hostile,) = (text for title, text in shown.items() if title.startswith(HOSTILE_FILE))
    assert hostile.endswith(HOSTILE_FILE[:36])
    processes = [one.findtext(f"{SVG}title") or "" for one in elements(root, "text", "process")]
    assert sorted(int(title.split(" ")[0]) for title in processes) == sorted({pids[one] for one, _ in touches})
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for one in root.iter(f"{SVG}text"):
        assert 0 <= float(one.attrib["x"]) <= width and 0 <= float(one.attrib["y"]) <= height


def test_tables_of_calls_as_they_are_chosen(viewer: Viewer) -> None:
    every = calls_of_trace()
    page = open_calls(viewer, len(every))
    dialog = open_dialog(page)
    n = f"{len(every):,}"
    expect(dialog.get_by_label(f"What the view of calls has: {n} of {n} calls")).to_be_checked()
    rows, table = take_table(page, dialog, "Calls")
    assert table.to_pylist() == every
    assert rows == [as_csv(row) for row in every]
    assert any(row["result"] == "'-1" for row in rows)
    # What is chosen, in the order that is chosen.
    longest = sorted(
        (row for row in every if row["name"] == "read" and in_calls(row, "etc")),
        key=lambda row: (-(-1 if row["duration_ns"] is None else row["duration_ns"]), row["call"]),
    )
    words = {"calls_name": "read", "calls_text": "etc", "calls_sort": "duration", "calls_down": "1"}
    page = open_calls(viewer, len(longest), **words)
    dialog = open_dialog(page)
    rows, table = take_table(page, dialog, "Calls")
    assert table.to_pylist() == longest
    assert rows == [as_csv(row) for row in longest]
    rows, table = take_table(page, dialog, "Places of calls")
    found = Counter((row["block"], row["function"], row["name"]) for row in longest)
    assert {(row["block"], row["function"], row["name"]): row["calls"] for row in table.to_pylist()} == found
    assert [row["calls"] for row in rows] == [str(n) for n in sorted(found.values(), reverse=True)]
    # What is not of calls is still there.
    dialog.get_by_label("All of the process").check()
    expect(dialog.get_by_label("Rows").locator("option")).to_have_text(["Blocks", "Edges", "Functions"])


def test_tables_of_entities(viewer: Viewer) -> None:
    trace = Trace(find_trace("calls"))
    touches = touches_of_trace()
    stored = {row["entity_id"]: row for row in trace.entities.to_pylist()}
    page = open_calls(viewer, len(calls_of_trace()))
    page.get_by_role("button", name=re.compile("^Files 5$")).click()
    expect(page.locator("[data-entity]")).to_have_count(5)
    rows, table = take_table(page, open_dialog(page), "Entities")
    files = [entity for entity, row in stored.items() if row["kind"] == "file"]
    wanted = sorted(files, key=lambda entity: (-touches[0, entity], entity))
    assert table["entity_id"].to_pylist() == wanted
    assert table["name"].to_pylist() == [stored[entity]["name"] for entity in wanted]
    assert table["details"].to_pylist() == [f"path={stored[entity]['name']}" for entity in wanted]
    assert table["calls"].to_pylist() == [touches[0, entity] for entity in wanted]
    assert HOSTILE_FILE in [row["name"] for row in rows]
    assert rows == [as_csv(row) for row in table.to_pylist()]
    rows, table = take_table(page, page.get_by_role("dialog", name="Export"), "Who did what")
    assert {(row["process_id"], row["entity_id"]): row["calls"] for row in table.to_pylist()} == touches
    assert rows == [as_csv(row) for row in table.to_pylist()]


def test_where_only_places_are_known(viewer: Viewer) -> None:
    page = viewer.open("shapes-counts", view="calls")
    places = page.locator("[data-places-calls]")
    expect(places).to_be_visible()
    dialog = open_dialog(page)
    expect(dialog.get_by_text("The graph, the function view and the view of calls have pictures.")).to_be_visible()
    expect(dialog.get_by_role("button", name="PNG")).to_be_disabled()
    expect(dialog.get_by_label("Rows").locator("option")).to_have_text(["Places of calls", "Entities", "Who did what"])
    _, table = take_table(page, dialog, "Places of calls")
    assert sum(table["calls"].to_pylist()) == int(places.get_attribute("data-places-calls") or -1)
    graph = ProcessGraph(Trace(find_trace("shapes-counts")), 0)
    counts = graph.count().blocks
    executed: Counter[int] = Counter()
    for row in table.to_pylist():
        executed[row["block"]] += row["calls"]
    assert executed == {block: int(counts[block]) for block in executed}


def test_a_replay_is_not_recorded_of_the_chart(viewer: Viewer) -> None:
    page = viewer.open("shapes-full", view="calls")
    page.locator("[data-chart-calls]").wait_for()
    page.locator("[data-timeline] input.position").wait_for()
    dialog = open_dialog(page)
    expect(dialog.get_by_text("The graph and the function view show a replay.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Record WebM")).to_be_disabled()
    expect(dialog.get_by_role("button", name="SVG")).to_be_enabled()
