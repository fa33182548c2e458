"""How a session of probes stands, as lines for people.

Runs in whoever controls. Names come from programs: they are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.cli.console import escape_control

__all__ = ["iter_lines"]


def iter_lines(session: dict[str, Any]) -> Iterator[str]:
    """The lines about a session, as its controller tells of it."""
    for line in _iter_lines(session):
        yield escape_control(line)


def _iter_lines(session: dict[str, Any]) -> Iterator[str]:
    state = "active" if session["is_active"] else "inactive"
    written = f", {session['format']} in {session['output']}" if session["output"] is not None else ""
    yield f"session {session['session']}: {state}{written}"
    for process in session["processes"]:
        is_waiting = session["is_active"] and not process["is_probed"]
        yield f"  process {process['pid']} ({process['executable'] or process['name']})" + " not probed" * is_waiting
    for event in session["events"]:
        yield from _iter_event(event, is_active=session["is_active"])
    if session["lost"]:
        yield f"  {_count(session['lost'], 'event')} lost"
    for text in session["remarks"]:
        yield f"  {text}"


def _iter_event(event: dict[str, Any], *, is_active: bool) -> Iterator[str]:
    where = f"process {event['pid']}" if event["pid"] is not None else event["path"]
    disabled = "" if event["is_enabled"] else ", disabled"
    yield f"  event {event['name']}: {event['kind']} {event['where']} in {where}{disabled}"
    if event["contexts"]:
        yield f"    contexts {', '.join(event['contexts'])}"
    if event["returned"]:
        yield f"    of returns {', '.join(event['returned'])}"
    if event["filter"] is not None:
        yield f"    filter {event['filter']}"
    yield f"    {_count(event['events'], 'event')}"
    if not is_active or not event["is_enabled"]:
        return
    if not event["places"]:
        yield f"    at no place: {event['missing'] or 'no process has it loaded'}"
        return
    backends = ", ".join(f"{count:,} by {backend}" for backend, count in sorted(event["backends"].items()))
    yield f"    at {_count(event['places'], 'place')}: {backends}"
    for reason, count in sorted(event["reasons"].items()):
        yield f"      {count:,} {reason}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
