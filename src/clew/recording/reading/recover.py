"""A trace out of what a recording left that was cut off.

Runs in the controller, when the one that recorded is gone.
"""

from __future__ import annotations

import fcntl
from functools import partial
from pathlib import Path
from typing import Any

from clew.dataclass import replace
from clew.errors import NotATraceError, OutputError, TraceDamagedError, TraceUnfinishedError
from clew.protocol._constants import Mode
from clew.recording.assembly.memory import reuse_memory
from clew.recording.following.snapshot import SNAPSHOT_NAME, Snapshots
from clew.recording.raw.process import RawProcess, SessionInfo
from clew.store.names import JOURNAL_NAME, MANIFEST_NAME

__all__ = ["recover"]


def recover(directory: Path) -> bool:
    """Make the trace in `directory` whole, up to the last that was written; False if it is whole already.

    Raises TraceError if there is nothing to make it of or if it is still being recorded, OutputError if it can't be
    written.
    """
    reuse_memory()
    from clew.recording.assembly.trace import assemble
    from clew.recording.reading.journal_reader import JournalReader, read_session

    if (directory / MANIFEST_NAME).is_file():
        return False
    path = directory / JOURNAL_NAME
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            snapshot = directory / SNAPSHOT_NAME
            written_ns = [one.stat().st_mtime_ns for one in (path, snapshot) if one.exists()]
            session = _describe(path, read_session(path), max(written_ns))
            processes = JournalReader(path, snapshot=snapshot)
            assemble(map(partial(_end_when, session.end_ns), processes), directory, session)
    except BlockingIOError as error:
        raise TraceUnfinishedError(
            directory, "is being recorded; end that `clew record` or `clew attach` first"
        ) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotATraceError(directory, "nothing of a recording is there") from error
    except OSError as error:
        raise OutputError.from_os_error(directory, error) from error
    path.unlink(missing_ok=True)
    Snapshots(directory).remove()
    return True


def _end_when(end_ns: int, process: RawProcess) -> RawProcess:
    """`process`, which lasted until `end_ns` if it is not known how it ended."""
    if process.exit_code is None and process.signal is None:
        return replace(process, end_ns=max(process.end_ns, end_ns))
    return process


def _describe(path: Path, described: dict[str, Any], end_ns: int) -> SessionInfo:
    try:
        return SessionInfo(
            command=[str(word) for word in described["command"]],
            mode=Mode(described["mode"]),
            include=[str(text) for text in described["include"]],
            exclude=[str(text) for text in described["exclude"]],
            start_ns=int(described["start_ns"]),
            end_ns=max(end_ns, int(described["start_ns"])),
            clew_version=str(described["clew_version"]),
            machine=dict(described["machine"]),
            target_cpu_seconds=0.0,
            controller_cpu_seconds=0.0,
            warnings=[],
            follow=bool(described.get("follow", True)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TraceDamagedError(path, f"the journal's beginning says nonsense ({error})") from error
