"""Numbers on the page are those that Python gives."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from playwright.sync_api import expect

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from tests.web.graph_page import GraphPage
from tests.web.traces import find_trace
from tests.web.viewer import Viewer, parse_number

TRACES = ("shapes-full", "shapes-counts", "shapes-region", "gzip", "small")


@cache
def _graph(name: str) -> ProcessGraph:
    trace = Trace(find_trace(name))
    return ProcessGraph(trace, trace.processes["process_id"][0].as_py())


@cache
def _executions(name: str, threads: tuple[int, ...] | None = None) -> Counter[int]:
    """Executions by block_id, as the table of counts has them."""
    found: Counter[int] = Counter()
    for row in Trace(find_trace(name)).counts.select(["tid", "block_id", "executions"]).to_pylist():
        if row["block_id"] is not None and (threads is None or row["tid"] in threads):
            found[row["block_id"]] += row["executions"]
    return found


@cache
def _instructions(name: str, threads: tuple[int, ...] | None = None) -> list[int]:
    """Instructions executed, by function of the graph, added up block by block."""
    graph, executions = _graph(name), _executions(name, threads)
    total = [0] * graph.n_functions
    for block, (block_id, function) in enumerate(zip(graph.block_id.tolist(), graph.function.tolist(), strict=True)):
        total[function] += executions[block_id] * int(graph.n_instructions[block])
    return total


@pytest.mark.parametrize("name", TRACES)
def test_functions_and_blocks_are_as_python_has_them(viewer: Viewer, name: str) -> None:
    viewer.open(name)
    graph, instructions = _graph(name), _instructions(name)
    _check_table(viewer, graph, instructions)
    _check_details(viewer, name, graph, instructions)


def _check_table(viewer: Viewer, graph: ProcessGraph, instructions: list[int]) -> None:
    order = sorted(range(graph.n_functions), key=lambda function: (-instructions[function], function))
    rows = viewer.rows
    expect(rows.first).to_have_attribute("aria-setsize", str(graph.n_functions))
    shown = rows.evaluate_all(
        "(rows) => rows.map((row) => [row.ariaPosInSet, row.querySelector('.name').textContent,"
        " row.querySelector('.count').title, row.querySelector('.blocks').textContent])"
    )
    assert len(shown) > 10
    for position, title, count, blocks in shown:
        function = order[int(position) - 1]
        n_blocks = int(graph.first_block[function + 1] - graph.first_block[function])
        assert (title, parse_number(count), parse_number(blocks)) == (
            graph.names[function],
            instructions[function],
            n_blocks,
        )


def _check_details(viewer: Viewer, name: str, graph: ProcessGraph, instructions: list[int]) -> None:
    executions = _executions(name)
    entries = graph.count_entries(graph.count())
    blocks = [0, graph.n_blocks // 3, int(graph.count().blocks.argmax()), graph.n_blocks - 1]
    for block in blocks:
        viewer.go(name, select=f"b{block}")
        address = f"0x{int(graph.app_pc[block]):x}"
        expect(viewer.page.get_by_role("region", name="Details").get_by_text(address, exact=True).first).to_be_visible()
        function = int(graph.function[block])
        assert viewer.number("executions") == executions[int(graph.block_id[block])]
        assert viewer.number("instructions") == instructions[function]
        assert viewer.number("entries") == int(entries[function])


@pytest.mark.parametrize("name", [pytest.param("shapes-counts", marks=pytest.mark.glance), "small"])
def test_of_some_threads_only_theirs_are_shown(viewer: Viewer, name: str) -> None:
    tids = _graph(name).threads.tolist()
    for chosen in ((tids[1],), tuple(tids[-2:])):
        graph, instructions = _graph(name), _instructions(name, chosen)
        function = max(range(graph.n_functions), key=lambda one: instructions[one])
        block = int(graph.first_block[function])
        viewer.open(name, threads=",".join(map(str, chosen)), select=f"b{block}")
        assert viewer.number("instructions") == instructions[function]
        assert viewer.number("executions") == _executions(name, chosen)[int(graph.block_id[block])]


def test_the_pictures_of_some_threads_are_of_these_only(viewer: Viewer) -> None:
    """Heat, the colours of threads and the timeline: what others executed is in none of them."""
    of, trace = _graph("shapes-full"), Trace(find_trace("shapes-full"))
    tids = of.threads.tolist()
    chosen = (tids[1], tids[3])
    executions = of.count(chosen).blocks
    page = viewer.open("shapes-full", threads=",".join(map(str, chosen)), layout="circle", at=f"{tids[0]}:10")
    GraphPage(viewer).wait_for_layout()
    legend = page.get_by_role("region", name="Legend")
    expect(legend.get_by_role("listitem").filter(has_text="not executed")).to_contain_text(
        f"{int((executions == 0).sum()):,}"
    )
    page.get_by_text(re.compile(r"^Table of the \d+ hottest$")).click()
    rows = page.get_by_role("region", name="The hottest nodes of the picture").locator("tbody tr")
    hottest = np.lexsort((np.arange(of.n_blocks), -executions))
    expect(rows.first.locator("td").first).to_have_text(f"0x{int(of.app_pc[hottest[0]]):x}")
    expect(rows.first.locator("td").last).to_have_text(f"{int(executions[hottest[0]]):,}")

    lanes = page.locator("[data-lane]")
    expect(lanes).to_have_count(2)
    ran = {row["tid"]: row["block_executions"] for row in trace.threads.to_pylist()}
    for tid in chosen:
        lane = page.locator(f"[data-lane='{tid}']")
        expect(lane.get_by_role("row", name="Ran in order")).to_contain_text(f"{ran[tid]:,}")
    expect(page.get_by_text(f"New blocks in all: {int((executions > 0).sum()):,}")).to_be_attached()
    # The cursor was on a thread that is not looked at.
    page.wait_for_url(lambda url: "at=" not in url)

    chosen = (tids[0], tids[3])
    viewer.go("shapes-full", threads=",".join(map(str, chosen)), layout="circle", mode="thread")
    shown = legend.get_by_role("list").first.get_by_role("listitem")
    expect(shown).to_have_count(3)
    names = {index: f"thread {tid}" for index, tid in enumerate(tids)} | {-2: "shared by several"}
    owners = Counter(of.find_owners(chosen).tolist())
    assert shown.evaluate_all(
        "(all) => all.map((one) => [one.querySelector('.name').innerText, one.querySelector('.count').innerText])"
    ) == [[names[index], f"{owners[index]:,}"] for index in sorted(owners, key=lambda index: index % len(names))]
    viewer.go("shapes-full", layout="circle")
    expect(lanes).to_have_count(len(tids))


@pytest.mark.glance
def test_totals_are_those_of_the_trace(viewer: Viewer) -> None:
    trace = Trace(find_trace("shapes-full"))
    page = viewer.open("shapes-full")
    total = sum(trace.threads["instructions"].to_pylist())
    expect(page.get_by_title(f"{total:,} instructions")).to_be_visible()
    expect(page.get_by_text(f"{trace.n_rows('blocks'):,} blocks", exact=True)).to_be_visible()
    expect(page.get_by_text(f"{trace.n_rows('edges'):,} edges", exact=True)).to_be_visible()
