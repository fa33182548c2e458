"""What is done about a compiled function so that it can be called anywhere, held against the bytes of some."""

from __future__ import annotations

import pytest

from clew.binary.architectures.known import native_architecture

ADD = "48 83 00 01"  # add qword ptr [rax], 1
LOAD = "48 8b 00"  # mov rax, [rax]
RET = "c3"


def wrap(*parts: str, keeps_flags: bool = True) -> tuple[str, tuple[int, ...] | None, bool]:
    code = bytes.fromhex("".join(parts))
    wrapped = native_architecture().wrap_callout(code, 0, len(code), keeps_flags=keeps_flags)
    return wrapped.code.hex(" "), wrapped.registers, wrapped.keeps_flags


def test_what_saves_registers_only_needs_no_stack() -> None:
    assert wrap("50", ADD, "58", RET) == (ADD, (0,), True)
    assert wrap("50", ADD, "58", RET, keeps_flags=False) == (ADD, (0,), False)
    assert wrap("50 51", LOAD, "59 58", RET) == (LOAD, (0, 1), False), "no flags are changed"
    assert wrap("41 57", "4d 89 ff", "41 5f", RET) == ("4d 89 ff", (15,), False)
    assert wrap(RET) == ("", (), False)


def test_what_goes_on_in_itself_needs_none() -> None:
    # push rax; jz to the second add; add; add; pop rax
    body = f"74 04 {ADD} {ADD}"
    assert wrap("50", body, "58", RET) == (body, (0,), True)
    to_the_end = f"74 04 {ADD}"
    assert wrap("50", to_the_end, "58", RET) == (to_the_end, (0,), True)


@pytest.mark.parametrize(
    "body",
    [
        "50 48 83 2c 24 01 58",  # sub qword ptr [rsp], 1
        "50 51 58 59",  # what is pushed is popped elsewhere
        "50 e3 02 51 59 58",  # jrcxz into what restores
        "50 51 52 53 56 55 41 50 41 58 5d 5e 5b 5a 59 58",  # more registers than can be kept
    ],
)
def test_all_others_have_one(body: str) -> None:
    code, registers, _ = wrap(body, RET)
    assert registers is None and body in code


def test_what_is_shown_registers_has_one() -> None:
    code, registers, _ = wrap("48 83 07 01", RET)  # add qword ptr [rdi], 1
    assert registers is None and "48 83 07 01" in code and code.startswith("41 57")
