"""Functions that begin anew once their stack was moved, as Go's compiler makes them."""

from __future__ import annotations

import pytest

from clew.probing.x86_64.exits import ExitKind, find_exits
from clew.probing.x86_64.function_code import FunctionCode, decode_function
from clew.probing.x86_64.stack_checks import find_body, find_stack_check

START = 0x40_1000
SMALL, LARGE = "493b6610", "4c8d642480 4d3b6610"
"""cmp rsp, [r14 + 16]; and lea r12, [rsp - 128]; cmp r12, [r14 + 16]."""
REST = "7602 90 c3 e810000000"
"""jbe to the call; nop; ret; call of somebody else."""


def function(text: str, back: bool = True) -> FunctionCode:
    """Code, behind which there is a jump to its start."""
    code = bytes.fromhex(text)
    return decode_function(START, code + (bytes((0xEB, 256 - len(code) - 2)) if back else b"\xc3"))


@pytest.mark.parametrize("check", [SMALL, LARGE])
def test_a_check_is_no_beginning_and_no_end(check: str) -> None:
    code = function(check + REST)
    found = find_stack_check(code)
    size = len(bytes.fromhex(check))
    assert found is not None
    assert (found.body, found.again) == (START + size + 2, START + size + 9)
    assert find_body(code) == found.body
    assert [(one.address - START - size, one.kind) for one in find_exits(code)] == [(3, ExitKind.RETURN)]


@pytest.mark.parametrize(
    "code",
    [
        # Another register leads there; no call is made; it does not begin anew.
        function("483b6610" + REST),
        function("493b6610 7602 90 c3 9090909090"),
        function(SMALL + REST, back=False),
        function("493b6610"),
        function("c3"),
    ],
)
def test_what_is_no_check(code: FunctionCode) -> None:
    assert find_stack_check(code) is None
    assert find_body(code) == START
