"""`clew recover`: finish the trace of a recording that was cut off.

Runs in the controller.
"""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.console import escape_control, is_quiet, say

__all__ = ["command"]


@click.command(name="recover")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(trace_path: Path, quiet: bool) -> int:
    """Make TRACE whole, after `clew record` was killed: up to a second before that.

    Of threads that ran then, counts of code are as they were while it ran on, so they need not add up.
    """
    from clew.recording.recover import recover

    was_recovered = recover(trace_path)
    if not (quiet or is_quiet()):
        name = escape_control(str(trace_path))
        say(f"{name}: recovered; look at it with `clew info {name}`" if was_recovered else f"{name}: is whole already")
    return 0
