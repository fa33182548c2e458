"""`clew trace`: events of probes, in a command or in a process that runs.

Runs in the controller. What clew says goes to stderr.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.console import say
from clew.cli.options import parse_pid
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.cli.probe_output import EventWriter
    from clew.sessions.probes.probe_session import ProbeSession
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["command"]

POLL_SECONDS = 0.02


@click.command(name="trace", context_settings={"ignore_unknown_options": False})
@click.option("-c", "--command", "line", metavar='"COMMAND"', help="Run this, with its arguments.")
@click.option("-p", "--pid", metavar="PID", help="Or probe a process that runs, until Ctrl-C or SIGTERM.")
@click.option("--probe", "probes", multiple=True, metavar="LOC", help="An event each time a thread comes there.")
@click.option("--function", "functions", multiple=True, metavar="LOC", help="One at its entry, one at its return.")
@click.option(
    "-t", "--context", "contexts", multiple=True, metavar="CONTEXT", help="What events have: regs, reg:NAME, ..."
)
@click.option("-r", "--return", "returned", multiple=True, metavar="CONTEXT", help="What events of returns have.")
@click.option("--filter", "condition", metavar="EXPR", help="Only where this holds.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="PATH", help="Write there.")
@click.option("--format", "form", default=None, metavar="FORMAT", help="text (the default), json, ctf, perfetto.")
@click.option("--duration", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Leave after so long.")
@click.option("--inline", "with_inlined", is_flag=True, help="Also where a function was inlined.")
@click.argument("words", nargs=-1, metavar="[-- COMMAND...]")
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
) -> int:
    """Show each time that a program comes to the places LOC, natively but for that."""
    from clew.cli.probe_output import FORMATS, open_writer
    from clew.sessions.probes.probe_session import ProbeSession

    if form is None:
        form = "ctf" if output is not None and not output.suffix else "text"
    if form not in FORMATS:
        raise UsageError(f"--format {form}: it is one of {', '.join(FORMATS)}")
    program = list(words) or (shlex.split(line) if line is not None else [])
    if bool(program) == (pid is not None):
        raise UsageError("either a command is given (-c, or behind --), or a process (-p)")
    specs = make_specs(probes, functions, contexts, returned, condition, with_inlined=with_inlined)
    session = ProbeSession(specs)
    processes: dict[int, bytes] = {}
    if pid is not None:
        run: _Attached | _Launched = _Attached(session, parse_pid(pid))
    else:
        run = _Launched(session, program)
    processes[int(run.pid)] = _name_of(int(run.pid))
    try:
        with open_writer(form, output, processes, lambda: _describe(int(run.pid), processes)) as writer:
            return _follow(session, run, writer, duration)
    finally:
        session.close()
        for text in session.left:
            say(text)


def make_specs(
    probes: tuple[str, ...],
    functions: tuple[str, ...],
    contexts: tuple[str, ...],
    returned: tuple[str, ...],
    condition: str | None,
    *,
    with_inlined: bool,
) -> list[ProbeSpec]:
    """What the options ask for. Raises UsageError."""
    from clew.sessions.probes.specs import ProbeSpec, parse_context

    if not probes and not functions:
        raise UsageError("no place is given: --probe LOC or --function LOC")
    fields = tuple(one for text in contexts for one in parse_context(text))
    leaving = tuple(one for text in returned or ("retval",) for one in parse_context(text))
    points = [ProbeSpec(where, where, False, fields, (), condition, with_inlined) for where in probes]
    return points + [ProbeSpec(where, where, True, fields, leaving, condition, with_inlined) for where in functions]


class _Attached:
    def __init__(self, session: ProbeSession, pid: int) -> None:
        self.pid = pid
        session.attach(pid)  # type: ignore[arg-type]
        self.status: int | None = None

    def has_ended(self) -> bool:
        return not os.path.exists(f"/proc/{self.pid}")


class _Launched:
    def __init__(self, session: ProbeSession, words: list[str]) -> None:
        from clew.sessions.probes.probe_launch import ProbedCommand

        self._command = ProbedCommand(session, words)
        self.pid = self._command.pid

    @property
    def status(self) -> int | None:
        return self._command.status

    def has_ended(self) -> bool:
        return self._command.wait(0)


def _follow(session: ProbeSession, run: _Attached | _Launched, writer: EventWriter, duration: float | None) -> int:
    """Write events until the process has ended, or this is told to leave; the exit status."""
    is_told = False

    def leave(_number: int, _frame: object) -> None:
        nonlocal is_told
        is_told = True

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    deadline = None if duration is None else time.monotonic() + duration
    try:
        has_ended = False
        while not has_ended and not is_told and (deadline is None or time.monotonic() < deadline):
            session.wait(POLL_SECONDS)
            has_ended = run.has_ended()
            writer.write(session.read())
            for text in session.take_remarks():
                say(text)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for text in session.missing():
        say(text)
    status = run.status
    if status is None:
        return 0
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _name_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/comm").read_bytes().rstrip(b"\n")
    except OSError:
        return b""


def _describe(pid: int, processes: dict[int, bytes]):  # type: ignore[no-untyped-def]
    from clew.export.probes.identity import ProcessIdentity

    return ProcessIdentity(pid, processes.get(pid, b""), time.time_ns())
