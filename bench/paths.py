"""What the order of execution takes: bits stored, time to compact, time to seek; of mode `full`.

    python -m bench.paths                        the long programs, and nested_loops linked statically
    python -m bench.paths --only gzip,sqlite3    some of them
    python -m bench.paths --no-compact           as recorded only

Each program is recorded once. Bits an instruction are those of the column `stored_bytes` of the table `paths`. A seek
is the first one after opening the path of the thread that executed the most: to a random instruction, or to a random
execution of a block out of those around that; the same ones before and after compacting.
Prints a table, a row as soon as it is measured. Exit status 1 when something was lost, or could not be recorded.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.recorded import record_workload
from bench.run import split
from bench.tables import format_cells
from bench.workloads import Workload, load_workloads, make_static_loops
from clew.analysis.order.compact import compact_trace
from clew.analysis.order.thread_path import ThreadPath
from clew.analysis.trace import Trace

_SEED = 1
_SOME_BLOCKS = 10_000
_COLUMNS = (
    "program",
    "instructions",
    "lost records",
    "bits an instruction",
    "ms to an instruction",
    "ms to an execution",
    "s to compact",
    "bits compact",
    "ms to an instruction, compact",
    "ms to an execution, compact",
)


@dataclass(frozen=True)
class Seeks:
    """Milliseconds of first seeks."""

    milliseconds: list[float]

    def __str__(self) -> str:
        return f"{statistics.median(self.milliseconds):.0f} (max {max(self.milliseconds):.0f})"


@dataclass(frozen=True)
class Aims:
    """What is sought in a path: numbers of instructions, and blocks with the numbers of their executions."""

    instructions: list[int]
    executions: list[tuple[int, int]]


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.paths", description="Bits an instruction that ordered paths take, and time to seek."
    )
    parser.add_argument("--only", default="", metavar="NAMES", help="comma-separated programs; default all")
    parser.add_argument("--seeks", type=int, default=20, help="of each kind; default %(default)s")
    parser.add_argument("--no-compact", action="store_true", help="measure traces as recorded only")
    parser.add_argument("--folder", type=Path, help="where traces are made; default: a temporary one")
    return parser.parse_args(words)


def find_workloads(names: list[str]) -> list[Workload]:
    """The long programs of these names (none: all), with nested_loops linked statically among them."""
    static = make_static_loops()
    is_wanted = not names or static.name in names
    return [*([static] if is_wanted else []), *load_workloads(["long"], names)]


def open_longest(trace: Trace) -> ThreadPath:
    """The path, opened anew, of the thread that executed the most."""
    row = max(trace.paths.to_pylist(), key=lambda row: int(row["instructions"]))
    return trace.path(row["tid"], pid=row["pid"])


def find_bits(trace: Trace) -> float:
    """Bits stored for each instruction, of all threads."""
    paths = trace.paths
    stored, instructions = (sum(paths[name].to_pylist()) for name in ("stored_bytes", "instructions"))
    return float(stored * 8 / max(instructions, 1))


def choose_aims(trace: Trace, n: int) -> Aims:
    """The same ones each time, of a trace as recorded."""
    chance, path = random.Random(_SEED), open_longest(trace)
    instructions = [chance.randrange(path.instructions) for _ in range(n)]
    executions: list[tuple[int, int]] = []
    for number in instructions:
        blocks = path.blocks(path.find_instruction(number).execution, _SOME_BLOCKS).tolist()
        block = chance.choice(sorted(set(blocks)))
        known = int(path.count_before(block)[-1])
        executions.append((block, chance.randrange(known) if known else 0))
    return Aims(instructions, executions)


def measure_seeks(trace: Trace, aims: Aims) -> tuple[Seeks, Seeks]:
    """To instructions, and to executions of blocks; of each the path is opened before."""
    return (
        Seeks([_time(open_longest(trace).find_instruction, one) for one in aims.instructions]),
        Seeks([_time(open_longest(trace).find_execution, *one) for one in aims.executions]),
    )


def _time(seek: Callable[..., object], *place: int) -> float:
    start_ns = time.perf_counter_ns()
    found = seek(*place)
    milliseconds = (time.perf_counter_ns() - start_ns) / 1e6
    if found is None:
        raise ValueError(f"a place that is there was not found: {place}")
    return milliseconds


def measure(workload: Workload, folder: Path, n_seeks: int, *, is_compacted: bool) -> tuple[list[str], bool]:
    """Cells of the table, and whether nothing was lost."""
    directory = record_workload(workload, "full", folder)
    trace = Trace(directory)
    aims = choose_aims(trace, n_seeks)
    lost = sum(trace.manifest.losses.values())
    instructions = sum(trace.paths["instructions"].to_pylist())
    cells = [workload.name, f"{instructions / 1e9:.2f} e9", str(lost), f"{find_bits(trace):.4f}"]
    cells += map(str, measure_seeks(trace, aims))
    if is_compacted:
        start = time.monotonic()
        compact_trace(directory)
        seconds = time.monotonic() - start
        trace = Trace(directory)
        cells += [f"{seconds:.0f}", f"{find_bits(trace):.4f}", *map(str, measure_seeks(trace, aims))]
    return cells, lost == 0


def iter_lines(arguments: argparse.Namespace, failed: list[str]) -> Iterator[str]:
    """The lines of the table; programs that something is wrong with go to `failed`."""
    n_columns = 6 if arguments.no_compact else len(_COLUMNS)
    yield format_cells(_COLUMNS[:n_columns])
    yield format_cells(["---"] * n_columns)
    for workload in find_workloads(split(arguments.only)):
        with tempfile.TemporaryDirectory(prefix="clew-bench-", dir=arguments.folder) as name:
            try:
                cells, is_whole = measure(workload, Path(name), arguments.seeks, is_compacted=not arguments.no_compact)
            except subprocess.SubprocessError as error:
                cells, is_whole = [workload.name, str(error)], False
        if not is_whole:
            failed.append(workload.name)
        yield format_cells([*cells, *[""] * (n_columns - len(cells))])


def main() -> int:
    failed: list[str] = []
    for line in iter_lines(parse_arguments(sys.argv[1:]), failed):
        print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
