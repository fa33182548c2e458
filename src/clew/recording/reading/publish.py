"""From a journal to the tables of its trace, also where the disk has no room for both.

Runs in the controller, when all that was followed has ended or was left. What can't be made a trace of is kept as a
journal, for `clew recover`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from clew.errors import OutputError
from clew.recording.journal.writer import JournalWriter
from clew.recording.reading.journal_reader import JournalReader

if TYPE_CHECKING:
    from clew.recording.raw.process import RawProcess

__all__ = ["explain_absence", "publish"]

MAX_WITHDRAWN_BYTES: Final = 512 << 20
"""How large a journal may be that is taken into memory to make room for the tables."""


def explain_absence(journal: JournalWriter) -> OutputError | None:
    """Why there can be no trace: the journal is not where it was made. None: it is there."""
    place, folder = journal.find(), journal.path.parent
    if place == journal.path:
        return None
    what = f"its {journal.path.name}" if os.path.isdir(folder) else "the folder"
    if place is None:
        return OutputError(folder, f"{what} was removed meanwhile; all that was recorded is lost")
    return OutputError(folder, f"{what} was moved meanwhile, to {place.parent}; no trace was made of it")


def publish(
    journal: JournalWriter,
    reader: JournalReader,
    write: Callable[[Iterable[RawProcess]], None],
    make_room: Callable[[], None],
) -> OutputError | None:
    """Call `write` with the processes of `journal`, which `reader` reads, and remove the journal.

    `make_room` removes what is of no use any more.

    `write` raises OutputError where it can't, and leaves nothing then. Why the journal is all that there is, or None.
    """
    failure = None
    try:
        write(reader)
    except OutputError as error:
        failure = error
    if failure is not None and failure.errno in (errno.ENOSPC, errno.EDQUOT):
        # The journal's room is worth more to the tables.
        make_room()
        failure = _publish_from_memory(journal, write, failure)
    if failure is None:
        journal.remove()
    return failure


def _publish_from_memory(
    journal: JournalWriter, write: Callable[[Iterable[RawProcess]], None], failure: OutputError
) -> OutputError | None:
    """Write without the journal on the disk, which is put back should that be of no use, either."""
    if journal.size_bytes > MAX_WITHDRAWN_BYTES:
        return failure
    content = journal.withdraw()
    is_written = False
    try:
        write(JournalReader(journal.path, journal.overflow, content=content))
        is_written = True
    except OutputError as error:
        return error
    finally:
        if not is_written:
            journal.restore(content)
    return None
