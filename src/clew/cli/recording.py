"""What `clew record` does, once it is known what is asked: run the program, write the trace, say what is in it.

Runs in the controller. Nothing heavy is imported before the target runs, nor click, which not every command line needs.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clew.cli.asked import Asked
from clew.cli.console import say
from clew.cli.light_numpy import prepare_numpy_core
from clew.dataclass import replace
from clew.errors import ClewError
from clew.process.launch import original_environment
from clew.recording.options.output import default_output
from clew.recording.options.record_options import RecordOptions, RecordResult, parse_options
from clew.recording.session.interrupts import InterruptGuard
from clew.recording.session.launched import Launch
from clew.recording.session.session import start_session

if TYPE_CHECKING:
    from clew.cli.live import LiveViewer

__all__ = ["print_result", "record"]

SLOW_SECONDS: Final = 1.0


def record(
    asked: Asked, viewer: LiveViewer | None = None, write_more: Callable[[RecordResult], None] = lambda result: None
) -> int:
    """Record what is asked for, with `viewer` beside it, and `write_more` of the trace; the exit status."""
    options = parse_options(
        asked.output if asked.output is not None else default_output(asked.words[0]),
        mode=asked.mode,
        budget=asked.budget,
        busy_limit=asked.busy_limit,
        include=asked.include,
        exclude=asked.exclude,
        drop_on_full=asked.on_full == "drop",
        follow=not asked.no_follow,
        tell=None if asked.quiet else say,
    )
    launch = Launch(
        asked.words, environment=original_environment(), pause_seconds=asked.pause or 0.0, adopts_orphans=True
    )
    with contextlib.ExitStack() as parts:
        if viewer is not None:
            options = replace(options, sinks=(parts.enter_context(viewer).feed,))
        result = _record(launch, options, viewer, write_more, is_quiet=asked.quiet, with_statistics=asked.stats)
        if viewer is not None:
            viewer.finish(result, is_quiet=asked.quiet)
    return result.exit_status


def _record(
    launch: Launch,
    options: RecordOptions,
    viewer: LiveViewer | None,
    write_more: Callable[[RecordResult], None],
    *,
    is_quiet: bool,
    with_statistics: bool,
) -> RecordResult:
    """Record, write the trace, and then `write_more`."""
    with InterruptGuard().held() as guard:
        session = start_session(launch, options, guard)
        if viewer is not None:
            viewer.start(options.output, guard.muted)
        if launch.pause_seconds and not is_quiet:
            say(f"process {session.target.pid} waits {launch.pause_seconds:g} s before its first instruction")
        prepare_numpy_core()
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
        from clew.cli.statistics_text import iter_statistics

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
