"""What is printed of the order of made-up threads: how comparisons end, and names that are hostile."""

from __future__ import annotations

from typing import Any

import pytest

from clew.cli.diff_order_text import conclude_order, name_order, print_order
from clew.cli.tables import make_console

Row = dict[str, Any]
EVIL = "\x1b]0;owned\x07na\u202eme[bold]\r\n"


def numbers(instruction: int, execution: int) -> Row:
    return {"instruction": instruction, "execution": execution}


def place(symbol: str | None = "f", **more: Any) -> Row:
    row = {"symbol": symbol, "symbol_offset": 16, "image": "/lib/it", "offset": "0x50", "app_pc": "0x400050"}
    return {**row, "line": None, **more}


def make_threads(end: str | None, *partings: Row, **more: Any) -> Row:
    thread = {"pid": 7, "tid": 7, "instructions": 99_000, "block_executions": 900}
    side = {**thread, "start": numbers(10, 1), "end": numbers(5_000, 51)}
    start = {"start": "main", "without_c_library": False}
    return {**start, "end": end, "last": place("last"), "a": side, "b": side, "partings": list(partings), **more}


def make_parting(**more: Any) -> Row:
    a = {"at": numbers(100, 9), "next": [place("g")], "ran": numbers(0, 0), "met": numbers(100, 9)}
    b = {
        "at": numbers(200, 8),
        "next": [place("h", line="/src/h.c:3")],
        "ran": numbers(1_234, 5),
        "met": numbers(1_434, 13),
    }
    return {"last": place(), "n_calls": 1, "calls": [place("caller")], "met": place("g"), "a": a, "b": b, **more}


def printed(capsys: pytest.CaptureFixture[str], *order: Row) -> str:
    print_order(make_console(), list(order))
    return capsys.readouterr().out


def test_a_parting(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, make_threads("together", make_parting())).splitlines()
    assert [line for line in lines if line] == [
        "order of thread 7 | 7, from main on",
        "1. part behind f+0x10 (it+0x50), at instruction 100 | 200",
        "   called from caller+0x10",
        "   A  goes straight on",
        "   B  h+0x10 (h.c:3) → …  (1,234 instructions)",
        "   meet at g+0x10 (it+0x50), at instruction 100 | 1,434",
        "the same from there to the end: 5,000 | 5,000 instructions",
    ]


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("a_ends", "A ends behind last+0x10 (it+0x50), after 5,000 instructions, and B goes on"),
        ("b_ends", "B ends behind last+0x10 (it+0x50), after 5,000 instructions, and A goes on"),
        ("not_met", "they do not meet again"),
        ("limit", "--partings N"),
        ("lost_in_a", "what A ran after 5,000 instructions was lost"),
        ("lost_in_b", "what B ran after 5,000 instructions was lost"),
        (None, "not compared: one of them did not come to where both were to be begun"),
    ],
)
def test_how_it_ended(capsys: pytest.CaptureFixture[str], end: str | None, said: str) -> None:
    assert said in printed(capsys, make_threads(end))


def test_threads_that_are_the_same_are_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    same = make_threads("together")
    assert printed(capsys, same).endswith("\nfrom main on: the same up to the end, 50 block executions\n")
    assert "2 threads ran the same in the same order: 100 block executions\n" in printed(capsys, same, same)
    assert name_order([same]) == "in the same order from main on"
    assert name_order([{**same, "start": "0"}]) == "in the same order"
    assert "only in B\n" in printed(capsys, same, make_threads(None, a=None))


def test_what_is_concluded() -> None:
    assert "not in the same order" in conclude_order([make_threads("together"), make_threads("limit", make_parting())])
    assert "could not be compared to the end" in conclude_order([make_threads("lost_in_a")])


def test_names_can_not_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evil = place(EVIL, image=EVIL, line=EVIL)
    side = {"at": numbers(1, 1), "next": [evil], "ran": None, "met": None}
    parting = make_parting(last=evil, calls=[evil], met=None, a=side, b=side)
    out = printed(capsys, make_threads("a_ends", parting, start=EVIL, last=evil))
    assert not any(character in out for character in "\x1b\x07\r\u202e")
