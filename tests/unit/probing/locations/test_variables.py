"""What can be taken at places, against gdb's scopes; and that captures take it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from clew.binary.architectures.x86_64 import X86_64
from clew.binary.variable_places import Constant, Operation, Place, Register, Stored, Vector
from clew.capture.grammar import parse
from clew.probing.locations.image_file import open_image
from clew.probing.locations.resolve import resolve_in_image
from clew.probing.locations.syntax import parse_location
from clew.probing.locations.variables import VariableRow, describe_place, format_variables, list_variables
from tests.programs.build import SOURCES
from tests.unit.probing.locations.found import Build, addresses, ask_gdb

VARIABLES = str(SOURCES / "sessions" / "variables.c")


def rows_at(path: Path, text: str, *global_names: str, with_inlined: bool = False) -> list[VariableRow]:
    """What can be taken at the first of the places that are meant."""
    with open_image(path) as image:
        place = resolve_in_image(image, parse_location(text), with_inlined=with_inlined).places[0]
        return list_variables(image, place, global_names)


@pytest.mark.parametrize("flags", [("-O0",), ("-O1",), ("-O2",), ("-O2", "-gdwarf-4")])
def test_names_are_those_of_gdb(build: Build, flags: tuple[str, ...]) -> None:
    path = build("gcc", "-g", *flags, "lookup.c", "lookup_other.c")
    n_names = 0
    for text in ("twice", "main", "rarely", "other_work", "lookup.c:22", "lookup.c:25", "lookup.c:27", "lookup.c:30"):
        address = addresses(path, text)[0]
        told = ask_gdb(path, f"info scope *{address:#x}")
        expected = re.findall(r"^Symbol (\w+) is (?!a function)", told, re.MULTILINE)
        # It stops at the function that is there, inlined or not.
        rows = rows_at(path, text)
        inside = rows[-2].inside if len(rows) > 1 and rows[-2].kind != "result" else ""
        ours = [row.name for row in rows if row.kind in ("parameter", "local") and row.inside == inside]
        assert set(expected) <= {row.name for row in rows}, text
        assert set(ours) <= set(expected) or inside, text
        n_names += len(expected)
    assert n_names > 10


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",)])
def test_registers_are_those_of_gdb(build: Build, flags: tuple[str, ...]) -> None:
    path = build("gcc", "-g", *flags, VARIABLES)
    rows = {row.name: row for row in rows_at(path, "scalars")}
    told = ask_gdb(path, "info address scalars")
    assert f"{addresses(path, 'scalars')[0]:#x}" in told
    registers = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
    names = ("tiny", "byte", "small", "half", "number", "word")
    assert [rows[name].where for name in names] == [f"in {one}" for one in registers]
    assert rows["large"].where == "at rsp+8"
    assert [rows[name].type for name in ("tiny", "word", "large")] == ["signed char", "unsigned int", "long int"]
    assert rows["retval"] == VariableRow("retval", "result", "long int", "in rax", "retval")
    for name in names:
        assert rows[name].expression == f"var:{name}"
        parse(rows[name].expression)


def test_frames(build: Build) -> None:
    path = build("gcc", "-g", "-O0", "lookup.c", "lookup_other.c")
    (address,) = addresses(path, "lookup.c:22")
    told = ask_gdb(path, f"info scope *{address:#x}")
    (offset,) = re.findall(r"Symbol total is [^\n]*\n\s+0: DW_OP_fbreg (-[0-9]+)", told)
    # The frame is 16 bytes behind where its pointer is: that, and where the function returns to, lie between.
    rows = {row.name: row for row in rows_at(path, "lookup.c:22")}
    assert rows["total"].where == f"at rbp{16 + int(offset):+}"
    assert rows["total"].kind == "local"
    # At its first byte nothing is saved.
    assert rows_at(path, "twice")[0].where == "in rdi"
    total = next(row for row in rows_at(path, "twice") if row.name == "total")
    assert (total.expression, total.where) == ("", "")
    assert "no value yet" in total.reason


def test_what_was_optimised_away(build: Build) -> None:
    path = build("gcc", "-g", "-O2", "lookup.c", "lookup_other.c")
    reasons = [row.reason for text in ("twice", "main", "rarely") for row in rows_at(path, text) if not row.expression]
    assert any("optimised away" in one for one in reasons)
    assert all(reasons)


def test_globals_are_listed_when_asked_for(build: Build) -> None:
    path = build("gcc", "-g", "-O1", VARIABLES)
    symbols = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
    counter = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" counter"))
    assert not [row for row in rows_at(path, "scalars") if row.kind == "global"]
    rows = {row.name: row for row in rows_at(path, "scalars", "count*", "own_*", "first") if row.kind == "global"}
    assert rows.keys() == {"counter", "own_number", "own_other", "first"}
    assert rows["counter"].where == f"at {counter:#x}"
    assert rows["counter"].expression == "var:counter"
    with open_image(path) as image:
        place = resolve_in_image(image, parse_location("scalars")).places[0]
        loaded = next(row for row in list_variables(image, place, ["counter"], bias=0x7000) if row.name == "counter")
    assert loaded.where == f"at {counter + 0x7000:#x}"
    assert rows["own_number"].where.startswith("at the thread pointer-")
    assert rows["first"].type == "node_t"


def test_results(build: Build) -> None:
    path = build("gcc", "-g", "-O1", VARIABLES)
    text = Path(VARIABLES).read_text()
    n_checked = 0
    for kind, name in re.findall(r"^__attribute__\(\(noinline, noipa\)\) ([\w ]+?[ *]+)(\w+)\($", text, re.MULTILINE):
        result = rows_at(path, name)[-1]
        assert result.kind == "result"
        assert bool(result.expression) != bool(result.reason)
        if kind.strip() == "double":
            assert (result.expression, result.where) == ("xmm0", "in xmm0")
        if kind.strip() == "void":
            assert result.reason == "the function returns nothing"
        n_checked += 1
    assert n_checked


def test_without_debugging_information(build: Build) -> None:
    path = build("gcc", "-O2", "lookup.c", "lookup_other.c")
    rows = rows_at(path, "twice")
    assert [row.name for row in rows] == [*(f"arg{n}" for n in range(1, 7)), "retval"]
    assert [row.where for row in rows[:2]] == ["in rdi", "in rsi"]
    assert rows_at(path, "twice+0x4") == []
    assert format_variables([]) == "nothing is known of this place but registers"


def test_static_probes(build: Build) -> None:
    path = build("gcc", "-g", "-O2", "-no-pie", "lookup_notes.c")
    rows = rows_at(path, "usdt:shop:first")
    probe = [row for row in rows if row.kind == "probe"]
    assert [row.name for row in probe] == [f"argument {n}" for n in range(1, 9)]
    assert (probe[2].where, probe[2].expression) == ("$5", "(u32)5")
    assert {"n", "large", "real"} <= {row.name for row in rows}
    assert not [row for row in rows if row.kind == "result"]


def test_inlined_functions(build: Build) -> None:
    path = build("gcc", "-g", "-O2", "lookup.c", "lookup_other.c")
    with open_image(path) as image:
        places = resolve_in_image(image, parse_location("add"), with_inlined=True).places
        rows = [row for place in places for row in list_variables(image, place)]
    assert {row.inside for row in rows} == {"", "add"} or {row.inside for row in rows} == {""}
    assert "result" not in {row.kind for row in rows}


def test_text() -> None:
    rows = [
        VariableRow("n", "parameter", "int", "in rdi", "var:n"),
        VariableRow("gone\x1b[2J", "local", "long int", "", "", "it was optimised away here"),
        VariableRow("b", "parameter", "int", "in rsi", "var:b", "", "add"),
    ]
    lines = format_variables(rows).splitlines()
    assert lines[0].split() == ["var:n", "n", "int", "parameter", "in", "rdi"]
    assert lines[1].startswith("-      gone?[2J")
    assert lines[1].endswith("it was optimised away here")
    assert "parameter of add" in lines[2]
    assert len({line.index("int") for line in (lines[0], lines[2])}) == 1


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place(None, (Register(5),)), "in rdi"),
        (Place(None, (Vector(0), Register(4))), "in xmm0, rsi"),
        (Place(None, (Register(5), None)), "in rdi, nowhere"),
        (Place(None, (Constant((1 << 64) - 3),)), "always -3"),
        (Place(Operation("add", Register(7), Constant(16))), "at rsp+16"),
        (Place(Operation("add", Register(6), Constant((1 << 64) - 8))), "at rbp-8"),
        (Place(Constant(0x4010)), "at 0x4010"),
        (Place(Stored(Register(3), 8)), "at *(u64*)(rbx)"),
        (Place(None, (Operation("subtract", Register(0), Register(2)),)), "worked out as rax-rcx"),
        (
            Place(None, (Operation("multiply", Operation("add", Register(0), Constant(1)), Constant(3)),)),
            "worked out as (rax+1)*3",
        ),
    ],
)
def test_places(place: Place, expected: str) -> None:
    assert describe_place(place, X86_64) == expected
