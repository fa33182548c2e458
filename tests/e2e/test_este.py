"""Este's files of whole programs: by its configuration and by export, of several processes, threads, and of losses."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clew.analysis.replay.thread_times import read_path_times
from clew.analysis.trace import Trace
from clew.export.este import order
from clew.export.este.config import EsteScope
from clew.export.este.exporter import EsteExporter
from clew.protocol._generated import PathEventKind
from tests.e2e import runs
from tests.programs.build import build_one, find
from tests.web.traces import find_trace

CONFIG = """
title = "from a file"
[OUTPUT]
output-dir = "gen/out"
[ANALYSIS-SCOPE]
binary-whitelist = ["/TRUE"]
log-dynamically-generated = false
"""


def clew(folder: Path, *words: str | Path) -> runs.Run:
    return runs.run(runs.clew_command(*words), cwd=folder)


def read_rows(path: Path) -> list[list[int]]:
    """The numbers of a table without names."""
    with path.open(newline="") as file:
        return [[int(field) for field in row] for row in list(csv.reader(file))[1:]]


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """A folder with a configuration, `este.toml`."""
    (tmp_path / "este.toml").write_text(CONFIG)
    return tmp_path


def test_recording_by_a_configuration(configured: Path) -> None:
    """A program that a process goes on with has files of its own."""
    run = clew(configured, "record", "--config", "este.toml", "--", "/bin/sh", "-c", "/bin/true; exec /bin/true 4")
    assert run.status == 0
    told = run.stderr.decode()
    assert "wrote sh.clew" in told and "wrote gen/out: " in told
    trace = Trace(configured / "sh.clew")
    assert trace.mode == "full"
    shell, child = (
        next(row["pid"] for row in trace.processes.to_pylist() if row["command"][0] == name)
        for name in ("/bin/sh", "/bin/true")
    )
    out = configured / "gen/out"
    keys = [str(shell), f"{shell}-2", str(child)]
    threads = read_json(out / "pid_tid_map.json")
    # The shell is not on the whitelist.
    assert threads == {
        keys[0]: [],
        keys[1]: [{"pin_tid": 0, "os_tid": shell}],
        keys[2]: [{"pin_tid": 0, "os_tid": child}],
    }
    suffixes = (".este.json", ".rtn.csv", ".bb.csv", ".trace.csv", ".log")
    graphs = {f"pid{keys[1]}_tid{shell}_ptid0.json", f"pid{child}_tid{child}_ptid0.json"}
    assert {path.name for path in out.iterdir()} == {
        "pid_tid_map.json",
        *graphs,
        *(f"pid{key}{suffix}" for key in keys for suffix in suffixes),
    }
    assert read_rows(out / f"pid{shell}.trace.csv") == []
    assert "configuration: from a file" in (out / f"pid{shell}.log").read_text()
    assert "no image is on the whitelist" in (out / f"pid{shell}.log").read_text()
    assert all(read_json(out / f"pid{key}.este.json")["pid"] in (shell, child) for key in keys)
    # Again: what is there stays.
    assert clew(configured, "-q", "record", "-o", "o.clew", "--config", "este.toml", "--", "/bin/true").stderr == b""
    assert len(list(out.glob("pid*.log"))) == 4
    # The same by export.
    export = clew(configured, "export", "sh.clew", "--to", "este", "--whitelist", "/true")
    assert export.status == 0 and "wrote sh.este: " in export.stderr.decode()
    for path in (configured / "sh.este").iterdir():
        if path.suffix != ".log" and path.name != "pid_tid_map.json":
            assert path.read_bytes() == (out / path.name).read_bytes()
    again = clew(configured, "export", "sh.clew", "--to", "este", "--whitelist", "/true")
    assert again.status == 2 and b"exists already" in again.stderr and again.stderr.count(b"\n") == 1
    assert clew(configured, "-q", "export", "sh.clew", "--to", "este", "--force").status == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--mode", "counts"], "leave out --mode counts"),
        (["--exclude", "libc.so*"], "leave out --include and --exclude"),
    ],
)
def test_options_that_contradict_a_configuration(configured: Path, options: list[str], told: str) -> None:
    run = clew(configured, "record", "--config", "este.toml", *options, "--", "/bin/true")
    assert run.status == 2 and told in run.stderr.decode() and run.stderr.count(b"\n") == 1
    assert {path.name for path in configured.iterdir()} == {"este.toml"}


def test_a_whitelist_of_nothing_is_told(configured: Path) -> None:
    (configured / "este.toml").write_text(CONFIG.replace("/TRUE", "/nothing"))
    run = clew(configured, "record", "--config", "este.toml", "--", "/bin/true")
    assert run.status == 0
    assert "name one, with --whitelist or as binary-whitelist" in run.stderr.decode()


def test_a_place_that_is_no_folder_is_told_before_anything_runs(configured: Path) -> None:
    (configured / "gen").write_text("a file")
    run = clew(configured, "record", "--config", "este.toml", "--", "/bin/touch", "ran")
    assert run.status == 1 and b"name another as output-dir" in run.stderr
    assert {path.name for path in configured.iterdir()} == {"este.toml", "gen"}


def test_files_that_could_not_be_written_leave_the_trace(configured: Path) -> None:
    """The program's status counts, and what is left to do is told."""
    script = "mkdir gen && touch gen/out && exit 3"
    run = clew(configured, "record", "--config", "este.toml", "--", "/bin/sh", "-c", script)
    assert run.status == 3 and b"clew export sh.clew --to este" in run.stderr
    assert Trace(configured / "sh.clew").mode == "full"


def test_what_export_refuses(tmp_path: Path) -> None:
    assert runs.record(["/bin/true"], tmp_path / "t.clew").status == 0
    for words, status, told in (
        (["--to", "este"], 2, "record with --mode full"),
        (["--to", "este", "-o", "-"], 2, "name one with -o"),
        (["--to", "drcov", "--whitelist", "true"], 2, "are for --to este"),
        (["--to", "drcov", "--dynamic"], 2, "are for --to este"),
        (["--to", "papyrus"], 2, "este"),
    ):
        run = clew(tmp_path, "export", "t.clew", *words)
        assert run.status == status and told in run.stderr.decode() and run.stderr.count(b"\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"t.clew"}


def export(trace: Trace, folder: Path, scope: EsteScope | None = None) -> int:
    folder.mkdir()
    EsteExporter(scope).export_into(trace, folder)
    pid: int = trace.processes["pid"][0].as_py()
    return pid


def test_losses_are_breaks(tmp_path: Path) -> None:
    trace = Trace(find_trace("losses"))
    pid = export(trace, tmp_path / "out")
    rows = read_rows(tmp_path / "out" / f"pid{pid}.trace.csv")
    log = (tmp_path / "out" / f"pid{pid}.log").read_text()
    lines = [line for line in log.splitlines() if "executions of blocks in front of row" in line]
    path = trace.path()
    gaps = [piece.place.execution for piece in path.iter_pieces() if piece.is_after_loss]
    assert len(lines) == len(gaps) >= 1
    # Links are between rows that follow each other, and not over the places that the log tells of.
    places = {int(line.split(" row ")[1].split()[0]) for line in lines}
    expected: Counter[tuple[int, int, bool]] = Counter()
    last, is_across = None, False
    for number, (block, *_) in enumerate(rows):
        if number in places:
            last = None
        if block < 0:
            is_across = True
            continue
        if last is not None:
            expected[last, block, is_across] += 1
        last, is_across = block, False
    graph = read_json(tmp_path / "out" / f"pid{pid}_tid{pid}_ptid0.json")
    found: Counter[tuple[int, int, bool]] = Counter()
    for link in graph["links"]:
        found[link["source"], link["target"], "non_white" in link] += link["count"]
    assert found == expected
    assert "lost" in log


def test_a_signal_that_ends_the_program_is_an_error(configured: Path) -> None:
    run = clew(configured, "record", "--config", "este.toml", "--", "/bin/sh", "-c", "exit 3")
    assert run.status == 3
    run = clew(configured, "record", "-o", "killed.clew", "--config", "este.toml", "--", "/bin/sh", "-c", "kill -9 $$")
    assert run.status == 128 + 9
    for name, expected in (
        ("sh.clew", "[INFO] process ended with code 3"),
        ("killed.clew", "[ERROR] process ended by signal 9"),
    ):
        [pid] = Trace(configured / name).processes["pid"].to_pylist()
        lines = (configured / "gen/out" / f"pid{pid}.log").read_text().splitlines()
        assert lines[-1] == expected
        assert all(line.startswith(("[INFO] ", "[WARNING] ", "[ERROR] ")) for line in lines)


def test_threads_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each thread all its executions of the whitelist, in its order, however few paths are open at a time."""
    trace = Trace(find_trace("shapes-full"))
    pid = export(trace, tmp_path / "few")
    rows = read_rows(tmp_path / "few" / f"pid{pid}.trace.csv")
    monkeypatch.setattr(order, "MAX_OPEN", 1)
    monkeypatch.setattr(order, "MAX_RUN", 64)
    export(trace, tmp_path / "one")
    names = {path.name for path in (tmp_path / "few").iterdir()}
    assert names == {path.name for path in (tmp_path / "one").iterdir()}
    for name in names:
        assert (tmp_path / "few" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    blocks = {idx: address for idx, address, *_ in read_block_rows(tmp_path / "few" / f"pid{pid}.bb.csv")}
    found: dict[int, list[int]] = defaultdict(list)
    for block, os_tid, _, _ in rows:
        if block >= 0:
            found[os_tid].append(blocks[block])
    main = next(row["image_id"] for row in trace.images.to_pylist() if row["path"].endswith("/shapes"))
    address = {row["block_id"]: row["app_pc"] for row in trace.blocks.to_pylist() if row["image_id"] == main}
    tids = trace.threads["tid"].to_pylist()
    assert len(tids) > 1
    for tid in tids:
        assert found[tid] == [address[block] for block in trace.path(tid) if block in address]


def test_system_calls_lie_where_they_were_made() -> None:
    """By their places threads are told of in one order."""
    trace = Trace(find_trace("shapes-full"))
    for row in trace.threads.to_pylist():
        path = trace.path(row["tid"])
        times = read_path_times(path, row["start_ns"], row["end_ns"])
        marks = set(times.mark.tolist())
        numbers = [
            (number, event)
            for number in range(len(path.stretches))
            for event in np.flatnonzero(path.stretches.events(number)["event_kind"] == PathEventKind.NOTE).tolist()
        ]
        assert numbers
        # The first ones of a stretch: to look for one goes through all in front of it.
        assert all(path.find_event_place(*place).execution in marks for place in numbers[:40])


@pytest.mark.parametrize(
    "name",
    [
        *("code_faults", "coroutines", "no_address_runtime"),
        *(pytest.param(name, marks=pytest.mark.stress) for name in ("callback_throw", "signal_races")),
    ],
)
def test_calls_are_those_that_were_counted(name: str, tmp_path: Path) -> None:
    """Of each routine outside as many as edges led to it from inside, though signals and faults come in between."""
    program = find(name)
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    build_one(program)
    runs.record([program.path], tmp_path / "t.clew", "--mode", "full")
    trace = Trace(tmp_path / "t.clew")
    pid = export(trace, tmp_path / "out")
    with (tmp_path / "out" / f"pid{pid}.rtn.csv").open(newline="") as file:
        address = {int(row["idx"]): int(row["addr"]) for row in csv.DictReader(file)}
    rows = read_rows(tmp_path / "out" / f"pid{pid}.trace.csv")
    found = Counter(address[row[3]] for row in rows if row[3] >= 0)
    main = next(row["image_id"] for row in trace.images.to_pylist() if row["path"] == str(program.path))
    blocks = {row["block_id"]: (row["app_pc"], row["image_id"] == main) for row in trace.blocks.to_pylist()}
    # A return to where no call returns is a jump among edges, and no call for all that.
    returns = {row["block_id"] for row in trace.blocks.to_pylist() if row["exit_kind"] == "return"}
    calls = {
        row["edge_id"]: blocks[row["target_block_id"]][0]
        for row in trace.edges.to_pylist()
        if row["kind"] in ("call", "indirect_call", "jump", "indirect_jump")
        and row["source_block_id"] not in returns
        and blocks[row["source_block_id"]][1]
        and not blocks[row["target_block_id"]][1]
    }
    expected: Counter[int] = Counter()
    for row in trace.counts.to_pylist():
        if row["edge_id"] in calls and row["executions"]:
            expected[calls[row["edge_id"]]] += row["executions"]
    assert found == expected
    assert "[WARNING] " not in (tmp_path / "out" / f"pid{pid}.log").read_text()


def read_block_rows(path: Path) -> list[tuple[int, ...]]:
    with path.open(newline="") as file:
        return [(int(row[0]), int(row[1])) for row in list(csv.reader(file))[1:]]
