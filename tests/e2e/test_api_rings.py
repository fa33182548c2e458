"""`clew api`: operations of io_uring, held against what the program itself says that it submitted, and got back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.api.reading import load_built_in
from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain

BIG_ENTRIES = 0x400 | 0x800
NO_MMAP = 0x4000
NO_ARRAY = 0x10000
POLLED = 2
LATE_TASKS = 0x1000 | 0x2000
"""What rings have to be that can be resized: of one thread, which does the work of completions when it waits."""

OPCODES = {function.name: opcode for opcode, function in load_built_in().ring_operations.items()}


def run(tmp_path: Path, *words: str) -> tuple[list[dict[str, Any]], list[str], str]:
    """The calls that were told, what the program said, and clew's own words."""
    program = str(build_plain(SOURCES / "api" / "rings.c", "-O1", "-pthread"))
    natively = subprocess.run([program, *words], env=runs.environment(), capture_output=True, check=False, timeout=60)
    if natively.returncode == 77:
        pytest.skip(f"this machine makes no such ring of io_uring: {' '.join(words)}")
    path = tmp_path / "calls"
    command = [sys.executable, "-m", "clew", "api", "--json", "-y", "-s", "64", "-o", str(path), "--", program, *words]
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
    done = subprocess.run(command, env=environ, capture_output=True, check=False, timeout=180, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "done"
    return [json.loads(line) for line in path.read_text().splitlines()], lines, done.stderr


def operations_of(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [call for call in calls if call["name"] in OPCODES]


def data_of(call: dict[str, Any]) -> int:
    found = re.search(r"user_data=(\w+)", call["text"])
    return int(found[1], 0) if found else 0


def assert_all_told(calls: list[dict[str, Any]], lines: list[str]) -> None:
    """Each operation with its result, as the program saw them."""
    submitted = {int(data, 16): int(opcode) for _, data, opcode in (one.split() for one in lines if one[0] == "S")}
    seen = Counter(
        (submitted[int(data, 16)], int(data, 16), int(result))
        for _, data, result in (one.split() for one in lines if one[0] == "C")
    )
    told = Counter((OPCODES[call["name"]], data_of(call), call["result"]) for call in operations_of(calls))
    assert told == seen


@pytest.mark.parametrize("flags", [0, BIG_ENTRIES, NO_MMAP, NO_ARRAY, NO_ARRAY | NO_MMAP | BIG_ENTRIES])
def test_rings_that_wrap_around_many_times(flags: int, tmp_path: Path) -> None:
    calls, lines, _ = run(tmp_path, "wrap", hex(flags))
    assert len(operations_of(calls)) == 500
    assert_all_told(calls, lines)


@pytest.mark.parametrize("how", ["threads", "multishot", "direct", "dup"])
def test_results_are_those_that_the_program_sees(how: str, tmp_path: Path) -> None:
    calls, lines, _ = run(tmp_path, how)
    assert_all_told(calls, lines)
    if how == "threads":
        assert len({call["tid"] for call in operations_of(calls)}) == 4


def test_operations_are_told_as_the_calls_that_they_stand_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    calls, lines, _ = run(tmp_path, "files", "0", str(path))
    assert_all_told(calls, [line for line in lines if line[0] in "SC"])
    texts = {data_of(call): call["text"] for call in operations_of(calls)}
    number = next(line for line in lines if line.startswith("file ")).split()[1]
    file, end = f"{number}<{path}>", "ring=3<other>, user_data="
    assert texts[0x10].endswith(f'"{path}", O_RDWR|O_CREAT|O_TRUNC, 0600, {end}0x10) = {file}')
    assert texts[0x11] == f'IORING_OP_WRITE({file}, "by a ring", 9, 0, sqe_flags=IOSQE_IO_LINK, {end}0x11) = 9'
    assert texts[0x12] == f'IORING_OP_READ({file}, "by a ring", 16, 0, {end}0x12) = 9'
    assert texts[0x13].endswith("= -1 EBADF (Bad file descriptor)")
    assert texts[0x14] == f"IORING_OP_CLOSE({file}, {end}0x14) = 0"
    # Each begins within the call that submitted it.
    enters = [call for call in calls if call["name"] == "io_uring_enter"]
    for call in operations_of(calls):
        around = [one for one in enters if 0 <= call["time_ns"] - one["time_ns"] <= one["duration_ns"]]
        assert [one["pc"] for one in around] == [call["pc"]]


def test_a_rings_own_files_are_no_descriptors(tmp_path: Path) -> None:
    calls, _, _ = run(tmp_path, "direct")
    texts = {data_of(call): call["text"] for call in operations_of(calls)}
    assert "file_index=1" in texts[0x30]
    assert texts[0x30].endswith("= 0")
    assert texts[0x31].startswith('IORING_OP_READ(0, "\\0", 1, 0, sqe_flags=IOSQE_FIXED_FILE')
    assert texts[0x32].startswith("IORING_OP_CLOSE(0, file_index=1")


def test_operations_that_can_not_be_told_apart_are_said_to_be_so(tmp_path: Path) -> None:
    calls, _, _ = run(tmp_path, "same")
    assert [call["text"].partition(" = ")[2] for call in operations_of(calls)] == ["0 (one of 3)", "0 (one of 2)", "0"]


def test_a_childs_operations_are_its_own(tmp_path: Path) -> None:
    calls, _, _ = run(tmp_path, "fork")
    told = operations_of(calls)
    assert sorted(data_of(call) for call in told) == [0x50, 0x51, 0x52]
    pids = {data_of(call): call["pid"] for call in told}
    assert pids[0x51] == pids[0x52] != pids[0x50]


def test_what_never_has_a_result_has_none(tmp_path: Path) -> None:
    calls, _, _ = run(tmp_path, "left")
    assert [call["result"] for call in operations_of(calls)] == [None]


def test_what_is_open_when_another_program_comes_has_none(tmp_path: Path) -> None:
    """And what is open when that fails goes on."""
    calls, _, _ = run(tmp_path, "replaced")
    assert [call["result"] for call in calls if call["name"] == "execve"] == [-2, 0]
    first = [call for call in operations_of(calls) if data_of(call) != 0x40]
    assert sorted((data_of(call), call["result"]) for call in first) == [(0x70, None), (0x71, 0)]
    assert len(operations_of(calls)) == 5


def test_rings_that_a_thread_enters_by_an_index(tmp_path: Path) -> None:
    calls, lines, says = run(tmp_path, "registered")
    assert_all_told(calls, lines)
    texts = {data_of(call): call["text"] for call in operations_of(calls)}
    # By its descriptor, as long as there is one: the index is none.
    assert [texts[data].partition("ring=")[2][:2] for data in range(0x90, 0x93)] == ["3<"] * 3
    assert "ring=5" not in texts[0x93] and "ring=3" not in texts[0x93]
    assert "unseen" not in says


def test_rings_that_get_another_size(tmp_path: Path) -> None:
    calls, lines, says = run(tmp_path, "resized", hex(LATE_TASKS | NO_ARRAY))
    assert len(operations_of(calls)) == 62
    assert_all_told(calls, lines)
    assert "unseen" not in says


def test_results_name_the_buffers_that_the_kernel_chose(tmp_path: Path) -> None:
    calls, lines, _ = run(tmp_path, "buffers")
    assert_all_told(calls, lines)
    texts = {data_of(call): call["text"].partition(") = ")[2] for call in operations_of(calls)}
    assert texts.pop(0xC0) == "0"
    # The upper half of the flags is its number.
    assert sorted(texts.values()) == [
        "-1 ENOBUFS (No buffer space available)",
        "4 (IORING_CQE_F_BUFFER|0x60000)",
        "4 (IORING_CQE_F_BUFFER|0x70000)",
        "5 (IORING_CQE_F_BUFFER|0x12340000)",
    ]


def test_what_a_thread_of_the_kernels_takes_is_told_as_unseen(tmp_path: Path) -> None:
    calls, lines, says = run(tmp_path, "polled", hex(POLLED))
    assert operations_of(calls) == []
    assert len([line for line in lines if line[0] == "C"]) == 3
    assert "3 operations of io_uring were submitted unseen" in says


def test_a_hostile_ring_does_no_harm(tmp_path: Path) -> None:
    calls, _, _ = run(tmp_path, "hostile")
    assert calls[-1]["name"] == "exit_group"


def test_a_trace_has_them_as_calls(tmp_path: Path) -> None:
    program = str(build_plain(SOURCES / "api" / "rings.c", "-O1", "-pthread"))
    out, path = tmp_path / "out.clew", tmp_path / "file"
    words = [program, "files", "0", str(path)]
    if subprocess.run(words, env=runs.environment(), capture_output=True, check=False, timeout=60).returncode == 77:
        pytest.skip("this machine makes no ring of io_uring")
    command = [sys.executable, "-m", "clew", "api", "--trace", str(out), "-o", "/dev/null", "--", *words]
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
    subprocess.run(command, env=environ, capture_output=True, check=True, timeout=180)
    trace = clew.Trace(out)
    assert not trace.verify()
    rows = trace.read("calls", ["call_id", "parent_call_id", "name", "library"]).to_pylist()
    names = {row["call_id"]: row["name"] for row in rows}
    own = [row for row in rows if row["library"] == "io_uring"]
    assert len(own) == 5
    assert {names[row["parent_call_id"]] for row in own} == {"io_uring_enter"}
    assert not {row["call_id"] for row in own} & {row["parent_call_id"] for row in rows}
    read = {row["entity_id"]: row["name"] for row in trace.read("entities", ["entity_id", "name"]).to_pylist()}
    references = trace.read("references", ["call_id", "entity_id", "role"]).to_pylist()
    roles = {
        one["role"]
        for one in references
        if one["call_id"] in {row["call_id"] for row in own} and read[one["entity_id"]] == str(path)
    }
    assert roles == {"opened", "written", "read", "closed"}
