"""`clew dump`: the ordered path of a thread, block by block or instruction by instruction.

Runs in the controller.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clew.cli.console import escape_control, say
from clew.cli.light_numpy import prepare_numpy

if TYPE_CHECKING:
    from clew.analysis.order.dump import DumpedBlock

__all__ = ["command"]

DEFAULT_COUNT: Final = 100


@click.command(name="dump")
@click.option("--thread", "tid", type=click.IntRange(1), metavar="TID", help="Of this thread; default the first one.")
@click.option("--pid", type=click.IntRange(1), metavar="PID", help="Of a thread of this process.")
@click.option("--start", type=click.IntRange(0), default=0, metavar="K", help="From number K on; the first one is 0.")
@click.option(
    "--count",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help=f"So many; by default {DEFAULT_COUNT}, and all with --json.",
)
@click.option("--instructions", is_flag=True, help="Instructions instead of blocks; K and N count these then.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(
    trace_path: Path,
    tid: int | None,
    pid: int | None,
    start: int,
    count: int | None,
    instructions: bool,
    as_json: bool,
) -> None:
    """Show in which order a thread of TRACE, recorded with --mode full, executed its blocks."""
    prepare_numpy()
    from clew.analysis.order.dump import Dump
    from clew.analysis.trace import Trace

    trace = Trace(trace_path)
    path = trace.path(tid, pid=pid)
    dump = Dump(trace, path)
    wanted = count if count is not None or as_json else DEFAULT_COUNT
    total = path.instructions if instructions else path.block_executions
    if start >= total > 0:
        what = "instructions" if instructions else "blocks"
        say(f"thread {path.tid} executed {total:,} {what}: none from {start:,} on")
        return
    lines = dump.iter_instructions(start, wanted) if instructions else dump.iter_blocks(start, wanted)
    for line in _to_json(lines) if as_json else _to_text(lines):
        click.echo(line)
    if count is None and not as_json and start + DEFAULT_COUNT < total:
        say(f"{total - start - DEFAULT_COUNT:,} more: --start {start + DEFAULT_COUNT}, or --count")


def _to_json(lines: Iterator[DumpedBlock]) -> Iterator[str]:
    for line in lines:
        if line.is_after_loss:
            yield json.dumps({"index": line.index, "left_out" if line.is_thinned else "lost": True})
        row: dict[str, Any] = {"index": line.index, line.what: hex(line.address)}
        if line.place:
            row["place"] = line.place
        if line.text:
            row["text"] = line.text
        yield json.dumps(row)


def _to_text(lines: Iterator[DumpedBlock]) -> Iterator[str]:
    for line in lines:
        if line.is_after_loss:
            why = "left out, not lost" if line.is_thinned else "not recorded"
            yield f"              ... what was executed here was {why}"
        yield escape_control(f"{line.index:>14,}  {line.address:#18x}  {line.text or line.place}".rstrip())
