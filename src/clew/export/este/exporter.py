"""Export to Este's files: a set for each process that was recorded in mode full.

Runs in the controller. What is in memory grows with the code and the threads of a process, not with how long it ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TextIO

from clew.analysis.order.path_code import load_process_code
from clew.analysis.tables.split import iter_by_pid
from clew.errors import UsageError
from clew.export.este.code import EsteCode
from clew.export.este.config import EsteScope
from clew.export.este.images import ImageFiles, list_images
from clew.export.este.log import EsteLog
from clew.export.este.order import EsteThread, ThreadOrder
from clew.export.este.routines import Routines
from clew.export.este.rows import BlockRows, TraceRows
from clew.export.folder import Written
from clew.store.trace import Trace

__all__ = ["EsteExporter"]

PIECE_ROWS: Final = 1 << 17
"""Rows of the trace that are looked at together: many small processes are no reason to read them all for each."""

MAX_CHANGED: Final = 100
"""Addresses of code that changed that a log names."""


class EsteExporter:
    """Writes the blocks of some images and their order, and the routines that they call elsewhere."""

    name: Final = "este"
    suffix: Final = ".este"

    def __init__(self, scope: EsteScope | None = None, title: str = "") -> None:
        self._scope = scope or EsteScope()
        self._title = title

    def export_into(self, trace: Trace, folder: Path) -> Written:
        """Write files about each process of `trace` into `folder`. Raises UsageError for a trace without order,
        TraceDamagedError, and OSError."""

        if trace.mode != "full":
            raise UsageError(
                f"{trace.directory}: Este's files tell the order of blocks, which mode {trace.mode} does not record; "
                "record with --mode full"
            )
        files = ImageFiles()
        thread_map: dict[str, list[dict[str, int]]] = {}
        written = _Tally()
        for piece in iter_by_pid(trace, PIECE_ROWS):
            programs: dict[int, int] = {}
            processes = sorted(piece.processes.to_pylist(), key=lambda row: row["process_id"])
            for process in processes:
                number = programs[process["pid"]] = programs.get(process["pid"], 0) + 1
                # A process that executes another program goes on with the same number.
                key = str(process["pid"]) if number == 1 else f"{process['pid']}-{number}"
                export = _ProcessExport(piece, process, folder / f"pid{key}", self._scope, files)
                thread_map[key] = export.run(self._title, written)
        _write_json(folder / "pid_tid_map.json", thread_map)
        return Written(written.n_executions, "executions of blocks", list(written.iter_warnings()))


class _Tally:
    """What was written of all processes."""

    def __init__(self) -> None:
        self.n_executions = 0
        self.n_processes = 0
        self.n_without = 0
        """Processes none of whose images is whitelisted."""
        self.n_with_warnings = 0

    def iter_warnings(self) -> Iterator[str]:
        if self.n_without == self.n_processes:
            yield (
                "no image of the trace is on the whitelist, so nothing is told of; "
                "name one, with --whitelist or as binary-whitelist"
            )
        if self.n_with_warnings:
            yield f"there are warnings about {self.n_with_warnings} of {self.n_processes} processes in their .log files"


class _ProcessExport:
    """One process; `stem` is what the names of its files begin with."""

    def __init__(self, trace: Trace, process: dict[str, Any], stem: Path, scope: EsteScope, files: ImageFiles) -> None:

        self._trace, self._process, self._stem, self._scope = trace, process, stem, scope
        rows = [row for row in trace.images.to_pylist() if row["process_id"] == process["process_id"]]
        self._images = list_images(rows, process["executable"], scope, files)

    def run(self, title: str, tally: _Tally) -> list[dict[str, int]]:
        """Write the files; the threads that something is told of."""

        with self._open_text(".log") as file:
            log = EsteLog(file)
            log.tell_of_run(self._trace, self._process, self._scope, title)
            log.tell_of_images(self._images)
            _write_json(self._path(".este.json"), self._describe())
            threads = self._write_tables(log, tally)
            log.tell_of_end(self._process)
        tally.n_processes += 1
        tally.n_without += not (self._scope.has_dynamic or any(image.is_whitelisted for image in self._images))
        tally.n_with_warnings += log.n_warnings > 0
        return [{"pin_tid": thread.pin_tid, "os_tid": thread.os_tid} for thread in threads]

    def _describe(self) -> dict[str, Any]:
        return {
            "pid": self._process["pid"],
            "architecture": self._trace.architecture_of(self._process["process_id"]).este_name,
            "binaries_loaded": [image.to_json() for image in self._images],
        }

    def _write_tables(self, log: EsteLog, tally: _Tally) -> list[EsteThread]:

        process_id = self._process["process_id"]
        code = load_process_code(self._trace, process_id)
        este_code = EsteCode(self._trace, process_id, code, self._images, self._scope)
        threads = list_threads(self._trace, process_id)
        with (
            self._open_text(".rtn.csv") as routine_file,
            self._path(".bb.csv").open("wb") as block_file,
            self._path(".trace.csv").open("wb") as trace_file,
        ):
            routines = Routines(este_code, routine_file)
            blocks = BlockRows(este_code, block_file)
            rows = TraceRows(este_code, blocks, routines, trace_file)
            order = ThreadOrder(self._trace, code, threads)
            for run in order:
                if run.is_after_loss:
                    log.warn_of_loss(run.thread, f"{run.n_lost} executions of blocks in front of row {rows.n_rows}")
                rows.add(run)
        for thread in threads:
            graph = rows.graphs.get(thread.pin_tid)
            log.tell_of_thread(thread, 0 if graph is None else graph.n_executions)
            if order.n_unknown.get(thread.pin_tid):
                log.warn_of_loss(thread, f"its last {order.n_unknown[thread.pin_tid]} executions of blocks")
        for address in blocks.changed[:MAX_CHANGED]:
            log.warn(f"other code ran at {address:#x} later; the block there has the bytes of what ran first")
        if len(blocks.changed) > MAX_CHANGED:
            log.warn(f"the same of {len(blocks.changed) - MAX_CHANGED} more addresses")
        if rows.n_ambiguous:
            log.warn(
                f"{rows.n_ambiguous} calls: a signal came, or a fault, and it is not known which routine was meant"
            )
        told = [thread for thread in threads if thread.pin_tid in rows.graphs]
        for thread in told:
            path = Path(f"{self._stem}_tid{thread.os_tid}_ptid{thread.pin_tid}.json")
            graph = rows.graphs[thread.pin_tid]
            with path.open("w", encoding="utf-8") as file:
                _write_list(file, '{"nodes": [', graph.iter_nodes(blocks))
                _write_list(file, '], "links": [', graph.iter_links(routines))
                file.write("]}\n")
        log.tell(
            f"{len(blocks)} blocks, {len(routines)} routines, {rows.n_rows} rows of the trace, {len(told)} threads"
        )
        tally.n_executions += sum(graph.n_executions for graph in rows.graphs.values())
        return told

    def _path(self, suffix: str) -> Path:
        return Path(f"{self._stem}{suffix}")

    def _open_text(self, suffix: str) -> TextIO:
        return self._path(suffix).open("w", encoding="utf-8", errors="backslashreplace", newline="\n")


def list_threads(trace: Trace, process_id: int) -> list[EsteThread]:
    """The threads of a process, in the order in which they began."""
    paths = {(row["tid"], row["start_ns"]): row for row in trace.paths.to_pylist() if row["process_id"] == process_id}
    rows = [row for row in trace.threads.to_pylist() if row["process_id"] == process_id]
    rows.sort(key=lambda row: (row["start_ns"], row["tid"] != row["pid"], row["tid"]))
    return [
        EsteThread(pin_tid, row["tid"], row, paths.get((row["tid"], row["start_ns"])))
        for pin_tid, row in enumerate(rows)
    ]


def _write_json(path: Path, content: Any) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(content, file)
        file.write("\n")


def _write_list(file: TextIO, opening: str, items: Iterator[dict[str, Any]]) -> None:
    file.write(opening)
    for number, item in enumerate(items):
        file.write((", " if number else "") + json.dumps(item))
