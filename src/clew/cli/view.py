"""`clew view`: look at traces in the browser.

Runs in the controller.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from clew.cli.console import say

__all__ = ["command"]


@click.command(name="view")
@click.option("--port", type=click.IntRange(0, 65535), default=7777, show_default=True, help="The port; 0 for any.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--no-browser", is_flag=True, help="Open no browser; the address is printed all the same.")
@click.argument("trace_paths", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(trace_paths: tuple[Path, ...], port: int, host: str, no_browser: bool) -> None:
    """Look at one or more TRACEs in the browser: as a graph, as code, in time.

    Serves them until Ctrl-C, or until the page stops it, at this machine alone unless --host says otherwise, to those
    who know the address that it prints: a secret is part of it.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from clew.server.serve import open_socket, serve

    listening = open_socket(host, port)

    def tell(url: str) -> None:
        click.echo(url)
        if not no_browser:
            _open_browser(url)

    with listening:
        try:
            serve(trace_paths, listening, host, tell)
            say("stopped by the page")
        except KeyboardInterrupt:
            say("stopped")


def _open_browser(url: str) -> None:
    """Open the address in a browser, where there is one with a screen to show it on."""
    import webbrowser

    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("BROWSER")):
        return
    try:
        webbrowser.open(url)
    except webbrowser.Error as error:
        say(f"no browser could be opened: {error}")
