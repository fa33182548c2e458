"""The command `clew`: finds the subcommand, prints errors as one line, gives the exit status.

Runs in the controller. A subcommand's module is imported only when it is used, since the start of `clew record` is
measured. Exit status: 2 for usage, 1 for failures, otherwise the subcommand's own.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import Final, NoReturn

import click

from clew import __version__
from clew.cli.console import say
from clew.errors import ClewError

__all__ = ["cli", "main", "run"]

SUBCOMMANDS: Final = {
    "record": "Run a program and record what really ran.",
    "info": "Show what is in a trace: totals, processes, losses.",
    "report": "Show the hottest functions, blocks, edges, lines, images or threads.",
    "verify": "Prove a trace well-formed.",
    "export": "Write a trace in another tool's format.",
    "doctor": "Check whether this machine can record, and say what to change.",
}
"""Names of the modules in clew.cli, each with a click command named `command`, and their one-line help."""

EXIT_STATUS_INTERRUPTED: Final = 130
EXIT_STATUS_BROKEN_PIPE: Final = 141


class SubcommandGroup(click.Group):
    """A group whose commands are modules, imported late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        command = importlib.import_module(f"clew.cli.{cmd_name}").command
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
        say("interrupted")
        return EXIT_STATUS_INTERRUPTED
    except BrokenPipeError:
        # Who read our output has gone, `head` for example. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_STATUS_BROKEN_PIPE
    except Exception as error:
        if os.environ.get("CLEW_DEBUG"):
            raise
        say(f"internal error: {type(error).__name__}: {error}; CLEW_DEBUG=1 shows where, please report it")
        return 1


def run() -> NoReturn:
    """Run the command line and end the process with its exit status.

    At once: Python would take apart numpy and pyarrow first, a tenth of what recording a short program costs.
    """
    status = main()
    for stream in (sys.stdout, sys.stderr):
        # One that was closed from the start is None; what can't be written any more was told by `main`.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    run()
