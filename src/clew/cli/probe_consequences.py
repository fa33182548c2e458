"""The options that say what happens where events of probes are: `--on`, `--snapshot`, changes behind `--unsafe`.

Runs in the controller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clew.cli.console import say
from clew.errors import UsageError
from clew.store.names import RECORDED_NAME

if TYPE_CHECKING:
    from clew.sessions.probes.specs import ProbeSpec, RecordWish

__all__ = ["add_consequences", "find_record", "parse_size", "tell_recorded", "what_happens_there"]

RECORD: Final = "record"

_SIZE: Final = re.compile(r"(?P<number>[0-9]+)(?P<unit>[KkMm]?)(?:i?[Bb])?")
_UNITS: Final = {"": 0, "k": 10, "m": 20}


def what_happens_there(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options `ons`, `record_mode`, `record_output`, `snapshot`, `is_unsafe`, `sets`, `results`, `delays`, `pokes`."""
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
            help="There snapshot, start or stop events, pause the process, record it from there on, or signal:NAME.",
        ),
        click.option("--record-mode", metavar="MODE", help="How `record` records, as `clew record --mode`: full."),
        click.option(
            "--record-output", type=click.Path(path_type=Path), metavar="DIR", help="Where, if not in DIR of -o."
        ),
    ):
        command = option(command)
    return command


def add_consequences(
    specs: list[ProbeSpec],
    *,
    ons: Sequence[tuple[str, str]],
    record_mode: str | None,
    record_output: Path | None,
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
    if any(action == RECORD for _, action in ons):
        if snapshot is not None or sets or results or delays or pokes or any(action != RECORD for _, action in ons):
            raise UsageError(f"--on ... {RECORD}: the engine has events only: without other --on, --snapshot, changes")
    elif record_mode is not None or record_output is not None:
        raise UsageError(f"--record-mode and --record-output are of --on ... {RECORD}")
    triggers = [one for event, action in ons for one in parse_trigger(specs, event, action)]
    return [*specs, *triggers, *find_changes(specs, AskedChanges(sets, results, delays, pokes))]


def find_record(
    ons: Sequence[tuple[str, str]], mode: str | None, output: Path | None, form: str, events: Path | None
) -> RecordWish | None:
    """Where it is recorded what `--on ... record` has followed, if that is asked for; events are written to `events` in
    a format. Raises UsageError, OutputExistsError."""
    from clew.errors import OutputExistsError
    from clew.recording.options.arguments import parse_mode
    from clew.sessions.engine_follower import EngineFollower
    from clew.sessions.probes.specs import RecordWish

    if not any(action == RECORD for _, action in ons):
        return None
    parse_mode(mode or "full")
    if output is None and form == "parquet" and events is not None:
        # The folder is there when all events are; it is moved there then.
        output = events.with_name(f"{events.name}.{RECORDED_NAME}")
    elif output is None:
        output = events / RECORDED_NAME if form == "ctf" and events is not None else Path(RECORDED_NAME)
    if output.exists():
        raise OutputExistsError(output)
    return RecordWish(EngineFollower(), output, mode or "full")


def tell_recorded(recorded: Path, is_chosen: bool, form: str, events: Path | None) -> None:
    """Have what is recorded be where the events are, unless its place was chosen, and say where. Raises OutputError."""
    from clew.errors import OutputError

    shown = recorded
    if form == "parquet" and events is not None and not is_chosen and events.is_dir():
        try:
            recorded = recorded.rename(events / RECORDED_NAME)
        except OSError as error:
            raise OutputError.from_os_error(events, error) from error
        shown = events
    say(f"what was followed is recorded in {recorded}: clew view {shown}")


def parse_size(text: str | None) -> int:
    """Bytes: `64k`, `1M`; 0 for None. Raises UsageError."""
    if text is None:
        return 0
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UsageError(f"--snapshot {text}: a size is a number of bytes, with k or M behind it")
    return int(found["number"]) << _UNITS[found["unit"].lower()]
