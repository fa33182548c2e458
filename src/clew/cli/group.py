"""The command line as click has it: subcommands, their options, their help.

Runs in the controller. A subcommand's module is imported only when it is used.
"""

from __future__ import annotations

import importlib
import sys
from typing import Final

import click

from clew.cli.console import say
from clew.version import __version__

__all__ = ["SUBCOMMANDS", "invoke"]

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
    "trace": "Show each time that a program comes to places of its code, natively but for that.",
    "probe": "Probes in programs that execute their own code: events, trees of calls, what is where.",
    "enable-event": "Have events of a place in a session that goes on in the background.",
    "add-context": "Have events of a session take more.",
    "disable-event": "Have events of a session nowhere, until they are enabled again.",
    "start": "Put the probes of a session into its processes, and write their events.",
    "stop": "Take the probes of a session out of its processes.",
    "list": "Show sessions of probes: their processes, their events.",
    "destroy": "End a session of probes.",
    "api": "Show the system calls of a program, with their arguments and results.",
    "doctor": "Check whether this machine can record, and say what to change.",
}
"""Names of the modules in clew.cli (with `_` for `-`), each with a click command named `command`, and their one-line
help."""

HIDDEN: Final = ("live-viewer", "probe-controller")
"""Names of subcommands that clew itself starts."""


class SubcommandGroup(click.Group):
    """A group whose commands are modules, imported late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS and cmd_name not in HIDDEN:
            return None
        command = importlib.import_module(f"clew.cli.{cmd_name.replace('-', '_')}").command
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


def invoke(arguments: list[str]) -> int:
    """Do what the command line says; the exit status. What the subcommand raises goes through."""
    try:
        # Not `cli.main`: it has a way of its own with interrupts and broken pipes.
        context = cli.make_context("clew", arguments)
        with context:
            result = cli.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        way_out = "" if where is None else f"; see `{where.command_path} --help`"
        say(error.format_message().rstrip(".") + way_out)
        return error.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
