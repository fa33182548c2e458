"""`clew view`: look at traces in the browser.

Runs in the controller.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from clew.cli.browser import open_browser
from clew.cli.console import say
from clew.cli.options import where_to_serve

__all__ = ["command"]


@click.command(name="view")
@where_to_serve
@click.argument("trace_paths", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(trace_paths: tuple[Path, ...], port: int, host: str, no_browser: bool) -> None:
    """Look at one or more TRACEs in the browser: as a graph, as code, in time.

    Serves them until Ctrl-C, at this machine alone unless --host says otherwise, to those who know the address that it
    prints: a secret is part of it.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from clew.server.listening import open_socket
    from clew.server.serve import serve

    listening = open_socket(host, port)

    def tell(url: str) -> None:
        click.echo(url)
        if not no_browser:
            open_browser(url)

    with listening:
        try:
            serve(trace_paths, listening, host, tell)
        except KeyboardInterrupt:
            say("stopped")
