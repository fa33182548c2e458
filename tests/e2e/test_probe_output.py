"""Events of probes in each format of the command line: what is written is what the program did."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.e2e import runs
from tests.e2e.probed_program import calls_program
from tests.e2e.test_probes import PROBES, events_of, probe, trace
from tests.programs.build import build_plain

Row = dict[str, Any]


def stacks_of(path: Path) -> Counter[tuple[str, ...]]:
    """Stacks of a file, each from `main` on, with the thread's name in front."""
    found: Counter[tuple[str, ...]] = Counter()
    for line in path.read_text().splitlines():
        stack, count = line.rsplit(" ", 1)
        comm, *frames = stack.split(";")
        found[comm, *frames[frames.index("main") :]] += int(count)
    return found


def test_stacks_are_those_of_a_recursion(tmp_path: Path) -> None:
    out = tmp_path / "stacks"
    options: list[str | Path] = ["--function", "[ad]*d", "-t", "backtrace", "--format", "collapsed", "-o", out]
    done = trace(*options, "--", calls_program())
    assert (done.returncode, done.stderr) == (3, b"")
    expected = Counter({("probed_calls", "main", *["descend"] * depth): 1 for depth in range(1, 8)})
    expected["probed_calls", "main", "add"] = 5
    assert stacks_of(out) == expected


def test_stacks_before_an_execution_are_named_by_what_was_loaded_then(tmp_path: Path) -> None:
    """The program lies elsewhere in the second run; `_start` begins each stack, so that none was cut off."""
    program = build_plain(PROBES / "probed_execution.c", "-O1", "-fPIE", "-pie")
    out = tmp_path / "stacks"
    done = trace("--probe", "work", "-t", "backtrace", "--format", "collapsed", "-o", out, "--", program)
    assert (done.returncode, done.stderr) == (0, b"")
    assert stacks_of(out) == Counter({(program.name[:15], "main", "work"): 5})
    assert all(line.split(";")[1] == "_start" for line in out.read_text().splitlines())


def test_children_that_are_gone_have_their_parents_names(tmp_path: Path) -> None:
    program = build_plain(PROBES / "probed_children.c", "-O1", "-pthread")
    out = tmp_path / "stacks"
    done = trace("--probe", "work", "-t", "backtrace", "--format", "collapsed", "-o", out, "--", program)
    assert (done.returncode, done.stderr) == (0, b"")
    frames = {line.rsplit(" ", 1)[0].split(";")[-1] for line in out.read_text().splitlines()}
    assert frames == {"work"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--format", "collapsed"], "-t backtrace"),
        (["--format", "parquet"], "-o DIR"),
        (["--format", "ctf"], "-o DIR"),
        (["--format", "perfetto"], "-o FILE"),
        (["--format", "yaml"], "it is one of text, json"),
        (["--depth", "2"], "are of --tree"),
        (["--tree", "-t", "regs"], "--tree shows calls of functions"),
        (["--tree", "--format", "ctf"], "a tree is one of text, json"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_runs(words: list[str], told: str, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    done = trace("--function", "malloc", *words, "--", "touch", mark)
    assert done.returncode == 2
    assert told in done.stderr.decode()
    assert not mark.exists()


@pytest.mark.parametrize("form", ["text", "json", "collapsed", "parquet", "perfetto", "ctf"])
def test_a_place_that_can_t_be_written_is_told_before_anything_runs(form: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    mark, out = tmp_path / "ran", tmp_path / "file" / "inside"
    options: list[str | Path] = ["--function", "malloc", "-t", "backtrace", "--format", form, "-o", out]
    done = trace(*options, "--", "touch", mark)
    assert done.returncode in (1, 2)
    assert str(out) in done.stderr.decode()
    assert b"internal error" not in done.stderr
    assert not mark.exists()


def test_tables_hold_what_the_program_prints(tmp_path: Path) -> None:
    out = tmp_path / "events"
    done = trace("--function", "add", "-t", "rdi", "--format", "parquet", "-o", out, "--", calls_program())
    assert (done.returncode, done.stderr) == (3, b"")
    results = [int(line.split()[0]) for line in done.stdout.splitlines()[:5]]
    query = (
        f"SELECT a.rdi, b.retval, b.duration FROM '{out}/events/add_entry.parquet' a "
        f"JOIN '{out}/events/add_exit.parquet' b ON b.sequence = a.sequence + 1 AND a.tid = b.tid ORDER BY a.rdi"
    )
    rows = duckdb.connect().execute(query).fetchall()
    assert [(argument, result) for argument, result, _ in rows] == [*enumerate(results)]
    assert all(duration >= 0 for *_, duration in rows)
    whole = pq.read_table(out / "events.parquet").sort_by("event_id").to_pylist()
    assert [(one["name"], one["kind"], one["function"]) for one in whole] == [
        ("add_entry", "entry", "add"),
        ("add_exit", "return", "add"),
    ] * 5
    assert [json.loads(one["values"])["rdi"] for one in whole[::2]] == [0, 1, 2, 3, 4]


def test_tables_name_the_places_that_led_there(tmp_path: Path) -> None:
    out = tmp_path / "events"
    options = ["--probe", "descend", "-t", "backtrace", "--format", "parquet", "-o"]
    done = trace(*options, out, "--", calls_program())
    assert (done.returncode, done.stderr) == (3, b"")
    names = dict(duckdb.connect().execute(f"SELECT address, name FROM '{out}/addresses.parquet'").fetchall())
    stacks = [one["backtrace"] for one in pq.read_table(out / "events" / "descend.parquet").to_pylist()]
    for depth, stack in enumerate(stacks):
        told = [names[address].split("+")[0] for address in stack]
        assert told[: depth + 2] == ["descend"] * (depth + 1) + ["main"]
        assert told[-1] == "_start"


def test_a_folder_with_something_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = trace("--function", "add", "--format", "parquet", "-o", tmp_path, "--", calls_program())
    assert done.returncode == 2
    assert b"exists already" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def rows_of(done: subprocess.CompletedProcess[Any]) -> list[Row]:
    text = done.stdout if isinstance(done.stdout, str) else done.stdout.decode()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_trace_shows_the_tree_that_probe_shows() -> None:
    options = ["--function", "[ad]*d", "--depth", "2", "--within", "descend"]
    done = trace(*options, "--tree", "--format", "json", "--", calls_program())
    assert done.returncode == 3, done.stderr
    places = [(one["depth"], one["function"], one["count"]) for one in rows_of(done)]
    assert places == [(0, "descend", 1), (1, "descend", 1)]
    shown = probe("tree", *options, "--json", "--", calls_program())
    assert [(one["depth"], one["function"], one["count"]) for one in rows_of(shown)] == places
    text = trace(*options, "--tree", "--", calls_program()).stdout.decode()
    assert text.splitlines()[-2].endswith("| descend")
    assert text.splitlines()[-1].endswith("|   descend")


def paths_of(rows: list[Row]) -> Iterator[tuple[tuple[str, ...], Row]]:
    stack: list[str] = []
    for row in rows:
        stack[row["depth"] :] = [row["function"]]
        yield tuple(stack), row


def test_trees_of_two_runs_differ_by_what_was_called(tmp_path: Path) -> None:
    """Python compresses in one piece, then in three, with a sum at the end. What differs is worked out again."""
    files = []
    for n_pieces in (1, 3):
        script = f"import zlib; c = zlib.compressobj(); [c.compress(b'text' * 1000) for _ in range({n_pieces})]"
        script += "; c.flush()" + "; zlib.crc32(b'more')" * (n_pieces > 1)
        files.append(tmp_path / f"tree{n_pieces}")
        functions = ["--function", "libz.so*!deflate", "--function", "libz.so*!*32"]
        done = probe("tree", *functions, "--json", "-o", files[-1], "--", "/usr/bin/python3", "-c", script)
        assert done.returncode == 0, done.stderr
    before, after = (dict(paths_of([*map(json.loads, one.read_text().splitlines())])) for one in files)
    compared = dict(paths_of(rows_of(probe("diff", "--json", *files))))
    assert compared.keys() == before.keys() | after.keys()
    for path, row in compared.items():
        for name in ("count", "total_ns", "self_ns"):
            assert row[name] == [side.get(path, {}).get(name, 0) for side in (before, after)]
    assert compared["libz.so*!deflate",]["count"] == [2, 4]
    assert compared["crc32",]["count"] == [0, 1]
    text = probe("diff", *files)
    assert text.returncode == 0
    assert len(text.stdout.splitlines()) == len(compared) + 1


def test_what_is_no_tree_is_told(tmp_path: Path) -> None:
    good = tmp_path / "good"
    assert probe("tree", "--function", "add", "--json", "-o", good, "--", calls_program()).returncode == 3
    for bad in (calls_program(), tmp_path / "none", tmp_path):
        done = probe("diff", good, bad)
        assert done.returncode == 2
        assert str(bad) in done.stderr


def test_what_came_before_it_is_told_to_leave_is_written(tmp_path: Path) -> None:
    """However early that is: it leaves the program, which goes on."""
    out = tmp_path / "events.json"
    options: list[str | Path] = ["--function", "add", "--format", "json", "-o", out, "--", calls_program(), "wait"]
    with subprocess.Popen(
        [*runs.CLEW, "trace", *options], env=runs.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as clew:
        assert clew.stdin is not None
        assert clew.stdout is not None
        assert clew.stdout.readline() == b"ready\n"
        clew.send_signal(signal.SIGINT)
        assert clew.wait(60) == 0
        assert events_of(out) == []
        clew.stdin.write(b"\n")
        clew.stdin.close()
        assert len(clew.stdout.readlines()) == 6


def test_signals_that_are_ignored_are_so_in_the_program() -> None:
    command = [*runs.CLEW, "trace", "--probe", "main", "--", "grep", "SigIgn", "/proc/self/status"]

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    for preparation, is_ignored in ((ignore, True), (None, False)):
        done = subprocess.run(
            command, env=runs.environment(), capture_output=True, check=False, text=True, preexec_fn=preparation
        )
        mask = int(done.stdout.split()[1], 16)
        assert bool(mask >> (signal.SIGINT - 1) & 1) == is_ignored
