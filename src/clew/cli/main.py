"""The command `clew`: finds the subcommand, prints errors as one line, gives the exit status.

Runs in the controller. A subcommand's module is imported only when it is used, since the start of `clew record` is
measured. Exit status: 2 for usage, 1 for failures, otherwise the subcommand's own.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import Final

import click

from clew import __version__
from clew.cli.console import say
from clew.errors import ClewError

__all__ = ["cli", "main"]

SUBCOMMANDS: Final = {
    "record": "Run a program and record what really ran.",
    "attach": "Record a process that runs already, and leave it as it was.",
    "info": "Show what is in a trace: totals, processes, losses.",
    "report": "Show the hottest functions, blocks, edges, lines, images or threads.",
    "control": "Tell a running recording to hold, step, leave or end a process, or to record something else.",
    "view": "Look at traces in the browser: as a graph, as code, in time.",
    "dump": "Show in which order a thread executed its blocks.",
    "diff": "Compare two traces: what ran in one only, what not as often, where they part.",
    "compact": "Make the trace of an ordered recording small.",
    "recover": "Finish the trace of a recording that was cut off.",
    "verify": "Prove a trace well-formed.",
    "export": "Write a trace in another tool's format.",
    "doctor": "Check whether this machine can record, and say what to change.",
}
"""Names of the modules in clew.cli, each with a click command named `command`, and their one-line help."""

HIDDEN: Final = {"live-viewer": "live_viewer"}
"""Names of subcommands that clew itself starts, and their modules."""

EXIT_STATUS_INTERRUPTED: Final = 130
EXIT_STATUS_BROKEN_PIPE: Final = 141

_OUTPUT_ERRORS: Final = (errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


class SubcommandGroup(click.Group):
    """A group whose commands are modules, imported late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS and cmd_name not in HIDDEN:
            return None
        command = importlib.import_module(f"clew.cli.{HIDDEN.get(cmd_name, cmd_name)}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))


def _print_version(context: click.Context, _parameter: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        click.echo(f"clew {__version__}")
        context.exit()


@click.group(cls=SubcommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show the version."
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
def cli(quiet: bool) -> None:
    """Follow every thread of a native Linux program and record what really ran: every block, edge and call, exactly."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; the exit status."""
    if sys.stdout is None:
        # It was closed from the start. What is written to this fails as it would there.
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
    try:
        # Not `cli.main`: it has a way of its own with interrupts and broken pipes.
        context = cli.make_context("clew", list(sys.argv[1:] if arguments is None else arguments))
        with context:
            result = cli.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as request:
        return request.exit_code
    except ClewError as error:
        say(error.message)
        return error.exit_status
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        way_out = "" if where is None else f"; see `{where.command_path} --help`"
        say(error.format_message().rstrip(".") + way_out)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _end_interrupted()
    except BrokenPipeError:
        # Who read our output has gone, `head` for example.
        _drop_output()
        return EXIT_STATUS_BROKEN_PIPE
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OUTPUT_ERRORS and error.filename is None:
            _drop_output()
            say(f"standard output can't be written: {error.strerror}")
            return 1
        if isinstance(error.__cause__, KeyboardInterrupt):
            # Python makes another error of it while a class is made, in the middle of an import.
            return _end_interrupted()
        if os.environ.get("CLEW_DEBUG"):
            raise
        say(f"internal error: {type(error).__name__}: {error}; CLEW_DEBUG=1 shows where, please report it")
        return 1


def _end_interrupted() -> int:
    # Objects that were cut off half made complain when they are dropped.
    sys.unraisablehook = lambda _: None
    say("interrupted")
    return EXIT_STATUS_INTERRUPTED


def _drop_output() -> None:
    """Forget what could not be written to stdout: Python would complain once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
