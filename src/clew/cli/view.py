"""`clew view`: look at traces in the browser.

Runs in the controller.
"""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.browser import open_browser
from clew.cli.console import say
from clew.cli.light_numpy import prepare_numpy
from clew.cli.options import where_to_serve
from clew.errors import TraceUnfinishedError, UsageError
from clew.store.names import RECORDED_NAME

__all__ = ["command"]


@click.command(name="view")
@where_to_serve
@click.option(
    "--events",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Events of probes (clew trace --format parquet) of the same run, in the timeline of TRACE.",
)
@click.argument("trace_paths", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(trace_paths: tuple[Path, ...], events: tuple[Path, ...], port: int, host: str, no_browser: bool) -> None:
    """Look at TRACEs in the browser: as a graph, as code, in time. A folder of events of probes is one, too.

    Serves them until Ctrl-C, or until the page stops it, at this machine alone unless --host says otherwise, to those
    who know the address that it prints: a secret is part of it.
    """
    prepare_numpy()
    from clew.server.listening import open_socket
    from clew.server.serve import serve

    if events and len(trace_paths) > 1:
        raise UsageError("--events is for one TRACE: say which by leaving out the others")
    if len(trace_paths) == 1 and not events and _is_recorded_beside(trace_paths[0]):
        trace_paths, events = (trace_paths[0] / RECORDED_NAME,), trace_paths
    listening = open_socket(host, port)

    def tell(url: str) -> None:
        click.echo(url)
        if not no_browser:
            open_browser(url)

    with listening:
        try:
            is_stopped_by_page = serve(trace_paths, listening, host, tell, events=events)
            # A signal that clew was started to ignore ends the server, and nothing else.
            say("stopped by the page" if is_stopped_by_page else "stopped")
        except TraceUnfinishedError as error:
            raise TraceUnfinishedError(error.path, _explain(error)) from error
        except KeyboardInterrupt:
            say("stopped")


def _is_recorded_beside(folder: Path) -> bool:
    """Whether a folder has events of probes, and a trace of what was followed from one of them on (--on ... record)."""
    from clew.analysis.probes.event_rows import is_event_folder

    return is_event_folder(folder) and (folder / RECORDED_NAME).is_dir()


def _explain(error: TraceUnfinishedError) -> str:
    """Why a trace can't be looked at yet, and what can be."""
    from clew.recording.journal.recorder import find_recorder, is_being_recorded

    if not is_being_recorded(error.path):
        return error.reason
    pid = find_recorder(error.path)
    by, status = (f" by process {pid}", f"; `clew control {pid} status` says how it stands") if pid else ("", "")
    return (
        f"is being recorded{by}: it can be looked at when that has ended{status}; to watch a program while it runs, "
        "start with `clew record --view` or `clew attach --view`"
    )
