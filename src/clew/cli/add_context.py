"""`clew add-context`: what events of a session have besides.

Runs in whoever controls.
"""

from __future__ import annotations

import click

from clew.cli.session_options import confirm, domain_option, session_option, tell

__all__ = ["command"]


@click.command(name="add-context")
@domain_option
@session_option
@click.option("-e", "--event", default="", metavar="NAME", help="Only these events; all without it.")
@click.option(
    "-t",
    "--type",
    "contexts",
    multiple=True,
    required=True,
    metavar="CONTEXT",
    help="regs, reg:NAME, TYPE:NAME:ADDRESS, backtrace[:N], or an expression. Several may be given.",
)
def command(name: str, event: str, contexts: tuple[str, ...]) -> None:
    """Have events of a session take more, from now on."""
    from clew.sessions.probes.background.client import ask_session
    from clew.sessions.probes.background.wishes import check_contexts

    check_contexts(contexts)
    tell(ask_session(name, {"command": "add-context", "name": event, "contexts": list(contexts)}))
    confirm(f"{event or 'all events'}: with {', '.join(contexts)} from now on")
