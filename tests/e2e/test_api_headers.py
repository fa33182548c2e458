"""`clew api --header`: functions that nothing describes but a header that somebody names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain

FOLDER = SOURCES / "api" / "gadget"
CHOICE = ("--function", "libgadget*:gadget_*")


def run_clew(*arguments: str | Path, hides_clang: bool = False) -> subprocess.CompletedProcess[str]:
    start = "import sys; sys.modules['clang'] = None; " if hides_clang else ""
    code = f"{start}from clew.__main__ import run; run()"
    command = [sys.executable, "-c", code, "api", *map(str, arguments)]
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def program() -> Path:
    source = FOLDER / "gadget.c"
    library = build_plain(source, "-DLIBRARY", "-O1", "-shared", "-fPIC", name="libgadget.so")
    return build_plain(source, "-O1", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}", name="gadget")


def told(path: Path) -> list[str]:
    lines = (re.sub(r"^\d+ [\d.]+ \S+!| <[\d.]+>$", "", line) for line in path.read_text().splitlines())
    return [re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", line) for line in lines]


def test_functions_are_told_as_their_header_has_them(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("clang.cindex")
    out = tmp_path / "told"
    done = run_clew(*CHOICE, "--header", FOLDER / "gadget.h", "-o", out, "--", program)
    assert (done.returncode, done.stderr) == (0, "")
    frame = (
        '{title="the frame", corner={x=3, y=-4}, tag="tagged", ids=[7, 8], either="\\5\\0\\0\\0", on_move=NULL, ...}'
    )
    lines = told(out)
    # Of the root's it depends on the machine what else is told.
    assert re.fullmatch(r"gadget_stat\(NULL, \{st_mode=S_IFDIR\|0\d+, st_size=\d+, \.\.\.\}\) = 0", lines.pop(5))
    assert lines == [
        'gadget_open("/gadget", GADGET_LOUD, GADGET_RED|GADGET_BLUE) = ADDRESS',
        'gadget_open("/none", GADGET_QUIET, GADGET_WHITE) = NULL',
        f"gadget_place(ADDRESS, {frame}, {{x=13, y=9}}) = 12",
        'gadget_fill(ADDRESS, "zzzzzz", 6) = 12',
        "gadget_sum([1, 2, 3], 3) = 6",
        "gadget_close(ADDRESS) = 5 (GADGET_LOUD)",
    ]


def test_headers_are_found_by_their_names_and_folders(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("clang.cindex")
    options = ("--header", "gadget.h", "--header-folder", FOLDER, "--header", "zlib.h")
    assert run_clew(*CHOICE, *options, "-o", tmp_path / "told", "--", program).returncode == 0
    assert "gadget_sum([1, 2, 3], 3) = 6" in told(tmp_path / "told")


def test_what_a_header_has_is_hidden_too(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("clang.cindex")
    options = ("--header", FOLDER / "gadget.h", "--redact-args", "title", "--redact-args", "gadget_fill:area")
    assert run_clew(*CHOICE, *options, "-o", tmp_path / "told", "--", program).returncode == 0
    lines = told(tmp_path / "told")
    assert "gadget_fill(ADDRESS, [redacted], 6) = 12" in lines
    assert any(line.startswith("gadget_place(ADDRESS, {title=[redacted], corner=") for line in lines)


def test_without_a_header_values_are_told_raw_and_counted(program: Path, tmp_path: Path) -> None:
    done = run_clew(*CHOICE, "-o", tmp_path / "told", "--", program)
    assert "7 calls without a description, arguments raw: gadget_open (2), gadget_close (1), " in done.stderr
    assert "6 functions without a description: gadget_close, gadget_fill, gadget_open" in done.stderr
    assert all(
        re.fullmatch(r"gadget_\w+\((0x[0-9a-f]+|ADDRESS)(, (0x[0-9a-f]+|ADDRESS)){5}\) = .*", line)
        for line in told(tmp_path / "told")
    )


def test_what_is_wrong_is_told_before_anything_runs(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("clang.cindex")
    (tmp_path / "bad.h").write_text("nothing whole(int n);\n")
    for header, message in (("no_such.h", "'no_such.h' file not found"), (str(tmp_path / "bad.h"), "bad.h:")):
        done = run_clew(*CHOICE, "--header", header, "--", "touch", tmp_path / "made")
        assert done.returncode != 0
        assert message in done.stderr
    assert not (tmp_path / "made").exists()


def test_libclang_may_be_missing(program: Path) -> None:
    done = run_clew(*CHOICE, "--header", "stdio.h", "--", program, hides_clang=True)
    assert done.returncode != 0
    assert "--header needs libclang's binding: pip install 'clew[headers]'" in done.stderr
    assert run_clew("--header", "stdio.h", "--", program).returncode == 2
