"""`clew diff`: what differs between two traces.

Runs in the controller. Two runs are seldom the same, so that differences are no failure: the exit status is 0 unless
--exit-code asks for more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from clew.cli.light_numpy import prepare_numpy

__all__ = ["command"]

EXIT_STATUS_DIFFERENT: Final = 3
"""With --exit-code. 1 and 2 are those of failures and of usage."""

_SUBJECTS = ["function", "block", "edge"]


@click.command(name="diff")
@click.option("--by", type=click.Choice(_SUBJECTS), default="function", show_default=True, help="What to list.")
@click.option(
    "-n", "n_rows", type=click.IntRange(1), default=None, metavar="N", help="How many rows; default 20, of blocks 10."
)
@click.option("--merge", is_flag=True, help="Compare files whatever process ran them, added up over processes.")
@click.option(
    "--partings",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="N",
    help="Of the order, tell so many partings of each thread; with 0 it is not looked at.",
)
@click.option(
    "--from", "start", metavar="PLACE",
    help="Compare the order from [IMAGE!]SYMBOL[:N] or IMAGE+0xOFFSET[:N] on, at execution N of it; 0 is each thread's "
    "beginning. Default main, or where the program's file is entered.",
)  # fmt: skip
@click.option(
    "--only",
    metavar="IMAGE",
    help="Compare the order of code in images of this name, a glob. Default all but the C library.",
)
@click.option("--exit-code", is_flag=True, help="Exit with 3 if they differ.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.argument("path_a", metavar="A", type=click.Path(path_type=Path))
@click.argument("path_b", metavar="B", type=click.Path(path_type=Path))
def command(
    path_a: Path,
    path_b: Path,
    by: str,
    n_rows: int | None,
    merge: bool,
    partings: int,
    start: str | None,
    only: str | None,
    exit_code: bool,
    as_json: bool,
) -> int:
    """Compare the traces A and B: code that only one of them ran, and what did not run as often in both. If both are of
    mode full, also where their threads part, and where they meet again.

    Code is the same if it lies at the same offset of the same image, wherever that was loaded. Processes are compared
    with those that executed the same, in their order. Of a trace of mode coverage only which code ran is compared.

    The exit status is 0, whether they differ or not; with --exit-code it is 3 where they do, or where something ran
    that can't be compared. As ever it is 1 if a trace can't be read, and 2 if there is none.
    """
    prepare_numpy()
    from clew.analysis.comparison.trace_diff import TraceDiff

    diff = TraceDiff(path_a, path_b, merge=merge)
    content = diff.to_dict(by, n_rows or (10 if by == "block" else 20), partings, start=start, only=only)
    if as_json:
        click.echo(json.dumps(content, indent=1))
    else:
        from clew.cli.diff_text import print_diff

        print_diff(content)
    return EXIT_STATUS_DIFFERENT if exit_code and not content["equal"] else 0
