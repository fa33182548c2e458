"""What expressions of captures mean, and what is none."""

from __future__ import annotations

import struct

import pytest

from clew.capture.compiler import compile_capture
from clew.capture.form import Form
from clew.capture.interpreter import Value, interpret
from clew.dataclass import replace
from clew.errors import CaptureError
from tests.unit.capture.places import MACHINE, MEMORY_START, MadeUpPlace

TEXT = b"GET /index.html\0"
MEMORY = struct.pack("<QiIf4x", MEMORY_START + 0x20, -5, 5, 1.5).ljust(0x20, b"\0") + TEXT + b"no end"
PLACE = MadeUpPlace(
    MEMORY,
    rax=(1 << 64) - 2,
    rdi=MEMORY_START,
    rsi=3,
    rsp=MEMORY_START - 8,
    rbx=0x1FF,
    xmm0=struct.unpack("<Q", struct.pack("<d", 2.5))[0],
)


def value_of(text: str) -> Value:
    values = interpret(Form.unpack(compile_capture([text], MACHINE).pack()), PLACE)
    assert values is not None
    return values[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rsi", 3),
        ("$rsi + rsi", 6),
        ("arg1", MEMORY_START),
        ("arg2", 3),
        ("arg7", MEMORY_START + 0x20),  # the first argument on the stack
        ("*(u64*)&arg7 == arg7 && &arg8 - &arg7 == 8", 1),
        ("retval", -2),
        ("retval < 0", 1),
        ("rax < 0", 0),  # registers have no sign
        ("environ", MEMORY_START),
        ("libc.so.6!errno == environ + 8", 1),
        ("017 + 0x10 + 1", 32),
        ("1 << 40", 1 << 40),
        ("10UL", 10),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 / 0", None),
        ("(char)200", -56),
        ("(i8)200", -56),
        ("(int8_t)rbx", -1),
        ("(unsigned char)rbx", 255),
        ("(unsigned)-1", 0xFFFFFFFF),
        ("(long long)-1 < 0", 1),
        ("*(int*)(rdi + 8)", -5),
        ("*(u32*)(rdi + 12)", 5),
        ("*(float*)(rdi + 16)", 1.5),
        ("*(u64*)rdi", MEMORY_START + 0x20),
        ("**(char**)rdi", ord("G")),
        ("*((int*)(rdi + 8) + 1)", 5),  # so many of what it points at
        ("8(%rdi)", -5 & 0xFFFFFFFF | 5 << 32),
        ("-8(%rsp)", None),
        ("*(u8*)1", None),
        ("str(*(u64*)rdi)", TEXT[:-1]),
        ("str(*(u64*)rdi, 3)", b"GET"),
        ("str(1)", None),
        ("str(rdi + 0x30)", None),  # memory ends before the string does
        ("bytes(rdi + 0x20, 4)", b"GET "),
        ("bytes(rdi + 0x20, rsi)", b"GET"),
        ("bytes(rdi, 4096)", None),
        ("bytes(rdi + 0x20, rsi, 2)", b"GE"),
        ("bytes(rdi + 0x20, rsi, 20)", b"GET"),
        ("bytes(rdi + 0x20, 4, 20)", b"GET "),
        ('str(*(u64*)rdi, 3) == "GET"', 1),
        ('str(*(u64*)rdi) != "POST"', 1),
        ('comm == "worker" && tid == 7', 1),
        ("xmm0 * 2", 5.0),
        ("farg1 > 2", 1),
        ("xmm1", None),
        ("cpu", None),
        ("0 && *(u8*)1", 0),  # what the left one decides does not ask the right one
        ("1 || 7 / 0", 1),
        ("1 && 7 / 0", None),
        ("!rsi", 0),
        ("!!xmm0", 1),
        ("(double)1 / 4", 0.25),
        ("(int)-2.75", -2),
        ("rsi > 2 == 1", 1),
        ("rbx & 0xf0 | 1 ^ 3", 0xF2),
    ],
)
def test_what_expressions_mean(text: str, value: Value) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("", 1, "something is missing"),
        ("5 +", 4, "something is missing"),
        ("rdi rsi", 5, "should have ended"),
        ("(rdi", 5, r"'\)' is missing"),
        ("1 @ 2", 3, "no part of an expression"),
        ("nowhere", 1, "no symbol"),
        ("$nowhere", 1, "no such register"),
        ("8(%nowhere)", 1, "no such register"),
        ("farg9", 1, "the first 8"),
        ("str()", 1, "takes 1 or 2 arguments"),
        ("str(rdi, rsi)", 10, "a number from 1 to"),
        ("strlen(rdi)", 1, "no such function"),
        ("str(rdi) + 1", 10, "only compared"),
        ("str(rdi) == 5", 10, "compared with a string"),
        ("*1.5", 1, "an address is an integer"),
        ("1.5 % 2", 5, "not for floating-point"),
        ("1.5 << 2", 5, "not for floating-point"),
        ("~1.5", 1, "no bits"),
        ("(unsigned double)1", 1, "no such type"),
        ("(void)1", 1, "nothing is a value of void"),
        ("089", 1, "not an octal number"),
        ("0x1ffffffffffffffff", 1, "larger than 64 bits"),
        ('"\\x"', 1, "not a string"),
    ],
)
def test_what_is_none_is_told_with_its_place(text: str, place: int, why: str) -> None:
    with pytest.raises(CaptureError, match=f"at character {place}: .*{why}|^.*at character {place}: {why}"):
        compile_capture([text], MACHINE)


def test_nothing_is_read_that_is_too_long_or_too_deep() -> None:
    for text in ("1" * 5000, "(" * 900 + "1" + ")" * 900, "-" * 900 + "1", "+".join("1" * 1000)):
        with pytest.raises(CaptureError):
            compile_capture([text], MACHINE)


def test_what_is_asked_for_twice_is_taken_once() -> None:
    form = compile_capture(["*(u64*)rdi", "*(u64*)rdi + 1"], MACHINE, "*(u64*)rdi != 0")
    loads = [one for one in form.instructions if one.operation.name == "LOAD"]
    assert len(loads) == 1
    assert interpret(form, PLACE) == (MEMORY_START + 0x20, MEMORY_START + 0x21)


def test_what_a_call_began_with_is_kept() -> None:
    machine = replace(MACHINE, entry=MACHINE)
    texts = ["retval - entry(rsi)", 'entry(str(rdi)) == "abc"', "entry(rsi) * 2", "entry(comm)", "duration / 3", "rsi"]
    form = compile_capture(texts, machine, "entry(rsi) > 2")
    assert form.entry is not None and len(form.entry.fields) == 3
    begun = MadeUpPlace(b"abc\0", rdi=MEMORY_START, rsi=3)
    place = MadeUpPlace(rax=10, rsi=77)
    place.of_entry = interpret(form.entry, begun) or ()
    assert interpret(form, place) == (7, 1, 6, b"worker", 500, 77)
    place.of_entry = (2, *place.of_entry[1:])
    assert interpret(form, place) is None, "the condition is of what was kept"
    assert Form.unpack(form.pack()).instructions == form.instructions


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("entry(rsi)", "when a call began"),
        ("duration", "has returned"),
        ("began", "has returned"),
        ("frame + 8", "has returned"),
    ],
)
def test_what_only_returns_have_is_refused_elsewhere(text: str, why: str) -> None:
    with pytest.raises(CaptureError, match=why):
        compile_capture([text], MACHINE)


@pytest.mark.parametrize(("condition", "holds"), [("rsi", True), ("rsi - 3", False), ("*(u8*)1", False)])
def test_nothing_is_taken_where_the_condition_does_not_hold(condition: str, holds: bool) -> None:
    assert (interpret(compile_capture(["rsi"], MACHINE, condition), PLACE) is not None) is holds
