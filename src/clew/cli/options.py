"""Options that several subcommands share.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clew.address import MAX_PID, Pid
from clew.errors import UsageError
from clew.protocol._constants import MAX_BUSY_LIMIT
from clew.recording.options.arguments import DEFAULT_BUDGET, DEFAULT_BUSY_LIMIT, MODES, parse_output

if TYPE_CHECKING:
    from clew.cli.live import LiveViewer

__all__ = ["make_viewer", "output_option", "parse_pid", "what_is_said", "what_to_record", "where_to_serve"]

DEFAULT_PORT: Final = 7777
DEFAULT_HOST: Final = "127.0.0.1"

Command = Callable[..., Any]


def output_option(help_text: str) -> Callable[[Command], Command]:
    """The option that names what is to be written, a Path or None."""

    def convert(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Path | None:
        return None if value is None else parse_output(value)

    return click.option("-o", "--output", metavar="PATH", callback=convert, help=help_text)


def parse_pid(text: str) -> Pid:
    """The process that a command line names. Raises UsageError."""
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= MAX_PID:
        raise UsageError(f"{text}: not a process id; give the number that `ps` or `pgrep` shows")
    return Pid(int(text))


def _together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


what_to_record = _together(
    output_option("The trace to write; default PROGRAM.clew."),
    click.option(
        "--mode",
        type=click.Choice(MODES),
        default="counts",
        show_default=True,
        help="coverage: which blocks and edges ran. counts: how often each did. region: also in which order, but for "
        "what is busy. full: in which order, all of it. auto: as full, but what repeats itself is only counted where "
        "the order would take more than --budget.",
    ),
    click.option(
        "--budget",
        type=click.FloatRange(0),
        metavar="MB",
        help=f"Mode auto: how much of the order may be recorded, in MB a second; default {DEFAULT_BUDGET:g}. Each "
        "program that starts may record what a second brings at once, and no less than 1 MiB.",
    ),
    click.option(
        "--busy-limit",
        type=click.IntRange(1, MAX_BUSY_LIMIT),
        metavar="N",
        help=f"Mode region: the level of activity from which on a thread is busy; default {DEFAULT_BUSY_LIMIT}.",
    ),
    click.option(
        "--include",
        multiple=True,
        metavar="WHAT",
        help="Record only this: an image by name or path (libc.so*, ./tool), a symbol (libc.so.6!malloc, "
        "tool!run(int)) or addresses (0x1000-0x2000).",
    ),
    click.option("--exclude", multiple=True, metavar="WHAT", help="Follow this, but don't record it."),
    click.option("--no-follow", is_flag=True, help="Don't follow child processes, nor programs that are executed."),
    click.option(
        "--on-full",
        type=click.Choice(["wait", "drop"]),
        default="wait",
        show_default=True,
        help="When clew can't keep up: let the target wait, or drop records and count them.",
    ),
)

what_is_said = _together(
    click.option(
        "--stats",
        is_flag=True,
        help="Print the runtime's own numbers at the end, and what each is.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
)

where_to_serve = _together(
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=DEFAULT_PORT,
        show_default=True,
        help="The viewer's port; 0 for any.",
    ),
    click.option("--host", default=DEFAULT_HOST, show_default=True, help="The address that the viewer listens at."),
    click.option("--no-browser", is_flag=True, help="Open no browser; the address is printed all the same."),
)


def make_viewer(is_wanted: bool, host: str, port: int, *, opens_browser: bool) -> LiveViewer | None:
    """The viewer beside a recording that the command line asks for. Raises UsageError."""
    if not is_wanted:
        if (host, port, opens_browser) != (DEFAULT_HOST, DEFAULT_PORT, True):
            raise UsageError("--port, --host and --no-browser are of the live view: add --view")
        return None
    # Late: a recording that nobody watches starts without it.
    from clew.cli.live import LiveViewer

    return LiveViewer(host, port, opens_browser=opens_browser)
