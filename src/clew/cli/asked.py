"""What a command line asks `clew record` for; plain command lines are read here, without click.

Runs in the controller. To import click and to declare all options takes longer than to start a program under the
runtime. Of what is not entirely plain nothing is known here: click reads that, and says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from clew.dataclass import dataclass
from clew.recording.options.arguments import MODES, parse_output

__all__ = ["Asked", "parse_plain"]


@dataclass(frozen=True)
class Asked:
    """The command line of `clew record`, as its options have it. `words`: the program and its arguments."""

    words: tuple[str, ...]
    output: Path | None = None
    mode: str = "counts"
    budget: float | None = None
    busy_limit: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    no_follow: bool = False
    on_full: str = "wait"
    pause: float | None = None
    stats: bool = False
    quiet: bool = False


_FLAGS: Final = {"-q": "quiet", "--quiet": "quiet", "--stats": "stats", "--no-follow": "no_follow"}
_VALUES: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "-o": ("output", parse_output),
    "--output": ("output", parse_output),
    "--mode": ("mode", str),
}


def parse_plain(arguments: list[str]) -> Asked | None:
    """What `arguments` ask `clew record` for; None: they are something else, or not plain. Raises UsageError."""
    rest = iter(arguments)
    found: dict[str, Any] = {}
    word = next(rest, "")
    while word in ("-q", "--quiet"):
        found["quiet"] = True
        word = next(rest, "")
    if word != "record":
        return None
    word = next(rest, "")
    while word.startswith("-") and word != "--":
        if word in _FLAGS:
            found[_FLAGS[word]] = True
        elif word in _VALUES:
            name, convert = _VALUES[word]
            value = next(rest, "")
            if not value or value.startswith("-"):
                return None
            found[name] = convert(value)
        else:
            return None
        word = next(rest, "")
    words = tuple(rest) if word == "--" else (word, *rest)
    if not words or not words[0] or found.get("mode", "counts") not in MODES:
        return None
    return Asked(words, **found)
