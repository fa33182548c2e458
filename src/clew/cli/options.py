"""Options that several subcommands share.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from clew.protocol._constants import MAX_BUSY_LIMIT
from clew.recording.arguments import DEFAULT_BUSY_LIMIT, parse_output

__all__ = ["output_option", "what_is_said", "what_to_record", "where_to_serve"]

Command = Callable[..., Any]


def output_option(help_text: str) -> Callable[[Command], Command]:
    """The option that names what is to be written, a Path or None."""

    def convert(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Path | None:
        return None if value is None else parse_output(value)

    return click.option("-o", "--output", metavar="PATH", callback=convert, help=help_text)


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
        type=click.Choice(["coverage", "counts", "region", "full"]),
        default="counts",
        show_default=True,
        help="coverage: which blocks and edges ran. counts: how often each did. region: also in "
        "which order, but for what is busy.",
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
        "--port", type=click.IntRange(0, 65535), default=7777, show_default=True, help="The viewer's port; 0 for any."
    ),
    click.option("--host", default="127.0.0.1", show_default=True, help="The address that the viewer listens at."),
    click.option("--no-browser", is_flag=True, help="Open no browser; the address is printed all the same."),
)
