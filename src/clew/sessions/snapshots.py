"""A trace of what a session has recorded so far, while it goes on.

Runs in the controller. The journal only grows, so a copy of it up to where it is now is the journal of a recording that
was cut off here; with the counters as they are now it is made whole as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import OutputError
from clew.recording.following.snapshot import Snapshots
from clew.recording.options.output import make_directory
from clew.recording.reading.recover import recover
from clew.store.names import JOURNAL_NAME

if TYPE_CHECKING:
    from clew.recording.control.commands import Control
    from clew.sessions.target import SessionTarget

__all__ = ["take_snapshot"]

PIECE_BYTES = 1 << 20


def take_snapshot(target: SessionTarget, recorded: Path, output: Path) -> None:
    """Write what was recorded in `recorded` so far as a trace into the new directory `output`. Raises ClewError."""
    make_directory(output)

    def steps(control: Control) -> Iterator[int]:
        control.processes.write_snapshot(Snapshots(output))
        yield (recorded / JOURNAL_NAME).stat().st_size

    try:
        left = target.run(steps)
        with (recorded / JOURNAL_NAME).open("rb") as source, (output / JOURNAL_NAME).open("wb") as copy:
            while left and (piece := source.read(min(left, PIECE_BYTES))):
                copy.write(piece)
                left -= len(piece)
    except OSError as error:
        raise OutputError.from_os_error(output, error) from error
    recover(output)
