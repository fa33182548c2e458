"""What is in a trace, for people.

Runs in the controller. Few processes are shown with their threads and images, many in a line each.
"""

from __future__ import annotations

import shlex
import signal
from datetime import datetime
from typing import Any, Final

from rich.console import Console

from clew.cli.tables import (
    Column,
    escaped,
    format_count,
    format_counted,
    format_share,
    make_console,
    print_line,
    print_table,
)

__all__ = ["print_info"]

MAX_PROCESSES: Final = 20
"""So many are shown at most, unless all are asked for."""


def print_info(summary: dict[str, Any], losses: str, *, shows_all: bool) -> None:
    """Print a summary as `clew.analysis.tables.totals` makes it, and the line `losses` in the end, on stdout."""
    console = make_console()
    _print_totals(console, summary)
    ends = _describe_ends(summary["processes"])
    if shows_all or len(ends) <= MAX_PROCESSES:
        pids = {process["pid"] for process in summary["processes"]}
        for process, end in zip(summary["processes"], ends, strict=True):
            origin = f" (child of {process['parent_pid']})" if process["parent_pid"] in pids else ""
            title = f"process {process['pid']}{origin}  {process['executable']}  {end}"
            _print_process(console, process, title, summary["mode"])
    else:
        _print_largest(console, summary, ends)
    console.print()
    for warning in summary["warnings"]:
        print_line(console, f"note: {warning}")
    print_line(console, losses)


def _print_largest(console: Console, summary: dict[str, Any], ends: list[str]) -> None:
    """The processes that ran the most, in a line each, and how much more there is."""
    processes, is_counted = summary["processes"], summary["mode"] != "coverage"
    if is_counted:
        what, sizes = "instructions", [sum(row["instructions"] for row in process["threads"]) for process in processes]
    else:
        what, sizes = "blocks", [sum(row["blocks"] for row in process["images"]) for process in processes]
    order = sorted(range(len(processes)), key=lambda index: -sizes[index])
    total = sum(sizes)
    rows = [
        [
            format_share(sizes[index] / total if total else 0.0),
            format_count(sizes[index]),
            str(processes[index]["pid"]),
            str(processes[index]["parent_pid"]),
            format_count(len(processes[index]["threads"])),
            ends[index],
            shlex.join(processes[index]["command"]) or processes[index]["executable"],
        ]
        for index in order[:MAX_PROCESSES]
    ]
    columns = [
        Column("share", is_number=True),
        Column(what, is_number=True),
        Column("process", is_number=True),
        Column("parent", is_number=True),
        Column("threads", is_number=True),
        Column("end", min_width=13),
        Column("command", min_width=16, style="bold"),
    ]
    n_pids = len({process["pid"] for process in processes})
    counted = format_counted(n_pids, "processes")
    if n_pids < len(processes):
        counted += f", which ran {format_counted(len(processes), 'programs')}"
    console.print()
    print_line(console, f"{counted}; the {MAX_PROCESSES} with the most {what}:")
    console.print()
    print_table(console, columns, rows)
    rest = sum(sizes[index] for index in order[MAX_PROCESSES:])
    console.print()
    print_line(
        console,
        f"{format_count(len(processes) - MAX_PROCESSES)} more with {format_counted(rest, what)}; "
        "--all shows every one, with its threads and images",
    )


def _print_totals(console: Console, summary: dict[str, Any]) -> None:
    totals, cpu = summary["totals"], summary["cpu"]
    seconds = (summary["end_ns"] - summary["start_ns"]) / 1e9
    facts = {
        "command": shlex.join(summary["command"]),
        "mode": summary["mode"],
        "recorded": f"{_format_time(summary['start_ns'])}, {seconds:.2f} s",
        **_processor_time(cpu.get("target_seconds"), cpu.get("controller_seconds", 0)),
        "blocks": format_count(totals["blocks"]),
        "edges": format_count(totals["edges"]),
    }
    if summary["mode"] != "coverage":
        facts["instructions"] = format_count(totals["instructions"])
        facts["block executions"] = format_count(totals["block_executions"])
    if summary["order"] is not None:
        facts["order"] = _describe_order(**summary["order"])
    facts["stored"] = f"{format_count(summary['stored_bytes'])} bytes, format {summary['format']}"
    for name, values in (("include", summary["include"]), ("exclude", summary["exclude"])):
        if values:
            facts[name] = " ".join(values)
    width = max(map(len, facts))
    for name, value in facts.items():
        line = escaped(f"{name:<{width}}  ", "dim")
        line.append_text(escaped(value))
        console.print(line, no_wrap=True, overflow="ellipsis")


def _describe_order(
    instructions: int = 0, all_instructions: int = 0, left_out: int = 0, lost: int = 0, damage: str = ""
) -> str:
    """What part of the instructions is in the order, and where it has gaps."""
    if damage:
        return f"can't be read: {damage}"
    gaps = [f"{what} in {format_counted(n, 'places')}" for n, what in ((left_out, "left out"), (lost, "lost")) if n]
    if not gaps:
        return "all of it"
    share = format_share(instructions / all_instructions if all_instructions else 1.0)
    return f"{share} of the instructions, the rest {' and '.join(gaps)}"


def _processor_time(target: float | None, clew: float) -> dict[str, str]:
    # Of a recording that was cut off nobody could tell.
    told = "not known" if target is None else f"{target:.2f} s"
    return {"processor time": f"target {told}, clew {clew:.2f} s"} if clew else {}


def _print_process(console: Console, process: dict[str, Any], title: str, mode: str) -> None:
    console.print()
    console.print(escaped(title, "bold"), no_wrap=True, overflow="ellipsis")
    is_counted = mode != "coverage"
    if is_counted:
        threads = sorted(process["threads"], key=lambda row: -row["instructions"])
        rows = [
            [
                str(row["tid"]),
                row["name"],
                format_count(row["instructions"]),
                format_count(row["block_executions"]),
                _format_thread_end(row["end"], process),
            ]
            for row in threads
        ]
        columns = [
            Column("thread", is_number=True),
            Column("name", min_width=8),
            Column("instructions", is_number=True),
            Column("block executions", is_number=True),
            Column("end"),
        ]
        console.print()
        print_table(console, columns, rows)
    images = sorted(process["images"], key=lambda row: (-row["instructions"], -row["blocks"]))
    rows = [
        [
            row["base"],
            format_count(row["blocks"]),
            *([format_count(row["instructions"])] if is_counted else []),
            row["path"],
        ]
        for row in images
    ]
    columns = [
        Column("base", is_number=True),
        Column("blocks", is_number=True),
        *([Column("instructions", is_number=True)] if is_counted else []),
        Column("image", min_width=16),
    ]
    console.print()
    print_table(console, columns, rows)


def _describe_ends(processes: list[dict[str, Any]]) -> list[str]:
    """How each process ended; one that went on with another program has a later row, with that."""
    ends = []
    latest: dict[int, str] = {}
    for process in reversed(processes):
        ends.append(_format_exit(process, latest.get(process["pid"])))
        latest[process["pid"]] = process["executable"]
    return ends[::-1]


def _format_thread_end(end: str, process: dict[str, Any]) -> str:
    """One that was killed while its process ended was ended by that."""
    exit_ = process["exit"]
    has_ended = exit_.get("signal") is not None or exit_.get("code") is not None
    return "with its process" if end == "killed" and has_ended else end


def _format_exit(process: dict[str, Any], follower: str | None) -> str:
    """How a process ended; `follower` is the program that it went on as, followed, if it did."""
    exit_ = process["exit"]
    number = exit_.get("signal")
    if number is not None:
        try:
            return f"killed by {signal.Signals(number).name}"
        except ValueError:
            return f"killed by signal {number}"
    if exit_.get("code") is not None:
        return f"exit status {exit_['code']}"
    if process["went_on_unfollowed"]:
        return "went on as another program, unfollowed"
    return "still running when recording ended" if follower is None else f"went on as {follower}"


def _format_time(time_ns: int) -> str:
    try:
        return datetime.fromtimestamp(time_ns / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    except (ValueError, OverflowError, OSError):
        return f"{time_ns} ns"
