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
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from clew.cli.options import output_option

if TYPE_CHECKING:
    from clew.export.formats import Exporter

__all__ = ["command"]

_PAGE: Final = "html"


@click.command(name="export")
@click.option("--to", "format_name", required=True, metavar="FORMAT", help="The format: drcov, html.")
@output_option(
    "The file to write, - for stdout; default NAME.drcov.log or NAME.html in the working directory, of NAME.clew."
)
@click.option(
    "--limit",
    "limit_mb",
    type=click.IntRange(1, 1024),
    metavar="MB",
    help="html: how large the trace's part of the file may be; default 32.",
)
@click.option("--force", is_flag=True, help="Replace the file if it is there already.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(
    trace_path: Path, format_name: str, output: Path | None, limit_mb: int | None, force: bool, quiet: bool
) -> None:
    """Write TRACE in another tool's FORMAT.

    drcov is what coverage viewers such as Lighthouse load; html is the viewer with the trace in it, one file that a
    browser opens without a server. A file that is there already is left as it is.
    """
    from clew.cli.console import is_quiet, say
    from clew.errors import OutputError, OutputExistsError
    from clew.store.trace import Trace

    exporter = _find_exporter(format_name, limit_mb)
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

        say(f"wrote {path}: {format_counted(n, exporter.items)}")
        for note in exporter.notes:
            say(note)


def _find_exporter(name: str, limit_mb: int | None) -> Exporter:
    """The exporter of a format. Raises UsageError if there is none such."""
    from clew.errors import UsageError
    from clew.export.formats import EXPORTERS

    if name == _PAGE:
        # It is made of the server's answers, and so is none of the exporters, which know no server.
        from clew.server.page_file import DEFAULT_LIMIT_MB, PageExporter

        return PageExporter(limit_mb or DEFAULT_LIMIT_MB)
    if limit_mb is not None:
        raise UsageError("--limit is for --to html")
    exporter = EXPORTERS.get(name)
    if exporter is None:
        raise UsageError(f"no such format: {name!r}; there is {', '.join([*EXPORTERS, _PAGE])}")
    return exporter


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
