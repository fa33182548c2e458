"""`clew export`: write a trace in another tool's format.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from clew.cli.options import output_option

__all__ = ["command"]


@click.command(name="export")
@click.option("--to", "format_name", required=True, metavar="FORMAT", help="The format: drcov.")
@output_option("The file to write, - for stdout; default NAME.drcov.log in the working directory, of NAME.clew.")
@click.option("--force", is_flag=True, help="Replace the file if it is there already.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(trace_path: Path, format_name: str, output: Path | None, force: bool, quiet: bool) -> None:
    """Write TRACE in another tool's FORMAT.

    drcov is what coverage viewers such as Lighthouse load. A file that is there already is left as it is.
    """
    from clew.cli.console import is_quiet, say
    from clew.errors import OutputError, OutputExistsError, UsageError
    from clew.export.formats import EXPORTERS
    from clew.store.trace import Trace

    exporter = EXPORTERS.get(format_name)
    if exporter is None:
        raise UsageError(f"no such format: {format_name!r}; there is {', '.join(EXPORTERS)}")
    trace = Trace(trace_path)
    if output is not None and str(output) == "-":
        exporter.export(trace, sys.stdout.buffer)
        return
    path = output or Path(trace_path.resolve().name.removesuffix(".clew") + exporter.suffix)
    # A device or a pipe is there to be written to.
    if path.is_file() and not force:
        raise OutputExistsError(path, "choose another name with -o, or replace it with --force")
    try:
        with _open_output(path) as file:
            n = exporter.export(trace, file)
    except OSError as error:
        raise OutputError.from_os_error(path, error) from error
    if not (quiet or is_quiet()):
        from clew.cli.tables import format_counted

        say(f"wrote {path}: {format_counted(n, 'blocks')}")


@contextlib.contextmanager
def _open_output(path: Path) -> Iterator[BinaryIO]:
    """A file to write that becomes `path` when all of it is there. Raises OSError."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        # A device or a pipe: a rename would put a file in its place.
        with path.open("wb") as file:
            yield file
        return
    # What a link leads to is replaced, not the link.
    whole = path.resolve()
    unfinished = whole.with_name(f".{whole.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
        os.replace(unfinished, whole)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
