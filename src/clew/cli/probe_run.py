"""Running probes from the command line: in a command, or in a process that runs, until that ends or somebody says so.

Runs in the controller. What clew says goes to stderr.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clew.address import Pid
from clew.cli.console import say
from clew.cli.options import parse_pid
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.export.probes.event_types import EventBatch
    from clew.sessions.probes.probing_session import ProbingCommand, ProbingSession
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["ProbeRun", "make_specs", "what_is_probed", "where_probes_are"]

POLL_SECONDS: Final = 0.02


def what_is_probed(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which process: `line`, `pid`, `duration`, `words`."""
    for option in (
        click.argument("words", nargs=-1, metavar="[-- COMMAND...]"),
        click.option(
            "--duration", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Leave after so long."
        ),
        click.option("-p", "--pid", metavar="PID", help="Or a process that runs, until Ctrl-C or SIGTERM."),
        click.option("-c", "--command", "line", metavar='"COMMAND"', help="Run this, with its arguments."),
    ):
        command = option(command)
    return command


def where_probes_are(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where: `probes`, `functions`, `condition`, `with_inlined`."""
    for option in (
        click.option("--inline", "with_inlined", is_flag=True, help="Also where a function was inlined."),
        click.option("--filter", "condition", metavar="EXPR", help="Only where this holds."),
        click.option(
            "--function", "functions", multiple=True, metavar="LOC", help="A function's entry and its return."
        ),
        click.option("--probe", "probes", multiple=True, metavar="LOC", help="In front of the instruction there."),
    ):
        command = option(command)
    return command


def make_specs(
    probes: Sequence[str],
    functions: Sequence[str],
    contexts: Sequence[str],
    returned: Sequence[str],
    condition: str | None,
    *,
    with_inlined: bool,
) -> list[ProbeSpec]:
    """The probes that options ask for. Raises UsageError."""
    from clew.sessions.probes.specs import ProbeSpec, parse_context

    if not probes and not functions:
        raise UsageError("no place is given: --probe LOC or --function LOC")
    fields = tuple(one for text in contexts for one in parse_context(text))
    leaving = tuple(one for text in returned or ("retval",) for one in parse_context(text))
    points = [ProbeSpec(where, where, False, fields, (), condition, with_inlined) for where in probes]
    return points + [ProbeSpec(where, where, True, fields, leaving, condition, with_inlined) for where in functions]


class ProbeRun:
    """The probes of `session` in a command, or in a process. Raises ClewError if they can't be there.

    From here on SIGINT and SIGTERM say that it is to leave, and no longer end what they come in the middle of: code is
    written whole. `follow` gives them back what they did before.
    """

    def __init__(self, session: ProbingSession, line: str | None, pid: str | None, words: Sequence[str]) -> None:
        from clew.sessions.probes.collecting import all_kept

        program = list(words) or (shlex.split(line) if line is not None else [])
        if bool(program) == (pid is not None):
            raise UsageError("either a command is given (-c, or behind --), or a process (-p)")
        self._session = session
        self._command: ProbingCommand | None = None
        self._is_told = self._is_asked = False
        self._handlers = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        if session.is_recorder:
            # For good: who asks when it is over is not to end this.
            signal.signal(signal.SIGUSR1, self._hear)
        try:
            with all_kept():
                if pid is None:
                    ignored = [number for number, handler in self._handlers.items() if handler == signal.SIG_IGN]
                    self._command = session.start(program, ignored)
                    self.pid = self._command.pid
                else:
                    self.pid = Pid(parse_pid(pid))
                    session.attach(self.pid)
        except BaseException:
            self._give_back()
            raise
        self.processes = {int(self.pid): _name_of(self.pid)}

    def follow(self, duration: float | None, take: Callable[[EventBatch], None]) -> int:
        """Have `take` given events until the process has ended, or this is told to leave; the exit status."""
        deadline = None if duration is None else time.monotonic() + duration
        session = self._session
        try:
            has_ended = False
            while not has_ended and not self._is_told and (deadline is None or time.monotonic() < deadline):
                session.wait(POLL_SECONDS)
                has_ended = self._has_ended()
                if self._is_asked:
                    self._is_asked = False
                    session.snapshot()
                take(session.read())
                for text in session.take_remarks():
                    say(text)
            # What came since, up to where it is left.
            session.catch_up()
            if session.is_recorder:
                session.snapshot()
            take(session.read())
        finally:
            self._give_back()
        for text in session.missing():
            say(text)
        return (self._command and self._command.exit_status) or 0

    def _hear(self, number: int, _frame: object) -> None:
        if number == signal.SIGUSR1:
            self._is_asked = True
        else:
            self._is_told = True

    def _give_back(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _has_ended(self) -> bool:
        if self._command is not None:
            return self._command.wait(0)
        return not os.path.exists(f"/proc/{self.pid}")


def _name_of(pid: Pid) -> bytes:
    try:
        return Path(f"/proc/{pid}/comm").read_bytes().rstrip(b"\n")
    except OSError:
        return b""
