"""Where variables are: what the expressions of their locations come to, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.binary.variable_places import (
    Constant,
    Frame,
    Operation,
    Place,
    Register,
    Stored,
    Term,
    ThreadPointer,
    Vector,
    read_place,
)
from clew.errors import BinaryError

PATH = Path("program")
CFA = Operation("add", Register(7), Constant(16))
MINUS_8 = Constant((1 << 64) - 8)


def frame(**changes: Any) -> Frame:
    known: dict[str, Any] = {
        "path": PATH,
        "base": b"\x9c",
        "find_cfa": lambda: CFA,
        "n_registers": 17,
        "vectors": 17,
        "n_vectors": 8,
        "is_entry": False,
        "thread_local": lambda offset: Operation("add", ThreadPointer(), Constant(offset)),
        "address": lambda address: Constant(address + 0x1000),
        "indexed": lambda index: 0x10 * index,
        "integer": {1: (1, True), 2: (2, False), 8: (8, True)}.get,
    }
    return Frame(**known | changes)


def add(term: Term, distance: int) -> Term:
    return Operation("add", term, Constant(distance))


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ("55", Place(None, (Register(5),))),  # reg5
        ("61", Place(None, (Vector(0),))),  # reg17
        ("90 12", Place(None, (Vector(1),))),  # regx 18
        ("91 68", Place(add(Register(7), (1 << 64) - 8))),  # fbreg -24
        ("91 00", Place(CFA)),
        ("9c", Place(CFA)),
        ("76 70", Place(add(Register(6), (1 << 64) - 16))),  # breg6 -16
        ("92 03 08", Place(add(Register(3), 8))),  # bregx 3, 8
        ("75 00 06 23 04", Place(add(Stored(Register(5), 8), 4))),  # breg5 0, deref, plus_uconst 4
        ("75 00 94 04 9f", Place(None, (Stored(Register(5), 4),))),  # deref_size 4, stack_value
        ("03 00 20 00 00 00 00 00 00", Place(Constant(0x3000))),  # addr
        ("a1 03", Place(Constant(0x1030))),  # addrx
        ("0e 10 00 00 00 00 00 00 00 e0", Place(add(ThreadPointer(), 16))),  # const8u, GNU_push_tls_address
        ("03 10 00 00 00 00 00 00 00 9b", Place(add(ThreadPointer(), 16))),  # addr, form_tls_address
        ("35 9f", Place(None, (Constant(5),))),  # lit5, stack_value
        ("11 7f 9f", Place(None, (Constant((1 << 64) - 1),))),  # consts -1
        ("09 f8 9f", Place(None, (MINUS_8,))),  # const1s -8
        ("9e 02 34 12", Place(None, (Constant(0x1234),))),  # implicit_value
        ("9e 0a 01 00 00 00 00 00 00 00 02 00", Place(None, (Constant(1), Constant(2)))),
        ("55 93 08 54 93 04", Place(None, (Register(5), Register(4)))),  # two pieces
        ("93 08 54 93 08", Place(None, (None, Register(4)))),
        ("75 00 93 08 54 93 08", Place(None, (Stored(Register(5), 8), Register(4)))),
        ("75 00 74 00 22 9f", Place(None, (Operation("add", Register(5), Register(4)),))),  # plus
        ("75 00 74 00 16 1c 9f", Place(None, (Operation("subtract", Register(4), Register(5)),))),  # swap, minus
        ("75 00 a8 02 a8 08 9f", Place(None, (Operation("and", Register(5), Constant(0xFFFF)),))),  # convert
        ("a5 05 08 a8 00 9f", Place(None, (Register(5),))),  # regval_type, convert
        ("75 00 a6 08 08 9f", Place(None, (Stored(Register(5), 8),))),  # deref_type
        ("75 00 12 1e 9f", Place(None, (Operation("multiply", Register(5), Register(5)),))),  # dup, mul
    ],
)
def test_places_are_terms(expression: str, place: Place) -> None:
    assert read_place(bytes.fromhex(expression), frame()) == place


def test_values_on_entry_are_in_place_where_the_function_begins() -> None:
    expression = bytes.fromhex("a3 01 55 9f")  # entry_value(reg5), stack_value
    assert read_place(expression, frame(is_entry=True)) == Place(None, (Register(5),))
    with pytest.raises(BinaryError, match="only where the function begins"):
        read_place(expression, frame())


def test_a_frame_may_be_counted_from_a_register() -> None:
    assert read_place(bytes.fromhex("91 78"), frame(base=b"\x56")) == Place(add(Register(6), (1 << 64) - 8))


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "optimised away"),
        ("f2 00 00 00 00 00", "what it points at was optimised away"),
        ("55 93 02 54 93 02", "no whole words"),
        ("55 9d 08 00", "no whole words"),
        ("90 40", "DWARF's 64"),
        ("75 00 a8 05", "by floating-point numbers"),
        ("98 00 00 00 00", "operation 0x98"),  # call2
        ("28 00 00", "operation 0x28"),  # bra
        ("22", "makes no sense"),
        ("91", "makes no sense"),
        ("9f", "makes no sense"),
        ("75 00 94 03", "makes no sense"),
        ("55 55", "makes no sense"),
        ("35 9f 35", "makes no sense"),
        ("12", "makes no sense"),
        ("75 00 e0", "makes no sense"),
        ("30 " * 200, "makes no sense"),
        ("a3 06 " * 6 + "55", "makes no sense"),
    ],
)
def test_what_makes_no_sense_is_refused(expression: str, why: str) -> None:
    with pytest.raises(BinaryError, match=why):
        read_place(bytes.fromhex(expression), frame(is_entry=True))


def test_without_a_frame_nothing_is_in_it() -> None:
    with pytest.raises(BinaryError, match="no frame"):
        read_place(b"\x91\x00", frame(base=None))
    with pytest.raises(BinaryError, match="no frame"):
        read_place(b"\x91\x00", frame(base=b"\x91\x00"))
