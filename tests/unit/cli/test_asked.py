"""Plain command lines of `clew record` mean what click makes of them; all others are left to it."""

from __future__ import annotations

from typing import Any

import pytest

import clew.cli.record
from clew.cli import group
from clew.cli.asked import Asked, parse_plain
from clew.errors import UsageError


def _ask_click(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What click makes of a command line of `clew record`."""
    found: list[Asked] = []

    def record(asked: Asked, *_: Any) -> int:
        found.append(asked)
        return 0

    monkeypatch.setattr(clew.cli.record, "record", record)
    assert group.invoke(arguments) == 0
    return found[0]


PLAIN = [
    ["record", "true"],
    ["record", "--", "true"],
    ["record", "ls", "-l", "--", "--mode", "full"],
    ["record", "--", "-q"],
    ["record", "true", "-q", "-o", "x"],
    ["record", "caf\udce9", "\udcff"],
    ["-q", "record", "true"],
    ["--quiet", "-q", "record", "-q", "--quiet", "true"],
    ["record", "-o", "out.clew", "true"],
    ["record", "--output", "out.clew", "--stats", "--no-follow", "--mode", "auto", "--", "true", ""],
    ["record", "--mode", "full", "--mode", "region", "-o", "a", "-o", "b", "true"],
]


@pytest.mark.parametrize("arguments", PLAIN, ids=" ".join)
def test_what_is_plain_means_the_same(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = parse_plain(arguments)
    assert asked is not None
    assert asked == _ask_click(arguments, monkeypatch)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["record"],
        ["record", "--"],
        ["record", ""],
        ["-q"],
        ["report", "x.clew"],
        ["--version", "record", "true"],
        ["record", "--help"],
        ["record", "-h", "true"],
        ["record", "-qo", "x", "true"],
        ["record", "-ox", "true"],
        ["record", "--output=x", "true"],
        ["record", "--mode", "odd", "true"],
        ["record", "--mode", "true"],
        ["record", "-o"],
        ["record", "-o", "", "true"],
        ["record", "-o", "--", "true"],
        ["record", "--budget", "1", "true"],
        ["record", "--view", "true"],
        ["record", "--no-such-option", "true"],
        ["record", "-", "true"],
    ],
    ids=" ".join,
)
def test_anything_else_is_left_to_click(arguments: list[str]) -> None:
    assert parse_plain(arguments) is None


def test_a_name_that_cannot_be_is_refused_as_ever() -> None:
    with pytest.raises(UsageError, match="NUL"):
        parse_plain(["record", "-o", "a\0b", "true"])
