"""`clew live-viewer`: the process that shows a recording which goes on; `clew record --view` starts it.

Runs in the controller. Not for people: it is told by numbers of descriptors what it listens to.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click

from clew.cli.browser import open_browser
from clew.cli.light_numpy import prepare_numpy
from clew.errors import UsageError

__all__ = ["command"]


@click.command(name="live-viewer", hidden=True)
@click.option("--recorder", type=int, required=True, help="The descriptor by which the recorder tells.")
@click.option("--journal", type=int, required=True, help="The descriptor of the journal, to be read.")
@click.option("--listening", type=int, required=True, help="The descriptor of the socket that listens.")
@click.option("--host", required=True, help="What it listens at, as the recorder was told.")
@click.option("--browser", is_flag=True, help="Open a browser.")
@click.argument("directory", type=click.Path(path_type=Path))
def command(directory: Path, recorder: int, journal: int, listening: int, host: str, browser: bool) -> None:
    """Serve the recording into DIRECTORY while it goes on, and then its trace."""
    token = os.environ.pop("CLEW_TOKEN", "")
    if not token:
        raise UsageError("live-viewer is started by `clew record --view` and `clew attach --view`")
    prepare_numpy()
    from clew.server.listening import make_url
    from clew.server.serve import serve_recording

    feed, server = socket.socket(fileno=recorder), socket.socket(fileno=listening)
    url = make_url(host, server.getsockname()[1], token, is_live=True)

    def tell() -> None:
        if browser:
            open_browser(url)

    with feed, server:
        serve_recording(directory, server, host, token, feed, journal, tell)
