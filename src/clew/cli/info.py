"""`clew info`: what is in a trace: totals, processes, threads, images, losses.

Runs in the controller.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from clew.cli.light_numpy import prepare_numpy
from clew.errors import TraceDamagedError

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
    from clew.analysis.order_gaps import find_order_gaps
    from clew.analysis.totals import summarize_trace
    from clew.store.trace import Trace

    trace = Trace(trace_path)
    summary = summarize_trace(trace)
    try:
        order = find_order_gaps(trace)
        summary["order"] = None if order is None else asdict(order)
    except TraceDamagedError as error:
        summary["order"] = {"damage": error.message}
    if as_json:
        click.echo(json.dumps(summary, indent=1))
        return
    from clew.cli.info_text import print_info
    from clew.cli.summary import losses_text

    print_info(summary, losses_text(trace), shows_all=shows_all)
