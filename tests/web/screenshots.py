"""Makes the pictures of docs/screenshots: every view of real programs, recorded now.

Run as `python -m tests.web.screenshots [FOLDER]`, which `make screenshots` does. Needs Chromium, and the programs.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.graph.graph_tables import find_busiest_process
from clew.analysis.trace import Trace
from tests.e2e.live_recording import build_new_code
from tests.e2e.runs import ROOT, clew_command, run
from tests.e2e.runs import record as record_whole
from tests.web.graph_page import CANVAS, GraphPage
from tests.web.recorded_page import RecordedPage, record, watch
from tests.web.serving import Server
from tests.web.viewer import CHROMIUM, LARGE, Viewer, launch

__all__ = ["main"]

FOLDER: Final = ROOT / "docs/screenshots"
MAX_FILE_BYTES: Final = 400_000
MAX_TOTAL_BYTES: Final = 6_000_000
_SETTLE_MS: Final = 1500
_EXACT_COLORS: Final = 96
_MANY_WAYS: Final = 24
_LIVE_MS: Final = 4000

_PYTHON: Final = "import json; print(len(json.dumps([{'n': n, 'text': str(n) * 3} for n in range(4000)])))"
_SQL: Final = (
    "CREATE TABLE t(n INTEGER PRIMARY KEY, word TEXT);"
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 6000)"
    " INSERT INTO t SELECT n, hex(n * n) FROM c;"
    "CREATE INDEX i ON t(word); SELECT count(*), max(word) FROM t WHERE word > '3';"
)


_API: Final = (
    "import ssl, sqlite3, socket; a, b = socket.socketpair(); a.send(b'x');"
    " print(len(open('/etc/passwd').read()), b.recv(1))"
)
_API_KINDS: Final = ("file", "directory", "network", "memory", "process", "thread")

_PROBED: Final = ("libsqlite3.so*!sqlite3_[ops]*", "libsqlite3.so*!sqlite3_column_*", "malloc")

_OTHER: Final = 3
"""The number of the trace that gzip's is compared with, of those that `_record` makes."""


@dataclass(frozen=True)
class Shot:
    """A picture: its name, the trace, the words of the address, and a key that is pressed when all of it is there.

    `selects` adds to the words what is looked up in the trace: the hottest function, the hottest of those that call
    some others, a block that jumps to many, a call that another one made, what sort read of a pipe, or the function
    that differs the most from the other trace.
    """

    name: str
    trace: str
    words: dict[str, object] = field(default_factory=dict)
    selects: Literal["", "hottest", "connected", "dispatch", "call", "sorter", "compared"] = ""
    theme: Literal["dark", "light"] = "dark"
    key: str = ""


SHOTS: Final = (
    *(
        Shot(f"{trace}-{layout}", trace, {"layout": layout, "mode": mode})
        for trace in ("python3", "sqlite3", "gzip")
        for layout, mode in (("cylinder", "heat"), ("force", "heat"), ("circle", "conditionals"))
    ),
    *(
        Shot(f"{trace}-{view}", trace, {"view": view}, selects="hottest")
        for trace in ("python3", "sqlite3", "gzip")
        for view in ("function", "listing", "processes")
    ),
    Shot("gzip-blocks", "gzip", {"layout": "blocks", "mode": "heat", "dimensions": 2}),
    Shot("sqlite3-selected", "sqlite3", {"layout": "force", "mode": "structure"}, selects="connected", theme="light"),
    Shot("sqlite3-dispatch", "sqlite3", {"view": "function"}, selects="dispatch"),
    Shot("sqlite3-replay", "sqlite3", {"mode": "recency"}),
    Shot("python3-api", "python3-api", {"view": "calls", "calls": "tree"}, selects="call"),
    Shot("pipeline-calls", "pipeline", {"view": "calls", "calls_by": "process"}, selects="sorter"),
    Shot("sqlite3-calls", "sqlite3", {"view": "calls"}),
    Shot("sqlite3-export", "sqlite3", {"view": "calls"}, key="e"),
    Shot("sqlite3-probes", "sqlite3-probes", {"view": "calls", "calls": "tree"}),
    *(
        Shot(
            f"compare-{name}", "gzip", {"view": "compare", "with": _OTHER, "compare": part, **more}, selects="compared"
        )
        for name, part, more in (
            ("graph", "graph", {"layout": "force", "dimensions": 2}),
            ("beside", "graph", {"layout": "force", "dimensions": 2, "compare_beside": 1}),
            ("listing", "listing", {}),
        )
    ),
)


def main(words: Sequence[str]) -> int:
    """Make all pictures; the exit status is 1 where one is too large, or the page complained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--only", default="", help="those whose names begin with this")
    chosen = parser.parse_args(words)
    folder: Path = chosen.folder
    shots = [shot for shot in SHOTS if shot.name.startswith(chosen.only)]
    if CHROMIUM is None:
        print("screenshots: there is no `chromium` on PATH", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        traces = _record(Path(work))
        server = Server(list(traces.values()))
        browser = launch(playwright)
        try:
            complaints = [complaint for shot in shots for complaint in _take(browser, server, shot, traces, folder)]
            if "live".startswith(chosen.only):
                _take_live(browser, Path(work), folder)
        finally:
            browser.close()
            server.stop()
    sizes = {path.name: path.stat().st_size for path in sorted(folder.glob("*.png"))}
    complaints += [f"{name}: {size:,} bytes" for name, size in sizes.items() if size > MAX_FILE_BYTES]
    if sum(sizes.values()) > MAX_TOTAL_BYTES:
        complaints.append(f"all together: {sum(sizes.values()):,} bytes")
    for complaint in complaints:
        print(f"screenshots: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


def _record(work: Path) -> dict[str, Path]:
    """Traces of the programs, by name, in mode full."""
    text = b"".join(b"line %d of %d\n" % (number, number * number) for number in range(60000))
    commands: dict[str, list[str | Path]] = {
        "python3": ["/usr/bin/python3", "-S", "-c", _PYTHON],
        "sqlite3": ["sqlite3", ":memory:", _SQL],
        "gzip": ["gzip", "-9"],
        "gzip-1": ["gzip", "-1"],
    }
    traces = {}
    for name, command in commands.items():
        traces[name] = work / f"{name}.clew"
        done = record_whole(command, traces[name], "--mode", "full", stdin=text)
        if done.status != 0:
            raise RuntimeError(f"{name} could not be recorded: {done.stderr.decode(errors='replace')}")
    traces["pipeline"] = work / "pipeline.clew"
    lines = work / "lines"
    lines.write_bytes(text[:20000])
    kinds = ("file", "process", "ipc")
    pipeline = 'cat "$0" | sort -r | head -n 3; wc -l "$0"; gzip -kf "$0"'
    _record_api(["sh", "-c", pipeline, lines], traces["pipeline"], *(f"--filter={kind}" for kind in kinds))
    traces["python3-api"] = work / "python3-api.clew"
    options = (*(f"--filter={kind}" for kind in _API_KINDS), "--function", "libc*:dlopen")
    _record_api(["/usr/bin/python3", "-I", "-c", _API], traces["python3-api"], *options)
    traces["sqlite3-probes"] = work / "sqlite3-probes"
    probes = [word for where in _PROBED for word in ("--function", where)]
    _probe(["sqlite3", ":memory:", _SQL.replace("6000", "60")], traces["sqlite3-probes"], *probes, "-t", "rdi")
    return traces


def _probe(command: list[str | Path], folder: Path, *options: str) -> None:
    """Events of probes."""
    done = run(clew_command("trace", *options, "--format", "parquet", "-o", folder, "--", *command))
    if done.status != 0:
        raise RuntimeError(f"probes could not be placed: {done.stderr.decode(errors='replace')}")


def _record_api(command: list[str | Path], trace: Path, *options: str) -> None:
    """A trace with calls, in mode full."""
    given: list[str | Path] = [*options, "--trace", trace, "--mode", "full", "-o", trace.with_suffix(".told")]
    done = run(clew_command("api", *given, "--", *command))
    if done.status != 0:
        raise RuntimeError(f"calls could not be recorded: {done.stderr.decode(errors='replace')}")


def _find_sorter(directory: Path) -> dict[str, object]:
    """The words for what sort reads, among the calls of all processes."""
    trace = Trace(directory)
    sorter = next(row["process_id"] for row in trace.processes.to_pylist() if row["command"][0] == "sort")
    calls = [row for row in trace.calls.to_pylist() if row["process_id"] == sorter]
    calls.sort(key=lambda row: row["time_ns"])
    # The first are of the loader.
    chosen = max(index for index, row in enumerate(calls) if row["name"] == "read" and row["result"] > 0)
    at = f"{calls[chosen]['tid']}:{calls[chosen]['position']}"
    return {"process": sorter, "call": chosen, "at": at, "calls_of": "all"}


def _find_call(directory: Path) -> dict[str, object]:
    """The words for a call within another one, halfway through: its number, and where its thread was."""
    trace = Trace(directory)
    process_id = find_busiest_process(trace)
    calls = [row for row in trace.calls.to_pylist() if row["process_id"] == process_id]
    calls.sort(key=lambda row: row["time_ns"])
    inner = [index for index, row in enumerate(calls) if row["parent_call_id"] is not None]
    chosen = inner[len(inner) // 2]
    row = calls[chosen]
    return {"process": process_id, "call": chosen, "at": f"{row['tid']}:{row['position']}"}


def _take(browser: Browser, server: Server, shot: Shot, traces: dict[str, Path], folder: Path) -> list[str]:
    """Take one picture; gives what the page complained of."""
    viewer = Viewer(browser, server, color_scheme=shot.theme, viewport=LARGE)
    words = dict(shot.words)
    if shot.selects == "hottest":
        words["select"] = f"f{_find_hottest(traces[shot.trace])}"
    elif shot.selects == "connected":
        words["select"] = f"f{_find_connected(traces[shot.trace])}"
    elif shot.selects == "dispatch":
        words["select"] = f"b{_find_dispatch(traces[shot.trace])}"
    elif shot.selects == "call":
        words |= _find_call(traces[shot.trace])
    elif shot.selects == "sorter":
        words |= _find_sorter(traces[shot.trace])
    if shot.name.endswith("-replay"):
        tid, last = _find_longest_path(traces[shot.trace])
        words["at"] = f"{tid}:{last // 2}"
    try:
        viewer.page.goto(viewer.address(shot.trace, **words))
        if words.get("view") == "compare":
            viewer.page.locator(".compare-view[data-compare-state=ready]").wait_for()
        else:
            viewer.wait_for_counts()
        if shot.selects == "compared":
            viewer.page.locator(".compare-functions [role=option]").first.click()
        if viewer.page.locator(CANVAS).count():
            GraphPage(viewer).wait_for_whole()
        viewer.wait_for_quiet()
        if shot.key:
            viewer.page.keyboard.press(shot.key)
        # Labels, previews and what moves come to rest.
        viewer.page.wait_for_timeout(_SETTLE_MS)
        _write(folder / f"{shot.name}.png", viewer.page.screenshot(animations="disabled"))
        return [f"{shot.name}: {complaint}" for complaint in viewer.complaints]
    finally:
        viewer.context.close()


def _take_live(browser: Browser, work: Path, folder: Path) -> None:
    """A program that runs; raises AssertionError with what the page complained of."""
    # Its path is in the picture.
    program = Path("/tmp/server")
    if program.exists():
        raise FileExistsError(program)
    shutil.copy2(build_new_code(), program)
    with record(program, work) as recording, watch(browser, RecordedPage) as make:
        live = make(recording, viewport=LARGE, reduced_motion="reduce")
        live.page.goto(recording.url)
        live.viewer.rows.first.wait_for()
        GraphPage(live.viewer).wait_for_layout()
        for line in ("10", "t12", "f14", "s20000", "16"):
            recording.say(line)
            assert recording.hear() == line
        recording.say("s100000000")
        live.page.wait_for_timeout(_LIVE_MS)
        _write(folder / "live.png", live.page.screenshot(animations="disabled"))
    program.unlink()


def _write(path: Path, content: bytes) -> None:
    """Keep a picture in 256 colours: a third of the bytes, and nobody sees which.

    What is frequent, like the ground of panels, keeps its colour; of the rest none comes out as far off, as else small
    things would, like strokes of legends.
    """
    with Image.open(io.BytesIO(content)) as opened:
        picture = opened.convert("RGB")
    pixels = np.asarray(picture).astype(np.int32)
    words = pixels[..., 0] << 16 | pixels[..., 1] << 8 | pixels[..., 2]
    words, each, counts = np.unique(words, return_inverse=True, return_counts=True)
    colors = np.stack([words >> 16, words >> 8 & 255, words & 255], axis=1)
    others = picture.quantize(256 - _EXACT_COLORS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    frequent = colors[np.argsort(-counts, kind="stable")[:_EXACT_COLORS]].ravel().tolist()
    palette = np.array([*frequent, *(others.getpalette() or [])][: 3 * 256]).reshape(-1, 3)
    # Pillow itself takes a colour that is only about the nearest one.
    nearest = np.array([((palette - color) ** 2).sum(axis=1).argmin() for color in colors], np.uint8)
    few = Image.fromarray(nearest[each.reshape(pixels.shape[:2])], "P")
    few.putpalette(palette.ravel().tolist())
    few.save(path, optimize=True)


def _find_hottest(trace: Path) -> int:
    """Of the busiest process the function that executed most, among those of some size."""
    opened = Trace(trace)
    graph = ProcessGraph(opened, find_busiest_process(opened))
    sizes = np.diff(graph.first_block)
    work = graph.sum_functions(graph.count())
    is_inside = (graph.source >= 0) & ~graph.arrays.is_kind("call", "indirect_call", "return")
    is_inside[is_inside] &= graph.function[graph.source[is_inside]] == graph.function[graph.target[is_inside]]
    ways = np.bincount(graph.function[graph.target[is_inside]], minlength=graph.n_functions)
    # A picture of its control flow is to have something in it, and to be read: some blocks, and not all in one row.
    is_telling = (sizes >= 20) & (sizes <= 60) & (ways >= 1.1 * sizes)
    return int(np.where(is_telling, work, -1).argmax())


def _find_connected(trace: Path) -> int:
    """Of the busiest process the function that executed most, among those with some neighbours, but not many."""
    opened = Trace(trace)
    graph = ProcessGraph(opened, find_busiest_process(opened))
    source, target, *_ = graph.links
    callers = np.bincount(target, minlength=graph.n_functions)
    callees = np.bincount(source, minlength=graph.n_functions)
    is_telling = (callers >= 1) & (callees >= 4) & (callers + callees <= 11)
    return int(np.where(is_telling, graph.sum_functions(graph.count()), -1).argmax())


def _find_dispatch(trace: Path) -> int:
    """Of the busiest process the block that executed most, of those that jumped to many others of their function."""
    opened = Trace(trace)
    graph = ProcessGraph(opened, find_busiest_process(opened))
    is_choice = graph.arrays.is_kind("indirect_jump") & (graph.source >= 0)
    is_choice[is_choice] &= graph.function[graph.source[is_choice]] == graph.function[graph.target[is_choice]]
    ways = np.bincount(graph.source[is_choice], minlength=graph.n_blocks)
    return int(np.where(ways >= min(ways.max(), _MANY_WAYS), graph.count().blocks, -1).argmax())


def _find_longest_path(trace: Path) -> tuple[int, int]:
    """The thread with the longest path, and how many blocks that has."""
    rows = Trace(trace).paths.select(["tid", "block_executions"]).to_pylist()
    row = max(rows, key=lambda one: one["block_executions"])
    return row["tid"], row["block_executions"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
