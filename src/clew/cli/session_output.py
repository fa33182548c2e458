"""Where the events of a session in the background go.

Runs in the controller.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO, Any, Final

from clew.cli.probe_output import EventWriter, this_host
from clew.export.probes.ctf import CtfTrace, user_folder
from clew.export.probes.event_types import EventBatch
from clew.export.probes.json_lines import JsonLinesWriter
from clew.export.probes.perfetto import PerfettoWriter
from clew.export.probes.text import TextWriter

__all__ = ["SessionOutput", "name_output"]

_SUFFIXES: Final = {"text": ".txt", "json": ".json", "ctf": "", "perfetto": ".perfetto-trace"}


def name_output(form: str, name: str) -> Path:
    """Where a session's events go that nobody named a place for."""
    return Path(time.strftime(f"{name}-%Y%m%d-%H%M%S") + _SUFFIXES[form])


class SessionOutput:
    """Where the events of the session `name` go, of several processes of this user; what is there already is not
    written over. Raises OSError."""

    def __init__(self, form: str, output: Path, name: str) -> None:
        # Processes are called as their threads are.
        processes: dict[int, bytes] = {}
        self._trace: CtfTrace | None = None
        self._file: IO[Any] | None = None
        self._writer: EventWriter
        if form == "ctf":
            folder, uid = user_folder(output, os.geteuid()), os.geteuid()
            self._writer = self._trace = CtfTrace(folder, uid, this_host(), name, time.time_ns())
        elif form == "perfetto":
            file = open(output, "xb")  # noqa: SIM115
            self._file, self._writer = file, PerfettoWriter(file, processes)
        else:
            text = open(output, "x", encoding="utf-8")  # noqa: SIM115
            self._file = text
            self._writer = TextWriter(text, this_host(), processes) if form == "text" else JsonLinesWriter(text)

    def write(self, batch: EventBatch) -> None:
        """Write events. Raises OSError."""
        self._writer.write(batch)

    def flush(self) -> None:
        """Have all of them be there for who reads. Raises OSError."""
        if self._trace is not None:
            self._trace.flush()
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Write what is left. Raises OSError."""
        self._writer.close()
        if self._file is not None:
            self._file.close()
