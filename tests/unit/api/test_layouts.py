"""What is captured of structures and requests out of headers, and what is made of it."""

from __future__ import annotations

from typing import Any

import pytest

from clew.api.generate.layouts import capture_layout
from clew.api.generate.requests import capture_requests
from clew.api.generate.sources import Layout, LayoutMember, Sources, parse_layouts, parse_requests, read_sources
from clew.api.generate.structs import StructError, structs_content

LAYOUT = Layout(
    16,
    {
        "fd": LayoutMember(0, 4, "int"),
        "flags": LayoutMember(4, 4, "unsigned int"),
        "buf": LayoutMember(8, 8, "void *"),
        "u.deep": LayoutMember(8, 4, "int"),
    },
)


def made(structs: dict[str, Any]) -> Any:
    tables: dict[str, dict[str, Any]] = {"modes": {"kind": "flags"}, "signal_codes": {"kind": "enum"}}
    values = {"modes": [("M_A", 1)], "signal_codes": [("SI_A", 0), ("SI_B", -1)]}
    sources = Sources({}, {}, tables, values, {}, {}, [], {"probe": LAYOUT}, structs, "here")
    return structs_content(sources)["Structs"]


def test_a_compiler_says_where_members_are() -> None:
    size, members = capture_layout(["linux/uio.h"], "struct iovec")
    assert (size, members) == (16, [("iov_base", 0, 8, "void *"), ("iov_len", 8, 8, "__kernel_size_t")])


def test_what_has_no_name_is_left_out_of_paths() -> None:
    c_type = (
        "struct { union { int first; char second[3]; }; struct { short inner; } named; int bits : 3; char rest[]; }"
    )
    size, members = capture_layout([], c_type)
    assert size == 8
    assert [(path, offset, own) for path, offset, own, _ in members] == [
        ("first", 0, 4),
        ("second", 0, 3),
        ("named", 4, 2),
        ("named.inner", 4, 2),
        ("rest", 7, 0),
    ]
    assert members[1][3] == "char[3]"
    assert members[-1][3] == "char[]"


def test_requests_have_numbers_and_types() -> None:
    found = {name: (number, c_type) for name, number, c_type in capture_requests({"asm/ioctls.h": "TC.*|TIO.*|FIO.*"})}
    assert found["TCGETS"] == (0x5401, "")
    assert found["TIOCGPTN"] == (0x80045430, "unsigned int")
    assert found["TCGETS2"][1] == "struct termios2"


def test_of_several_requests_with_a_number_the_first_counts() -> None:
    headers = {"asm/ioctls.h": "TC.*", "linux/loop.h": "LOOP_.*"}
    numbers = [number for _, number, _ in capture_requests(headers)]
    assert len(numbers) == len(set(numbers))
    assert numbers == sorted(numbers)


def test_what_was_captured_is_parsed() -> None:
    layouts = parse_layouts(["[probe] 16", "fd 0 4 int", "buf 8 8 void *"])
    assert layouts == {"probe": Layout(16, {"fd": LAYOUT.members["fd"], "buf": LAYOUT.members["buf"]})}
    assert parse_requests(["A 0x5401", "B 0x80045430 unsigned int"]) == (
        ("A", 0x5401, ""),
        ("B", 0x80045430, "unsigned int"),
    )


def test_layouts_and_words_make_structures() -> None:
    condition = {"Member": "fd", "As": "SI", "Not": True}
    said = [
        "fd",
        "flags modes",
        "-u.deep long",
        {"Name": "buf", "RawType": "buffer", "Bytes": "flags", "If": [condition]},
    ]
    assert made({"probe": {"More": True, "Members": said}}) == {
        "probe": {
            "Size": 16,
            "More": True,
            "Members": [
                {"Name": "fd", "Offset": 0, "Size": 4, "CType": "int", "RawType": "fd"},
                {
                    "Name": "flags",
                    "Offset": 4,
                    "Size": 4,
                    "CType": "unsigned int",
                    "RawType": "flags",
                    "Flags": "modes",
                },
                {"Name": "u.deep", "Offset": 8, "Size": 4, "CType": "int", "RawType": "long", "Detail": True},
                {"Name": "buf", "Offset": 8, "Size": 8, "CType": "void *", "RawType": "buffer", "Bytes": "flags"}
                | {"If": [{"Member": "fd", "Not": True, "Values": [0, -1]}], "Leads": True},
            ],
        }
    }
    plain = made({"fd": {"Plain": "int", "As": "fd"}})["fd"]
    assert plain["Plain"] and plain["Members"][0]["RawType"] == "fd"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"other": {"Members": []}}, "other: there is no layout"),
        ({"probe": {"Members": ["gone int"]}}, "probe: there is no member gone"),
        ({"probe": {"Members": ["fd strange"]}}, "strange is neither a raw type nor a table"),
    ],
)
def test_what_is_not_there_is_refused(said: dict[str, Any], message: str) -> None:
    with pytest.raises(StructError, match=message):
        made(said)


def test_each_layout_is_of_use() -> None:
    """What is captured is told somewhere."""
    sources = read_sources()
    used = {said.get("Layout", name) for name, said in sources.structs.items() if "Plain" not in said}
    assert sources.layouts.keys() == used
