"""Where events of probes go on the command line: `--format` and `-o`.

Runs in the controller. What clew says goes to stderr.
"""

from __future__ import annotations

import contextlib
import io
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from clew.cli.console import say
from clew.errors import OutputError, OutputExistsError, UsageError
from clew.export.file import new_file
from clew.export.folder import new_folder
from clew.export.probes.address_names import NameAddress
from clew.export.probes.collapsed import CollapsedStacks
from clew.export.probes.ctf import CtfTrace, process_folder
from clew.export.probes.event_types import EventBatch
from clew.export.probes.events_table import EventTables
from clew.export.probes.identity import Clock, Host, ProcessIdentity
from clew.export.probes.json_lines import JsonLinesWriter
from clew.export.probes.perfetto import PerfettoWriter
from clew.export.probes.text import TextWriter

__all__ = [
    "COLLAPSED",
    "FORMATS",
    "EventOutput",
    "EventWriter",
    "choose_format",
    "open_output",
    "open_text",
    "this_host",
]

COLLAPSED: Final = "collapsed"
FORMATS: Final = ("text", "json", "ctf", "perfetto", COLLAPSED, "parquet")
_FOLDERS: Final = ("ctf", "parquet")


class EventWriter(Protocol):
    """What events are written with."""

    def write(self, batch: EventBatch) -> None:
        """Write events. Raises OSError."""

    def close(self) -> None:
        """Write what is left. Raises OSError."""


def choose_format(form: str | None, output: Path | None) -> str:
    """The format that is meant. Raises UsageError where it is none, or where it needs to be told where to."""
    if form is None:
        return "ctf" if output is not None and not output.suffix else "text"
    if form not in FORMATS:
        raise UsageError(f"--format {form}: it is one of {', '.join(FORMATS)}")
    if output is None and form in (*_FOLDERS, "perfetto"):
        what = "folder: say which with -o DIR" if form in _FOLDERS else "file: say which with -o FILE"
        raise UsageError(f"--format {form} writes a {what}")
    return form


class EventOutput:
    """Takes events in a format. What is written into is there from the start; whose events they are is told later."""

    def __init__(self, form: str, output: Path | None, place: Any) -> None:
        """`place`: a file that is open, or a folder that is there."""
        self._form, self._output, self._place = form, output, place
        self._writer: EventWriter | None = None

    def begin(
        self,
        process: ProcessIdentity,
        processes: dict[int, bytes],
        name_of: Callable[[int, int], str],
        place_of: NameAddress,
    ) -> None:
        """Events of `process` and its descendants are to come. `processes` are names by number, which may be added to;
        `name_of` names the function at an address of a process, `place_of` the place in it. Raises OutputError."""
        place = self._place
        with _telling(self._output):
            match self._form:
                case "ctf":
                    folder = process_folder(place, process)
                    self._writer = CtfTrace(folder, process, this_host(), "clew", time.time_ns())
                case "perfetto":
                    self._writer = PerfettoWriter(place, processes)
                case "parquet":
                    self._writer = _Tables(place, place_of)
                case "collapsed":
                    self._writer = _Stacks(place, name_of)
                case "json":
                    self._writer = JsonLinesWriter(place)
                case _:
                    self._writer = TextWriter(place, this_host(), processes)

    def write(self, batch: EventBatch) -> None:
        """Write events. Raises OutputError."""
        assert self._writer is not None
        with _telling(self._output):
            self._writer.write(batch)

    def close(self) -> None:
        """Write what is left, if there was anybody's. Raises OutputError."""
        if self._writer is not None:
            with _telling(self._output):
                self._writer.close()


@contextmanager
def open_output(form: str, output: Path | None) -> Iterator[EventOutput]:
    """Where events go in that format: to `output`, or to standard output. Raises OutputError, UsageError."""
    with contextlib.ExitStack() as stack:
        with _telling(output):
            place = stack.enter_context(_open_place(form, output))
        made = EventOutput(form, output, place)
        yield made
        made.close()
        with _telling(output):
            # A file's last bytes may be written only now; a folder gets its name.
            stack.close()


@contextmanager
def open_text(output: Path | None) -> Iterator[Callable[[Iterable[str]], None]]:
    """Something that writes lines: to `output`, which is there when all of them are, or to standard output."""

    def write(lines: Iterable[str]) -> None:
        with _telling(output):
            file.writelines(line + "\n" for line in lines)

    with contextlib.ExitStack() as stack:
        with _telling(output):
            file = sys.stdout if output is None else stack.enter_context(_whole_text(output))
        yield write
        with _telling(output):
            stack.close()


@contextmanager
def _whole_text(path: Path) -> Iterator[TextIO]:
    with new_file(path) as binary:
        text = io.TextIOWrapper(binary, "utf-8")
        yield text
        text.detach()


@contextmanager
def _telling(output: Path | None) -> Iterator[None]:
    """Failures to write are told of the file that was asked for."""
    try:
        yield
    except OSError as error:
        if output is None:
            raise
        raise OutputError.from_os_error(output, error) from error


@contextmanager
def _open_place(form: str, output: Path | None) -> Iterator[Any]:
    if output is None:
        yield sys.stdout
    elif form == "ctf":
        output.mkdir(parents=True, exist_ok=True)
        yield output
    elif form == "parquet":
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise OutputExistsError(output)
        with new_folder(output, may_add=False) as folder:
            yield folder
    elif form == COLLAPSED:
        with _whole_text(output) as whole:
            yield whole
    elif form == "perfetto":
        with open(output, "wb") as binary:
            yield binary
    else:
        with open(output, "w", encoding="utf-8") as text:
            yield text


class _Stacks:
    """Collapsed stacks, which are written when all of them are known."""

    def __init__(self, file: TextIO, name_of: Callable[[int, int], str]) -> None:
        self._stacks, self._file, self._n_lost = CollapsedStacks(name_of), file, 0

    def write(self, batch: EventBatch) -> None:
        self._stacks.write(batch)
        self._n_lost += sum(one.count for one in batch.losses)

    def close(self) -> None:
        self._stacks.write_lines(self._file)
        if self._stacks.n_missing:
            say(f"{self._stacks.n_missing} events are not counted: their backtrace could not be had")
        if self._n_lost:
            say(f"{self._n_lost} events were lost, and are not counted")


class _Tables:
    """Tables, and what is not in all of them."""

    def __init__(self, folder: Path, place_of: NameAddress) -> None:
        self._tables = EventTables(folder, name_of=place_of)

    def write(self, batch: EventBatch) -> None:
        self._tables.write(batch)

    def close(self) -> None:
        self._tables.close()
        if self._tables.n_without_file:
            say(f"{self._tables.n_without_file} events are in events.parquet alone: their types are too many")


def this_host() -> Host:
    """This machine, by whose clock events are."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Host(socket.gethostname(), Clock(boot, time.time_ns() - time.monotonic_ns()))
