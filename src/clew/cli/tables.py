"""Tables and numbers for people.

Runs in the controller. Everything that came from a trace is printed as plain text with control characters escaped: no
name can drive the terminal or pass for markup.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size

from clew.binary.demangle import demangle
from clew.cli.console import escape_control
from clew.dataclass import dataclass

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = [
    "Column",
    "PlainConsole",
    "escaped",
    "format_count",
    "format_counted",
    "format_share",
    "function_name",
    "image_name",
    "make_console",
    "make_light_console",
    "print_line",
    "print_table",
]

WIDTH_WITHOUT_TERMINAL: Final = 120
_GAP: Final = 2
_TERMINAL_VARIABLES: Final = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""What makes rich take any file for a terminal."""
_SINGULARS: Final = (("children", "child"), ("sses", "ss"), ("s", ""))
"""Ends of plurals, and what they are of one."""


@dataclass(frozen=True)
class Column:
    """A column of a table. Numbers stand right. One with a `min_width` may be shortened to that, others never are."""

    title: str
    is_number: bool = False
    min_width: int | None = None
    style: str = ""


@dataclass(frozen=True)
class PlainConsole:
    """A file that lines and tables are printed to as they are. Importing rich takes long beside a short recording."""

    file: IO[str]
    width: int
    is_terminal: bool = False

    def print(self) -> None:
        """Print an empty line."""
        self.file.write("\n")


def make_console(file: IO[str] | None = None) -> Console:
    """A console on `file` (stdout); without a terminal of a fixed width, so that output does not depend on it."""
    from rich.console import Console

    file = file or sys.stdout
    width = None if file.isatty() else _width_without_terminal()
    return Console(file=file, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def make_light_console(file: IO[str]) -> Console | PlainConsole:
    """A console for lines and tables alone: a plain one where rich would make nothing of a terminal's either."""
    if file.isatty() or any(os.environ.get(name) for name in _TERMINAL_VARIABLES):
        return make_console(file)
    return PlainConsole(file, _width_without_terminal())


def _width_without_terminal() -> int:
    return int(os.environ.get("COLUMNS", WIDTH_WITHOUT_TERMINAL))


def print_line(console: Console | PlainConsole, text: str) -> None:
    """Print a line for people; on a terminal it is broken between words, elsewhere it stays one, for who searches."""
    if isinstance(console, PlainConsole):
        console.file.write(escape_control(text) + "\n")
    else:
        console.print(escaped(text), soft_wrap=not console.file.isatty())


def print_table(console: Console | PlainConsole, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table without borders that fits the console's width."""
    if isinstance(console, PlainConsole) or not console.is_terminal:
        _write_table(console, columns, rows)
        return
    from rich.text import Text

    cells = [[escaped(cell, column.style) for cell, column in zip(row, columns, strict=True)] for row in rows]
    widths = _fit(console.width, columns, [[cell.cell_len for cell in row] for row in cells])
    titles = [Text(column.title, style="bold") for column in columns]
    for row in [titles, [Text("─" * width, style="dim") for width in widths], *cells]:
        line = Text(no_wrap=True)
        for index, (cell, column, width) in enumerate(zip(row, columns, widths, strict=True)):
            cell.truncate(width, overflow="ellipsis")
            padding = " " * (width - cell.cell_len)
            is_last = index == len(columns) - 1
            line.append(padding if column.is_number else "").append_text(cell)
            line.append("" if is_last else " " * _GAP if column.is_number else padding + " " * _GAP)
        console.print(line, overflow="crop")


def _write_table(console: Console | PlainConsole, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """The same for a file, without styles: thousands of rows take a tenth of the time so."""
    cells = [[column.title for column in columns], *([escape_control(cell) for cell in row] for row in rows)]
    lengths = [[cell_len(cell) for cell in row] for row in cells]
    widths = _fit(console.width, columns, lengths[1:])
    cells.insert(1, ["─" * width for width in widths])
    lengths.insert(1, widths)
    gap, lines = " " * _GAP, []
    for row, of_row in zip(cells, lengths, strict=True):
        line = ""
        for index, (cell, column, width) in enumerate(zip(row, columns, widths, strict=True)):
            shown = cell if of_row[index] <= width else set_cell_size(cell, width - 1) + "…"
            padding = " " * (width - of_row[index])
            is_last = index == len(columns) - 1
            line += (padding + shown if column.is_number else shown if is_last else shown + padding) + gap
        lines.append(line.removesuffix(gap) + "\n")
    console.file.write("".join(lines))


def _fit(console_width: int, columns: Sequence[Column], lengths: Sequence[Sequence[int]]) -> list[int]:
    """Widths of columns; where there is too little room those that may be shortened are, the widest first.

    `lengths` are those of the cells, row by row.
    """
    available = console_width - _GAP * (len(columns) - 1)
    widths = [max([len(column.title), *(row[index] for row in lengths)]) for index, column in enumerate(columns)]
    while sum(widths) > available:
        spare = [
            (widths[index], index)
            for index, column in enumerate(columns)
            if column.min_width is not None and widths[index] > max(column.min_width, len(column.title))
        ]
        if not spare:
            break
        widths[max(spare)[1]] -= 1
    return widths


def escaped(text: str, style: str = "") -> Text:
    """`text` as it is, but for what is not printable."""
    from rich.text import Text

    return Text(escape_control(text), style=style)


def format_count(count: int) -> str:
    """A count with its thousands apart."""
    return f"{count:,}"


def format_counted(count: int, things: str) -> str:
    """A count with what is counted, of one in the singular; `things` is the plural."""
    ways = (things.removesuffix(plural) + singular for plural, singular in _SINGULARS if things.endswith(plural))
    return f"{format_count(count)} {next(ways, things) if count == 1 else things}"


def format_share(share: float) -> str:
    """A part of 1 as a percentage."""
    return f"{100 * share:.1f} %"


def function_name(name: str | None) -> str:
    """A function's name as its source has it."""
    return "?" if name is None else demangle(name)


def image_name(path: str | None) -> str:
    """The last part of an image's path."""
    return "-" if path is None else path.rsplit("/", 1)[-1] or path
