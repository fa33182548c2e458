"""What `clew api` tells of calls that are easily told wrong, by filters, forks, failures; as text, JSON and a trace."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

import clew
from tests.e2e import runs
from tests.e2e.test_api_command import run_clew
from tests.programs.build import SOURCES, build_plain

FUNCTIONS = {
    "Libraries": [
        {
            "Name": "misread",
            "Functions": [
                {
                    "Name": "conn_open",
                    "Filter": "Network",
                    "Error": "minus_one_errno",
                    "Parameters": [
                        {"Index": 0, "Name": "path", "Type": "Info", "CType": "const char *", "RawType": "path"},
                        {"Index": -1, "Name": "result", "Type": "Info", "CType": "int", "RawType": "int"},
                    ],
                },
                {
                    "Name": "conn_find",
                    "Filter": "Network",
                    "Error": "null_errno",
                    "Parameters": [
                        {"Index": 0, "Name": "name", "Type": "Info", "CType": "const char *", "RawType": "string"},
                        {"Index": -1, "Name": "result", "Type": "Info", "CType": "void *", "RawType": "pointer"},
                    ],
                },
            ],
        }
    ]
}


@pytest.fixture(scope="module")
def program() -> Path:
    return build_plain(SOURCES / "api" / "misread.c", "-O1")


def told(program: Path, tmp_path: Path, what: str, *arguments: str) -> list[str]:
    """The lines of what is told."""
    done = run_clew([str(program), what, str(tmp_path / "old")], *arguments, path=tmp_path / "told")
    assert done.returncode == 0, done.stderr
    return (tmp_path / "told").read_text().splitlines()


def test_what_is_not_told_changes_what_descriptors_stand_for(program: Path, tmp_path: Path) -> None:
    """A pipe is no call about files, and its descriptor has the number that a file had."""
    trace = tmp_path / "it.clew"
    lines = told(program, tmp_path, "descriptors", "-y", "--filter", "File", "--trace", str(trace))
    (read,) = (line for line in lines if '"pipepipe"' in line and "read(" in line)
    assert "<pipe>" in read and not any(" pipe" in line for line in lines)
    content = clew.Trace(trace)
    assert not content.verify()
    calls, names = content.calls.to_pylist(), {row["entity_id"]: row["name"] for row in content.entities.to_pylist()}
    assert {call["filter"] for call in calls} == {"File"}
    by_id = {call["call_id"]: call for call in calls}
    used = {
        (by_id[one["call_id"]]["name"], names[one["entity_id"]])
        for one in content.references.to_pylist()
        if "old" in names[one["entity_id"]]
    }
    assert used == {("openat", str(tmp_path / "old")), ("close", str(tmp_path / "old"))}


def test_descriptors_in_arrays_and_structures_have_names(program: Path, tmp_path: Path) -> None:
    (made,) = (line for line in told(program, tmp_path, "descriptors", "-y") if "pipe2(" in line)
    first = int(re.search(r"\[(\d+)<pipe>", made)[1])  # type: ignore[index]
    assert f"pipe2([{first}<pipe>, {first + 1}<pipe>], 0) = 0" in made
    (asked,) = (line for line in told(program, tmp_path, "connect", "-y") if " poll(" in line)
    assert re.search(r"poll\(\[\{fd=\d+<127\.0\.0\.1:\d+>, events=POLLOUT\}\], 1, 10000\)", asked)


@pytest.mark.parametrize("asked", [["--filter", "File"], []])
def test_only_calls_about_a_file_are_told_and_counted(program: Path, tmp_path: Path, asked: list[str]) -> None:
    about = ["-P", str(tmp_path / "old"), *asked]
    lines = told(program, tmp_path, "descriptors", *about)
    assert [re.search(r"\d (\w+)\(", line)[1] for line in lines] == ["openat", "close"]  # type: ignore[index]
    counted = told(program, tmp_path, "descriptors", "-c", *about)
    assert [line.split()[-1] for line in counted] == ["call", "openat", "close", "total"] or [
        line.split()[-1] for line in counted
    ] == ["call", "close", "openat", "total"]
    assert counted[-1].split()[1] == "2"
    by_number = told(program, tmp_path, "descriptors", "-c", "--fd", "1", "--filter", "File")
    assert by_number[-1].split()[1] == "2", "printf's write, and the fstat before it"


def test_who_is_made_has_not_made_the_call_that_made_it(program: Path, tmp_path: Path) -> None:
    trace = tmp_path / "it.clew"
    lines = told(program, tmp_path, "children", "--trace", str(trace))
    makers = [line.split()[0] for line in lines if "clone(" in line or "clone3(" in line]
    assert len(makers) == len(set(makers)) == 2
    content = clew.Trace(trace)
    processes = [row for row in content.entities.to_pylist() if row["kind"] == "process"]
    assert len(processes) == 3 and all(row["pid"] is not None for row in processes)


def test_a_connection_that_nobody_waits_for_has_its_peer(program: Path, tmp_path: Path) -> None:
    lines = told(program, tmp_path, "connect", "-y")
    (sent,) = (line for line in lines if "sendto(" in line)
    (asked,) = (line for line in lines if "connect(" in line)
    port = re.search(r"htons\((\d+)\)", asked)[1]  # type: ignore[index]
    assert "EINPROGRESS" in asked and f"<127.0.0.1:{port}>" in sent


def test_functions_fail_as_their_description_says(program: Path, tmp_path: Path) -> None:
    described, trace = tmp_path / "conn.json", tmp_path / "it.clew"
    described.write_text(json.dumps(FUNCTIONS))
    asked = ["--api-file", str(described), "--function", "misread:conn_*"]
    lines = told(program, tmp_path, "functions", *asked, "--failed")
    assert [line.split(" ", 2)[2].rpartition(" <")[0] for line in lines] == [
        'misread!conn_open("/no/such") = -1',
        'misread!conn_find("b") = NULL',
    ]
    counted = told(program, tmp_path, "functions", *asked, "-c")
    assert [line.split()[1:] for line in counted[-1:]] == [["4", "2", "total"]]
    calls = [json.loads(line) for line in told(program, tmp_path, "functions", *asked, "--json", "--trace", str(trace))]
    assert [(one["result"], one["error"], one["failed"]) for one in calls if one["name"] == "conn_open"] == [
        (-1, "failed", True),
        (3, None, False),
    ]
    rows = [(row["name"], row["result"], row["error"]) for row in clew.Trace(trace).calls.to_pylist()]
    assert ("conn_open", -1, "failed") in rows and ("conn_find", 0, "failed") in rows


def test_lines_of_json_are_as_their_schema_has_them(program: Path, tmp_path: Path) -> None:
    schema = json.loads((runs.ROOT / "src/clew/api/calls.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    for what, more in {"connect": ["--stack"], "descriptors": ["--function", "libc.so*:open"], "children": []}.items():
        lines = told(program, tmp_path, what, "--json", *more)
        calls = [json.loads(line) for line in lines]
        assert calls and not [error.message for one in calls for error in validator.iter_errors(one)]
        if what == "descriptors":
            continue
        opened = next(one for one in calls if one["name"] == "openat")
        first, path = opened["arguments"][:2]
        assert (first["value"], first["text"], path["text"]) == (-100, "AT_FDCWD", '"/etc/ld.so.cache"')


@pytest.mark.parametrize("place", ["nowhere/told", "."])
def test_where_nothing_can_be_written_is_told_in_a_line(program: Path, tmp_path: Path, place: str) -> None:
    done = run_clew([str(program), "", ""], path=tmp_path / place)
    assert done.returncode == 1 and done.stderr.decode().startswith(f"clew: {tmp_path / place}: ")
    assert done.stderr.count(b"\n") == 1


def test_a_full_disk_is_told_by_the_name_of_what_is_on_it(program: Path) -> None:
    done = run_clew([str(program), "", ""], path=Path("/dev/full"))
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1) and b"/dev/full: the disk is full" in done.stderr


def test_all_calls_have_stacks_where_these_are_asked_for(program: Path, tmp_path: Path) -> None:
    lines = told(program, tmp_path, "connect", "--stack")
    calls = [line for line in lines if line and line[0].isdigit()]
    assert len(calls) > 20 and len(lines) > 2 * len(calls)


def test_what_a_child_in_its_parents_memory_opens_is_its_own(program: Path, tmp_path: Path) -> None:
    trace = tmp_path / "it.clew"
    with open("/etc/hostname") as given:
        words = [sys.executable, "-m", "clew", "api", "-y", "--trace", str(trace), "-o", str(tmp_path / "told")]
        environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
        subprocess.run([*words, "--", program, "vfork", "."], env=environ, stdin=given, check=True, timeout=120)
    lines = (tmp_path / "told").read_text().splitlines()
    parent = next(line for line in lines if "vfork() = " in line).split()[0]
    child = next(line for line in lines if "dup2(" in line).split()[0]
    (peeked,) = (line for line in lines if "pread64(" in line and ", 1, 0)" in line)
    assert parent != child and peeked.startswith(parent) and "</etc/passwd>" in peeked
    # What it executes has its descriptors.
    given_to_it = [line for line in lines if line.startswith(child) and re.search(r"\w\(0<", line)]
    assert given_to_it and all("(0</etc/hostname>" in line for line in given_to_it)
    content = clew.Trace(trace)
    assert not content.verify()
    names = {row["entity_id"]: row["name"] for row in content.entities.to_pylist()}
    calls = {row["call_id"]: row for row in content.calls.to_pylist()}
    of_hosts = {
        (calls[one["call_id"]]["name"], calls[one["call_id"]]["tid"])
        for one in content.references.to_pylist()
        if names[one["entity_id"]] == "/etc/hosts"
    }
    assert {tid for _, tid in of_hosts} == {int(child)} and ("dup2", int(child)) in of_hosts


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_calls_that_handlers_leave_by_jumps_are_in_good_traces(program: Path, tmp_path: Path, mode: str) -> None:
    trace = tmp_path / "it.clew"
    lines = told(program, tmp_path, "jump", "--trace", str(trace), "--mode", mode)
    assert sum(bool(re.search(r" read\(\d+, 0x[0-9a-f]+, 1\) = \?", line)) for line in lines) == 3
    assert not clew.Trace(trace).verify()


def test_names_that_are_no_text_are_in_traces(tmp_path: Path) -> None:
    bad = os.fsencode(tmp_path) + b"/bad\xff\xe9"
    Path(os.fsdecode(bad)).write_text("x")
    trace = tmp_path / "it.clew"
    done = run_clew(["cat", os.fsdecode(bad)], "--trace", str(trace), path=tmp_path / "told")
    assert (done.returncode, done.stdout) == (0, b"x")
    content = clew.Trace(trace)
    assert not content.verify() and content.calls.num_rows > 10
    assert f"{tmp_path}/bad\\xff\\xe9" in content.entities["name"].to_pylist()


def test_a_path_means_the_file_by_whatever_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    for asked in ("file", "./link", str(tmp_path / "file"), f"{tmp_path}/l*"):
        done = run_clew(["cat", "./link"], "-P", asked, path=tmp_path / "told", cwd=tmp_path)
        text = (tmp_path / "told").read_text()
        assert done.stdout == b"x" and 'openat(AT_FDCWD, "./link"' in text and "read(" in text, asked


def test_who_makes_nothing_but_calls_is_left_in_time(program: Path, tmp_path: Path) -> None:
    """However long it takes to tell them; and one more signal ends that."""
    target = subprocess.Popen([program, "forever", str(tmp_path / "old")])
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
    words = [sys.executable, "-m", "clew", "api", "--pid", str(target.pid), "-o", str(tmp_path / "told")]
    maps = Path(f"/proc/{target.pid}/maps")
    try:
        run_clew([], "--pid", str(target.pid), "--duration", "1", path=tmp_path / "told")
        times = [float(line.split()[1]) for line in (tmp_path / "told").read_text().splitlines()]
        assert len(times) > 1000 and times[-1] - times[0] < 2 and "memfd:clew" not in maps.read_text()
        with subprocess.Popen(words, env=environ, stderr=subprocess.PIPE, text=True) as given_up:
            while "memfd:clew" not in maps.read_text():
                time.sleep(0.02)
            time.sleep(1)
            given_up.send_signal(signal.SIGTERM)
            while "memfd:clew" in maps.read_text():
                time.sleep(0.02)
            given_up.send_signal(signal.SIGTERM)
            said = given_up.communicate(timeout=60)[1]
        assert given_up.returncode == 0 and (not said or "calls are not told" in said)
    finally:
        target.kill()
        target.wait()
