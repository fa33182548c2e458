"""What a kind of difference between lines of strace and of `clew api` is: rules, each with two lines that it makes one.

Runs on the machine that tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from re import Match
from typing import Final

__all__ = ["TEXT", "Kind", "Rule"]

TEXT: Final = r'"(?:[^"\\]|\\.)*"(?:\.\.\.)?'
"""A string as both write it."""


@dataclass(frozen=True)
class Rule:
    """Of calls whose whole name fits `names`, what fits `pattern` is told as `other`.

    `theirs` and `ours` are a call as strace and clew write it, or as two runs have it. `part`: it is about `arguments`
    or the `result` only.
    """

    names: str
    pattern: str
    other: str | Callable[[Match[str]], str]
    why: str
    theirs: str
    ours: str
    part: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of difference. Rules are applied in their order, and kinds in theirs."""

    name: str
    reason: str
    rules: tuple[Rule, ...]
