"""Description files: what is read, what of several holds, how a call looks by its values; the example of the guide."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from clew.api.checking import find_problems
from clew.api.description import Effect, Flag
from clew.api.descriptions import Descriptions
from clew.api.reading import BUILT_IN, check, load, load_built_in
from clew.api.text import call_text
from clew.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs/api-descriptions.md"


def write(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def call(name: str, number: int, **more: Any) -> dict[str, Any]:
    return {"Name": name, "Number": {"x86_64": number}, "Filter": "Other"} | more


def parameter(index: int, raw_type: str = "int", **more: Any) -> dict[str, Any]:
    return {"Index": index, "Name": f"p{index}", "CType": "int", "RawType": raw_type} | more


def test_a_later_file_counts_where_it_says_something(tmp_path: Path) -> None:
    first = write(
        tmp_path / "1.json",
        {
            "FlagTables": {"a": {"Kind": "flags", "Values": [["A", 1]]}, "b": {"Kind": "flags", "Values": [["B", 1]]}},
            "SystemCalls": [call("one", 1, Parameters=[]), call("two", 2), call("three", 3)],
            "Libraries": [{"Name": "lib*", "Functions": [{"Name": "f", "Filter": "Other"}]}],
        },
    )
    second = write(
        tmp_path / "2.json",
        {
            "FlagTables": {"a": {"Kind": "enum", "Values": [["C", 5, 7]]}},
            "SystemCalls": [call("uno", 1), call("three", 33, Parameters=[parameter(0, "flags", Flags="b")])],
            "Libraries": [
                {"Name": "lib*", "Functions": [{"Name": "f", "Filter": "Time"}, {"Name": "g", "Filter": "Time"}]}
            ],
        },
    )
    both = load([first, second])
    assert {number: found.name for number, found in both.system_calls.items()} == {1: "uno", 2: "two", 33: "three"}
    assert both.system_calls[1].parameters is None
    assert {key: found.filter for key, found in both.functions.items()} == {
        ("lib*", "f"): "Time",
        ("lib*", "g"): "Time",
    }
    table = both.flag_table("a")
    assert table is not None
    assert (table.kind, table.flags) == ("enum", (Flag("C", 5, 7),))
    assert both.flag_table("b") is not None
    assert both.flag_table("c") is None
    assert both.flag_table(None) is None
    # The other way round the second names a table that nobody has said yet.
    with pytest.raises(UsageError, match="no table of flags 'b'"):
        load([second, first])


def test_numbers_are_those_of_an_architecture(tmp_path: Path) -> None:
    said = call("one", 1) | {"Number": {"x86_64": 1, "aarch64": 7}}
    path = write(tmp_path / "a.json", {"SystemCalls": [said, call("two", 2)]})
    assert list(load([path], "aarch64").system_calls) == [7]
    assert list(load([path]).system_calls) == [1, 2]


def test_what_is_not_said_follows_from_the_rest(tmp_path: Path) -> None:
    parameters = [
        parameter(-1),
        parameter(1, "pointer", Direction="out"),
        parameter(0),
        parameter(2, "pointer", Direction="inout", When="entry"),
    ]
    content = {
        "SystemCalls": [call("one", 1, Parameters=parameters, Effects=[{"Effect": "UseReference", "Parameters": [0]}])],
        "Libraries": [{"Name": "lib*", "Functions": [{"Name": "f", "Filter": "Other"}]}],
    }
    made = load([write(tmp_path / "a.json", content)])
    one = made.system_calls[1]
    assert [(found.index, found.direction, found.when) for found in one.parameters or ()] == [
        (0, "in", "entry"),
        (1, "out", "exit"),
        (2, "inout", "entry"),
        (-1, "out", "exit"),
    ]
    assert one.error == "negative_errno"
    assert one.effects == (Effect("UseReference", (0,)),)
    assert made.functions["lib*", "f"].error == "none"


def test_functions_are_found_by_the_librarys_name(tmp_path: Path) -> None:
    libraries = [
        {"Name": "libz.so*", "Functions": [{"Name": "f", "Filter": "Other"}]},
        {"Name": "lib*", "Functions": [{"Name": "f", "Filter": "Time"}, {"Name": "g", "Filter": "Time"}]},
    ]
    made = load([write(tmp_path / "a.json", {"Libraries": libraries})])
    found = made.find_function("libz.so.1", "f")
    assert found is not None
    assert found.filter == "Time"
    assert made.find_function("libz.so.1", "h") is None
    assert made.find_function("other.so", "f") is None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "no JSON: line 1, column 2"),
        ('{"Source": "a", "Source": "b"}', "an object has the key 'Source' twice"),
        ("[" * 100_000, "no JSON"),
        ('{"Source": ' + "9" * 5000 + "}", "no JSON"),
        ('{"Source": 5}', "Source: 5 is not a string"),
    ],
)
def test_a_file_that_is_none_is_told(tmp_path: Path, content: str, reason: str) -> None:
    path = write(tmp_path / "a.json", content)
    (problem,) = check(path)
    assert str(problem).startswith(f"{path}: {reason}")
    with pytest.raises(UsageError, match=re.escape(f"{path}: {reason}")):
        load([path])


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    assert [str(problem) for problem in check(tmp_path / "none.json")] == [
        f"{tmp_path}/none.json: No such file or directory"
    ]
    (tmp_path / "bytes.json").write_bytes(b"{}\xff")
    assert [problem.reason for problem in check(tmp_path / "bytes.json")] == ["no UTF-8: byte 2"]


def test_loading_tells_the_first_problem_and_how_many_there_are(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", {"Source": 1, "More": 2})
    with pytest.raises(UsageError, match=r"a\.json: More: unknown key.* \(and 1 more: `clew api check`\)"):
        load([path])


def test_checked_files_may_name_tables_of_clews_own_and_of_others(tmp_path: Path) -> None:
    other = write(tmp_path / "other.json", {"FlagTables": {"mine": {"Kind": "flags", "Values": [["A", 1]]}}})
    said = [call("one", 1, Parameters=[parameter(0, "flags", Flags="open_flags"), parameter(1, "flags", Flags="mine")])]
    path = write(tmp_path / "a.json", {"SystemCalls": said})
    assert [problem.path for problem in check(path)] == ["SystemCalls[0].Parameters[1].Flags"]
    assert check(path, [other]) == []
    broken = write(tmp_path / "broken.json", {"FlagTables": {"mine": 5, "yours": {"Values": [[]]}}})
    assert len(check(path, [broken])) == 0


def described(tmp_path: Path, **more: Any) -> Descriptions:
    table = {"Kind": "flags", "Values": [["RED", 0, 3], ["BLUE", 1, 3], ["BIG", 4], ["HUGE", 12]]}
    parameters = [parameter(0, "flags", Flags="t"), parameter(1), parameter(2), parameter(-1)]
    said = call("one", 1, Parameters=parameters) | more
    return load([write(tmp_path / "a.json", {"FlagTables": {"t": table}, "SystemCalls": [said]})])


def test_a_call_looks_as_the_first_case_says_that_fits(tmp_path: Path) -> None:
    cases = [
        {"Values": ["BLUE"], "Arguments": 1, "Label": "blue", "Parameters": [parameter(-1, "hex")]},
        {"Values": [2], "Parameters": [parameter(1, "pid")]},
    ]
    made = described(tmp_path, Variants={"By": 0, "Mask": 3, "Cases": cases}, Label="any")
    one = made.system_calls[1]

    def seen(*values: int | None) -> tuple[str | None, list[tuple[int, str]]]:
        changed = made.with_values(one, values)
        return changed.label, [(found.index, found.raw_type) for found in changed.parameters or ()]

    everything = [(0, "flags"), (1, "int"), (2, "int"), (-1, "int")]
    assert seen(5, 0, 0) == ("blue", [(0, "flags"), (-1, "hex")])
    assert seen(2, 0, 0) == ("any", [(0, "flags"), (1, "pid"), (2, "int"), (-1, "int")])
    assert seen(3, 0, 0) == seen(None, 0, 0) == seen() == ("any", everything)
    assert made.with_values(one, [3]) is one


def test_a_conditional_parameter_needs_all_bits_of_a_flag(tmp_path: Path) -> None:
    conditional = parameter(2, Conditional={"Index": 0, "Flags": ["HUGE"]})
    parameters = [parameter(0, "flags", Flags="t"), parameter(1), conditional]
    made = described(tmp_path, Parameters=parameters)
    one = made.system_calls[1]
    for value, n_arguments in ((0, 2), (4, 2), (8, 2), (12, 3), (13, 3), (None, 3)):
        assert len(made.with_values(one, [value]).arguments) == n_arguments, value


def test_a_function_is_described_as_its_system_call(tmp_path: Path) -> None:
    cases = {"By": 0, "Cases": [{"Values": [1], "Parameters": [parameter(-1, "fd", CType="long")]}]}
    own = {"By": 0, "Cases": [{"Values": [2], "Arguments": 1}]}
    passes = {"Filter": "File", "SystemCall": "one"}
    parameters = [parameter(0), parameter(1, CType="long"), parameter(-1, CType="long")]
    content = {
        "SystemCalls": [
            call("one", 1, Parameters=parameters, Variants=cases, Effects=[{"Effect": "EndThread", "Parameters": []}])
        ],
        "Libraries": [
            {
                "Name": "lib*",
                "Functions": [
                    {"Name": "f"} | passes,
                    {"Name": "g", "Error": "none", "Variants": own} | passes
                    | {"Parameters": [parameter(1, "hex"), parameter(-1, CType="ssize_t")]},
                ],
            }
        ],
    }  # fmt: skip
    read = load([write(tmp_path / "it.json", content)])
    first, other = read.find_function("lib.so", "f"), read.find_anywhere("g")
    assert first is not None and other is not None
    assert (first.name, first.error, first.effects, first.numbers) == ("f", "minus_one_errno", (), {})
    assert [one.c_type for one in first.parameters or ()] == ["int", "long", "int"]
    assert [(one.raw_type, one.c_type) for one in other.parameters or ()] == [
        ("int", "int"),
        ("hex", "int"),
        ("int", "ssize_t"),
    ]
    # Its result has the width of the function's in all cases.
    chosen = read.with_values(first, [1, 0])
    assert chosen.result is not None and (chosen.result.raw_type, chosen.result.c_type) == ("fd", "int")
    assert [len(read.with_values(one, [2, 0]).arguments) for one in (first, other)] == [2, 1]


def test_clews_own_files_have_no_key_twice() -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), pairs
        return dict(pairs)

    for path in BUILT_IN:
        json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once)


def test_the_guides_example_keeps_to_the_rules(tmp_path: Path) -> None:
    example = re.findall(r"```json\n(\{.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[0]
    path = write(tmp_path / "zlib.json", example)
    assert [str(problem) for problem in check(path)] == []
    made = load_built_in([path])
    gzopen, deflate = (made.find_function("libz.so.1.3", name) for name in ("gzopen", "deflate"))
    assert gzopen is not None
    assert deflate is not None
    assert call_text(gzopen, [b"a.gz\0", b"r\0"], 0, made, errno=2) == (
        'gzopen("a.gz", "r") = NULL ENOENT (No such file or directory)'
    )
    assert call_text(deflate, [4096, 4], 1, made) == "deflate(0x1000, Z_FINISH) = 1"
    # And what it says is wrong in one is.
    wrong = write(tmp_path / "wrong.json", example.replace('"RawType": "buffer"', '"RawType": "integer"'))
    told = re.findall(r"^zlib\.json: (Lib.*?), \.\.\.$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(told) == 1
    assert str(check(wrong)[0]).startswith(f"{wrong}: {told[0]}")


def test_the_guides_variant_is_one_of_fcntl() -> None:
    (variant,) = re.findall(r"```json\n(\"Variants\".*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (path,) = (path for path in BUILT_IN if path.name == "system_calls.json")
    own = json.loads(path.read_text(encoding="utf-8"))
    (fcntl,) = (found for found in own["SystemCalls"] if found["Name"] == "fcntl")
    (case,) = json.loads(f"{{{variant}}}")["Variants"]["Cases"]
    (same,) = (found for found in fcntl["Variants"]["Cases"] if "F_GETFL" in found["Values"])
    assert case == same


def test_the_guides_structures_keep_to_the_rules() -> None:
    (structs,) = re.findall(r"```json\n(\"Structs\".*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert find_problems(json.loads(f"{{{structs}}}"), tables={"kinds": frozenset({"K_FILE"})}) == []
