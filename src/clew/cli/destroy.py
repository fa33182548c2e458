"""`clew destroy`: the end of a session.

Runs in whoever controls.
"""

from __future__ import annotations

import click

from clew.cli.session_options import DEFAULT_SESSION, tell
from clew.errors import UsageError

__all__ = ["command"]


@click.command(name="destroy")
@click.argument("name", required=False, metavar="[SESSION]")
@click.option("-a", "--all", "is_all", is_flag=True, help="All sessions of yours.")
def command(name: str | None, is_all: bool) -> None:
    """End a session: its probes are out of all processes; what it wrote stays."""
    from clew.sessions.probes.background.client import ask_session, iter_sessions

    if is_all and name is not None:
        raise UsageError("either a SESSION is given, or --all")
    names = [one["session"] for one in iter_sessions()[0]] if is_all else [name or DEFAULT_SESSION]
    for one in names:
        answer = ask_session(one, {"command": "destroy"})
        tell(answer)
        if answer["output"] is not None:
            click.echo(answer["output"])
