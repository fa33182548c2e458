"""`clew trace`: events of probes, in a command or in a process that runs.

Runs in the controller.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import click

from clew.cli.console import say
from clew.cli.probe_backend import open_session, takes_backend
from clew.cli.probe_consequences import add_consequences, find_record, parse_size, tell_recorded, what_happens_there
from clew.cli.probe_run import ProbeRun, make_specs, what_is_probed, where_probes_are
from clew.cli.probe_tree import TreeWish, show_tree, which_calls
from clew.errors import UsageError

__all__ = ["command"]

_TREE_FORMATS: Final = ("text", "json")


@click.command(name="trace")
@where_probes_are
@click.option(
    "-t", "--context", "contexts", multiple=True, metavar="CONTEXT", help="What events have: regs, reg:NAME, ..."
)
@click.option("-r", "--returned", "returned", multiple=True, metavar="CONTEXT", help="What events of returns have.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write there.")
@click.option("--format", "form", metavar="FORMAT", help="text (the default), json, ctf, perfetto, collapsed, parquet.")
@click.option("--tree", "is_tree", is_flag=True, help="Calls within calls, as `clew probe tree` shows them.")
@what_happens_there
@which_calls
@takes_backend
@what_is_probed
def command(
    line: str | None,
    pid: str | None,
    probes: tuple[str, ...],
    functions: tuple[str, ...],
    contexts: tuple[str, ...],
    returned: tuple[str, ...],
    condition: str | None,
    output: Path | None,
    form: str | None,
    duration: float | None,
    with_inlined: bool,
    is_tree: bool,
    shows_all: bool,
    min_duration: float,
    depth: int | None,
    within: str | None,
    backend: str,
    required: str | None,
    words: tuple[str, ...],
    **consequences: Any,
) -> int:
    """Show each time that a program comes to the places LOC, natively but for that."""
    wish = TreeWish(shows_all, min_duration, depth, within)
    if is_tree:
        if probes or contexts or returned or not functions:
            raise UsageError("--tree shows calls of functions: --function LOC, without --probe, -t and -r")
        if form not in (None, *_TREE_FORMATS):
            raise UsageError(f"--format {form}: a tree is one of {', '.join(_TREE_FORMATS)}")
        form, chosen = form or "text", (backend, required)
        return show_tree(
            functions, condition, wish, form, output, line, pid, duration, words, chosen, with_inlined=with_inlined
        )
    if wish != TreeWish():
        raise UsageError("--all, --min-duration, --depth and --within are of --tree")
    from clew.cli.probe_output import COLLAPSED, choose_format, open_output
    from clew.export.probes.identity import ProcessIdentity

    form = choose_format(form, output)
    specs = make_specs(probes, functions, contexts, returned, condition, with_inlined=with_inlined)
    if form == COLLAPSED and not any(field.backtrace for one in specs for field in (*one.fields, *one.return_fields)):
        raise UsageError("--format collapsed counts backtraces: ask for them, -t backtrace")
    specs = add_consequences(specs, **consequences)
    ons, mode, recorded = (consequences[name] for name in ("ons", "record_mode", "record_output"))
    record = find_record(ons, mode, recorded, form, output)
    size = parse_size(consequences["snapshot"])
    session = open_session(specs, backend, required, newest_bytes=size, record=record)
    try:
        with open_output(form, output) as events:
            run = ProbeRun(session, line, pid, words)
            identity = ProcessIdentity(int(run.pid), run.processes[int(run.pid)], time.time_ns())
            events.begin(identity, run.processes, session.reader.name_address, session.reader.name_place)
            return run.follow(duration, events.write)
    finally:
        session.close()
        for text in session.left:
            say(text)
        if session.recorded is not None:
            tell_recorded(session.recorded, recorded is not None, form, output)
