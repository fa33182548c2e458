"""`clew disable-event`: events of a session that are to be nowhere, until they are enabled again.

Runs in whoever controls.
"""

from __future__ import annotations

import click

from clew.cli.session_options import confirm, domain_option, session_option, tell
from clew.errors import UsageError

__all__ = ["command"]


@click.command(name="disable-event")
@click.argument("event", metavar="[NAME]", default="")
@click.option("-a", "--all-events", "is_all", is_flag=True, help="All events of the session.")
@domain_option
@session_option
def command(event: str, is_all: bool, name: str) -> None:
    """Have events NAME nowhere, until `clew enable-event NAME`."""
    from clew.sessions.probes.background.client import ask_session

    if is_all == bool(event):
        raise UsageError("either an event's NAME is given, or --all-events")
    tell(ask_session(name, {"command": "disable", "name": event}))
    confirm(f"{event or 'all events'}: disabled")
