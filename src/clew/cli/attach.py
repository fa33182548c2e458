"""`clew attach`: record a process that runs already, and leave it as it was.

Runs in the controller. What clew says goes to stderr.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.console import is_quiet, say
from clew.cli.light_numpy import prepare_numpy_core
from clew.cli.options import make_viewer, parse_pid, what_is_said, what_to_record, where_to_serve
from clew.cli.recording import print_result
from clew.dataclass import replace
from clew.recording.options.output import default_output
from clew.recording.options.record_options import RecordOptions, RecordResult, parse_options
from clew.recording.session.attached import Attach, name_of
from clew.recording.session.interrupts import LeaveGuard
from clew.recording.session.session import start_session

if TYPE_CHECKING:
    from clew.cli.live import LiveViewer

__all__ = ["command"]


@click.command(name="attach")
@what_to_record
@click.option(
    "--duration",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Detach after so long; otherwise at Ctrl-C or SIGTERM, or when the process ends.",
)
@click.option("--view", is_flag=True, help="Watch it in the browser meanwhile; the trace is shown until Ctrl-C.")
@where_to_serve
@what_is_said
@click.argument("pid", metavar="PID")
def command(
    pid: str,
    output: Path | None,
    mode: str,
    budget: float | None,
    busy_limit: int | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    no_follow: bool,
    on_full: str,
    duration: float | None,
    view: bool,
    port: int,
    host: str,
    no_browser: bool,
    stats: bool,
    quiet: bool,
) -> int:
    """Record the running process PID, all its threads, until Ctrl-C or SIGTERM; then leave it as it was.

    The children that it makes from now on are recorded with it, and left with it.
    The exit status is 0 when the trace was written, whatever became of the process.
    """
    quiet = quiet or is_quiet()
    prepare_numpy_core()
    target = parse_pid(pid)
    origin = Attach(target, duration)
    options = parse_options(
        output if output is not None else default_output(name_of(target).replace("/", "_")),
        mode=mode,
        budget=budget,
        busy_limit=busy_limit,
        include=include,
        exclude=exclude,
        drop_on_full=on_full == "drop",
        follow=not no_follow,
        tell=None if quiet else say,
    )
    viewer = make_viewer(view, host, port, opens_browser=not no_browser)
    with contextlib.ExitStack() as parts:
        if viewer is not None:
            options = replace(options, sinks=(parts.enter_context(viewer).feed,))
        result = _attach(origin, options, viewer, duration, is_quiet=quiet, with_statistics=stats)
        if viewer is not None:
            viewer.finish(result, is_quiet=quiet)
    return 0 if result.failure is None else result.failure.exit_status


def _attach(
    origin: Attach,
    options: RecordOptions,
    viewer: LiveViewer | None,
    duration: float | None,
    *,
    is_quiet: bool,
    with_statistics: bool,
) -> RecordResult:
    guard = LeaveGuard()
    with guard.held():
        session = start_session(origin, options, guard)
        target = session.target.pid
        if viewer is not None:
            viewer.start(options.output, guard.muted)
        if not is_quiet:
            until = f"until {' or '.join(guard.ways_out) or 'it ends'}" if duration is None else f"for {duration:g} s"
            say(f"attached to process {target} ({origin.command[0]}); recording {until}")
        started = time.monotonic()
        session.wait()
        if not is_quiet:
            what = "ended" if session.has_ended else "detached" if target in session.left_seconds else "left as it is"
            n_others = len(session.left_seconds.keys() - {target})
            others = f"; {n_others} of its children detached" if n_others else ""
            say(f"process {target} {what} after {time.monotonic() - started:.1f} s{others}")
        return print_result(
            session.finish,
            is_quiet=is_quiet,
            with_statistics=with_statistics,
            more={
                "attach_microseconds": round(session.target.stopped_seconds * 1e6),
                "detach_microseconds": round(session.left_seconds.get(target, 0.0) * 1e6),
            },
        )
