"""The command line on real traces: JSON keeps its keys, exports say what the trace says, errors are one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from clew import __version__
from tests.e2e import runs
from tests.programs.build import find


@pytest.fixture(scope="module")
def trace(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of a small dynamic program."""
    path = tmp_path_factory.mktemp("command_line") / "calls.clew"
    assert runs.record([find("calls").path], path).status == 0
    return path


def clew(*words: str | Path, **how: Any) -> runs.Run:
    return runs.run(runs.clew_command(*words), **how)


def clew_json(*words: str | Path) -> Any:
    run = clew(*words)
    assert (run.status, run.stderr) == (0, b"")
    return json.loads(run.stdout)


def test_info_keeps_its_keys(trace: Path) -> None:
    info = clew_json("info", trace, "--json")
    assert {"format", "command", "mode", "totals", "processes", "cpu"} <= info.keys()
    assert {"instructions", "block_executions", "blocks", "edges", "edge_executions", "lost_records"} <= info[
        "totals"
    ].keys()
    (process,) = info["processes"]
    assert {"pid", "parent_pid", "executable", "exit", "threads", "images"} <= process.keys()
    assert process["exit"] == {"code": 0}
    thread_keys = {"tid", "name", "instructions", "block_executions", "tags", "stored_bytes", "end"}
    assert all(thread_keys <= thread.keys() for thread in process["threads"])
    image_keys = {"path", "base", "instructions", "block_executions", "blocks"}
    assert all(image_keys <= image.keys() for image in process["images"])
    assert all(re.fullmatch("0x[0-9a-f]+", image["base"]) for image in process["images"])
    assert {"target_seconds", "controller_seconds"} <= info["cpu"].keys()
    assert info["command"] == [str(find("calls").path)]
    assert info["mode"] == "counts"
    assert sum(image["instructions"] for image in process["images"]) == info["totals"]["instructions"]


REPORT_KEYS = {
    "function": {"function", "image"},
    "block": {"block", "symbol"},
    "edge": {"source", "target", "kind"},
    "line": {"file", "line"},
    "image": {"image"},
    "thread": {"tid"},
}


@pytest.mark.parametrize("by", REPORT_KEYS)
def test_report_keeps_its_keys(by: str, trace: Path) -> None:
    report = clew_json("report", trace, "--by", by, "--json", "-n", "1000000")
    assert report["by"] == by
    wanted = {"pid", "instructions", "executions"} | REPORT_KEYS[by]
    assert all(wanted <= row.keys() for row in report["rows"])
    if by in ("function", "block", "image", "thread"):
        totals = clew_json("info", trace, "--json")["totals"]
        assert sum(row["instructions"] for row in report["rows"]) == totals["instructions"]
    else:
        assert report["rows"] or by == "line"


def test_verify_says_so(trace: Path) -> None:
    assert clew("verify", trace).status == 0
    assert clew_json("verify", trace, "--json") == {"well_formed": True, "findings": [], "losses": {}, "releases": []}


def test_drcov_holds_the_blocks_of_the_trace(trace: Path, tmp_path: Path) -> None:
    target = tmp_path / "calls.drcov"
    assert clew("export", trace, "--to", "drcov", "-o", target).status == 0
    content = target.read_bytes()
    head, _, table = content.partition(b"BB Table: ")
    count_text, _, rows = table.partition(b" bbs\n")
    modules = re.findall(rb"^ *(\d+), .*, ([^,\n]+)$", head, re.MULTILINE)
    names = {int(number): Path(os.fsdecode(path.strip())).name for number, path in modules}
    exported = set()
    for start, size, module in struct.iter_unpack("<IHH", rows[: int(count_text) * 8]):
        exported.add((names[module], start, size))
    recorded = runs.read(trace)
    images = {row["image_id"]: Path(row["path"]).name for row in recorded.trace.images.to_pylist()}
    blocks = {
        (images[row["image_id"]], row["offset"], row["size_bytes"])
        for row in recorded.trace.blocks.to_pylist()
        if row["image_id"] is not None and row["size_bytes"]
    }
    assert head.startswith(b"DRCOV VERSION: 2\n")
    assert len(rows) == int(count_text) * 8
    assert {row for row in exported if row[0] == "calls"} == {block for block in blocks if block[0] == "calls"}
    assert {row for row in exported if row[0] == "libc.so.6"} == {block for block in blocks if block[0] == "libc.so.6"}


def assert_error(run: runs.Run, status: int, *told: str) -> None:
    """One line on stderr that names the thing; nothing else."""
    text = run.stderr.decode()
    assert run.status == status, text
    assert run.stdout == b""
    assert text.endswith("\n")
    assert "Traceback" not in text
    if status != 2 or text.startswith("clew: "):
        assert text.startswith("clew: ")
        assert text.count("\n") == 1
    for part in told:
        assert part in text


def make_file(path: Path, content: bytes, mode: int = 0o755) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def make_elf_header(bits: int, machine: int) -> bytes:
    return b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9) + struct.pack("<HHI", 2, machine, 1) + bytes(100)


BAD_COMMANDS = {
    "missing": (None, 0o755, 2),
    "not-executable": (b"\x7fELF", 0o644, 2),
    "text": (b"just some text\n", 0o755, 2),
    "empty": (b"", 0o755, 2),
    "aarch64": (make_elf_header(64, 183), 0o755, 2),
    "i386": (make_elf_header(32, 3), 0o755, 2),
    "cut-short": (make_elf_header(64, 62)[:40], 0o755, 2),
}


@pytest.mark.parametrize("name", BAD_COMMANDS)
def test_record_of_what_cannot_run(name: str, tmp_path: Path) -> None:
    content, mode, status = BAD_COMMANDS[name]
    program = tmp_path / name
    if content is not None:
        make_file(program, content, mode)
    output = tmp_path / "out.clew"
    assert_error(clew("record", "-o", output, "--", program), status, name)
    assert not output.exists()


def test_record_of_a_script_runs_its_interpreter(tmp_path: Path) -> None:
    script = make_file(tmp_path / "script", b"#!/bin/sh\necho from a script\nexit 3\n")
    run = runs.record([script], tmp_path / "out.clew")
    assert (run.status, run.stdout, run.stderr) == (3, b"from a script\n", b"")
    runs.read(tmp_path / "out.clew")


def test_record_imports_only_what_it_needs(tmp_path: Path) -> None:
    environ = runs.environment() | {"PYTHONPROFILEIMPORTTIME": "1"}
    run = runs.record(["true"], tmp_path / "out.clew", environ=environ)
    imported = {line.rpartition(b"|")[2].strip().decode() for line in run.stderr.splitlines()}
    assert {"clew.recording.assembly.trace", "numpy._core", "pyarrow"} <= imported
    assert not imported & {"capstone", "drgn", "importlib.metadata", "numpy.ma", "numpy.lib", "pyarrow.dataset", "rich"}


def test_version() -> None:
    run = clew("--version")
    assert (run.status, run.stdout, run.stderr) == (0, f"clew {__version__}\n".encode(), b"")


@pytest.mark.parametrize("words", [["-q", "record"], ["record", "-q"], ["--quiet", "record", "--quiet"]])
def test_quiet_before_and_after_the_subcommand(words: list[str], tmp_path: Path) -> None:
    run = clew(*words, "-o", tmp_path / "out.clew", "--", "echo", "-q")
    assert (run.status, run.stdout, run.stderr) == (0, b"-q\n", b"")


def test_quiet_export(trace: Path, tmp_path: Path) -> None:
    run = clew("-q", "export", trace, "--to", "drcov", "-o", tmp_path / "out.drcov")
    assert (run.status, run.stdout, run.stderr) == (0, b"", b"")


def test_record_over_a_trace(trace: Path) -> None:
    assert_error(clew("record", "-o", trace, "--", "true"), 2, trace.name)


def test_record_where_nothing_can_be_written() -> None:
    assert_error(clew("record", "-o", "/proc/nothing/here.clew", "--", "true"), 1, "/proc/nothing")


def test_record_without_a_runtime(tmp_path: Path) -> None:
    environ = runs.environment() | {"CLEW_RUNTIME": str(tmp_path / "no-runtime")}
    output = tmp_path / "out.clew"
    assert_error(clew("record", "-o", output, "--", "true", environ=environ), 1, "no-runtime")
    assert not output.exists()


def test_record_with_a_bad_filter(tmp_path: Path) -> None:
    assert_error(clew("record", "-o", tmp_path / "t.clew", "--include", "0x5-0x2", "--", "true"), 2, "0x5-0x2")


def copy_trace(trace: Path, folder: Path) -> Path:
    return Path(shutil.copytree(trace, folder / "copy.clew"))


READERS = (("info",), ("report",), ("verify",), ("export", "--to", "drcov", "-o", "-"))


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_reading_what_is_no_good_trace(words: tuple[str, ...], trace: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.clew"
    assert_error(clew(*words, missing), 2, "missing.clew")
    assert_error(clew(*words, Path("/etc/passwd")), 2, "passwd")

    damaged = copy_trace(trace, tmp_path)
    manifest = damaged / "manifest.json"
    good = json.loads(manifest.read_text())
    manifest.write_text("{")
    assert_error(clew(*words, damaged), 1, "copy.clew")
    version_key = next(key for key in ("format", "format_version") if key in good)
    manifest.write_text(json.dumps(good | {version_key: 999}))
    assert_error(clew(*words, damaged), 1, "999")
    manifest.write_text(json.dumps(good))
    part = next((damaged / "blocks").iterdir())
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    assert_error(clew(*words, damaged), 1, "blocks")
    part.write_bytes(bytes(len(whole)))
    assert_error(clew(*words, damaged), 1, "blocks")


def test_export_to_no_such_format(trace: Path) -> None:
    run = clew("export", trace, "--to", "papyrus")
    assert run.status == 2
    assert b"papyrus" in run.stderr
    assert b"Traceback" not in run.stderr
