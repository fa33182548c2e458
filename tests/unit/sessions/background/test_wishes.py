"""What events are asked for: told and understood alike, and nothing else is understood."""

from __future__ import annotations

from typing import Any

import pytest

from clew.address import Pid
from clew.errors import UsageError
from clew.sessions.probes.background.wishes import EventWish, check_contexts

WISH = EventWish("a", "main+0x10", True, 0, "/bin/x", ("regs", "int:n:counter"), ("retval",), "rdi > 2", True)


def test_what_is_told_is_what_is_understood() -> None:
    assert EventWish.from_json(WISH.to_json()) == WISH
    other = EventWish("b c", "0x1000", False, 7)
    assert EventWish.from_json(other.to_json()) == other


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"name": " "},
        {"name": "a\x1b[2J"},
        {"name": "a" * 200},
        {"name": 7},
        {"where": ""},
        {"where": "main+0xzz"},
        {"pid": True},
        {"pid": -1},
        {"pid": 1 << 40},
        {"pid": "7"},
        {"pid": 7},
        {"path": ""},
        {"path": "x"},
        {"contexts": "regs"},
        {"contexts": [7]},
        {"contexts": ["reg:"]},
        {"contexts": ["a("]},
        {"contexts": ["regs"] * 1000},
        {"returned": ["b("]},
        {"is_function": False},
        {"condition": "rdi >"},
        {"condition": 7},
    ],
)
def test_nothing_else_is_understood(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        EventWish.from_json(WISH.to_json() | change)


@pytest.mark.parametrize("told", [None, [], "a", 7])
def test_what_is_no_event_is_refused(told: Any) -> None:
    with pytest.raises(UsageError):
        EventWish.from_json(told)


def test_contexts_are_there_once() -> None:
    more = WISH.with_contexts(["rdi", "regs", "rdi"])
    assert more.contexts == ("regs", "int:n:counter", "rdi")
    with pytest.raises(UsageError):
        check_contexts(["rdi", "str("])


def test_the_place_is_in_the_file_unless_it_names_another_image() -> None:
    assert WISH.make_spec().location.image == "/bin/x"
    other = EventWish("a", "libc.so.6!malloc", True, 0, "/bin/x").make_spec()
    assert (other.location.image, other.path, other.pid) == ("libc.so.6", "/bin/x", None)
    own = EventWish("a", "main", True, 7).make_spec()
    assert (own.location.image, own.path, own.pid) == ("", "", Pid(7))
