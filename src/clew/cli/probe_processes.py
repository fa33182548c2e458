"""`clew probe run`, `attach` and `detach`: which processes a session has; and `remove`, an event that it has no more.

Runs in whoever controls.
"""

from __future__ import annotations

import click

from clew.cli.options import parse_pid
from clew.cli.session_options import session_option, tell

__all__ = ["attach", "detach", "remove", "run"]


@click.command(name="run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@session_option
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND...")
def run(name: str, words: tuple[str, ...]) -> int:
    """Run COMMAND in a session, with its probes from the first instruction on."""
    from clew.sessions.probes.background.joining import run_in_session

    return run_in_session(name, words)


@click.command(name="attach")
@session_option
@click.argument("pid", metavar="PID")
def attach(name: str, pid: str) -> None:
    """Have a process that runs in a session, too: its events with --path are there as well."""
    _ask(name, "attach", pid)


@click.command(name="detach")
@session_option
@click.argument("pid", metavar="PID")
def detach(name: str, pid: str) -> None:
    """Have a process in a session no more: it is as it was."""
    _ask(name, "detach", pid)


@click.command(name="remove")
@session_option
@click.argument("event", metavar="NAME")
def remove(name: str, event: str) -> None:
    """Have events NAME of a session no more: the name is free."""
    from clew.sessions.probes.background.client import ask_session

    tell(ask_session(name, {"command": "remove", "name": event}))


def _ask(name: str, command: str, pid: str) -> None:
    from clew.sessions.probes.background.client import ask_session

    tell(ask_session(name, {"command": command, "pid": parse_pid(pid)}))
