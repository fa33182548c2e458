"""`clew probe`: probes in programs that execute their own code: events, trees of calls, what can be taken where.

Runs in the controller.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.address import Pid
from clew.cli.add_context import command as add_context_command
from clew.cli.console import say
from clew.cli.destroy import command as destroy_command
from clew.cli.disable_event import command as disable_event_command
from clew.cli.enable_event import command as enable_event_command
from clew.cli.list import show
from clew.cli.options import parse_pid
from clew.cli.probe_backend import open_session, takes_backend
from clew.cli.probe_processes import attach, detach, remove, run
from clew.cli.probe_run import ProbeRun, what_is_probed
from clew.cli.probe_tree import diff, tree
from clew.cli.start import command as start_command
from clew.cli.stop import command as stop_command
from clew.cli.trace import command as trace_command
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.binary.elf import ElfFile
    from clew.probing.locations.image_file import ImageFile
    from clew.probing.locations.place import ImagePlace
    from clew.probing.native import ImageCode
    from clew.sessions.probes.hit_costs import HitCosts
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["command"]

_MAX_KEYS = 1024
_OF_VALUES = ("count", "sum", "min", "max", "mean", "p50", "p90", "p99")


@click.group(name="probe")
def command() -> None:
    """Probes in programs that execute their own code."""


for _of_a_session in (run, attach, detach, remove, start_command, stop_command, destroy_command, trace_command):
    command.add_command(_of_a_session)
command.add_command(enable_event_command, "add")
command.add_command(enable_event_command, "enable")
command.add_command(disable_event_command, "disable")
command.add_command(add_context_command, "context")
command.add_command(tree)
command.add_command(diff)


def _takes_keys(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of what is added up: `by`, `condition`, `is_json`."""
    for option in (
        takes_backend,
        click.option("--json", "is_json", is_flag=True, help="An object a line."),
        click.option("--filter", "condition", metavar="EXPR", help="Only where this holds."),
        click.option("--by", "by", multiple=True, metavar="EXPR", help="For each value of this."),
    ):
        command = option(command)
    return command


@command.command(name="count")
@click.option("--probe", "places", multiple=True, required=True, metavar="LOC", help="In front of this.")
@_takes_keys
@what_is_probed
def count(places: tuple[str, ...], by: tuple[str, ...], condition: str | None, is_json: bool, **which: Any) -> int:
    """Count how often a program comes to places; it counts itself, and writes no events."""
    specs = [_sum_spec(where, by, None, condition) for where in places]
    return _add_up(specs, by, ("count",), is_json=is_json, **which)


@command.command(name="hist")
@click.option("--probe", "places", multiple=True, required=True, metavar="LOC", help="In front of this.")
@click.option("--value", required=True, metavar="EXPR", help="What is added up there.")
@_takes_keys
@what_is_probed
def histogram(
    places: tuple[str, ...], value: str, by: tuple[str, ...], condition: str | None, is_json: bool, **which: Any
) -> int:
    """Show how large a value was at places: sum, extremes, mean, quantiles."""
    specs = [_sum_spec(where, by, value, condition) for where in places]
    return _add_up(specs, by, _OF_VALUES, is_json=is_json, **which)


@command.command(name="latency")
@click.option("--function", "places", multiple=True, required=True, metavar="LOC", help="Of calls of this.")
@_takes_keys
@what_is_probed
def latency(places: tuple[str, ...], by: tuple[str, ...], condition: str | None, is_json: bool, **which: Any) -> int:
    """Show how long calls took, in nanoseconds: each from its entry to its own return."""
    specs = [_sum_spec(where, by, "duration", condition, is_function=True) for where in places]
    return _add_up(specs, by, _OF_VALUES, is_json=is_json, **which)


def _sum_spec(
    where: str, by: tuple[str, ...], value: str | None, condition: str | None, *, is_function: bool = False
) -> ProbeSpec:
    from clew.sessions.aggregate_table import AggregateWish
    from clew.sessions.probes.specs import ProbeSpec

    wish = AggregateWish(list(by), value, condition, _MAX_KEYS if by else 1, value is not None)
    return ProbeSpec(where, where, is_function, condition=condition, wish=wish)


def _add_up(
    specs: list[ProbeSpec],
    by: tuple[str, ...],
    columns: tuple[str, ...],
    *,
    is_json: bool,
    line: str | None,
    pid: str | None,
    duration: float | None,
    backend: str,
    required: str | None,
    words: tuple[str, ...],
) -> int:
    """Have probes add up, and show what came of it at the end."""
    session = open_session(specs, backend, required)
    try:
        status = ProbeRun(session, line, pid, words).follow(duration, lambda batch: None)
    finally:
        session.close()
    rows = [
        {"place": spec.where} | {name: row[name] for name in (*by, *columns)}
        for spec, found in session.sums()
        for row in found.read().to_pylist()
    ]
    for spec, found in session.sums():
        if found.n_left_out:
            say(f"{spec.where}: {found.n_left_out} times there was no room for one more key")
    _show_rows(rows, ("place", *by, *columns), is_json=is_json)
    return status


def _show_rows(rows: list[dict[str, Any]], columns: tuple[str, ...], *, is_json: bool) -> None:
    if is_json:
        for row in rows:
            click.echo(json.dumps({name: _plain(value) for name, value in row.items()}))
        return
    cells = [list(columns), *([_cell(row[name]) for name in columns] for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    for line in cells:
        click.echo("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return int(value) if isinstance(value, Decimal) else value


def _cell(value: Any) -> str:
    """A value of a table, without anything that a terminal acts upon."""
    if value is None:
        return "?"
    if isinstance(value, bytes | str):
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        return "".join(one if one.isprintable() else "?" for one in text)
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


@command.command(name="list")
@click.argument("where", metavar="[LOC]", required=False)
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.option("-p", "--pid", metavar="PID", help="In a process, not in a file.")
@click.option("--vars", "shows_variables", is_flag=True, help="What can be taken there.")
@click.option("--inline", "with_inlined", is_flag=True, help="Also where a function was inlined.")
@click.option("--measure", "is_measured", is_flag=True, help="Measure what hits cost here; that is known until reboot.")
@click.option("--json", "is_json", is_flag=True, help="Of sessions: an object for each, a line each.")
def list_places(
    where: str | None,
    file: Path | None,
    pid: str | None,
    shows_variables: bool,
    with_inlined: bool,
    is_measured: bool,
    is_json: bool,
) -> int:
    """Show which places LOC means in a program or library, how they can be probed, and what can be taken there.

    Without LOC: what sessions of yours have, as `clew list` shows it.
    """
    from clew.probing.locations.image_file import open_image
    from clew.probing.locations.in_process import open_process
    from clew.probing.locations.resolve import resolve_in_image
    from clew.probing.locations.syntax import parse_location
    from clew.sessions.probes.hit_costs import find_costs, measure_costs

    if where is None:
        show(None, is_json=is_json)
        return 0
    if is_json:
        raise UsageError("--json is of sessions: without LOC")
    if (file is None) == (pid is None):
        raise UsageError("a FILE is given, or a process (-p)")
    location = parse_location(where)
    codes: dict[ElfFile, ImageCode] = {}
    costs = measure_costs() if is_measured else find_costs()
    if pid is not None:
        with open_process(Pid(parse_pid(pid))) as places:
            found = places.resolve(location, with_inlined=with_inlined)
            _tell_remarks(found.warnings, "" if found.places else found.missing)
            images = {id(one.file): one for one in places.images}.values()
            for place in found.places:
                image = next((one for one in images if one.has(place.address)), None)
                if image is None or place.place is None:
                    click.echo(f"{place.address:#x}  no file's code")
                    continue
                _tell_place(image.file, place.place, image.bias, codes, costs, shows_variables=shows_variables)
        return 0 if found.places else 1
    assert file is not None
    with open_image(file) as image_file:
        resolution = resolve_in_image(image_file, location, with_inlined=with_inlined)
        _tell_remarks(resolution.warnings, "" if resolution.places else resolution.missing)
        for one in resolution.places:
            _tell_place(image_file, one, 0, codes, costs, shows_variables=shows_variables)
    return 0 if resolution.places else 1


def _tell_remarks(warnings: tuple[str, ...], missing: str) -> None:
    for text in (*warnings, missing):
        if text:
            say(text)


def _tell_place(
    file: ImageFile,
    place: ImagePlace,
    bias: int,
    codes: dict[ElfFile, ImageCode],
    costs: HitCosts | None,
    *,
    shows_variables: bool,
) -> None:
    """A place on a line, with how it can be probed, and what a hit costs then; and what can be taken there. `codes`
    keeps what was decoded."""
    from clew.probing.locations.variables import format_variables, list_variables

    source = f"  {place.source}" if place.source else ""
    technique = _technique_at(file, place, codes, costs)
    click.echo(f"{place.address + bias:#x}  {place.name}  {place.kind.value}{source}  {technique}")
    if shows_variables:
        for text in format_variables(list_variables(file, place, bias=bias)).splitlines():
            click.echo(f"    {text}")


def _technique_at(file: ImageFile, place: ImagePlace, codes: dict[ElfFile, ImageCode], costs: HitCosts | None) -> str:
    """By which technique a probe can be there, alone, and why by no better one."""
    from clew.probing.native import plan_site
    from clew.sessions.probes.backends import backend_of
    from clew.sessions.probes.image_code import find_function, read_code

    try:
        if file.elf not in codes:
            codes[file.elf] = read_code(file)
        code, image = find_function(codes[file.elf], place.address)
        plan = plan_site(place.address, code, image.entries)
    except UsageError as error:
        return f"none: {error.message}"
    reason = f" ({plan.reason})" if plan.reason else ""
    cost_ns = None if costs is None else costs.of(backend_of(plan.technique).value)
    cost = "" if cost_ns is None else f"  {cost_ns:,} ns"
    return plan.technique.name.lower().replace("_", " ") + reason + cost
