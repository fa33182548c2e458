"""Re-codes the paths of a trace: `clew compact`.

Each path's file gets a new one beside it, of another name. Once these are on the disk, the table `paths` is replaced by
one that names them, by a rename, and what nothing names any more is removed. So the trace is whole at each moment:
before the rename it is the old one, behind it the new one.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from clew.analysis.order.compact_path import is_same_path, write_compact
from clew.analysis.order.ordered import Stretches
from clew.analysis.order.path_code import ProcessCode, load_process_code
from clew.errors import OutputError, TraceDamagedError, UsageError
from clew.store.names import MANIFEST_NAME
from clew.store.path_file import PathFile
from clew.store.path_frames import FOLDER_NAME
from clew.store.schema import SCHEMAS
from clew.store.short_paths import split_name
from clew.store.trace import Trace
from clew.store.writer import publish, save_names, write_part

__all__ = ["CompactPaths", "compact_trace"]

WAITING_BYTES: Final = 256 << 20
"""Once new files take the place of so many bytes, they are taken into use: the disk has to hold both until then."""

_NAME: Final = re.compile(r"(paths/\d+-\d+)(-compact)?\.path")

_SHORT_NAME: Final = re.compile(r"paths/\d+\.paths#\d+")
"""Of a path that shares a file with others: there is nothing to gain."""

Tell = Callable[[int, int], None]


@dataclass
class CompactPaths:
    """What became of the paths of a trace, in all: bytes that they took and take, instructions that they tell of.

    `n_compact` were re-coded; `n_before` had been; `n_kept` are as they were: nothing to gain, too short, or damaged.
    """

    instructions: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    n_compact: int = 0
    n_before: int = 0
    n_kept: int = 0


def compact_trace(
    directory: Path, output: Path | None = None, *, is_checked: bool = True, tell: Tell = lambda done, all_of_it: None
) -> CompactPaths:
    """Re-code the paths of the trace in `directory`; with `output`, an empty directory, of a copy that is made there.

    `is_checked`: what was written is read again, and compared, before it is used. `tell` hears of executions of blocks:
    how many are done, of how many. Raises UsageError if the trace has another mode, TraceError, or OutputError.
    """
    trace = Trace(directory)
    if trace.mode != "full":
        raise UsageError(f"{directory}: only traces of mode full can be compacted, and this one has mode {trace.mode}")
    target = directory if output is None else output
    try:
        with _locked(directory, is_written=output is None):
            return _Compaction(trace, target, tell, is_checked=is_checked).run()
    except OSError as error:
        raise OutputError.from_os_error(target, error) from error


@contextmanager
def _locked(directory: Path, *, is_written: bool) -> Iterator[None]:
    """Nobody else compacts the trace meanwhile."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if is_written else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise OutputError(directory, "another `clew compact` is at work on it; wait for it to end") from error
    finally:
        os.close(fd)


class _Compaction:
    def __init__(self, trace: Trace, target: Path, tell: Tell, *, is_checked: bool) -> None:
        self._trace = trace
        self._target = target
        self._is_copy = target != trace.directory
        self._is_checked = is_checked
        self._tell = tell
        self._rows: list[dict[str, Any]] = trace.paths.to_pylist()
        self._all_executions = sum(row["block_executions"] for row in self._rows)
        self._done_executions = 0
        self._result = CompactPaths()
        self._code: tuple[int, ProcessCode] | None = None
        self._stored: dict[str, tuple[str, int]] = {}
        """By file, the one in its place, and its size: what the table is to say."""
        self._waiting_bytes = 0

    def run(self) -> CompactPaths:
        for row in self._rows:
            if _NAME.fullmatch(row["file"]) is None and _SHORT_NAME.fullmatch(row["file"]) is None:
                raise TraceDamagedError(self._trace.directory, f"{row['file']!r} is no name of a path's file")
        if self._is_copy:
            self._copy_tables()
        else:
            self._sweep()
        try:
            for row in self._rows:
                self._compact(row)
                if self._waiting_bytes >= WAITING_BYTES:
                    self._take_into_use()
            self._take_into_use()
        finally:
            if not self._is_copy:
                self._sweep()
        if self._is_copy:
            with publish(self._target / MANIFEST_NAME, is_safe=True) as file:
                file.write((self._trace.directory / MANIFEST_NAME).read_bytes())
        return self._result

    def _copy_tables(self) -> None:
        for table in SCHEMAS:
            for part in self._trace.manifest.tables[table]["parts"]:
                path = self._target / part
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self._trace.directory / part, path)

    def _compact(self, row: dict[str, Any]) -> None:
        name = row["file"]
        if name in self._stored:
            return
        if _SHORT_NAME.fullmatch(name) is not None:
            self._keep_short(row)
            return
        source = self._trace.directory / name
        made = self._write(row, source)
        n_before = source.stat().st_size if source.is_file() else 0
        if made is None and self._is_copy and source.is_file():
            (self._target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, self._target / name)
        new_name, size = made if made is not None else (name, n_before)
        self._stored[name] = (new_name, size)
        if made is not None:
            self._waiting_bytes += n_before
        self._result.instructions += row["instructions"]
        self._result.bytes_before += n_before
        self._result.bytes_after += size

    def _keep_short(self, row: dict[str, Any]) -> None:
        """Leave a path as it is, with the file that it shares with others."""
        name, stored_bytes = split_name(row["file"])[0], row["stored_bytes"]
        source, target = self._trace.directory / name, self._target / name
        if self._is_copy and source.is_file() and not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        self._done_executions += row["block_executions"]
        self._result.instructions += row["instructions"]
        self._result.bytes_before += stored_bytes
        self._result.bytes_after += stored_bytes
        self._result.n_kept += 1

    def _write(self, row: dict[str, Any], source: Path) -> tuple[str, int] | None:
        """The name of a new file for a path, and its size; None if the old one is to stay."""
        name = row["file"]
        new_name = f"{name.removesuffix('.path')}-compact.path"
        new_path = self._target / new_name
        base = self._done_executions
        self._done_executions += row["block_executions"]
        half = 2 if self._is_checked else 1

        def tell(executions: int) -> None:
            nonlocal base
            base += executions // half
            self._tell(min(base, self._done_executions), self._all_executions)

        try:
            stretches = Stretches(self._load_code(row["process_id"]), PathFile(self._trace.directory, name))
        except TraceDamagedError:
            self._result.n_kept += 1
            return None
        try:
            if stretches.file.facts.is_compact:
                self._result.n_before += 1
                return None
            new_path.parent.mkdir(exist_ok=True)
            size = write_compact(stretches, new_path, tell)
            if size < source.stat().st_size and (not self._is_checked or self._check(stretches, new_name)):
                self._result.n_compact += 1
                return new_name, size
        except TraceDamagedError:
            # What nobody can read is left as it is.
            pass
        finally:
            stretches.file.close()
            self._tell(self._done_executions, self._all_executions)
        new_path.unlink(missing_ok=True)
        self._result.n_kept += 1
        return None

    def _check(self, stretches: Stretches, new_name: str) -> bool:
        """Whether the new file gives what the old one does."""
        file = PathFile(self._target, new_name)
        try:
            return is_same_path(stretches, Stretches(stretches.code, file))
        finally:
            file.close()

    def _load_code(self, process_id: int) -> ProcessCode:
        # Rows of one process follow one another.
        if self._code is None or self._code[0] != process_id:
            self._code = None
            self._code = (process_id, load_process_code(self._trace, process_id))
        return self._code[1]

    def _take_into_use(self) -> None:
        """Have the table name the new files, and remove the old ones."""
        if (self._target / FOLDER_NAME).is_dir():
            save_names(self._target / FOLDER_NAME)
        for part in self._trace.manifest.tables["paths"]["parts"]:
            path = self._target / part
            with pq.ParquetFile(path) as file:
                tables = [self._renamed(file.read_row_group(number)) for number in range(file.num_row_groups)]
            write_part(path, "paths", tables, is_safe=True)
        self._waiting_bytes = 0
        if not self._is_copy:
            for name, (new_name, _) in self._stored.items():
                if new_name != name:
                    (self._target / name).unlink(missing_ok=True)

    def _renamed(self, table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        for row in rows:
            row["file"], row["stored_bytes"] = self._stored.get(row["file"], (row["file"], row["stored_bytes"]))
        return pa.Table.from_pylist(rows, SCHEMAS["paths"])

    def _sweep(self) -> None:
        """Remove what a compaction left that was cut off: new files not used yet, old ones that are replaced."""
        with suppress(TraceDamagedError):
            named = set(Trace(self._target).paths["file"].to_pylist())
            for path in (self._target / FOLDER_NAME).glob("*.path"):
                name = f"{FOLDER_NAME}/{path.name}"
                match = _NAME.fullmatch(name)
                if match is None or name in named:
                    continue
                if match[2] or f"{match[1]}-compact.path" in named:
                    path.unlink(missing_ok=True)
