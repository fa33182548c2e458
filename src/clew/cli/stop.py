"""`clew stop`: the events of a session are written no more, and its processes are as they were.

Runs in whoever controls.
"""

from __future__ import annotations

import click

from clew.cli.session_options import session_argument, tell

__all__ = ["command"]


@click.command(name="stop")
@session_argument
def command(name: str) -> None:
    """Take the probes of a session out of its processes; `clew start` goes on."""
    from clew.sessions.probes.background.client import ask_session

    answer = ask_session(name, {"command": "stop"})
    tell(answer)
    click.echo(answer["output"])
