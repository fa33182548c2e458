"""`clew list`: sessions of probes, with their processes and events.

Runs in whoever controls.
"""

from __future__ import annotations

import json

import click

from clew.cli.console import say

__all__ = ["command"]


@click.command(name="list")
@click.argument("name", required=False, metavar="[SESSION]")
@click.option("--json", "is_json", is_flag=True, help="An object for each session, a line each.")
def command(name: str | None, is_json: bool) -> None:
    """Show your sessions of probes: where they write, their processes, their events."""
    show(name, is_json=is_json)


def show(name: str | None, *, is_json: bool) -> None:
    """Print the session of a name, or all. Raises ControlError."""
    from clew.cli.session_text import iter_lines
    from clew.sessions.probes.background.client import ask_session, iter_sessions

    if name is None:
        sessions, gone = iter_sessions()
    else:
        sessions, gone = [ask_session(name, {"command": "status"})], []
    for text in gone:
        say(text)
    if not sessions and not is_json:
        say("there is no session; `clew enable-event` makes one")
    for session in sessions:
        if is_json:
            click.echo(json.dumps({key: value for key, value in session.items() if key != "told"}))
            continue
        for line in iter_lines(session):
            click.echo(line)
