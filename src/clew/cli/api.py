"""`clew api`: descriptions of functions and system calls.

Runs in the controller. `clew api check` exits with 0 if the files keep to the rules, with 1 if not.
"""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.group(name="api")
def command() -> None:
    """Work with descriptions: the JSON files that say what calls of functions and of the system look like."""


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
