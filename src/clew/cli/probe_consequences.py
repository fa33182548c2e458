"""The options that say what happens where events of probes are: `--on`, `--snapshot`, changes behind `--unsafe`.

Runs in the controller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["add_consequences", "parse_size", "what_happens_there"]

_SIZE: Final = re.compile(r"(?P<number>[0-9]+)(?P<unit>[KkMm]?)(?:i?[Bb])?")
_UNITS: Final = {"": 0, "k": 10, "m": 20}


def what_happens_there(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options `ons`, `snapshot`, `is_unsafe`, `sets`, `results`, `delays`, `pokes`."""
    for option in (
        click.option("--poke", "pokes", multiple=True, metavar="[EVENT:]TYPE:ADDR=EXPR", help="Write memory there."),
        click.option("--delay", "delays", multiple=True, metavar="[EVENT:]TIME", help="Wait there: 10ms."),
        click.option(
            "--return",
            "results",
            multiple=True,
            metavar="[EVENT:]EXPR",
            help="Return that, not executing the function.",
        ),
        click.option("--set", "sets", multiple=True, metavar="[EVENT:]REG=EXPR", help="Set a register there."),
        click.option("--unsafe", "is_unsafe", is_flag=True, help="Allow --set, --return, --delay, --poke."),
        click.option(
            "--snapshot",
            metavar="SIZE",
            help="Keep each thread's newest events, and write them on SIGUSR1, at the end, and where --on says so.",
        ),
        click.option(
            "--on",
            "ons",
            nargs=2,
            multiple=True,
            metavar="EVENT[:FILTER] ACTION",
            help="There snapshot, start or stop events, pause the process, or signal:NAME.",
        ),
    ):
        command = option(command)
    return command


def add_consequences(
    specs: list[ProbeSpec],
    *,
    ons: Sequence[tuple[str, str]],
    snapshot: str | None,
    is_unsafe: bool,
    sets: Sequence[str],
    results: Sequence[str],
    delays: Sequence[str],
    pokes: Sequence[str],
) -> list[ProbeSpec]:
    """The probes, with those by which something happens. Raises UsageError."""
    from clew.sessions.probes.consequences import AskedChanges, find_changes, parse_trigger

    if snapshot is None and any(action == "snapshot" for _, action in ons):
        raise UsageError("--on ... snapshot: there is something to write where --snapshot SIZE keeps it")
    if not is_unsafe and (sets or results or delays or pokes):
        raise UsageError("--set, --return, --delay and --poke change what the program does: that needs --unsafe")
    triggers = [one for event, action in ons for one in parse_trigger(specs, event, action)]
    return [*specs, *triggers, *find_changes(specs, AskedChanges(sets, results, delays, pokes))]


def parse_size(text: str | None) -> int:
    """Bytes: `64k`, `1M`; 0 for None. Raises UsageError."""
    if text is None:
        return 0
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UsageError(f"--snapshot {text}: a size is a number of bytes, with k or M behind it")
    return int(found["number"]) << _UNITS[found["unit"].lower()]
