"""`clew record`: run a program under the runtime and write its trace.

Runs in the controller. The target's standard streams, terminal and exit status pass through; what clew says goes to
stderr. Nothing heavy is imported before the target runs.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from os import environ
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from clew.cli.console import is_quiet, say
from clew.cli.options import make_viewer, what_is_said, what_to_record, where_to_serve
from clew.cli.statistics_text import iter_statistics
from clew.dataclass import replace
from clew.errors import ClewError
from clew.process.launch import original_environment
from clew.recording.arguments import parse_budget, parse_busy_limit, parse_mode
from clew.recording.interrupts import InterruptGuard
from clew.recording.output import default_output
from clew.recording.session import RecordingSession, RecordOptions, RecordResult

if TYPE_CHECKING:
    from clew.cli.live import LiveViewer

__all__ = ["command", "print_result"]

SLOW_SECONDS: Final = 1.0


@click.command(name="record", context_settings={"allow_interspersed_args": False})
@what_to_record
@click.option(
    "--pause",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Wait before the first instruction, for a debugger to attach.",
)
@click.option("--view", is_flag=True, help="Watch it in the browser while it runs; the trace is shown until Ctrl-C.")
@where_to_serve
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Este's configuration: record in mode full, and write Este's files into its output-dir as well.",
)
@what_is_said
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD [ARG]...")
@click.pass_context
def command(
    context: click.Context,
    output: Path | None,
    mode: str,
    budget: float | None,
    busy_limit: int | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    no_follow: bool,
    on_full: str,
    pause: float | None,
    view: bool,
    port: int,
    host: str,
    no_browser: bool,
    config_path: Path | None,
    stats: bool,
    quiet: bool,
    words: tuple[str, ...],
) -> int:
    """Run CMD and record every basic block, edge and call that it runs.

    CMD's input, output, terminal and exit status are its own; killed by signal N, the status is 128+N.
    Child processes are recorded with it, and waited for; once CMD has ended, SIGTERM or SIGINT to clew leaves those
    that still run, which go on natively (Ctrl-C reaches those of the terminal, too). Before that, SIGTERM is passed on
    to CMD, and a second one leaves everything.
    """
    quiet = quiet or is_quiet()
    config = None
    if config_path is not None:
        from clew.cli.este import prepare_config, write_este_files

        config, mode = prepare_config(config_path, context), "full"

    def write_more(result: RecordResult) -> None:
        if config is not None and result.failure is None:
            write_este_files(config, result.output, is_quiet=quiet)

    options = RecordOptions(
        command=words,
        output=output if output is not None else default_output(words[0]),
        mode=parse_mode(mode),
        budget=parse_budget(budget, mode),
        busy_limit=parse_busy_limit(busy_limit, parse_mode(mode)),
        include=include,
        exclude=exclude,
        drop_on_full=on_full == "drop",
        pause_seconds=pause or 0.0,
        follow=not no_follow,
        adopts_orphans=True,
        tell=None if quiet else say,
        environment=original_environment(),
    )
    viewer = make_viewer(view, host, port, opens_browser=not no_browser)
    with contextlib.ExitStack() as parts:
        if viewer is not None:
            options = replace(options, feed=parts.enter_context(viewer).feed)
        result = _record(options, viewer, write_more, is_quiet=quiet, with_statistics=stats)
        if viewer is not None:
            viewer.finish(result, is_quiet=quiet)
    return result.exit_status


def _record(
    options: RecordOptions,
    viewer: LiveViewer | None,
    write_more: Callable[[RecordResult], None],
    *,
    is_quiet: bool,
    with_statistics: bool,
) -> RecordResult:
    """Record, write the trace, and then `write_more`."""
    with InterruptGuard().held() as guard:
        session = RecordingSession(options, guard)
        pid = session.start()
        if viewer is not None:
            viewer.start(options.output, guard.muted)
        if options.pause_seconds and not is_quiet:
            say(f"process {pid} waits {options.pause_seconds:g} s before its first instruction")
        # numpy comes now: its linear algebra would start threads that are of no use here, and cost processor time.
        environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        session.wait()
        result = print_result(session.finish, is_quiet=is_quiet, with_statistics=with_statistics)
        write_more(result)
        return result


def print_result(
    finish: Callable[[], RecordResult],
    *,
    is_quiet: bool,
    with_statistics: bool,
    more: Mapping[str, int] = MappingProxyType({}),
) -> RecordResult:
    """Write the trace by `finish` and say what is in it. `more`: numbers that go with the runtime's own."""
    with _told_when_slow(is_wanted=not is_quiet):
        result = finish()
    if not is_quiet:
        for warning in result.warnings:
            say(warning)
    if result.failure is not None:
        kept = f"; what found room is kept: `clew recover {result.kept}` makes a trace of it" if result.kept else ""
        say(f"{result.failure.message}{kept}")
    elif not is_quiet and sys.stderr is not None:
        _print_summary(result)
    if with_statistics:
        for line in iter_statistics({**result.statistics, **more}):
            say(line)
    return result


@contextlib.contextmanager
def _told_when_slow(*, is_wanted: bool) -> Iterator[None]:
    """Say on a terminal that the trace is being written, if that takes long. The target has ended by then."""
    timer = threading.Timer(SLOW_SECONDS, say, ["the program has ended; writing its trace"])
    timer.daemon = True
    if is_wanted and sys.stderr is not None and sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _print_summary(result: RecordResult) -> None:
    from clew.cli.summary import print_summary
    from clew.store.trace import Trace

    try:
        print_summary(Trace(result.output))
    except ClewError as error:
        # The trace is written and the target's status counts: a summary that fails is told, and no more.
        say(error.message)
    say(f"wrote {result.output}; look at it with `clew report {result.output}`")
