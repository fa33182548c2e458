"""Tables and numbers for people.

Runs in the controller. Everything that came from a trace is printed as plain text with control characters escaped: no
name can drive the terminal or pass for markup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from clew.binary.demangle import demangle
from clew.cli.console import escape_control

__all__ = [
    "Column",
    "escaped",
    "format_count",
    "format_share",
    "function_name",
    "image_name",
    "make_console",
    "make_table",
]

WIDTH_WITHOUT_TERMINAL: Final = 120


@dataclass(frozen=True)
class Column:
    """A column of a table. Numbers stand right. One with a `min_width` may be shortened to that, others never are."""

    title: str
    is_number: bool = False
    min_width: int | None = None
    style: str = ""


def make_console(file: IO[str] | None = None) -> Console:
    """A console on `file` (stdout); without a terminal of a fixed width, so that output does not depend on it."""
    file = file or sys.stdout
    width = None if file.isatty() else int(os.environ.get("COLUMNS", WIDTH_WITHOUT_TERMINAL))
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def make_table(columns: Sequence[Column], rows: Sequence[Sequence[str | Text]]) -> Table:
    """A table without borders."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", border_style="dim")
    for index, column in enumerate(columns):
        widest = max((len(row[index]) for row in rows), default=0)
        table.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=max(widest, len(column.title)) if column.min_width is None else min(column.min_width, widest),
            style=column.style,
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else escaped(cell) for cell in row))
    return table


def escaped(text: str, style: str = "") -> Text:
    """`text` as it is, but for what is not printable."""
    return Text(escape_control(text), style=style)


def format_count(count: int) -> str:
    """A count with its thousands apart."""
    return f"{count:,}"


def format_share(share: float) -> str:
    """A part of 1 as a percentage."""
    return f"{100 * share:.1f} %"


def function_name(name: str | None) -> str:
    """A function's name as its source has it."""
    return "?" if name is None else demangle(name)


def image_name(path: str | None) -> str:
    """The last part of an image's path."""
    return "-" if path is None else path.rsplit("/", 1)[-1] or path
