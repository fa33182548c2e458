"""Rows of a report as tables for people; blocks as listings.

Runs in the controller. Which rows there are, and in which order, is `clew.analysis`'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from clew.cli.tables import (
    Column,
    escaped,
    format_count,
    format_counted,
    format_share,
    function_name,
    image_name,
    make_console,
    print_table,
)
from clew.store.trace import Trace

if TYPE_CHECKING:
    from clew.binary.architectures.architecture import Architecture
    from clew.binary.lines import SourceLine

__all__ = ["print_report"]

Row = dict[str, Any]

_MAX_LISTED = 24
"""Instructions of one block that are listed at most."""


def print_report(trace: Trace, by: str, rows: list[Row], *, has_processes: bool) -> None:
    """Print `rows`, a ranking of `by`, on stdout; with `has_processes` also of which processes they are."""
    console = make_console()
    if not rows:
        console.print(escaped("nothing ran"))
    elif by == "block":
        _print_blocks(console, trace, rows, has_processes=has_processes)
    else:
        columns, cells = list(_COLUMNS[by]), [_CELLS[by](row) for row in rows]
        if has_processes:
            index = next(index for index, column in enumerate(columns) if not column.is_number)
            is_merged = "processes" in rows[0]
            columns.insert(index, Column("processes" if is_merged else "process", is_number=True))
            for row, of_row in zip(rows, cells, strict=True):
                of_row.insert(index, format_count(row["processes"]) if is_merged else str(row["pid"]))
        is_told = [trace.mode != "coverage" or column.title not in _COUNTED[by] for column in columns]
        kept = [[cell for cell, is_kept in zip(row, is_told, strict=True) if is_kept] for row in cells]
        print_table(console, [column for column, is_kept in zip(columns, is_told, strict=True) if is_kept], kept)


def _function_cells(row: Row) -> list[str]:
    return [
        format_share(row["share"]),
        format_count(row["instructions"]),
        format_count(row["executions"]),
        format_count(row["entries"]),
        function_name(row["function"]),
        image_name(row["image"]),
    ]


def _edge_cells(row: Row) -> list[str]:
    return [
        format_count(row["executions"]),
        row["kind"],
        _place(row["source"]),
        _place(row["target"]),
    ]


def _line_cells(row: Row) -> list[str]:
    place = "(no line known)" if row["file"] is None else f"{row['file']}:{row['line']}"
    return [format_share(row["share"]), format_count(row["instructions"]), format_count(row["executions"]), place]


def _image_cells(row: Row) -> list[str]:
    return [
        format_share(row["share"]),
        format_count(row["instructions"]),
        format_count(row["executions"]),
        format_count(row["blocks"]),
        row["image"] or "(outside of images)",
    ]


def _thread_cells(row: Row) -> list[str]:
    return [
        format_share(row["share"]),
        format_count(row["instructions"]),
        format_count(row["executions"]),
        str(row["tid"]),
        row["name"],
        row["end"],
    ]


_SHARE = Column("share", is_number=True)
_INSTRUCTIONS = Column("instructions", is_number=True)
_EXECUTIONS = Column("executions", is_number=True)
_COLUMNS = {
    "function": [
        _SHARE,
        _INSTRUCTIONS,
        Column("block executions", is_number=True),
        Column("entered", is_number=True),
        Column("function", min_width=16, style="bold"),
        Column("image", min_width=8, style="dim"),
    ],
    "edge": [_EXECUTIONS, Column("kind"), Column("from", min_width=16), Column("to", min_width=16)],
    "line": [_SHARE, _INSTRUCTIONS, _EXECUTIONS, Column("line", min_width=16, style="bold")],
    "image": [
        _SHARE,
        _INSTRUCTIONS,
        Column("block executions", is_number=True),
        Column("blocks", is_number=True),
        Column("image", min_width=16, style="bold"),
    ],
    "thread": [
        _SHARE,
        _INSTRUCTIONS,
        Column("block executions", is_number=True),
        Column("thread", is_number=True),
        Column("name", style="bold"),
        Column("end"),
    ],
}
_CELLS = {
    "function": _function_cells,
    "edge": _edge_cells,
    "line": _line_cells,
    "image": _image_cells,
    "thread": _thread_cells,
}


_COUNTED = {
    "function": {"block executions", "entered"},
    "edge": {"executions"},
    "line": {"executions"},
    "image": {"block executions"},
    "thread": {"share", "instructions", "block executions"},
}
"""Columns that a trace of mode coverage, where nothing is counted, has nothing to say in."""


def _place(row: Row | None) -> str:
    """A block's place in few words."""
    if row is None:
        return "-"
    if row["symbol"] is not None:
        offset = f"+{row['symbol_offset']:#x}" if row["symbol_offset"] else ""
        return f"{function_name(row['symbol'])}{offset}"
    if row["offset"] is not None:
        return f"{image_name(row['image'])}+{row['offset']}"
    return str(row["app_pc"])


def _print_blocks(console: Console, trace: Trace, rows: list[Row], *, has_processes: bool) -> None:
    from clew.analysis.code.places import find_block_architectures
    from clew.analysis.ranking.block_lines import find_block_lines

    lines = find_block_lines(trace, rows)
    architectures = find_block_architectures(trace, [row["block"] for row in rows])
    for index, row in enumerate(rows):
        if index:
            console.print()
        header = Text(f"{format_share(row['share']):>8}  ", style="bold")
        header.append_text(escaped(_place(row), "bold"))
        header.append_text(escaped(f"  {image_name(row['image'])}", "dim"))
        if has_processes:
            header.append(f"  process {row['pid']}", style="dim")
        if trace.mode == "coverage":
            header.append(f"  {format_counted(row['n_instructions'], 'instructions')}")
        else:
            header.append(
                f"  {format_count(row['executions'])} × {format_counted(row['n_instructions'], 'instructions')} = "
                f"{format_count(row['instructions'])}"
            )
        console.print(header, no_wrap=True, overflow="ellipsis")
        _print_listing(console, row, lines.get(row["block"], []), architectures[row["block"]])


def _print_listing(console: Console, row: Row, lines: list[SourceLine | None], architecture: Architecture) -> None:
    from clew.binary.disassembly import disassemble

    instructions = disassemble(bytes.fromhex(row["bytes"]), int(row["app_pc"], 16), architecture)
    shown: SourceLine | None = None
    for index, instruction in enumerate(instructions[:_MAX_LISTED]):
        line = lines[index] if index < len(lines) else None
        text = Text(f"{instruction.address:>18x}  ", style="dim")
        text.append_text(escaped(instruction.text, "default"))
        if line is not None and line != shown:
            text.append(" " * max(48 - len(instruction.text), 0))
            text.append_text(escaped(f"  {line.file.rsplit('/', 1)[-1]}:{line.line}", "dim"))
            shown = line
        console.print(text, no_wrap=True, overflow="ellipsis")
    if len(instructions) > _MAX_LISTED:
        console.print(escaped(f"{'':>18}  … {len(instructions) - _MAX_LISTED} more", "dim"))
