"""Where events of probes go on the command line: `--format` and `-o`.

Runs in the controller.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol

from clew.errors import UsageError
from clew.export.probes.ctf import CtfTrace, process_folder, user_folder
from clew.export.probes.event_types import EventBatch
from clew.export.probes.identity import Clock, Host, ProcessIdentity
from clew.export.probes.json_lines import JsonLinesWriter
from clew.export.probes.perfetto import PerfettoWriter
from clew.export.probes.text import TextWriter

__all__ = ["FORMATS", "EventWriter", "SessionOutput", "name_output", "open_writer"]

FORMATS: Final = ("text", "json", "ctf", "perfetto")
_SUFFIXES: Final = {"text": ".txt", "json": ".json", "ctf": "", "perfetto": ".perfetto-trace"}


class EventWriter(Protocol):
    """What events are written with."""

    def write(self, batch: EventBatch) -> None:
        """Write events. Raises OSError."""

    def close(self) -> None:
        """Write what is left. Raises OSError."""


@contextmanager
def open_writer(
    form: str, output: Path | None, processes: dict[int, bytes], process: ProcessIdentity
) -> Iterator[EventWriter]:
    """A writer of that format, to `output` or to standard output. `processes` are names by
    number; `process` is whose trace it is."""
    if form == "ctf":
        if output is None:
            raise UsageError("--format ctf writes a folder: say which with -o DIR")
        trace = CtfTrace(process_folder(output, process), process, _host(), "clew", time.time_ns())
        yield trace
        trace.close()
        return
    if form == "perfetto":
        if output is None:
            raise UsageError("--format perfetto writes a file: say which with -o FILE")
        with open(output, "wb") as file:
            perfetto = PerfettoWriter(file, processes)
            yield perfetto
            perfetto.close()
        return
    text = sys.stdout if output is None else open(output, "w", encoding="utf-8")  # noqa: SIM115
    try:
        writer = TextWriter(text, _host(), processes) if form == "text" else JsonLinesWriter(text)
        yield writer
        writer.close()
    finally:
        if text is not sys.stdout:
            text.close()


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
            self._writer = self._trace = CtfTrace(folder, uid, _host(), name, time.time_ns())
        elif form == "perfetto":
            file = open(output, "xb")  # noqa: SIM115
            self._file, self._writer = file, PerfettoWriter(file, processes)
        else:
            text = open(output, "x", encoding="utf-8")  # noqa: SIM115
            self._file = text
            self._writer = TextWriter(text, _host(), processes) if form == "text" else JsonLinesWriter(text)

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


def _host() -> Host:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Host(socket.gethostname(), Clock(boot, time.time_ns() - time.monotonic_ns()))
