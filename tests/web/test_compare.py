"""Two processes compared: runs and builds of a program of which is known what differs (programs/compared.c)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from clew.analysis.trace import Trace
from clew.binary.architectures.x86_64 import X86_64
from clew.binary.disassembly import instruction_starts
from tests.web.compare_page import Row, list_rows, look, search, show, wait_for_frames, wait_for_pair
from tests.web.conftest import OpenViewer, Serve
from tests.web.graph_page import GraphPage
from tests.web.serving import Server
from tests.web.traces import HOSTILE_NAMES, find_trace
from tests.web.viewer import Viewer

FIRST, SECOND, COUNTS, BUILT = "compared-first", "compared-second", "compared-counts", "compared-built"
OWN = "compared"
"""The program's own file. The others are alike but for what hangs on the environment."""


@pytest.fixture(scope="module")
def _shared(browser: Browser, serve: Serve) -> Iterator[Viewer]:
    viewer = Viewer(browser, serve(FIRST, SECOND, COUNTS, BUILT))
    yield viewer
    viewer.close()


@pytest.fixture
def compared(_shared: Viewer) -> Viewer:
    """The page that these tests share: they go from one comparison to another, as links do."""
    return _shared


@cache
def executed(name: str, by: str) -> dict[str, Counter[object]]:
    """How often each instruction of the program's own file was executed, instruction by instruction, by function;
    instructions are told by their offset in the file, or in the `symbol`."""
    trace = Trace(find_trace(name))
    counts: Counter[int] = Counter()
    for row in trace.counts.select(["block_id", "executions"]).to_pylist():
        if row["block_id"] is not None:
            counts[row["block_id"]] += row["executions"]
    paths = {row["image_id"]: row["path"] for row in trace.images.to_pylist()}
    found: dict[str, Counter[object]] = {}
    for block in trace.blocks.to_pylist():
        if block["symbol"] is None or not (paths.get(block["image_id"]) or "").endswith(f"/{OWN}"):
            continue
        start = block["symbol_offset" if by == "symbol" else "offset"]
        for into in instruction_starts(block["bytes"], 0, X86_64):
            found.setdefault(block["symbol"], Counter())[start + into] += counts[block["block_id"]]
    return found


def expected_rows(a: str, b: str, by: str) -> dict[str, tuple[int, int, int, bool, bool, bool]]:
    """By function of the program's own: instructions of both, by how many they differ, whether A or B alone has some,
    and whether their code is one, as far as that is known."""
    both = executed(a, by), executed(b, by)
    rows = {}
    for name in both[0].keys() | both[1].keys():
        ran = tuple(side.get(name, Counter()) for side in both)
        apart = sum(abs(ran[0][at] - ran[1][at]) for at in ran[0].keys() | ran[1].keys())
        rows[name] = (
            ran[0].total(),
            ran[1].total(),
            apart,
            any(not ran[1][at] for at, n in ran[0].items() if n),
            any(not ran[0][at] for at, n in ran[1].items() if n),
            by == "offset" or not (ran[0] and ran[1]) or ran[0].keys() == ran[1].keys(),
        )
    return rows


@pytest.mark.parametrize(("a", "b", "by"), [(FIRST, SECOND, "offset"), (BUILT, FIRST, "symbol")])
def test_the_table_has_what_counting_each_instruction_gives(compared: Viewer, a: str, b: str, by: str) -> None:
    page = look(compared, a, b)
    expected = expected_rows(a, b, by)
    shown: dict[str, dict[str, Row]] = {}
    search(page, "")
    for which in ("Only A", "Only B", "Changed"):
        shown[which] = show(page, which)
    show(page, "All")
    texts = ("main", "common", "only_", "changed", "added")
    shown["All"] = {name: row for text in texts for name, row in search(page, text).items()}
    for name in {"main", "common", "only_first", "only_second", "changed", "added"} & expected.keys():
        in_a, in_b, apart, is_only_a, is_only_b, is_alike = expected[name]
        assert shown["All"][name][1:3] == (in_a, in_b)
        # Where both have other instructions, which of them are the same is not told by their distances alone.
        if is_alike:
            assert shown["All"][name][4] == apart
            for which, is_shown in (("Only A", is_only_a), ("Only B", is_only_b), ("Changed", apart > 0)):
                assert (name in shown[which]) == is_shown, (name, which)


def test_what_is_known_of_two_runs(compared: Viewer) -> None:
    """Loaded at other addresses; `common` ran 10 and 25 times, and each has a function of its own."""
    bases = {
        next(row["base"] for row in Trace(find_trace(name)).images.to_pylist() if row["path"].endswith(f"/{OWN}"))
        for name in (FIRST, SECOND)
    }
    if Path("/proc/sys/kernel/randomize_va_space").read_text().strip() != "0":
        assert len(bases) == 2
    page = look(compared, FIRST, SECOND)
    row = search(page, "common")["common"]
    assert (row[0], row[3], row[1] * 25) == ("moreInB", "×2.5", row[2] * 10)
    assert [search(page, name)[name][0] for name in ("only_first", "only_second", "changed")] == [
        "onlyA",
        "onlyB",
        "same",
    ]


def test_what_is_known_of_two_builds(compared: Viewer) -> None:
    """`added` shifts all that lies behind it; `changed` has another way; all else is the same."""
    page = look(compared, FIRST, BUILT)
    expect(page.get_by_text("another build, compared by symbol").first).to_be_visible()
    assert search(page, "added")["added"][0] == "onlyB"
    assert [search(page, name)[name][0] for name in ("common", "only_first")] == ["same", "same"]
    assert search(page, "changed")["changed"][0] == "moreInB"


def test_the_table_is_sorted_by_what_is_asked_for(compared: Viewer) -> None:
    page = look(compared, FIRST, SECOND)
    search(page, "")
    columns = page.locator(".compare-functions .columns")
    for name, key in (("A", 2), ("B", 3), ("Differ", 5)):
        columns.get_by_role("button", name=name, exact=True).click()
        wait_for_frames(page)
        values = [row[key] for row in list_rows(page)]
        assert len(values) > 10
        assert values == sorted(values, reverse=True)
    columns.get_by_role("button", name="Function", exact=True).click()
    wait_for_frames(page)
    names = [row[0] for row in list_rows(page)]
    assert names == sorted(names)


def test_the_summary_and_the_legend_have_what_the_server_counts(compared: Viewer) -> None:
    page = look(compared, FIRST, SECOND)
    told = compared.server.get("/api/traces/0/processes/0/compared/1/0").json()
    shown = page.locator(".compare-summary [data-what]").evaluate_all(
        "(rows) => rows.map((row) => [row.dataset.what, Object.fromEntries([...row.querySelectorAll('[data-key]')]"
        ".map((one) => [one.dataset.key, Number(one.textContent.replaceAll(',', ''))]))])"
    )
    assert dict(shown) == {what: told[what] for what in ("functions", "blocks", "edges")}
    page.get_by_role("button", name="Graph", exact=True).last.click()
    GraphPage(compared).wait_for_whole()
    legend = page.get_by_role("region", name="Legend").locator("li").all_inner_texts()
    counts = {line.split()[0]: int(line.split()[-1].replace(",", "")) for line in legend}
    assert (counts["A"], counts["B"], counts["="]) == (
        told["blocks"]["only_in_a"],
        told["blocks"]["only_in_b"],
        told["blocks"]["same"],
    )
    assert counts.get("<", 0) + counts.get(">", 0) == told["blocks"]["differ"]


def select(page: Page, name: str) -> None:
    """Select a function in the table, and wait for its code."""
    search(page, name)
    rows = page.locator(".compare-functions [role=option]")
    rows.filter(has=page.locator(".name", has_text=re.compile(rf"^{name}$"))).first.click()
    expect(page.locator(".compare-head .name")).to_have_text(name)
    page.wait_for_function(
        "() => document.querySelector('.compare-part').dataset.function"
        " === /compare-select=f(\\d+)/.exec(location.hash)?.[1]"
    )


def test_function_and_listing_are_beside_each_other(compared: Viewer) -> None:
    page = look(compared, FIRST, SECOND, "function")
    select(page, "main")
    sides = {}
    for side in "ab":
        geometry = page.locator(f".compare-flow[data-side={side}] [data-flow-geometry]")
        geometry.wait_for(state="attached")
        sides[side] = geometry.evaluate("(one) => JSON.parse(one.dataset.flowGeometry).boxes.map((box) => box.block)")
    assert set(sides["a"]) - set(sides["b"])
    assert set(sides["b"]) - set(sides["a"])
    page.get_by_role("group", name="Part of the comparison").get_by_role("button", name="Listing").click()
    rows = page.locator(".compared-row")
    rows.first.wait_for()
    listed = rows.evaluate_all(
        "(rows) => rows.map((row) => [Number(row.dataset.node), ...['A', 'B'].map((side) =>"
        " row.querySelector(`[data-side=${side}] .address`).textContent)])"
    )
    for side, at in (("a", 1), ("b", 2)):
        assert list(dict.fromkeys(row[0] for row in listed if row[at])) == sorted(sides[side])
        assert len([row for row in listed if row[at]]) == len(
            [n for n in executed((FIRST, SECOND)[at - 1], "offset")["main"].values() if n]
        )
    # What is selected in one is selected in the other, and in the address.
    page.locator(f".compared-row[data-node='{sides['b'][1]}']").first.click()
    compared.wait_for_state(compare_select=f"b{sides['b'][1]}")


def find_first_parting(server: Server) -> tuple[int, int]:
    """Where the paths of both part for the first time behind the start of `main`, in the program's own code: found
    block by block."""
    paths = []
    for index in (0, 1):
        base = f"/api/traces/{index}/processes/0"
        functions, blocks = (server.get(f"{base}/{what}").arrays() for what in ("functions", "blocks"))
        described = server.get(f"/api/traces/{index}").json()["processes"][0]
        own = next(image for image in described["images"] if image["path"].endswith(f"/{OWN}"))
        low, size = int(own["base"], 16), own["size_bytes"]
        ends = functions["name.ends"].tolist()
        content = functions["name.bytes"].tobytes()
        names = [content[begin:end].decode() for begin, end in zip([0, *ends], ends, strict=False)]
        main = int(functions["entry_block"][names.index("main")])
        path = server.get(f"{base}/threads/{described['threads'][0]['tid']}/path?start=0&count=100000").arrays()[
            "block"
        ]
        offsets = [
            (position, int(blocks["address"][block]) - low, block) for position, block in enumerate(path.tolist())
        ]
        start = next(position for position, _, block in offsets if block == main)
        paths.append([(position, at) for position, at, _ in offsets[start:] if 0 <= at < size])
    return next((a[0], b[0]) for a, b in zip(*paths, strict=False) if a[1] != b[1])


def read_replays(page: Page, *positions: int) -> list[str]:
    """What comes next in both replays, once they are at these positions."""
    found = []
    for side, position in zip("ab", positions, strict=True):
        current = page.locator(f".replay[data-side={side}] li[data-at='{position}'][aria-current=true]")
        current.wait_for()
        found.append(current.locator(".place").inner_text())
    return found


@pytest.mark.glance
def test_the_first_parting_is_where_the_paths_part_and_both_replays_go_there(compared: Viewer) -> None:
    page = look(compared, FIRST, SECOND, "order")
    at = find_first_parting(compared.server)
    first = page.locator("[data-parting='1']")
    first.get_by_role("button", name="Go to", exact=True).click()
    next_a, next_b = read_replays(page, *at)
    assert next_a != next_b
    compared.wait_for_state(compare_at=f"{compared.server.get('/api/traces/1').json()['processes'][0]['pid']}:{at[1]}")
    assert compared.state()["at"].split(":")[1] == str(at[0])
    expect(first).to_have_attribute("aria-current", "true")
    first.get_by_role("button", name="Go to where they meet").click()
    expect(first).to_have_attribute("aria-current", "false")
    found = compared.server.get("/api/traces/0/processes/0/compared/1/0/order").json()["threads"][0]["partings"][0]
    met_a, met_b = read_replays(page, *(found[side]["met"]["execution"] for side in "ab"))
    assert met_a == met_b
    # The same by keys; and a block back from there both ran the same.
    page.get_by_role("region", name="Partings").focus()
    page.keyboard.press("p")
    expect(first).to_have_attribute("aria-current", "true")
    page.keyboard.press("(")
    before_a, before_b = read_replays(page, at[0] - 1, at[1] - 1)
    assert before_a == before_b


def test_a_link_shows_the_same_and_swapping_mirrors_it(compared: Viewer) -> None:
    page = look(compared, FIRST, SECOND, "order")
    a, b = find_first_parting(compared.server)
    page.locator("[data-parting='1']").get_by_role("button", name="Go to", exact=True).click()
    shown = read_replays(page, a, b)
    page.wait_for_url("**compare-at=**")
    link = page.url
    compared.load(link)
    wait_for_pair(page, 0, 1)
    assert read_replays(page, a, b) == shown
    page.get_by_role("button", name="Swap", exact=True).first.click()
    wait_for_pair(page, 1, 0)
    assert read_replays(page, b, a) == shown[::-1]
    assert search(page, "only_first")["only_first"][0] == "onlyB"


@pytest.mark.glance
def test_keys_go_through_the_parts(compared: Viewer) -> None:
    page = look(compared, FIRST, SECOND)
    page.get_by_role("region", name="Summary of the comparison").focus()
    for part in ("graph", "function", "listing", "order"):
        page.keyboard.press("v")
        compared.wait_for_state(compare=part)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog").get_by_role("region", name="Compare", exact=True)).to_contain_text("Swap A and B")
    page.keyboard.press("Escape")


def test_without_order_it_is_said_and_all_else_is_there(compared: Viewer) -> None:
    page = look(compared, FIRST, COUNTS, "order")
    expect(page.get_by_text("known only of two of mode full")).to_be_visible()
    assert search(page, "common")["common"][3] == "×2.5"


def test_a_start_that_there_is_not_is_told(open_viewer: OpenViewer, serve: Serve) -> None:
    viewer = open_viewer(serve(FIRST, SECOND, COUNTS, BUILT))
    viewer.expected.append("400")
    page = look(viewer, FIRST, SECOND, "order")
    page.get_by_role("textbox", name="From").fill("nowhere")
    page.get_by_role("button", name="Compare", exact=True).last.click()
    expect(page.get_by_text("--from nowhere")).to_be_visible()
    page.get_by_role("textbox", name="From").fill("only_first")
    page.get_by_role("textbox", name="From").press("Enter")
    expect(page.get_by_text("--from only_first")).to_be_visible()
    page.get_by_role("textbox", name="From").fill("changed")
    page.get_by_role("textbox", name="From").press("Enter")
    expect(page.get_by_role("heading", name="from changed on")).to_be_visible()


def test_the_same_twice_is_said(compared: Viewer) -> None:
    page = look(compared, FIRST, FIRST)
    expect(page.get_by_text("A and B are the same process of the same trace")).to_be_visible()
    expect(page.get_by_text("Both ran the same code, equally often.")).to_be_visible()


def test_of_one_trace_alone_it_is_said_how_to_open_two(open_viewer: OpenViewer, serve: Serve) -> None:
    viewer = open_viewer(serve("many"))
    viewer.page.goto(viewer.address(view="compare"))
    expect(viewer.page.get_by_role("heading", name="Only one trace is open")).to_be_visible()
    expect(viewer.page.get_by_text("clew view A.clew B.clew")).to_be_visible()
    # Its processes can be compared with each other.
    viewer.page.get_by_role("button", name="Compare two processes of this trace").click()
    viewer.page.locator(".compare-view[data-compare-state=ready]").wait_for()
    assert viewer.page.get_by_label("Process of B").input_value() != "0"


def test_two_programs_part_at_once(viewer: Viewer) -> None:
    page = look(viewer, "shapes-full", "gzip")
    expect(page.get_by_text("They part at once, at instruction")).to_be_visible()
    page.get_by_role("button", name="Partings", exact=True).click()
    expect(page.locator("[data-parting]").first).to_contain_text("Part at once, at instruction")


def test_symbols_are_text(viewer: Viewer) -> None:
    page = look(viewer, "hostile", "small")
    for name in HOSTILE_NAMES[1:3]:
        search(page, name)
        expect(page.locator(".compare-functions .name").first).to_have_text(name)
        page.locator(".compare-functions [role=option]").first.click()
        for part in ("Function", "Listing"):
            page.get_by_role("group", name="Part of the comparison").get_by_role("button", name=part).click()
            expect(page.locator(".compare-head .name")).to_have_text(name)
            viewer.wait_for_quiet()
    assert page.locator("img, svg[onload], #app script, iframe").count() == 0
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
