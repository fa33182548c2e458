"""`clew record`: run a program under the runtime and write its trace.

Runs in the controller. The target's standard streams, terminal and exit status pass through; what clew says goes to
stderr. What plain command lines ask for is read by `clew.cli.asked`, which does without this.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.asked import Asked
from clew.cli.console import is_quiet
from clew.cli.options import make_viewer, what_is_said, what_to_record, where_to_serve
from clew.cli.recording import record

if TYPE_CHECKING:
    from clew.recording.options.record_options import RecordResult

__all__ = ["command"]


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

    asked = Asked(
        words=words,
        output=output,
        mode=mode,
        budget=budget,
        busy_limit=busy_limit,
        include=include,
        exclude=exclude,
        no_follow=no_follow,
        on_full=on_full,
        pause=pause,
        stats=stats,
        quiet=quiet,
    )
    return record(asked, make_viewer(view, host, port, opens_browser=not no_browser), write_more)
