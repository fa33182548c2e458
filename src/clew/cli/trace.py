"""`clew trace`: events of probes, in a command or in a process that runs.

Runs in the controller.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from clew.cli.console import say
from clew.cli.probe_consequences import add_consequences, parse_size, what_happens_there
from clew.cli.probe_run import ProbeRun, make_specs, what_is_probed, where_probes_are
from clew.errors import UsageError

__all__ = ["command"]


@click.command(name="trace")
@where_probes_are
@click.option(
    "-t", "--context", "contexts", multiple=True, metavar="CONTEXT", help="What events have: regs, reg:NAME, ..."
)
@click.option("-r", "--returned", "returned", multiple=True, metavar="CONTEXT", help="What events of returns have.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write there.")
@click.option("--format", "form", default=None, metavar="FORMAT", help="text (the default), json, ctf, perfetto.")
@what_happens_there
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
    words: tuple[str, ...],
    **consequences: Any,
) -> int:
    """Show each time that a program comes to the places LOC, natively but for that."""
    from clew.cli.probe_output import FORMATS, open_writer
    from clew.export.probes.identity import ProcessIdentity
    from clew.sessions.probes.probe_session import ProbeSession

    if form is None:
        form = "ctf" if output is not None and not output.suffix else "text"
    if form not in FORMATS:
        raise UsageError(f"--format {form}: it is one of {', '.join(FORMATS)}")
    specs = make_specs(probes, functions, contexts, returned, condition, with_inlined=with_inlined)
    specs = add_consequences(specs, **consequences)
    session = ProbeSession(specs, newest_bytes=parse_size(consequences["snapshot"]))
    try:
        run = ProbeRun(session, line, pid, words)
        identity = ProcessIdentity(int(run.pid), run.processes[int(run.pid)], time.time_ns())
        with open_writer(form, output, run.processes, identity) as writer:
            return run.follow(duration, writer.write)
    finally:
        session.close()
        for text in session.left:
            say(text)
