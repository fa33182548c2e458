"""`clew export`: write a trace in another tool's format.

Runs in the controller.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from clew.cli.light_numpy import prepare_numpy
from clew.cli.options import output_option

if TYPE_CHECKING:
    from clew.export.formats import Exporter, FolderExporter
    from clew.store.trace import Trace

__all__ = ["command", "write_folder"]

_PAGE: Final = "html"


@click.command(name="export")
@click.option("--to", "format_name", required=True, metavar="FORMAT", help="The format: drcov, este, html.")
@output_option(
    "The file to write, - for stdout, or the folder; default NAME.drcov.log, NAME.este or NAME.html in the working "
    "directory, of NAME.clew."
)
@click.option("--force", is_flag=True, help="Replace files if they are there already.")
@click.option(
    "--whitelist",
    multiple=True,
    metavar="SUFFIX",
    help="este: tell of images whose paths end so, in whatever case; default the main executable.",
)
@click.option("--dynamic", is_flag=True, help="este: tell of code outside of all images, too.")
@click.option(
    "--limit",
    "limit_mb",
    type=click.IntRange(1, 1024),
    metavar="MB",
    help="html: how large the trace's part of the file may be; default 32.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.argument("trace_path", metavar="TRACE", type=click.Path(path_type=Path))
def command(
    trace_path: Path,
    format_name: str,
    output: Path | None,
    force: bool,
    whitelist: tuple[str, ...],
    dynamic: bool,
    limit_mb: int | None,
    quiet: bool,
) -> None:
    """Write TRACE in another tool's FORMAT.

    drcov is what coverage viewers such as Lighthouse load. este is a folder of the blocks of some images, in the order
    in which they ran, and of what they called elsewhere; TRACE is to be of mode full.
    html is the viewer with the trace in it, one file that a browser opens without a server. A file that is there
    already is left as it is.
    """
    prepare_numpy()
    from clew.cli.console import is_quiet, say
    from clew.errors import OutputError, OutputExistsError, UsageError
    from clew.export.este.config import EsteScope
    from clew.export.este.exporter import EsteExporter
    from clew.export.file import new_file
    from clew.export.formats import EXPORTERS, FOLDER_EXPORTERS
    from clew.store.trace import Trace

    folder_exporter = FOLDER_EXPORTERS.get(format_name)
    if whitelist or dynamic:
        if format_name != EsteExporter.name:
            raise UsageError(f"--whitelist and --dynamic are for --to {EsteExporter.name}")
        folder_exporter = EsteExporter(EsteScope(whitelist or None, dynamic))
    exporter = _make_page_exporter(limit_mb) if format_name == _PAGE else EXPORTERS.get(format_name)
    if limit_mb is not None and format_name != _PAGE:
        raise UsageError(f"--limit is for --to {_PAGE}")
    if exporter is None and folder_exporter is None:
        known = ", ".join([*EXPORTERS, *FOLDER_EXPORTERS, _PAGE])
        raise UsageError(f"no such format: {format_name!r}; there is {known}")
    trace = Trace(trace_path)
    if folder_exporter is not None:
        path = output or _default_output(trace_path, folder_exporter.suffix)
        write_folder(folder_exporter, trace, path, may_add=force, is_quiet=quiet or is_quiet())
        return
    assert exporter is not None
    if output is not None and str(output) == "-":
        exporter.export(trace, sys.stdout.buffer)
        return
    path = output or _default_output(trace_path, exporter.suffix)
    # A device or a pipe is there to be written to.
    if path.is_file() and not force:
        raise OutputExistsError(path, "choose another name with -o, or replace it with --force")
    try:
        with new_file(path) as file:
            n = exporter.export(trace, file)
    except OSError as error:
        raise OutputError.from_os_error(path, error) from error
    if not (quiet or is_quiet()):
        from clew.cli.tables import format_counted

        say(f"wrote {path}: {exporter.part}{format_counted(n, exporter.items)}")
        for note in exporter.notes:
            say(note)


def _make_page_exporter(limit_mb: int | None) -> Exporter:
    """It is made of the server's answers, and so is none of the exporters, which know no server."""
    from clew.server.page_file import DEFAULT_LIMIT_MB, PageExporter

    return PageExporter(limit_mb or DEFAULT_LIMIT_MB)


def write_folder(exporter: FolderExporter, trace: Trace, path: Path, *, may_add: bool, is_quiet: bool) -> None:
    """Write a trace into the folder `path`, and say so. Raises ClewError."""
    from clew.cli.console import say
    from clew.cli.tables import format_counted
    from clew.errors import OutputError, UsageError
    from clew.export.folder import new_folder

    if str(path) == "-":
        raise UsageError(f"{exporter.name} is a folder of files: name one with -o")
    try:
        with new_folder(path, may_add=may_add) as folder:
            written = exporter.export_into(trace, folder)
    except OSError as error:
        raise OutputError.from_os_error(path, error) from error
    if not is_quiet:
        for warning in written.warnings:
            say(warning)
        say(f"wrote {path}: {format_counted(written.count, written.things)}")


def _default_output(trace_path: Path, suffix: str) -> Path:
    return Path(trace_path.resolve().name.removesuffix(".clew") + suffix)
