"""`clew compact`: make the trace of an ordered recording small.

Runs in the controller.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from clew.cli.console import is_quiet, say
from clew.cli.light_numpy import prepare_numpy
from clew.cli.options import output_option

if TYPE_CHECKING:
    from clew.analysis.order.compact import CompactPaths

__all__ = ["command"]

SECONDS_BETWEEN: Final = 0.5


@click.command(name="compact")
@output_option("Leave TRACE as it is, and write a compact copy of it there.")
@click.option("--no-check", is_flag=True, help="Don't read again what was written: half the time.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(trace_path: Path, output: Path | None, no_check: bool, quiet: bool) -> None:
    """Re-code TRACE, recorded with --mode full, so that it takes a fraction of its room.

    Nothing is lost, and any place of it can be read as before, some tenths of a second slower. What was written is read
    again and compared before it is used; cut off at any time, TRACE is whole.
    """
    prepare_numpy()
    from clew.analysis.order.compact import compact_trace
    from clew.store.trace import Trace

    is_quiet_now = quiet or is_quiet()
    if output is not None:
        from clew.recording.options.output import make_directory, remove_directory

        # Before anything is made: what is no trace is told.
        Trace(trace_path)
        make_directory(output)
    progress = _Progress(is_wanted=not is_quiet_now)
    try:
        result = compact_trace(trace_path, output, is_checked=not no_check, tell=progress.tell)
    except BaseException:
        progress.end()
        if output is not None:
            remove_directory(output)
        raise
    progress.end()
    if not is_quiet_now:
        for line in _summarize(str(output or trace_path), result):
            say(line)


class _Progress:
    """A line on a terminal that says how much is done."""

    def __init__(self, *, is_wanted: bool) -> None:
        self._is_wanted = is_wanted and sys.stderr is not None and sys.stderr.isatty()
        self._told_at = time.monotonic()
        self._is_shown = False

    def tell(self, done: int, all_of_it: int) -> None:
        now = time.monotonic()
        if self._is_wanted and now - self._told_at >= SECONDS_BETWEEN:
            self._told_at, self._is_shown = now, True
            self._write(f"\rclew: {100 * done // max(all_of_it, 1)} % ")

    def end(self) -> None:
        if self._is_shown:
            self._write("\r        \r")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self._is_wanted = False


def _summarize(name: str, result: CompactPaths) -> list[str]:
    from clew.cli.tables import format_counted

    if not result.n_compact:
        why = "is compact already" if result.n_before and not result.n_kept else "nothing to gain"
        return [f"{name}: {why}; its paths take {result.bytes_after:,} bytes"]
    per_instruction = [
        f"{8 * size / max(result.instructions, 1):.4f}" for size in (result.bytes_before, result.bytes_after)
    ]
    lines = [
        f"{name}: its paths take {result.bytes_after:,} bytes instead of {result.bytes_before:,}, "
        f"{per_instruction[1]} bit an instruction instead of {per_instruction[0]}"
    ]
    if result.n_kept:
        lines.append(f"{format_counted(result.n_kept, 'paths')} left as recorded: nothing to gain, or damaged")
    return lines
