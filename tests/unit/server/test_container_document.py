"""docs/format/container.md says of each container what is sent: the names of its arrays, their types, and of what each
is one; and what is in its `meta`."""

from __future__ import annotations

import json
import re
import struct
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.unit.server.asking import ask_well
from tests.unit.server.live_frames import encode_some_frame

if TYPE_CHECKING:
    from starlette.applications import Starlette

DOCUMENT: Final = Path(__file__).resolve().parents[3] / "docs/format/container.md"
ASKED: Final = {
    "functions": "functions",
    "blocks": "blocks",
    "counts": "counts?blocks=1&owners=1",
    "thread_functions": "thread-functions",
    "listing": "listing-index",
    "timeline": "timeline?bins=100",
    "call_chart": "calls/chart?bins=20&series=3",
    "call_lanes": "calls/lanes?from=0&to=1000000000000&bins=100",
    "path": "threads/{tid}/path?start=3&count=50",
    "frames": "threads/{tid}/frames?start=10&stride=20&frames=4",
    "comparison": "compared/0/0/comparison",
}
"""What gives a container of each kind."""

Described = dict[str, tuple[str, str]]


@cache
def read_document() -> dict[str, tuple[set[str], Described]]:
    """By kind the words of `meta`, and by array its type and of what each element is one."""
    found = {}
    for section in DOCUMENT.read_text().split("\n## ")[1:]:
        kind = section.split("\n", 1)[0]
        meta = re.search(r"`meta`: (.*?)\.(?= |\n)", section, re.DOTALL)
        assert meta is not None, kind
        words = {word.strip() for word in re.split(r",|\band\b", re.sub(r"\([^)]*\)", "", meta[1]))}
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:2] == "| "]
        head, arrays = rows[0], rows[2:]
        assert head in (["array", "type", "of each", "what"], ["array", "type", "what"]), kind
        described: Described = {}
        for row in arrays:
            names, types = row[0].split(", "), row[1].split(", ")
            units = row[2].split(", ") if len(head) == 4 else ["element"]
            if len(types) == 1:
                types *= len(names)
            if len(units) != len(names) or "and one more" in units:
                units = [row[2] if len(head) == 4 else "element"] * len(names)
            for name, word, unit in zip(names, types, units, strict=True):
                assert name not in described, (kind, name)
                described[name] = (word, unit)
        found[kind] = (words, described)
    return found


def read_header(content: bytes) -> dict[str, Any]:
    size = struct.unpack_from("<12xI", content)[0]
    header: dict[str, Any] = json.loads(content[16 : 16 + size])
    return header


def expand(described: Described) -> Described:
    """With the two arrays that texts are."""
    found: Described = {}
    for name, (word, unit) in described.items():
        if word == "text":
            found |= {f"{name}.bytes": ("u8", ""), f"{name}.ends": ("u32", unit)}
        else:
            found[name] = (word, unit)
    return found


def ask_all(app: Starlette, trace: int) -> dict[str, dict[str, Any]]:
    """The header of each container of a trace, by its kind. Those of replay and of calls only of traces that have an
    order or calls."""
    tid = ask_well(app, f"/api/traces/{trace}").json()["processes"][0]["threads"][0]["tid"]
    has_order, has_calls = trace in (1, 2), trace > 0
    kinds = [
        kind
        for kind, path in ASKED.items()
        if (has_order or "{tid}" not in path) and (has_calls or kind != "call_chart")
    ]
    paths = [f"/api/traces/{trace}/processes/0/{ASKED[kind].format(tid=tid)}" for kind in kinds]
    found = [read_header(ask_well(app, path).content) for path in paths]
    assert [header["kind"] for header in found] == kinds
    return dict(zip(kinds, found, strict=True))


def test_each_kind_has_its_section() -> None:
    assert list(read_document()) == [*ASKED, "live"]


def test_a_frame_of_a_recording_that_goes_on_is_what_the_document_says() -> None:
    header = read_header(encode_some_frame())
    meta, described = read_document()["live"]
    expected = expand(described)
    assert {one["name"]: one["type"] for one in header["arrays"]} == {
        name: word for name, (word, _) in expected.items()
    }
    assert set(header["meta"]) == meta
    lengths: dict[str, int] = {}
    for one in header["arrays"]:
        unit = expected[one["name"]][1]
        assert not unit or lengths.setdefault(unit, one["length"]) == one["length"], one["name"]
    assert min(lengths.values()) > 0


@pytest.mark.parametrize("trace", range(4))
def test_what_is_sent_is_what_the_document_says(every_mode: Starlette, trace: int) -> None:
    headers = ask_all(every_mode, trace)
    for kind, header in headers.items():
        meta, described = read_document()[kind]
        sent = {one["name"]: one["type"] for one in header["arrays"]}
        assert sent == {name: word for name, (word, _) in expand(described).items()}, kind
        assert set(header["meta"]) == meta, kind


@pytest.mark.parametrize("trace", range(4))
def test_arrays_are_as_long_as_there_are_of_what_they_tell(every_mode: Starlette, trace: int) -> None:
    """`of each`: of a function, of a block... All arrays of one unit are of one length, in whatever container."""
    headers = ask_all(every_mode, trace)
    timeline = headers["timeline"]
    lengths = {"thread and bin": len(headers["functions"]["meta"]["threads"]) * timeline["meta"]["bins"]}
    lengths |= {"bin": timeline["meta"]["bins"], "block": headers["functions"]["meta"]["n_blocks"]}
    lengths |= {"edge": headers["functions"]["meta"]["n_edges"], "thread": len(headers["functions"]["meta"]["threads"])}
    for kind, header in headers.items():
        described = expand(read_document()[kind][1])
        # What is counted in one container only has its own length there.
        own = {"element", "gap", "tick", "mark", "frame", "series", "series and bin"}
        known: dict[str, int] = {}
        if kind == "call_chart":
            (names,) = (one["length"] for one in header["arrays"] if one["name"] == "name.ends")
            known["series and bin"] = names * header["meta"]["bins"]
        for one in header["arrays"]:
            unit = described[one["name"]][1]
            if not unit:
                continue
            one_more = unit.endswith(", and one more")
            unit, length = unit.removesuffix(", and one more"), one["length"] - one_more
            told = known if unit in own else lengths
            assert told.setdefault(unit, length) == length, (kind, one["name"])
    assert lengths["function"] > 1
    assert lengths["link"] > 0
