"""Variables of programs in captures: what is taken is what the program itself prints, however it was compiled."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.errors import CaptureError, UsageError
from clew.sessions.calls import Call
from tests.programs.build import SOURCES, build_plain

BUILDS = {
    "O0-4": ["-O0", "-gdwarf-4"],
    "O0-5": ["-O0", "-gdwarf-5"],
    "Og-64": ["-Og", "-gdwarf-5", "-gdwarf64", "-no-pie"],
    "O1-5": ["-O1", "-gdwarf-5", "-gz"],
    "O2-4": ["-O2", "-gdwarf-4"],
    "O2-lto": ["-O2", "-gdwarf-5", "-flto"],
    "O1-types": ["-O1", "-gdwarf-5", "-fdebug-types-section"],
    "O2-5": ["-O2", "-gdwarf-5", "-fomit-frame-pointer", "-static"],
}

NODE = "var:node"
EXPRESSIONS = {
    "scalars": ["var:tiny", "var:byte", "var:small", "var:half", "var:number", "var:word", "var:large"],
    "reals": ["var:single", "var:real", "var:between", "var:other"],
    "halve": ["var:single"],
    "negate": ["var:value"],
    "is_odd": ["var:value"],
    "nothing": ["var:yes", "var:color", "var:level"],
    "many": [f"var:{name}" for name in "abcdefghi"],
    "by_value": [
        *("var:small.a", "var:small.b", "var:mixed.real", "var:mixed.number"),
        *("var:large.numbers[4]", "var:last"),
    ],
    "walk": [
        *(f"{NODE}->{name}" for name in ("number", "flag", "signed_bits", "wide_bits", "is_set", "next->number")),
        *(f"{NODE}->inner.small", f"{NODE}->inner.real", f"str({NODE}->inner.text)", f"(*{NODE}).bytes[2]"),
        *(f"{NODE}->grid[1][2]", f"str({NODE}->name)", "str(var:words[1])"),
        f"&{NODE}->grid[2][1] - {NODE}->grid[0]",
    ],
    "inside_locals": [
        *("var:n", "var:sum", "var:ratio", "var:values[2]", "(&var:pair)->b", "var:turn", "var:inner"),
        *("var:counter", "var:wide", "str(var:greeting)", "var:factor"),
    ],
    "inside_thread": ["errno", "var:own_number", "tls:own_other"],
}
PRINTED_BY = {"inside_locals": "locals", "inside_thread": "of_the_thread"}


EACH_TIME = ("O0-5", "O2-4", "O2-lto")
"""Without and with optimisation, by either version of the format; the others are for the long runs."""


@pytest.fixture(params=[pytest.param(name, marks=() if name in EACH_TIME else pytest.mark.long) for name in BUILDS])
def build(request: pytest.FixtureRequest) -> Path:
    """The program of tests/programs/sessions/variables.c, compiled in several ways."""
    return build_plain(SOURCES / "sessions/variables.c", *BUILDS[request.param], name=f"variables.{request.param}")


@pytest.fixture(scope="session")
def plain() -> Path:
    """The same without optimisation."""
    return build_plain(SOURCES / "sessions/variables.c", *BUILDS["O0-5"], name="variables.O0-5")


def printed(program: Path) -> dict[str, list[list[str]]]:
    """By function what the program prints of each call."""
    found: dict[str, list[list[str]]] = {}
    for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
        name, *words = line.split()
        found.setdefault(name, []).append(words)
    return found


def as_printed(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else f"{value:.17g}" if isinstance(value, float) else str(value)


def test_what_is_logged_is_what_the_program_prints(build: Path) -> None:
    expected = printed(build)
    with clew.spawn([build], stdout=subprocess.DEVNULL) as session:
        logs = {where: session.log_calls(where, capture=texts) for where, texts in EXPRESSIONS.items()}
        session.resume()
        session.wait(60)
        for where, texts in EXPRESSIONS.items():
            columns = [log[text].to_pylist() for log in [logs[where].read()] for text in texts]
            rows = [[as_printed(value) for value in row] for row in zip(*columns, strict=True)]
            assert rows == expected[PRINTED_BY.get(where, where)], where


def test_what_callbacks_are_given_is_what_the_program_prints(build: Path) -> None:
    expected = printed(build)
    seen: dict[str, list[list[str]]] = {where: [] for where in EXPRESSIONS}
    with clew.spawn([build], stdout=subprocess.DEVNULL) as session:

        def note(where: str, call: Call) -> None:
            seen[where].append([as_printed(value) for value in call.captured.values()])

        for where, texts in EXPRESSIONS.items():
            session.on_call(where, partial(note, where), capture=texts)
        session.resume()
        session.wait(60)
    assert seen == {where: expected[PRINTED_BY.get(where, where)] for where in EXPRESSIONS}


def test_arguments_have_names_and_results_types(build: Path) -> None:
    arguments: dict[str, dict[str, Any]] = {}
    results: dict[str, Any] = {}
    functions = ("scalars", "reals", "halve", "negate", "is_odd", "nothing", "by_value", "walk")
    with clew.spawn([build], stdout=subprocess.DEVNULL) as session:

        def note_arguments(name: str, call: Call) -> None:
            arguments[name] = call.arguments.by_name()

        def note_result(name: str, call: Call) -> None:
            results[name] = call.result

        for name in functions:
            session.on_call(name, partial(note_arguments, name))
            session.on_return(name, partial(note_result, name))
        there = session.variables("walk")
        session.resume()
        session.wait(60)
    assert arguments["scalars"]["tiny"] == -5 and arguments["scalars"]["large"] == -9000000000000000000
    assert arguments["reals"]["real"] == -2.2 and arguments["reals"]["between"] == 7
    assert arguments["nothing"] == {"yes": True, "color": 6, "level": -3} and arguments["nothing"]["yes"] is True
    assert arguments["by_value"] == {"small": None, "mixed": None, "large": None, "last": ord("x")}
    assert (results["halve"], results["negate"], results["is_odd"], results["nothing"]) == (2.75, -77, True, None)
    assert results["is_odd"] is True
    assert results["scalars"] == -5 + 250 - 30000 + 60000 - 2000000000 + 4000000000 - 9000000000000000000
    assert isinstance(results["walk"], int) and results["walk"] != arguments["walk"]["node"]
    assert {one.name: one.type for one in there}["node"] == "struct node *"


def test_variables_of_a_place_are_listed(plain: Path) -> None:
    with clew.spawn([plain], stdout=subprocess.DEVNULL) as session:
        at_entry = {one.name: one for one in session.variables("by_value")}
        assert [one.name for one in session.variables("by_value") if one.kind == "parameter"] == [
            *("small", "mixed", "large", "last")
        ]
        assert (
            at_entry["mixed"].type == "struct mixed" and at_entry["mixed"].location and not at_entry["mixed"].is_value
        )
        assert at_entry["last"].is_value and not at_entry["last"].problem
        assert at_entry["counter"].kind == "global"
        locals_there = {one.name: one for one in session.variables("locals")}
        assert "no value yet" in locals_there["sum"].problem and not locals_there["sum"].location
        assert not locals_there["n"].problem
        inside = {one.name: one.type for one in session.variables("inside_locals")}
        assert inside["values"] == "int[4]" and inside["ratio"] == "double"
        # The function saves its parameters there: in the registers they may be no more, in memory not yet.
        just_behind = {one.name: one for one in session.variables(session.find("locals") + 4)}
        assert "just saving" in just_behind["n"].problem


@pytest.mark.parametrize(
    ("where", "text", "why"),
    [
        ("negate", "var:absent", "no variable of that name"),
        ("negate", "var:value.part", "int is no structure"),
        ("walk", "var:node.number", "but a pointer: use ->"),
        ("walk", "var:node->absent", "struct node has no member absent"),
        ("walk", "*var:node", "no single value: name a member"),
        ("walk", "&var:node->flag", "has no address"),
        ("negate", "&var:value", "has no address"),
        ("negate", "*(struct absent*)arg1", "struct absent: no such type"),
        ("negate", "arg1->value", "needs a pointer"),
        ("negate", "arg1[1]", "only elements of arrays"),
        ("negate", "&5", "no place in memory"),
        ("locals", "var:sum", "no value yet"),
        ("negate", "tls:variables.O0-5!counter", "has no thread-local variable"),
    ],
)
def test_what_can_not_be_taken_is_told(plain: Path, where: str, text: str, why: str) -> None:
    with clew.spawn([plain], stdout=subprocess.DEVNULL) as session, pytest.raises(CaptureError, match=re.escape(why)):
        session.on_call(where, lambda call: None, capture=[text])


def test_without_debugging_information_no_variable_is_known() -> None:
    program = build_plain(SOURCES / "sessions/captured.c", "-O1", "-fno-inline", "-fno-ipa-cp")
    named = []
    with clew.spawn([program, "1", "/dev/null"]) as session:
        with pytest.raises(CaptureError, match="no debugging information"):
            session.on_call("place_0", lambda call: None, capture=["var:turn"])
        with pytest.raises(CaptureError, match="no debugging information"):
            session.variables("place_0")
        session.on_call("place_0", lambda call: named.append((call.arguments.names, call.arguments.by_name())))
        session.resume()
        session.wait(60)
    assert named and named[0] == ([], {})


def test_when_a_function_has_returned_its_variables_are_gone(plain: Path) -> None:
    seen = []
    with clew.spawn([plain], stdout=subprocess.DEVNULL) as session:
        with pytest.raises(CaptureError, match="when the function has returned"):
            session.on_return("negate", lambda call: None, capture=["var:value"])
        session.on_return("negate", lambda call: seen.append(call["var:counter"]), capture=["var:counter"])
        session.resume()
        session.wait(60)
    assert seen == [-7]


def test_types_of_the_program_are_cast_to(build: Path) -> None:
    seen = []
    texts = ["((struct node*)arg1)->number", "((node_t*)arg1)->next->number", "*(enum color*)arg1", "(node_t*)arg1 + 1"]
    with clew.spawn([build], stdout=subprocess.DEVNULL) as session:
        session.on_call("walk", lambda call: seen.append(call), capture=texts)
        session.resume()
        session.wait(60)
        first, second, color, behind = seen[0].captured.values()
    assert (first, second, color) == (-11, 22, -11 % (1 << 32))
    assert behind - seen[0].registers["rdi"] > 100


def test_conditions_choose_calls_by_variables(build: Path) -> None:
    with clew.spawn([build], stdout=subprocess.DEVNULL) as session:
        odd = session.on_call("is_odd", lambda call: None, condition="var:value == 3")
        none = session.on_call("nothing", lambda call: None, condition="var:level > 0 || errno == 4000")
        again = session.log_calls("inside_thread", capture=["var:saved"], condition="errno == 11")
        session.resume()
        session.wait(60)
        assert (odd.n_calls, none.n_calls) == (1, 0)
        assert again.read()["var:saved"].to_pylist() == [11]


def test_arguments_are_set_by_name(plain: Path) -> None:
    results = []
    with clew.spawn([plain], stdout=subprocess.PIPE) as session:

        @session.on_call("negate")
        def change(call: Call) -> None:
            assert call.arguments.names == ["value"]
            call.arguments["value"] = -5
            assert call.arguments["value"] == -5
            with pytest.raises(KeyError, match="no parameter"):
                call.arguments["absent"]

        @session.on_call("reals")
        def refuse(call: Call) -> None:
            with pytest.raises(UsageError, match="can't be set"):
                call.arguments["real"] = 1

        session.on_return("negate", lambda call: results.append(call.result))
        session.resume()
        assert session.stdout is not None
        text = session.stdout.read().decode()
        session.wait(60)
    assert "negate -5\n" in text and results == [5]


@pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb")
def test_a_debugger_finds_the_same(build: Path) -> None:
    names = ["n", "sum", "ratio", "turn", "inner", "counter", "values[1]", "pair.a"]
    commands = [
        "set debuginfod enabled off",
        "break inside_locals",
        "run >/dev/null",
        *(f"output {name}" for name in names),
    ]
    separated = [one for command in commands for one in (command, "echo \\n|")]
    options = [word for command in separated for word in ("-ex", command)]
    done = subprocess.run(["gdb", "-nx", "-batch", *options, build], capture_output=True, text=True, timeout=60)
    values = [part.strip() for part in done.stdout.split("|")][-len(names) - 1 : -1]
    if len(values) < len(names) or not values[0].lstrip("-").isdigit():
        pytest.skip(f"gdb can't run it here: {done.stderr.strip()[:200]}")
    with clew.spawn([build], stdout=subprocess.DEVNULL) as session:
        log = session.log_calls("inside_locals", capture=[f"var:{name}" for name in names])
        session.resume()
        session.wait(60)
        row = [column.to_pylist()[0] for column in log.read().columns[4:]]
    assert [as_printed(value) for value in row] == values


CLASSES = {
    "shop::item::total(int, shop::item const&) const": [
        *("var:n", "var:this->weight", "var:this->price", "var:this->what", "str(var:this->name)", "var:this->sold"),
        *("var:shop::n_sold", "var:hidden", "var:item::n_items", "var:other.price"),
    ],
    "inside_twice": ["var:number", "var:doubled", "var:value"],
    "measure": ["str(var:by_value._M_dataplus._M_p)", "var:numbers._M_impl._M_start[1]", "var:counted"],
}


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
@pytest.mark.parametrize(
    "options", [pytest.param(["-O0"], id="O0", marks=pytest.mark.long), pytest.param(["-O2"], id="O2")]
)
def test_variables_of_classes(tmp_path: Path, options: list[str]) -> None:
    program = tmp_path / "variables"
    subprocess.run(["g++", "-g", *options, "-o", program, SOURCES / "sessions/variables.cc"], check=True)
    output = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    expected = {name: values.rstrip() for name, _, values in (line.partition(" ") for line in output.splitlines())}
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.split()
    with clew.spawn([program], stdout=subprocess.DEVNULL) as session:
        logs = {}
        for where, texts in CLASSES.items():
            # What stands between brackets is long, and the library's own business.
            place = next(name for name in symbols if name.startswith("_Z7measure")) if where == "measure" else where
            logs[where] = session.log_calls(place, capture=texts)
        session.resume()
        session.wait(60)
        for (where, log), name in zip(logs.items(), ("total", "outer", "measure"), strict=True):
            row = [as_printed(column.to_pylist()[0]) for column in log.read().columns[4:]]
            assert " ".join(row) == expected[name], where


def test_variables_are_taken_at_any_instruction(build: Path) -> None:
    sums: list[Any] = []
    with clew.spawn([build], stdout=subprocess.DEVNULL) as session:
        inside = session.find("inside_locals")

        @session.transform(f"{build.name}!locals")
        def look(block: Any) -> None:
            for instruction in block:
                if instruction.address == inside:
                    instruction.callout(lambda call: sums.append(call["var:sum"]), capture=["var:sum"])

        session.resume()
        session.wait(60)
        assert not look.errors
    assert [str(value) for value in sums] == [row[1] for row in printed(build)["locals"]]


@pytest.mark.skipif(shutil.which("rustc") is None, reason="there is no rustc")
@pytest.mark.parametrize(
    ("version", "level"),
    [(4, 0), (5, 2), pytest.param(4, 2, marks=pytest.mark.long), pytest.param(5, 0, marks=pytest.mark.long)],
)
def test_variables_as_another_compiler_describes_them(tmp_path: Path, level: int, version: int) -> None:
    program = tmp_path / "variables"
    options = ["-g", "-C", f"opt-level={level}", "-C", f"dwarf-version={version}", "-o", str(program)]
    subprocess.run(["rustc", *options, str(SOURCES / "sessions/variables.rs")], check=True)
    texts = {
        "place": ["var:n", "var:x", "var:small", "var:pair->a", "var:pair->b", "var:flag"],
        "inside": ["var:twice", "var:sum"],
    }
    with clew.spawn([program], stdout=subprocess.PIPE) as session:
        logs = {where: session.log_calls(where, capture=texts[where]) for where in texts}
        results: list[Any] = []
        session.on_return("place", lambda call: results.append(call.result))
        session.resume()
        assert session.stdout is not None
        lines = [line.split() for line in session.stdout.read().decode().splitlines()]
        session.wait(60)
        for name, *words in lines:
            row = [as_printed(column.to_pylist()[0]) for column in logs[name].read().columns[4:]]
            assert row == words[: len(row)]
    assert results == [0.0]
