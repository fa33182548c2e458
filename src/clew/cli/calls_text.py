"""Rankings of recorded calls and of entities as tables for people.

Runs in the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from clew.cli.tables import Column, escaped, format_count, image_name, make_console, print_table

if TYPE_CHECKING:
    from clew.sessions.api_counts import ApiCount

__all__ = ["print_calls", "print_counts", "print_entities"]

Row = dict[str, Any]


def print_counts(out: TextIO, counts: list[ApiCount], *, failed: bool) -> None:
    """How often calls were made, what took the longest first; with `failed` only those that failed."""
    rows = [
        (one.name, one.errors, one.errors, one.failed_ns) if failed else (one.name, one.calls, one.errors, one.total_ns)
        for one in counts
    ]
    rows = sorted((row for row in rows if row[1]), key=lambda row: (-row[3], row[0]))
    rows.append(
        ("total", *(sum(column) for column in list(zip(*rows, strict=True))[1:])) if rows else ("total", 0, 0, 0)
    )
    print(f"{'seconds':>11} {'calls':>9} {'errors':>9}  call", file=out)
    for name, calls, errors, total_ns in rows:
        print(f"{total_ns / 1e9:11.6f} {calls:9} {errors or '':>9}  {name}", file=out)


def print_calls(rows: list[Row], *, has_processes: bool) -> None:
    """Functions by how long their calls took."""
    console = make_console()
    if not rows:
        console.print(escaped("no calls were recorded; see `clew api --trace`"))
        return
    columns = [Column(title, is_number=True) for title in ("seconds", "calls", "errors", "mean us", "longest us")]
    columns += [Column("process", is_number=True)] if has_processes and "pid" in rows[0] else []
    columns += [Column("function")]
    cells = [
        [
            f"{row['total_ns'] / 1e9:.6f}",
            format_count(row["calls"]),
            format_count(row["errors"]) if row["errors"] else "",
            "" if row["mean_ns"] is None else f"{row['mean_ns'] / 1e3:.1f}",
            "" if row["max_ns"] is None else f"{row['max_ns'] / 1e3:.1f}",
            *([str(row["pid"])] if has_processes and "pid" in row else []),
            row["name"] if row["library"] is None else f"{image_name(row['library'])}!{row['name']}",
        ]
        for row in rows
    ]
    print_table(console, columns, cells)


def print_entities(rows: list[Row]) -> None:
    """Things by how many calls have to do with them."""
    console = make_console()
    if not rows:
        console.print(escaped("no calls were recorded; see `clew api --trace`"))
        return
    columns = [Column(title, is_number=True) for title in ("calls", "bytes read", "bytes written", "processes")]
    columns += [Column(title) for title in ("kind", "name", "what was done")]
    cells = [
        [
            format_count(row["calls"]),
            format_count(row["bytes_read"]) if row["bytes_read"] else "",
            format_count(row["bytes_written"]) if row["bytes_written"] else "",
            format_count(row["processes"]),
            row["kind"],
            row["name"],
            ", ".join(f"{role} {format_count(count)}" for role, count in row["roles"].items()),
        ]
        for row in rows
    ]
    print_table(console, columns, cells)
