"""`clew trace`: events of probes, in a command or in a process that runs.

Runs in the controller.
"""

from __future__ import annotations

import time
from pathlib import Path

import click

from clew.cli.console import say
from clew.cli.probe_backend import open_session, takes_backend
from clew.cli.probe_run import ProbeRun, make_specs, what_is_probed, where_probes_are
from clew.errors import UsageError

__all__ = ["command"]


@click.command(name="trace")
@where_probes_are
@click.option(
    "-t", "--context", "contexts", multiple=True, metavar="CONTEXT", help="What events have: regs, reg:NAME, ..."
)
@click.option("-r", "--return", "returned", multiple=True, metavar="CONTEXT", help="What events of returns have.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write there.")
@click.option("--format", "form", default=None, metavar="FORMAT", help="text (the default), json, ctf, perfetto.")
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
    backend: str,
    required: str | None,
    words: tuple[str, ...],
) -> int:
    """Show each time that a program comes to the places LOC, natively but for that."""
    from clew.cli.probe_output import FORMATS, open_writer
    from clew.export.probes.identity import ProcessIdentity

    if form is None:
        form = "ctf" if output is not None and not output.suffix else "text"
    if form not in FORMATS:
        raise UsageError(f"--format {form}: it is one of {', '.join(FORMATS)}")
    specs = make_specs(probes, functions, contexts, returned, condition, with_inlined=with_inlined)
    session = open_session(specs, backend, required)
    try:
        run = ProbeRun(session, line, pid, words)
        identity = ProcessIdentity(int(run.pid), run.processes[int(run.pid)], time.time_ns())
        with open_writer(form, output, run.processes, identity) as writer:
            return run.follow(duration, writer.write)
    finally:
        session.close()
        for text in session.left:
            say(text)
