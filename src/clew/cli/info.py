"""`clew info`: what is in a trace: totals, processes, threads, images, losses.

Runs in the controller.
"""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]


@click.command(name="info")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(trace_path: Path, as_json: bool) -> None:
    """Show what is in TRACE: totals, processes with their threads and images, losses."""
    from clew.analysis.totals import summarize_trace
    from clew.store.trace import Trace

    trace = Trace(trace_path)
    summary = summarize_trace(trace)
    if as_json:
        click.echo(json.dumps(summary, indent=1))
        return
    from clew.cli.summary import losses_text
    from clew.cli.tables import make_console, print_line

    console = make_console()
    _print_totals(console, summary)
    processes = summary["processes"]
    pids = {process["pid"] for process in processes}
    followers: list[str | None] = []
    latest: dict[int, str] = {}
    for process in reversed(processes):
        followers.append(latest.get(process["pid"]))
        latest[process["pid"]] = process["executable"]
    for process, follower in zip(processes, reversed(followers), strict=True):
        origin = f" (child of {process['parent_pid']})" if process["parent_pid"] in pids else ""
        title = f"process {process['pid']}{origin}  {process['executable']}  "
        _print_process(console, process, title + _format_exit(process, follower), summary["mode"])
    console.print()
    for warning in summary["warnings"]:
        print_line(console, f"note: {warning}")
    print_line(console, losses_text(trace))


def _print_totals(console: Console, summary: dict[str, Any]) -> None:
    from clew.cli.tables import escaped, format_count

    totals, cpu = summary["totals"], summary["cpu"]
    seconds = (summary["end_ns"] - summary["start_ns"]) / 1e9
    facts = {
        "command": shlex.join(summary["command"]),
        "mode": summary["mode"],
        "recorded": f"{_format_time(summary['start_ns'])}, {seconds:.2f} s",
        **_processor_time(cpu.get("target_seconds", 0), cpu.get("controller_seconds", 0)),
        "blocks": format_count(totals["blocks"]),
        "edges": format_count(totals["edges"]),
    }
    if summary["mode"] != "coverage":
        facts["instructions"] = format_count(totals["instructions"])
        facts["block executions"] = format_count(totals["block_executions"])
    facts["stored"] = f"{format_count(summary['stored_bytes'])} bytes, format {summary['format']}"
    for name, values in (("include", summary["include"]), ("exclude", summary["exclude"])):
        if values:
            facts[name] = " ".join(values)
    width = max(map(len, facts))
    for name, value in facts.items():
        line = escaped(f"{name:<{width}}  ", "dim")
        line.append_text(escaped(value))
        console.print(line, no_wrap=True, overflow="ellipsis")


def _processor_time(target: float, clew: float) -> dict[str, str]:
    # Of a recording that was cut off nobody could tell.
    return {"processor time": f"target {target:.2f} s, clew {clew:.2f} s"} if clew else {}


def _print_process(console: Console, process: dict[str, Any], title: str, mode: str) -> None:
    from clew.cli.tables import Column, escaped, format_count, print_table

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
                row["end"],
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
    from datetime import datetime

    try:
        return datetime.fromtimestamp(time_ns / 1e9).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
    except (ValueError, OverflowError, OSError):
        return f"{time_ns} ns"
