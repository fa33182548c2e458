"""What is told of a description file that does not keep to the rules: one mistake each, with its place."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from clew.api.checking import find_problems

GOOD: dict[str, Any] = {
    "Source": "here",
    "FlagTables": {"ways": {"Kind": "flags", "Values": [["W_A", 0, 3], ["W_B", 1, 3], ["W_C", 4]]}},
    "Structs": {
        "point": {
            "Size": 8,
            "Members": [{"Name": "x", "Offset": 0, "Size": 4, "CType": "int", "RawType": "int"}],
            "More": True,
        },
        "shape": {
            "Size": 32,
            "Length": "n",
            "Align": 8,
            "Members": [
                {"Name": "n", "Offset": 0, "Size": 4, "CType": "int", "RawType": "enum", "Flags": "ways"},
                {
                    "Name": "at",
                    "Offset": 8,
                    "Size": 8,
                    "CType": "p *",
                    "RawType": "struct",
                    "Struct": "point",
                    "Leads": True,
                }
                | {"Count": "n", "If": [{"Member": "n", "Values": ["W_C", 9], "Mask": 7, "Not": True}]},
                {"Name": "mid", "Offset": 16, "Size": 8, "CType": "p", "RawType": "struct", "Struct": "point"}
                | {"Detail": True, "Side": "in"},
                {"Name": "rest", "Offset": 32, "Size": 0, "CType": "char []", "RawType": "buffer", "Bytes": "n"},
            ],
        },
        "whole": {
            "Size": 4,
            "Plain": True,
            "Members": [{"Name": "value", "Offset": 0, "Size": 4, "CType": "int", "RawType": "int"}],
        },
    },
    "SystemCalls": [
        {
            "Name": "probe",
            "Number": {"x86_64": 1},
            "Filter": "File",
            "Parameters": [
                {"Index": 0, "Name": "fd", "CType": "int", "RawType": "fd"},
                {
                    "Index": 1,
                    "Name": "buf",
                    "CType": "void *",
                    "RawType": "buffer",
                    "Direction": "out",
                    "Bytes": -1,
                    "Room": 2,
                },
                {"Index": 2, "Name": "how", "CType": "int", "RawType": "flags", "Flags": "ways"},
                {
                    "Index": 3,
                    "Name": "more",
                    "CType": "int",
                    "RawType": "int",
                    "Conditional": {"Index": 2, "Flags": ["W_C"]},
                },
                {"Index": 4, "Name": "places", "CType": "p *", "RawType": "struct", "Struct": "point", "Elements": 2}
                | {"Total": -1, "Behind": "", "Direction": "out", "Written": "positive"},
                {"Index": -1, "Name": "result", "CType": "long", "RawType": "int"},
            ],
            "Variants": {
                "By": 2,
                "Cases": [
                    {
                        "Values": ["W_C", 7],
                        "Arguments": 3,
                        "Parameters": [{"Index": 0, "Name": "fd", "CType": "int", "RawType": "int"}],
                    }
                ],
            },
            "Told": [1, 0],
            "Effects": [{"Effect": "UseReference", "Parameters": [0]}],
        },
        {"Name": "other", "Number": {"x86_64": 2}, "Filter": "Other"},
    ],
    "Libraries": [
        {
            "Name": "libprobe.so*",
            "Functions": [
                {"Name": "f", "Filter": "Other", "Parameters": []},
                {"Name": "g", "Filter": "Other"},
            ],
        }
    ],
}

CALL = "SystemCalls[0]"
PARAMETER = f"{CALL}.Parameters"
CASE = f"{CALL}.Variants.Cases[0]"
MISSING = object()


def changed(place: list[str | int], value: object) -> Any:
    """GOOD with something else at a place."""
    content = copy.deepcopy(GOOD)
    holder: Any = content
    for key in place[:-1]:
        holder = holder[key]
    if value is MISSING:
        del holder[place[-1]]
    elif isinstance(holder, list) and place[-1] == len(holder):
        holder.append(value)
    else:
        holder[place[-1]] = value
    return content


def told(content: Any) -> list[tuple[str, str]]:
    return [(problem.path, problem.reason) for problem in find_problems(content, "f.json")]


def test_nothing_is_told_of_a_good_file() -> None:
    assert find_problems(GOOD) == []


C: list[str | int] = ["SystemCalls", 0]
P: list[str | int] = [*C, "Parameters"]
V: list[str | int] = [*C, "Variants"]
FIRST_CASE: list[str | int] = [*V, "Cases", 0]
T: list[str | int] = ["FlagTables", "ways"]
S: list[str | int] = ["Structs", "shape"]
M: list[str | int] = [*S, "Members"]
MEMBER = "Structs.shape.Members"


@pytest.mark.parametrize(
    ("place", "value", "path", "reason"),
    [
        (["Sauce"], "x", "Sauce", "unknown key; known are $schema, Source, FlagTables, Structs, SystemCalls"),
        (["Source"], 1, "Source", "1 is not a string"),
        (["Source"], "", "Source", "is empty"),
        (["SystemCalls"], {}, "SystemCalls", "an object is not a list"),
        (["SystemCalls", 1], 5, "SystemCalls[1]", "5 is not an object"),
        ([*C, "Name"], MISSING, CALL, "Name is missing"),
        ([*C, "Number"], MISSING, CALL, "Number is missing"),
        ([*C, "Filter"], MISSING, CALL, "Filter is missing"),
        ([*C, "Number"], {}, f"{CALL}.Number", "is empty"),
        ([*C, "Number"], {"vax": 1}, f"{CALL}.Number.vax", "unknown architecture; known are aarch64, riscv64, x86_64"),
        ([*C, "Number"], {"x86_64": -1}, f"{CALL}.Number.x86_64", "-1 is no number of a system call"),
        ([*C, "Number"], {"x86_64": True}, f"{CALL}.Number.x86_64", "true is no number of a system call"),
        (
            [*C, "Error"],
            "errno",
            f"{CALL}.Error",
            "'errno' is none of negative_errno, minus_one_errno, null_errno, none",
        ),
        ([*C, "Since"], None, f"{CALL}.Since", "null is not a string"),
        (
            ["SystemCalls", 1, "Number"],
            {"x86_64": 1},
            "SystemCalls[1].Number.x86_64",
            f"1 is there already, at {CALL}.Number.x86_64",
        ),
        (["SystemCalls", 1, "Name"], "probe", "SystemCalls[1].Name", f"'probe' is there already, at {CALL}.Name"),
        ([*P, 0, "Index"], MISSING, f"{PARAMETER}[0]", "Index is missing"),
        ([*P, 3, "Index"], 2, f"{PARAMETER}[3].Index", f"2 is there already, at {PARAMETER}[2].Index"),
        ([*P, 3, "Index"], 5, PARAMETER, "arguments have the indexes 0, 1, 2, 4, 5: one is left out"),
        ([*P, 5, "Index"], -2, f"{PARAMETER}[5].Index", "-2 is below -1"),
        ([*P, 4, "Struct"], "circle", f"{PARAMETER}[4].Struct", "there is no structure 'circle'"),
        ([*P, 4, "Elements"], 0, f"{PARAMETER}[4].Elements", "0 is below 1"),
        ([*P, 4, "Total"], 12, f"{PARAMETER}[4].Total", "there is no parameter 12"),
        ([*P, 4, "Written"], "never", f"{PARAMETER}[4].Written", "'never' is none of failed, positive"),
        ([*P, 1, "Ended"], True, f"{PARAMETER}[1].Ended", "is of use beside Struct only"),
        ([*P, 1, "Struct"], "point", f"{PARAMETER}[1].Struct", "what has the raw type buffer leads to no structure"),
        ([*S, "Size"], 0, "Structs.shape.Size", "0 is below 1"),
        ([*S, "Size"], MISSING, "Structs.shape", "Size is missing"),
        ([*S, "Length"], "m", "Structs.shape.Length", "there is no member 'm'"),
        ([*M, 0, "Offset"], MISSING, f"{MEMBER}[0]", "Offset is missing"),
        ([*M, 0, "Size"], 3, f"{MEMBER}[0].Size", "3 bytes are no number"),
        ([*M, 0, "Bits"], [30, 3], f"{MEMBER}[0].Bits", "are not all in the number"),
        ([*M, 0, "Bits"], [30], f"{MEMBER}[0].Bits", "are not the first bit, and how many there are"),
        ([*M, 0, "Bits"], [3, 0], f"{MEMBER}[0].Bits", "are not the first bit, and how many there are"),
        ([*M, 0, "Flags"], "wais", f"{MEMBER}[0].Flags", "there is no table of flags 'wais'"),
        ([*M, 0, "Leads"], True, f"{MEMBER}[0].Leads", "what has the raw type enum leads to nothing"),
        ([*M, 1, "Struct"], "circle", f"{MEMBER}[1].Struct", "there is no structure 'circle'"),
        ([*M, 2, "Struct"], MISSING, f"{MEMBER}[2]", "Struct is missing"),
        ([*M, 2, "Struct"], "shape", "Structs.shape", "is a part of itself"),
        ([*M, 1, "Count"], "m", f"{MEMBER}[1].Count", "there is no member 'm'"),
        ([*M, 3, "Many"], True, f"{MEMBER}[3].Many", "is of use beside Struct only"),
        ([*M, 3, "Bytes"], "m", f"{MEMBER}[3].Bytes", "there is no member 'm'"),
        ([*M, 1, "If", 0, "Member"], "m", f"{MEMBER}[1].If[0].Member", "there is no member 'm'"),
        ([*M, 1, "If", 0, "Values", 0], "W_D", f"{MEMBER}[1].If[0].Values[0]", "'W_D' is not in the table 'ways'"),
        ([*M, 1, "If", 0, "Not"], 1, f"{MEMBER}[1].If[0].Not", "1 is not true or false"),
        (
            ["Structs", "point", "Members", 0, "Offset"],
            6,
            "Structs.point.Members[0]",
            "ends at 10, behind the structure's 8 bytes",
        ),
        (["Structs", "point", "Plain"], 1, "Structs.point.Plain", "1 is not true or false"),
        (["Structs", "whole", "Members"], [], "Structs.whole.Members", "of a plain one there is exactly one"),
        ([*P, 0, "Name"], MISSING, f"{PARAMETER}[0]", "Name is missing"),
        ([*P, 0, "CType"], 3.5, f"{PARAMETER}[0].CType", "3.5 is not a string"),
        ([*P, 0, "Called"], "", f"{PARAMETER}[0].Called", "is empty"),
        ([*P, 0, "Answered"], 1, f"{PARAMETER}[0].Answered", "1 is not true or false"),
        ([*C, "Told", 1], 9, f"{CALL}.Told[1]", "there is no parameter 9"),
        ([*C, "Told", 1], -1, f"{CALL}.Told[1]", "there is no parameter -1"),
        ([*C, "Told", 1], 1, f"{CALL}.Told[1]", "1 is told already"),
        ([*P, 0, "Direction"], "back", f"{PARAMETER}[0].Direction", "'back' is none of in, out, inout"),
        ([*P, 0, "When"], "later", f"{PARAMETER}[0].When", "'later' is none of entry, exit"),
        (
            [*P, 0, "Type"],
            "Thing",
            f"{PARAMETER}[0].Type",
            "'Thing' is none of Info, Entity, Reference, EntityModifier",
        ),
        ([*P, 2, "Flags"], "wais", f"{PARAMETER}[2].Flags", "there is no table of flags 'wais'"),
        ([*P, 1, "Flags"], "ways", f"{PARAMETER}[1].Flags", "what has the raw type buffer has no flags"),
        ([*P, 1, "Bytes"], 9, f"{PARAMETER}[1].Bytes", "there is no parameter 9"),
        ([*P, 1, "Bytes"], 40, f"{PARAMETER}[1].Bytes", "40 is above 31"),
        ([*P, 1, "Count"], "all", f"{PARAMETER}[1].Count", "'all' is not a whole number"),
        ([*P, 1, "Room"], 9, f"{PARAMETER}[1].Room", "there is no parameter 9"),
        ([*P, 1, "Bytes"], MISSING, f"{PARAMETER}[1].Room", "is of use beside Bytes only"),
        ([*P, 0, "Count"], 3, f"{PARAMETER}[0].Count", "what has the raw type fd leads to nothing"),
        ([*P, 3, "Conditional", "Index"], 8, f"{PARAMETER}[3].Conditional.Index", "there is no parameter 8"),
        ([*P, 3, "Conditional", "Flags"], MISSING, f"{PARAMETER}[3].Conditional", "Flags is missing"),
        (
            [*P, 3, "Conditional", "Flags", 0],
            "W_D",
            f"{PARAMETER}[3].Conditional.Flags[0]",
            "'W_D' is not in the table 'ways'",
        ),
        (
            [*P, 3, "Conditional", "Index"],
            0,
            f"{PARAMETER}[3].Conditional.Flags[0]",
            "'W_C' is a name, but the parameter that is asked has no table of flags",
        ),
        ([*P, 3, "Conditional", "Flags", 0], 4, f"{PARAMETER}[3].Conditional.Flags[0]", "4 is no name of a flag"),
        ([*V, "Mask"], 0, f"{CALL}.Variants.Mask", "0 is below 1"),
        ([*V, "Cases"], MISSING, f"{CALL}.Variants", "Cases is missing"),
        ([*FIRST_CASE, "Values", 0], "W_D", f"{CASE}.Values[0]", "'W_D' is not in the table 'ways'"),
        ([*FIRST_CASE, "Values", 0], 7, f"{CASE}.Values[1]", f"7 is there already, at {CASE}.Values[0]"),
        ([*FIRST_CASE, "Arguments"], 33, f"{CASE}.Arguments", "33 is above 32"),
        (
            [*FIRST_CASE, "Parameters", 0, "Index"],
            6,
            f"{CASE}.Parameters[0].Index",
            "there is no parameter 6 to be replaced",
        ),
        ([*C, "Effects", 0, "Parameters"], [5], f"{CALL}.Effects[0].Parameters[0]", "there is no parameter 5"),
        ([*C, "Effects", 0, "Parameters"], ["fd"], f"{CALL}.Effects[0].Parameters[0]", "'fd' is not a whole number"),
        (
            [*C, "Effects", 0, "Effect"],
            "Use",
            f"{CALL}.Effects[0].Effect",
            "'Use' is none of LinkReference, UseReference, DestroyReference",
        ),
        ([*T, "Kind"], "bits", "FlagTables.ways.Kind", "'bits' is none of flags, enum"),
        ([*T, "Values", 0], "W_A", "FlagTables.ways.Values[0]", "'W_A' is not [name, value] or [name, value, mask]"),
        ([*T, "Values", 0], ["", 0], "FlagTables.ways.Values[0][0]", "'' is no name"),
        (
            [*T, "Values", 3],
            ["W_A", 8],
            "FlagTables.ways.Values[3][0]",
            "'W_A' is there already, at FlagTables.ways.Values[0]",
        ),
        ([*T, "Values", 0], ["W_A", "0"], "FlagTables.ways.Values[0][1]", "'0' is not a whole number"),
        ([*T, "Values", 0], ["W_A", 4, 3], "FlagTables.ways.Values[0]", "0x4 has bits outside of its mask 0x3"),
        ([*T, "Macro"], "WAYS", "FlagTables.ways", "Macro and Masks are of use together only"),
        ([*T, "Masks"], [3], "FlagTables.ways", "Macro and Masks are of use together only"),
        (["Libraries", 0, "Name"], MISSING, "Libraries[0]", "Name is missing"),
        (["Libraries", 0, "Functions", 0, "Number"], {}, "Libraries[0].Functions[0].Number", "unknown key"),
        (
            ["Libraries", 0, "Functions", 0, "Varargs"],
            {"Format": 31},
            "Libraries[0].Functions[0].Varargs.Format",
            "argument 31 is no string",
        ),
        (
            ["Libraries", 0, "Functions", 0, "SystemCall"],
            "probed",
            "Libraries[0].Functions[0].SystemCall",
            "there is no system call 'probed'",
        ),
        (["Libraries", 0, "Functions", 0, "Varargs"], {}, "Libraries[0].Functions[0].Varargs", "Format is missing"),
        (
            ["Libraries", 0, "Functions", 1, "Name"],
            "f",
            "Libraries[0].Functions[1].Name",
            "'f' is there already, at Libraries[0].Functions[0].Name",
        ),
        (
            ["Libraries", 1],
            {"Name": "libprobe.so*", "Functions": []},
            "Libraries[1].Name",
            "'libprobe.so*' is there already, at Libraries[0].Name",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(place: list[str | int], value: object, path: str, reason: str) -> None:
    problems = told(changed(place, value))
    assert len(problems) == 1, problems
    assert problems[0][0] == path
    assert problems[0][1].startswith(reason)


def test_a_format_is_one_of_those_that_are_known() -> None:
    string = {"Index": 0, "Name": "s", "CType": "const wchar_t *", "RawType": "wide_string"}
    function = {"Name": "f", "Filter": "Other", "Parameters": [string], "Varargs": {"Format": 0, "Kind": "strftime"}}
    place: list[str | int] = ["Libraries", 0, "Functions", 0]
    (problem,) = told(changed(place, function))
    assert problem == ("Libraries[0].Functions[0].Varargs.Kind", "'strftime' is none of printf, scanf")
    assert not told(changed(place, function | {"Varargs": {"Format": 0, "Kind": "scanf"}}))


def test_functions_may_be_described_as_system_calls() -> None:
    function = {"Name": "f", "Filter": "Other", "SystemCall": "probe"}
    result = {"Index": -1, "Name": "r", "CType": "long", "RawType": "long"}
    assert not told(changed(["Libraries", 0, "Functions", 0], function | {"Parameters": [result]}))


def test_a_raw_type_that_is_none_is_told_with_those_that_are() -> None:
    (problem,) = find_problems(changed([*P, 0, "RawType"], "integer"), "f.json")
    assert str(problem).startswith(f"f.json: {PARAMETER}[0].RawType: 'integer' is none of int, uint, long,")
    assert str(problem).endswith("limit, request, wait_status, float, raw")


def test_what_the_variants_are_by_has_to_be_there() -> None:
    assert told(changed([*V, "By"], 12))[0] == (f"{CALL}.Variants.By", "there is no parameter 12")


def test_all_mistakes_are_told() -> None:
    content = changed([*P, 0, "Direction"], "back")
    content["SystemCalls"][1]["Filter"] = "Files"
    assert [path for path, _ in told(content)] == [f"{PARAMETER}[0].Direction", "SystemCalls[1].Filter"]


@pytest.mark.parametrize("content", [None, [], 5, "text", True])
def test_a_file_is_an_object(content: object) -> None:
    ((path, reason),) = told(content)
    assert path == ""
    assert reason.endswith("is not an object")


@pytest.mark.parametrize("junk", [None, True, -1, 2.5, "x", [], {}, [[]], [{}], {"a": []}, [None], 10**30])
def test_no_value_anywhere_is_too_strange_to_be_told(junk: Any) -> None:
    def places(value: Any, place: list[str | int]) -> list[list[str | int]]:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [place] * bool(place) + [one for key, inner in items for one in places(inner, [*place, key])]

    for place in places(GOOD, []):
        find_problems(changed(place, junk))


def test_tables_of_others_may_be_named() -> None:
    content = copy.deepcopy(GOOD)
    del content["FlagTables"]
    assert {path for path, _ in told(content)} == {f"{MEMBER}[0].Flags", f"{PARAMETER}[2].Flags"}
    assert find_problems(content, tables={"ways": frozenset({"W_C"})}) == []
    assert [problem.path for problem in find_problems(content, tables={"ways": frozenset({"W_B"})})] == [
        f"{MEMBER}[1].If[0].Values[0]",
        f"{PARAMETER}[3].Conditional.Flags[0]",
        f"{CASE}.Values[0]",
    ]


def test_structures_of_others_may_be_named() -> None:
    content = copy.deepcopy(GOOD)
    del content["Structs"]
    assert [path for path, _ in told(content)] == [f"{PARAMETER}[4].Struct"]
    assert find_problems(content, structs=frozenset({"point"})) == []


def test_cases_may_have_cases_of_their_own() -> None:
    inner: dict[str, Any] = {"By": 0, "Cases": [{"Values": [1], "Arguments": 2}]}
    assert told(changed([*FIRST_CASE, "Variants"], inner)) == []
    inner["By"] = 9
    assert told(changed([*FIRST_CASE, "Variants"], inner)) == [(f"{CASE}.Variants.By", "there is no parameter 9")]
