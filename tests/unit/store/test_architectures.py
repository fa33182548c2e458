"""What traces say of their processes' architecture: new ones, those of before, and those that nobody knows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.analysis.graph.function_code import CodeText
from clew.analysis.graph.graph import ProcessGraph
from clew.binary.architectures.x86_64 import X86_64
from clew.store.names import MANIFEST_NAME
from clew.store.trace import Trace
from tests.unit.small_trace import small_trace, write_trace


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_trace(small_trace(), tmp_path / "t.clew")
    return tmp_path / "t.clew"


def rewrite_processes(directory: Path, architecture: str | None, machine: dict[str, str] | None = None) -> Trace:
    """The trace, with another word for the architecture, or with no such column."""
    trace = Trace(directory)
    for part in trace.manifest.tables["processes"]["parts"]:
        table = pq.read_table(directory / part).drop_columns(["architecture"])
        if architecture is not None:
            table = table.append_column("architecture", pa.array([architecture] * table.num_rows))
        pq.write_table(table, directory / part)
    if machine is not None:
        path = directory / MANIFEST_NAME
        path.write_text(json.dumps(json.loads(path.read_text()) | {"machine": machine}))
    return Trace(directory)


def texts(trace: Trace) -> list[list[str]]:
    graph = ProcessGraph(trace, 0)
    rows = CodeText(graph).describe_blocks(range(graph.n_blocks), graph.count())
    return [[instruction["text"] for instruction in row["instructions"]] for row in rows]


def test_a_process_has_an_architecture(directory: Path) -> None:
    trace = Trace(directory)
    assert trace.processes["architecture"].to_pylist() == ["x86_64"]
    assert trace.architecture_of(0) is X86_64
    assert trace.architecture_of(5).name == ""


@pytest.mark.parametrize(("machine", "wanted"), [({}, "x86_64"), ({"architecture": "aarch64"}, "aarch64")])
def test_a_trace_of_before_is_of_its_machine(directory: Path, machine: dict[str, str], wanted: str) -> None:
    trace = rewrite_processes(directory, None, machine)
    assert trace.processes["architecture"].to_pylist() == [wanted]
    assert trace.processes.schema.names[-1] == "architecture"
    assert trace.read_rows("processes", [0], ["architecture", "pid"]) == [{"architecture": wanted, "pid": 7}]
    assert trace.architecture_of(0).name == wanted


def test_code_of_an_unknown_architecture_is_shown_undecoded(directory: Path) -> None:
    known = texts(Trace(directory))
    trace = rewrite_processes(directory, "pdp11")
    assert trace.architecture_of(0).name == "pdp11"
    unknown = texts(trace)
    assert len(unknown) == len(known)
    assert any(text != ["(bad)"] for text in known)
    assert all(text in ([], ["(bad)"]) for text in unknown)
