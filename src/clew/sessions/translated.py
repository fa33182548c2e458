"""What of a session's processes is translated now, read out of what was recorded so far.

Runs in the controller, in whatever threads the caller has. Nothing is kept or read as long as nobody asks.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.errors import ControlError, OutputError
from clew.protocol._generated import FRAGMENT_RECORD, INVALIDATE_RECORD, RecordKind
from clew.recording.live.process import LiveProcess
from clew.recording.live.processes import LiveProcesses
from clew.store.names import JOURNAL_NAME

__all__ = ["TRANSLATED_BLOCK", "TranslatedCode"]

Array = npt.NDArray[Any]

TRANSLATED_BLOCK: Final = np.dtype([("address", "<u8"), ("size", "<u4"), ("n_instructions", "<u4")])
"""A block that is translated: where it begins, its bytes, and how many instructions they are."""

_DAMAGE: Final = (ValueError, IndexError, KeyError, OverflowError)


class TranslatedCode:
    """Of the session that is recorded in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._processes: LiveProcesses | None = None

    def read(self, pid: int) -> Array:
        """What is in use of process `pid`, of dtype TRANSLATED_BLOCK, by addresses; all that it told was recorded.

        Raises ControlError where there is no such process, OutputError.
        """
        with self._lock:
            processes = self._take_new()
            own = [one for one in processes if one.start is not None and one.start["pid"] == pid]
            if not own:
                raise ControlError(f"process {pid}: nothing is recorded of it")
            # A program that another executes is a process of its own here.
            return _find_in_use(own[-1].read_code_records())

    def close(self) -> None:
        """Let go of what was read."""
        with self._lock:
            if self._processes is not None:
                self._processes.close()

    def _take_new(self) -> list[LiveProcess]:
        """All processes, with what has come of them by now."""
        path = self._folder / JOURNAL_NAME
        try:
            if self._processes is None:
                self._processes = LiveProcesses(path)
            for _ in self._processes.iter_new():
                pass
        except _DAMAGE as error:
            raise ControlError(f"what was recorded is damaged: {error}") from error
        except OSError as error:
            raise OutputError.from_os_error(path, error) from error
        return list(self._processes.by_number.values())


def _find_in_use(records: Array) -> Array:
    """The fragments among records, shape (n, RECORD_BYTES), that did not go out of use; of one address the last."""
    kinds = records[:, :2].copy().view("<u2")[:, 0]
    fragments = records[kinds == RecordKind.FRAGMENT].reshape(-1).view(FRAGMENT_RECORD)
    gone = records[kinds == RecordKind.INVALIDATE].reshape(-1).view(INVALIDATE_RECORD)
    fragments = fragments[~np.isin(fragments["fragment_id"], gone["fragment_id"])]
    fragments = fragments[np.argsort(fragments["fragment_id"], kind="stable")]
    # The first of what is in reverse.
    _, first = np.unique(fragments["app_pc"][::-1], return_index=True)
    chosen = fragments[::-1][first]
    rows = np.zeros(len(chosen), TRANSLATED_BLOCK)
    rows["address"], rows["size"], rows["n_instructions"] = (
        chosen[name] for name in ("app_pc", "size_bytes", "n_instructions")
    )
    return rows
