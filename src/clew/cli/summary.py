"""What `clew record` and `clew attach` say when they are done: the hottest functions, totals, losses.

Runs in the controller. Goes to stderr, as everything that clew says beside a recorded program.
"""

from __future__ import annotations

import sys

from clew.analysis.ranking.rankings import FunctionRanking
from clew.analysis.tables.arrays import TraceArrays
from clew.analysis.tables.split import iter_by_pid
from clew.analysis.tables.totals import Totals
from clew.cli.console import escape_control
from clew.cli.tables import (
    Column,
    format_count,
    format_counted,
    format_share,
    function_name,
    image_name,
    make_light_console,
    print_line,
    print_table,
)
from clew.store.trace import Trace

__all__ = ["losses_text", "print_summary"]

_N_FUNCTIONS = 8


def print_summary(trace: Trace) -> None:
    """Print the summary of `trace` on stderr."""
    console = make_light_console(sys.stderr)
    is_counted = trace.mode != "coverage"
    summed, functions = Totals(trace), FunctionRanking(_N_FUNCTIONS)
    for piece in iter_by_pid(trace):
        arrays = TraceArrays(piece)
        if is_counted:
            functions.add(arrays)
        summed.add(arrays)
    totals = summed.to_dict()
    if is_counted:
        columns = [
            Column("share", is_number=True),
            Column("instructions", is_number=True),
            Column("entered", is_number=True),
            Column("function", min_width=16, style="bold"),
            Column("image", min_width=8, style="dim"),
        ]
        rows = [
            [
                format_share(row["share"]),
                format_count(row["instructions"]),
                format_count(row["entries"]),
                function_name(row["function"]),
                image_name(row["image"]),
            ]
            for row in functions.rows()
        ]
        if rows:
            console.print()
            print_table(console, columns, rows)
            console.print()
    line = f"{format_counted(totals['blocks'], 'blocks')}, {format_counted(totals['edges'], 'edges')}"
    if is_counted:
        line = (
            f"{format_counted(totals['instructions'], 'instructions')}, "
            f"{format_counted(totals['block_executions'], 'block executions')}; {line}"
        )
    print_line(console, f"{line}; {format_counted(trace.n_rows('threads'), 'threads')}; {losses_text(trace)}")


def losses_text(trace: Trace) -> str:
    """What was lost, in words."""
    lost = [
        format_counted(n, name.replace("_", " ")) + (_describe_releases(trace) if name == "released_threads" else "")
        for name, n in trace.manifest.losses.items()
        if n
    ]
    return escape_control("lost: " + ", ".join(lost)) if lost else "nothing lost"


def _describe_releases(trace: Trace) -> str:
    """Why threads went on natively, how many for each reason, and since when, in seconds of the recording."""
    releases = trace.manifest.releases
    told = []
    for reason in dict.fromkeys(row["reason"] for row in releases):
        rows = [row for row in releases if row["reason"] == reason]
        since = (min(row["since_ns"] for row in rows) - trace.manifest.start_ns) / 1e9
        n = sum(row["threads"] for row in rows)
        told.append(f"{f'{format_count(n)} ' if n > 1 else ''}{reason.replace('_', ' ')} since {since:.3f} s")
    return f" ({', '.join(told)})" if told else ""
