"""A result as tables and as a picture."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench.plot import Axis, draw, find_axis
from bench.tables import format_engine, format_peers, format_ratios
from tests.unit.bench.made_up_result import make_mode, make_result, make_row

RESULT = make_result()
PEERS = ["counts", "coverage", "callgrind", "qbdi-counts", "frida-calls"]


def test_the_table_of_clews_modes_has_spreads() -> None:
    lines = format_ratios(RESULT["rows"], RESULT["geometric_means"], ["counts", "coverage"])
    assert lines[2:] == [
        "| true | start | 0.100 | 250 ms of CPU time | 250 ms of CPU time |",
        "| gzip | short | 0.100 | 1.50 (1.35 to 1.80) | 1.20 (1.08 to 1.44) |",
        "| perl | short | 0.100 | 3.00 (2.70 to 3.60) | 2.50 (2.25 to 3.00) |",
        "| geometric mean | short | | 2.12 | 1.73 |",
    ]


def test_the_table_of_peers_says_what_failed_and_what_did_less() -> None:
    lines = format_peers(RESULT["rows"], RESULT["geometric_means"], PEERS)
    assert "| gzip | short | 0.100 | 1.50 | 1.20 | 17.00 | > 60 | 4.00 (2 %) |" in lines
    assert "| perl | short | 0.100 | 3.00 | 2.50 | 120 | ✗ SIGSEGV | 30.00 (< 1 %) |" in lines
    assert "| geometric mean | short | | 2.12 | 1.73 | 45.20 | - | - |" in lines
    assert "| `counts` on the same programs | short | |  |  | 2.12 |  |  |" in lines
    assert lines[-1].startswith("(N %)")


def test_every_line_of_a_table_has_as_many_cells() -> None:
    for lines in (
        format_ratios(RESULT["rows"], RESULT["geometric_means"], ["counts"]),
        format_peers(RESULT["rows"], RESULT["geometric_means"], PEERS),
        format_engine(RESULT["starts"], RESULT["translation"]),
    ):
        assert len({line.count("|") for line in lines if line.startswith("|")}) == 1


def test_translation_is_shown_as_speed_the_fastest_last() -> None:
    lines = format_engine({}, RESULT["translation"])
    assert lines[-1] == "| translating once: 1,500,000 instructions | 5 ms | 4.00 million/s (2.00 to 5.00) |"


def test_the_picture_is_well_formed_and_names_every_tool_and_failure() -> None:
    text = draw(RESULT)
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    shown = {element.text or "" for element in root.iter() if element.tag.endswith(("text", "title"))}
    assert {"gzip", "perl", "short programs", "qbdi-counts: > 60", "qbdi-counts: SIGSEGV"} <= shown
    assert "counts: 1.50 (1.35 to 1.80)" in shown
    assert "frida-calls: 4.00 (3.60 to 4.80), of 2% of the work" in shown
    assert "true" not in shown


def test_nothing_of_the_picture_lies_outside_of_it() -> None:
    root = ElementTree.fromstring(draw(RESULT))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for element in root.iter():
        for name, end in (("x", width), ("x1", width), ("x2", width), ("y", height), ("y1", height), ("y2", height)):
            assert 0 <= float(element.attrib.get(name, "0")) <= end


def test_names_are_escaped_in_the_picture() -> None:
    row = make_row("a<b&c", "short", {"counts": make_mode(2.0)})
    assert "a<b&c" in {element.text for element in ElementTree.fromstring(draw({"rows": [row]})).iter()}


def test_the_axis_is_logarithmic_and_holds_all_ratios() -> None:
    axis = find_axis(RESULT["rows"])
    assert axis.least <= 1.08
    assert axis.greatest >= 144
    steps = [axis.place(tick) for tick in (1.0, 10.0, 100.0)]
    assert steps[1] - steps[0] == pytest.approx(steps[2] - steps[1])
    assert axis.place(0.0) == axis.place(axis.least)
    assert Axis(0.9, 12.0).ticks() == [1.0, 2.0, 5.0, 10.0]


def test_the_axis_of_nothing_is_not_empty() -> None:
    assert find_axis([]).ticks() == [1.0, 2.0]
