"""How long the viewer's server takes to open a trace, and to show a thread at any place: of modes `full` and `region`.

    python -m bench.seeks                          short gzip, sqlite3 and py_tasks, and long gzip
    python -m bench.seeks --only sqlite3:short     some of them
    python -m bench.seeks --trace DIRECTORY        a trace that is there already

Each program is recorded once in each mode. A server in a process of its own is asked over HTTP, as the page does, about
the thread that executed the most. *Cold* is a server that was just started: the trace was opened and its timeline
shown, and waypoints are still being laid; *warm* one that has nothing left to do. Places are random, the same ones
each time; `next` and `previous` look from there for a call, a system call and an execution of a block, of the one that
was just executed and of any. What is shown is compared with the trace read by itself. Prints a table, rows as soon as
they are measured.
Exit status 1 when something else was shown, or could not be recorded.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bench.recorded import record_workload
from bench.run import split
from bench.tables import format_cells
from bench.viewer import Viewer
from bench.workloads import Workload, load_workloads
from clew.analysis.trace import Trace
from clew.store.columns import Array, to_numpy, to_words

_SEED = 1
_PROGRAMS = "gzip:short,sqlite3:short,py_tasks:short,gzip:long"
_COMPARED = 8
"""Blocks in front of and behind each place."""
_BINS = 1000
_COLUMNS = ("program", "mode", "positions", "what", "asked", "median ms", "p95 ms", "max ms")


@dataclass
class Times:
    """Milliseconds of answers, by what was asked, in the order in which it was asked first."""

    by_what: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, milliseconds: float) -> None:
        self.by_what.setdefault(what, []).append(milliseconds)

    def rows(self) -> Iterator[list[str]]:
        """Cells: what, how many, median, 95th percentile, greatest."""
        for what, found in self.by_what.items():
            yield [what, str(len(found)), *(f"{cell:.1f}" for cell in np.percentile(found, (50, 95, 100)))]


@dataclass(frozen=True)
class Thread:
    """The thread that is looked at, by its place in the addresses and by its numbers."""

    process_id: int
    tid: int

    @property
    def process(self) -> str:
        return f"/processes/{self.process_id}"

    @property
    def path(self) -> str:
        return f"{self.process}/threads/{self.tid}"


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.seeks",
        description="Milliseconds of the viewer's server to open a trace and to seek.",
    )
    parser.add_argument("--only", default=_PROGRAMS, metavar="NAMES", help="programs as NAME:SIZE; default %(default)s")
    parser.add_argument("--modes", default="full,region", metavar="MODES", help="default %(default)s")
    parser.add_argument("--servers", type=int, default=3, help="that are started; default %(default)s")
    parser.add_argument("--seeks", type=int, default=40, help="of each kind and server; default %(default)s")
    parser.add_argument("--trace", type=Path, help="look at this trace, and record none")
    parser.add_argument("--folder", type=Path, help="where traces are made; default: a temporary one")
    return parser.parse_args(words)


def find_workloads(names: list[str]) -> list[Workload]:
    """The programs NAME:SIZE, in this order."""
    found = []
    for name in names:
        program, _, size = name.partition(":")
        found += load_workloads([size or "short"], [program])
    return found


def open_as_page(viewer: Viewer, times: Times) -> tuple[Thread, Array]:
    """Ask for what the page asks for first; the thread that executed most, and ids of blocks by index."""
    summary, milliseconds = viewer.ask("")
    rows = [
        (row["instructions"], one["process_id"], row["tid"]) for one in summary["processes"] for row in one["threads"]
    ]
    _, process_id, tid = max(rows)
    thread = Thread(process_id, tid)
    for what in ("functions", "blocks", "counts?blocks=1&owners=1"):
        found, more = viewer.ask(f"{thread.process}/{what}")
        milliseconds += more
        if what == "blocks":
            block_ids = found["block_id"].astype(np.int64)
    times.add("open", milliseconds)
    times.add("timeline", viewer.ask(f"{thread.process}/timeline?bins={_BINS}")[1])
    return thread, block_ids


class Comparison:
    """What the trace itself tells of places of a thread, to compare what is shown with. `n_blocks` there are."""

    def __init__(self, trace: Trace, thread: Thread, block_ids: Array) -> None:
        self.n_blocks = len(block_ids)
        self._block_ids = np.append(block_ids, -1)
        self._path = trace.path(thread.tid, process_id=thread.process_id) if trace.mode == "full" else None
        self._tags = self._read_tags(trace, thread) if self._path is None else np.zeros(0, np.int64)

    @staticmethod
    def _read_tags(trace: Trace, thread: Thread) -> Array:
        """Ids of the blocks that the thread's tags say were executed, -1 where a tag says something else."""
        parts = []
        for piece in trace.iter_pieces("tags", ["process_id", "tid", "kind", "block_id"]):
            own = (to_numpy(piece["process_id"]) == thread.process_id) & (to_numpy(piece["tid"]) == thread.tid)
            is_run = to_words(piece["kind"], ["executed"]) == 0
            parts.append(np.where(is_run, to_numpy(piece["block_id"]), -1)[own])
        return np.concatenate(parts)

    def accepts(self, state: dict[str, Any]) -> bool:
        """Whether a thread was shown as it was."""
        position = state["position"]
        coming = self._block_ids[state["coming"][:_COMPARED]]
        if self._path is None:
            expected = self._tags[position : position + len(coming)]
            return bool(np.all((expected == coming) | (expected < 0)))
        recent = self._block_ids[state["recent"][-_COMPARED:]]
        start = position - len(recent)
        expected = self._path.blocks(start, len(recent) + len(coming))
        place = self._path.find_instruction(state["instruction"])
        shown = [*recent.tolist(), *coming.tolist()]
        return bool(place.execution == position and expected.tolist() == shown)


def seek(
    viewer: Viewer, thread: Thread, places: Sequence[int], label: str, times: Times, comparison: Comparison
) -> int:
    """Look at places, and from them for what is near; how often something else was shown than is there."""
    n_wrong = 0
    for number, place in enumerate(places):
        state, milliseconds = viewer.ask(f"{thread.path}/replay?position={place}")
        times.add(f"{label} first seek" if not number else f"{label} seek", milliseconds)
        n_wrong += not comparison.accepts(state)
        if label == "cold":
            continue
        block = next((block for block in reversed(state["recent"]) if block >= 0), 0)
        sought = {
            "call": "what=call",
            "system call": "what=syscall",
            "execution": f"block={block}",
            "execution of any block": f"block={place % comparison.n_blocks}",
        }
        for what, words in sought.items():
            for way, back in (("next", ""), ("previous", "&back=1")):
                found, milliseconds = viewer.ask(f"{thread.path}/seek?position={place}&{words}{back}")
                times.add(f"{way} {what}", milliseconds)
                n_wrong += not comparison.accepts(found)
        time = state["time"]
        times.add("seek to a time", viewer.ask(f"{thread.path}/seek?position=0&time={time}")[1])
    return n_wrong


def measure(directory: Path, n_servers: int, n_seeks: int) -> tuple[int, Times, int]:
    """How many positions the thread has, the times, and how often something wrong was shown."""
    times, n_wrong, length = Times(), 0, 0
    chance = random.Random(_SEED)
    comparison: Comparison | None = None
    for number in range(n_servers):
        with Viewer(directory) as viewer:
            thread, block_ids = open_as_page(viewer, times)
            comparison = comparison or Comparison(Trace(directory), thread, block_ids)
            if not length:
                length = viewer.ask(f"{thread.path}/replay?position=0")[0]["length"]
                continue
            places = (chance.randrange(length) for _ in iter(int, 1))
            n_wrong += seek(viewer, thread, list(islice(places, n_seeks)), "cold", times, comparison)
            if number == n_servers - 1:
                times.add("until idle", viewer.wait_until_idle() * 1000)
                n_wrong += seek(viewer, thread, list(islice(places, n_seeks)), "warm", times, comparison)
    return length, times, n_wrong


def iter_lines(arguments: argparse.Namespace, failed: list[str]) -> Iterator[str]:
    """The lines of the table; programs that something is wrong with go to `failed`."""
    yield format_cells(_COLUMNS)
    yield format_cells(["---"] * len(_COLUMNS))
    for name, mode, make in _iter_traces(arguments):
        with tempfile.TemporaryDirectory(prefix="clew-bench-", dir=arguments.folder) as folder:
            try:
                # Of the first server only how long the thread is.
                length, times, n_wrong = measure(make(Path(folder)), arguments.servers + 1, arguments.seeks)
            except (subprocess.SubprocessError, RuntimeError) as error:
                failed.append(f"{name} {mode}: {error}")
                continue
        if n_wrong:
            failed.append(f"{name} {mode}: {n_wrong} places were not shown as they are")
        for cells in times.rows():
            yield format_cells([name, mode, f"{length:,}", *cells])


def _iter_traces(arguments: argparse.Namespace) -> Iterator[tuple[str, str, Callable[[Path], Path]]]:
    """Of each trace the program, the mode, and what gives its directory, if need be in an empty folder."""
    if arguments.trace is not None:
        yield arguments.trace.stem, Trace(arguments.trace).mode, lambda _: arguments.trace
        return
    for workload in find_workloads(split(arguments.only)):
        for mode in split(arguments.modes):
            yield workload.key, mode, lambda folder, w=workload, m=mode: record_workload(w, m, folder)  # type: ignore[misc]


def main() -> int:
    failed: list[str] = []
    for line in iter_lines(parse_arguments(sys.argv[1:]), failed):
        print(line, flush=True)
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
