"""What is asked of a recording, made what a session takes: commands, environments, patterns, names.

Runs in the controller; most of it comes from Python code, as it may. The kernel's strings end at a NUL: what has one in
it is refused, not cut short there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from clew.errors import UsageError
from clew.protocol._constants import MAX_BUSY_LIMIT, Mode

__all__ = [
    "DEFAULT_BUSY_LIMIT",
    "MODES",
    "Text",
    "parse_budget",
    "parse_busy_limit",
    "parse_command",
    "parse_directory",
    "parse_environment",
    "parse_mode",
    "parse_output",
    "parse_patterns",
]

Text = str | bytes | os.PathLike[str] | os.PathLike[bytes]
"""What `subprocess` takes for a word of a command, too."""

DEFAULT_BUSY_LIMIT: Final = 10
DEFAULT_BUDGET: Final = 4.0
MAX_BUDGET: Final = 1e6
MODES: Final = (*(mode.name.lower() for mode in Mode), "auto")


def parse_command(command: Sequence[Text]) -> list[str]:
    """The words of a command, as `os.fsdecode` makes them. Raises UsageError if it can't be executed as it is."""
    if isinstance(command, str | bytes | os.PathLike):
        # Of a string the words would be its characters, and the first of them the program.
        raise UsageError(f"command {command!r}: not a list; give the program and its arguments, such as ['ls', '-l']")
    words = [_parse_text(word, f"argument {index} of the command") for index, word in enumerate(command)]
    if not words:
        raise UsageError("empty command: give a program to record")
    return words


def parse_environment(environment: Mapping[str, Text] | Mapping[bytes, Text]) -> list[bytes]:
    """`NAME=value`, for each. Raises UsageError if one can't be given to a program."""
    entries = []
    for given_name, given_value in environment.items():
        name = _parse_text(given_name, "environment")
        if not name or "=" in name:
            raise UsageError(f"environment {name!r}: no name of a variable; it may not be empty, nor have a = in it")
        entries.append(os.fsencode(f"{name}={_parse_text(given_value, f'environment {name!r}')}"))
    return entries


def parse_patterns(given: str | Iterable[str]) -> tuple[str, ...]:
    """What to include or exclude: one string is one pattern. What patterns mean is not known here."""
    return (given,) if isinstance(given, str) else tuple(given)


def parse_mode(name: str) -> Mode:
    """The recorder of a mode: `auto` is `full` with a budget. Raises UsageError if there is no such mode."""
    if name not in MODES:
        raise UsageError(f"mode {name!r}: no such mode; choose {', '.join(MODES)}")
    return Mode.FULL if name == "auto" else Mode[name.upper()]


def parse_budget(given: float | None, name: str) -> int | None:
    """How many bytes of order a second mode `name` may record, given in MB; None: all. Raises UsageError."""
    if name != "auto":
        if given is not None:
            raise UsageError(f"--budget is for --mode auto, not for {name}")
        return None
    budget = DEFAULT_BUDGET if given is None else given
    if not 0 <= budget <= MAX_BUDGET:
        raise UsageError(f"budget {budget:g}: not a number of MB a second from 0 to {MAX_BUDGET:g}")
    return round(budget * 1e6)


def parse_busy_limit(given: int | None, mode: Mode) -> int:
    """The level from which on a thread is busy, 0 where that does not matter. Raises UsageError if it can't be."""
    if mode != Mode.REGION:
        if given is not None:
            raise UsageError(f"busy limit {given}: only for mode region; leave it out, or choose that mode")
        return 0
    if given is not None and not 1 <= given <= MAX_BUSY_LIMIT:
        raise UsageError(f"busy limit {given}: not possible; give 1 to {MAX_BUSY_LIMIT}")
    return DEFAULT_BUSY_LIMIT if given is None else given


def parse_output(given: Text) -> Path:
    """Where to write. Raises UsageError if that is no name of anything."""
    text = _parse_text(given, "output")
    if not text:
        # To a path it would mean the working directory.
        raise UsageError("output '': the name is empty; give one, or none at all for the default")
    return Path(text)


def parse_directory(given: Text) -> str:
    """Where a program begins. Raises UsageError where that can't be."""
    text = _parse_text(given, "cwd")
    if not os.path.isdir(text) or not os.access(text, os.X_OK):
        raise UsageError(f"cwd {text!r}: no directory that can be entered")
    return text


def _parse_text(given: Text, what: str) -> str:
    try:
        text = os.fsdecode(given)
        encoded = os.fsencode(text)
    except TypeError as error:
        raise UsageError(f"{what}, {given!r}: not text; give str, bytes or a path") from error
    except UnicodeError as error:
        raise UsageError(f"{what}, {given!r}: can't be encoded ({error})") from error
    if b"\0" in encoded:
        raise UsageError(f"{what}, {text!r}: has a NUL in it, at which programs would take it to end")
    return text
