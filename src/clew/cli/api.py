"""`clew api -- COMMAND`: the system calls of a program; and `clew api check`, of descriptions.

Runs in the controller. `clew api check` exits with 0 if the files keep to the rules, with 1 if not; `clew api` as the
command does.
"""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.api_calls import command as trace_command

__all__ = ["command"]


class _ApiGroup(click.Group):
    """What is no subcommand's name begins a call of `trace`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["trace", *args]
        return super().parse_args(ctx, args)


@click.group(name="api", cls=_ApiGroup)
def command() -> None:
    """Show the system calls of a program, with arguments and results by their descriptions.

    `clew api [OPTIONS] -- COMMAND` is short for `clew api trace [OPTIONS] -- COMMAND`. Descriptions are JSON files that
    say what calls of functions and of the system look like; `--api-file` adds one's own.
    """


command.add_command(trace_command)


@command.command(name="check")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing if all is well.")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def check_command(paths: tuple[Path, ...], quiet: bool) -> int:
    """Tell what is wrong in each FILE, with the place in it: `file: SystemCalls[3].Name: reason`.

    A FILE may name the flag tables of clew's own and of those in front of it.
    """
    from clew.api.reading import check
    from clew.cli.console import escape_control, is_quiet

    n_problems = 0
    for index, path in enumerate(paths):
        problems = check(path, paths[:index])
        n_problems += len(problems)
        for problem in problems:
            click.echo(escape_control(str(problem)))
        if not problems and not quiet and not is_quiet():
            click.echo(f"{escape_control(str(path))}: nothing wrong")
    return 1 if n_problems else 0
