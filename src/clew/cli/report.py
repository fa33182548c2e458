"""`clew report`: the hottest functions, blocks, edges, lines, images or threads; calls, and what they are about.

Runs in the controller.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.console import escape_control, say
from clew.cli.light_numpy import prepare_numpy

if TYPE_CHECKING:
    from clew.analysis.ranking.hottest import Ranked
    from clew.store.trace import Trace

__all__ = ["command"]

_SUBJECTS = ["function", "block", "edge", "line", "image", "thread", "api", "syscall", "entity"]
_OF_CALLS = ("api", "syscall", "entity")
"""Of calls that were recorded (`clew api --trace`)."""
_LOSSES = {"changed": "is not what it was when it ran", "gone": "is gone", "unreadable": "can't be read"}


@click.command(name="report")
@click.option("--by", type=click.Choice(_SUBJECTS), default="function", show_default=True, help="What to rank.")
@click.option(
    "-n", "n_rows", type=click.IntRange(1), default=None, metavar="N", help="How many rows; default 20, of blocks 10."
)
@click.option("--pid", type=click.IntRange(1), default=None, metavar="PID", help="Only what this process ran.")
@click.option("--merge", is_flag=True, help="Add up over processes what is in the same file: functions, lines, images.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(
    trace_path: Path, by: str, n_rows: int | None, pid: int | None, merge: bool, as_json: bool, as_csv: bool
) -> None:
    """Show what in TRACE ran the most instructions. In mode coverage, where nothing is counted, what has most.

    By api, syscall and entity: which calls took the longest, and what most of them are about (clew api --trace).
    """
    prepare_numpy()
    from clew.analysis.ranking.hottest import MERGEABLE, rank
    from clew.errors import UsageError
    from clew.store.trace import Trace

    if as_json and as_csv:
        raise UsageError("--json and --csv: choose one")
    mergeable = [*MERGEABLE, "api", "syscall"]
    if merge and by not in mergeable:
        raise UsageError(f"--merge: not of {by}s; choose one of --by {', '.join(mergeable)}")
    if merge and pid is not None:
        raise UsageError("--merge and --pid: choose one")
    trace = Trace(trace_path)
    pids = list(dict.fromkeys(process["pid"] for process in trace.manifest.processes))
    if pid is not None and pid not in pids:
        some = ", ".join(map(str, pids[:4])) + (", …" if len(pids) > 4 else "")
        raise UsageError(f"process {pid}: not in this trace, which is of {some}; see `clew info`")
    n = n_rows or (10 if by == "block" else 20)
    ranked = (
        _rank_calls(trace, by, n, pid, merge=merge) if by in _OF_CALLS else rank(trace, by, n, pid=pid, merge=merge)
    )
    if as_json:
        click.echo(json.dumps({"by": by, "rows": ranked.rows}, indent=1))
    elif as_csv:
        _print_csv(ranked.rows)
    elif by in _OF_CALLS:
        from clew.cli.calls_text import print_calls, print_entities

        if by == "entity":
            print_entities(ranked.rows)
        else:
            print_calls(ranked.rows, has_processes=len(pids) > 1)
    else:
        from clew.cli.report_text import print_report

        print_report(trace, by, ranked.rows, has_processes=pid is None and len(pids) > 1)
    if by in ("line", "block"):
        from clew.analysis.code.lost_images import find_lost_images

        for path, loss in find_lost_images(trace, ranked.image_rows):
            say(escape_control(f"note: {path} {_LOSSES[loss]}, so its lines are not known"))


def _rank_calls(trace: Trace, by: str, n: int, pid: int | None, *, merge: bool) -> Ranked:
    from clew.analysis.calls.ranked_calls import rank_calls, rank_entities
    from clew.analysis.ranking.hottest import Ranked

    if by == "entity":
        return Ranked(rank_entities(trace, n, pid=pid))
    return Ranked(rank_calls(trace, n, pid=pid, merge=merge, kind="system_call" if by == "syscall" else None))


def _print_csv(rows: list[dict[str, Any]]) -> None:
    """Rows of rows become columns with a dot in their names."""
    flat = [_flatten(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)


def _flatten(row: dict[str, Any]) -> dict[str, Any]:
    flat = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{inner}": part for inner, part in value.items()})
        else:
            flat[name] = value
    return flat
