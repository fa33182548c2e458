"""`clew info`: what is in a trace: totals, processes, threads, images, losses.

Runs in the controller.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from clew.cli.light_numpy import prepare_numpy

__all__ = ["command"]


@click.command(name="info")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, of all processes.")
@click.option("--all", "shows_all", is_flag=True, help="Show every process, however many there are.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(trace_path: Path, as_json: bool, shows_all: bool) -> None:
    """Show what is in TRACE: totals, processes with their threads and images, losses.

    Of more than 20 processes the 20 that ran the most are shown, in a line each.
    """
    prepare_numpy()
    from clew.analysis.summary import describe_trace
    from clew.store.trace import Trace

    trace = Trace(trace_path)
    summary = describe_trace(trace)
    if as_json:
        click.echo(json.dumps(summary, indent=1))
        return
    from clew.cli.info_text import print_info
    from clew.cli.summary import losses_text

    print_info(summary, losses_text(trace), shows_all=shows_all)
