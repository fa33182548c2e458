"""`clew enable-event`: events of a place, in a session that goes on in the background.

Runs in whoever controls.
"""

from __future__ import annotations

import os

import click

from clew.cli.console import say
from clew.cli.options import parse_pid
from clew.cli.session_options import confirm, domain_option, session_option, tell
from clew.errors import UsageError

__all__ = ["command"]


@click.command(name="enable-event")
@click.argument("event", metavar="NAME")
@domain_option
@session_option
@click.option("--pid", metavar="PID", help="In this process, and what descends from it.")
@click.option("--path", metavar="PATH", help="In processes of the session that have this program or library loaded.")
@click.option("--probe", metavar="LOC", help="In front of the instruction there.")
@click.option("--function", metavar="LOC", help="A function's entry (NAME_entry) and its return (NAME_exit).")
@click.option(
    "-t", "--type", "contexts", multiple=True, metavar="CONTEXT", help="What events have: regs, reg:NAME, ..."
)
@click.option("-r", "--return", "returned", multiple=True, metavar="CONTEXT", help="What events of returns have.")
@click.option("--filter", "condition", metavar="EXPR", help="Only where this holds.")
@click.option("--inline", "with_inlined", is_flag=True, help="Also where a function was inlined.")
def command(
    event: str,
    name: str,
    pid: str | None,
    path: str | None,
    probe: str | None,
    function: str | None,
    contexts: tuple[str, ...],
    returned: tuple[str, ...],
    condition: str | None,
    with_inlined: bool,
) -> None:
    """Have events NAME of a place LOC, from `clew start` on; or have those again that were disabled.

    The session is made if there is none of its name.
    """
    from clew.sessions.probes.background.checks import check_places
    from clew.sessions.probes.background.client import ask_session, ask_started
    from clew.sessions.probes.background.wishes import EventWish

    where = probe if probe is not None else function
    if where is None:
        if pid or path or contexts or returned or condition is not None or with_inlined:
            raise UsageError("no place is given: --probe LOC or --function LOC")
        tell(ask_session(name, {"command": "enable", "name": event}))
        confirm(f"{event}: enabled in session {name}")
        return
    if probe is not None and function is not None:
        raise UsageError("an event is of one place: --probe LOC, or --function LOC")
    wish = EventWish(
        event,
        where,
        function is not None,
        parse_pid(pid) if pid is not None else 0,
        os.path.realpath(path) if path is not None else "",
        contexts,
        returned,
        condition,
        with_inlined,
    )
    wish.check()
    for text in check_places(wish):
        say(text)
    answer, is_new = ask_started(name, {"command": "enable", "event": wish.to_json()})
    tell(answer)
    made = f"session {name} is made; " if is_new else ""
    confirm(f"{made}{event}: enabled" + ("" if answer["is_active"] else "; `clew start` begins"))
