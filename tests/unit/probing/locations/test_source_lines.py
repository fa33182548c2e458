"""Places by source lines, against gdb's breakpoints."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.binary.line_places import is_file_named
from clew.probing.locations.place import PlaceKind
from tests.programs.build import SOURCES
from tests.unit.probing.locations.found import Build, addresses, ask_gdb, functions_of, resolve

SOURCE = SOURCES / "locations" / "lookup.c"
N_LINES = len(SOURCE.read_text().splitlines())


def breakpoints(path: Path, lines: list[int]) -> dict[int, tuple[int, list[int]]]:
    """By line for which one gdb was asked that at which it would stop, and the addresses."""
    # Each is deleted again, so that what is told is of one alone.
    commands = [
        command
        for line in lines
        for command in (f"echo ==={line}\\n", f"tbreak lookup.c:{line}", "info breakpoints", "delete")
    ]
    found = {}
    for part in ask_gdb(path, "set confirm off", *commands).split("===")[1:]:
        line, _, told = part.partition("\n")
        places = [int(one, 16) for one in re.findall(r"\sy\s+(0x[0-9a-f]+)", told)]
        stops = re.findall(r"lookup\.c:([0-9]+)$", told, re.MULTILINE)
        found[int(line)] = (int(stops[0]) if stops else 0, sorted(places))
    return found


@pytest.mark.parametrize(
    "flags", [("-O0",), ("-O1",), ("-O2",), ("-O2", "-gdwarf-4"), ("-O3", "-no-pie"), ("-Og", "-gdwarf-3")]
)
def test_lines_are_where_gdb_stops(build: Build, flags: tuple[str, ...]) -> None:
    path = build("gcc", "-g", *flags, "lookup.c", "lookup_other.c")
    entries = {address for address, _ in functions_of(path)}
    lines = list(range(1, N_LINES + 1))
    n_compared = 0
    for line, (stop, expected) in breakpoints(path, lines).items():
        found = resolve(path, f"lookup.c:{line}")
        ours = [place.address for place in found.places]
        # Behind what saves arguments gdb goes by itself; and a line in front of a function it takes for none.
        # In parts that were put elsewhere, too, it goes to where it takes the function to begin.
        if not expected or entries & set(ours) or any(place.symbol.endswith(".cold") for place in found.places):
            continue
        if stop == line:
            assert ours == expected, line
            assert not found.warnings
        else:
            assert found.warnings, line
            assert {place.source.rpartition(":")[2] for place in found.places} == {str(stop)}
        n_compared += 1
    assert n_compared >= 8


def test_places_are_of_their_lines(build: Build) -> None:
    path = build("gcc", "-g", "-O2", "lookup.c", "lookup_other.c")
    n_places = 0
    for line in range(1, N_LINES + 1):
        for place in resolve(path, f"lookup.c:{line}").places:
            command = ["addr2line", "-i", "-e", str(path), f"{place.address:#x}"]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            assert place.kind == PlaceKind.LINE
            # Several lines may begin at one address, of which it tells the last.
            same = re.findall(r"lookup\.c:([0-9]+)", told)
            n_places += place.source.rpartition(":")[2] in same
    assert n_places > 15


def test_where_a_function_is_opened(build: Build) -> None:
    path = build("gcc", "-g", "-O0", "lookup.c", "lookup_other.c")
    line = SOURCE.read_text().splitlines().index("__attribute__((noinline)) int twice(int n)") + 1
    assert addresses(path, f"lookup.c:{line}") in (addresses(path, "twice"), addresses(path, f"lookup.c:{line + 1}"))
    assert addresses(path, f"lookup.c:{line + 1}") == addresses(path, "twice")


def test_a_line_without_code(build: Build) -> None:
    path = build("gcc", "-g", "-O0", "lookup.c", "lookup_other.c")
    blank = SOURCE.read_text().splitlines().index("") + 1
    found = resolve(path, f"lookup.c:{blank}")
    assert found.places
    assert f"line {blank} of lookup.c has no code: the next that has is" in found.warnings[0]
    assert "has no code of line 9999" in resolve(path, "lookup.c:9999").missing


def test_files_by_the_last_parts_of_their_paths(build: Build) -> None:
    path = build("gcc", "-g", "-O0", "lookup.c", "lookup_other.c")
    expected = addresses(path, "lookup_other.c:9")
    assert expected
    assert addresses(path, "locations/lookup_other.c:9") == expected
    assert addresses(path, f"{SOURCES}/locations/lookup_other.c:9") == expected
    for other in ("other.c:9", "/lookup_other.c:9", "wrong/lookup_other.c:9"):
        assert "no source file of it is called" in resolve(path, other).missing


def test_two_files_of_one_name(tmp_path: Path, build: Build) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.c").write_text(f"int {name}(int n)\n{{\n    return n * 3;\n}}\n")
    main = tmp_path / "main.c"
    main.write_text("int one(int); int two(int); int main(int n, char **v) { return one(n) + two(n) + !v; }\n")
    path = build("gcc", "-g", str(tmp_path / "one/same.c"), str(tmp_path / "two/same.c"), str(main))
    found = resolve(path, "same.c:3")
    assert [place.symbol for place in found.places] == ["one", "two"]
    assert "2 source files are called same.c" in found.warnings[0]
    assert [place.symbol for place in resolve(path, "two/same.c:3").places] == ["two"]


def test_no_debugging_information(build: Build) -> None:
    path = build("gcc", "-O2", "lookup.c", "lookup_other.c")
    assert "it has no debugging information (gcc -g)" in resolve(path, "lookup.c:10").missing


def test_only_statements_count(tmp_path: Path) -> None:
    if shutil.which("as") is None:
        pytest.skip("as is not here")
    source = tmp_path / "marks.S"
    source.write_text(
        '.file 1 "marks.c"\n.text\n.globl main\n.type main, @function\nmain:\n'
        ".loc 1 5 is_stmt 0\nnop\n.loc 1 5 is_stmt 1\nnop\n.loc 1 6 is_stmt 0\nnop\n.loc 1 7 is_stmt 1\nnop\nret\n"
        '.size main, .-main\n.section .note.GNU-stack, "", @progbits\n'
    )
    path = tmp_path / "marks"
    subprocess.run(["gcc", source, "-o", path], check=True)
    (main,) = addresses(path, "main")
    assert addresses(path, "marks.c:5") == [main + 1]
    # Of line 6 nothing is a statement.
    assert addresses(path, "marks.c:6") == addresses(path, "marks.c:7") == [main + 3]
    assert resolve(path, "marks.c:6").warnings


def test_names_of_files() -> None:
    assert is_file_named("/a/b/c.c", "c.c")
    assert is_file_named("/a/b/c.c", "b/c.c")
    assert is_file_named("/a/x/../b/c.c", "b/c.c")
    assert is_file_named("c.c", "./c.c")
    assert not is_file_named("/a/b/c.c", "/b/c.c")
    assert not is_file_named("/a/b/c.c", ".c")
    assert not is_file_named("/a/b/xc.c", "c.c")
