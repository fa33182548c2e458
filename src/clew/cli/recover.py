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
    """Make TRACE whole, after `clew record` or `clew attach` was killed: up to a second before that.

    Of threads that ran then, counts of code are as they were while it ran on, so they need not add up.
    """
    from clew.recording.reading.recover import recover

    was_recovered = recover(trace_path)
    if quiet or is_quiet():
        return 0
    name = escape_control(str(trace_path))
    if not was_recovered:
        say(f"{name}: is whole already")
        return 0
    from clew.cli.summary import losses_text
    from clew.store.trace import Trace

    trace = Trace(trace_path)
    # What came after the cut nobody counted: that nothing was lost is not known.
    lost = f"{losses_text(trace)}; " if any(trace.manifest.losses.values()) else ""
    say(f"{name}: recovered; {lost}look at it with `clew info {name}`")
    return 0
