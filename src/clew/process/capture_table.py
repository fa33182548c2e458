"""The table of what a target captures, as it lies in the shared memory: places, and the forms that they have.

Runs in the controller. What a form means is not known here. Rows keep their places while more are appended, so that a
thread which reads the table meanwhile finds each as it was, or not yet.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Final

from clew.dataclass import dataclass
from clew.errors import UsageError
from clew.process.aggregate_tables import TableShape
from clew.protocol._constants import CAPTURE_PLACE_BYTES, MAX_CAPTURE_BYTES, MAX_CAPTURES, CaptureAction
from clew.protocol.layout import pack_struct

__all__ = ["CAPTURE_TABLE_BYTES", "CaptureRow", "CaptureTable"]

_PLACES_BYTES: Final = MAX_CAPTURES * CAPTURE_PLACE_BYTES
CAPTURE_TABLE_BYTES: Final = _PLACES_BYTES + MAX_CAPTURE_BYTES


@dataclass(frozen=True)
class CaptureRow:
    """What is captured in front of the instruction at `pc`: by a packed `form`, under a `number`; added up in a
    `table`. A call that begins is of `call_kind`; what is taken where such calls return has the same, and a `pc` of
    0."""

    pc: int
    number: int
    action: CaptureAction
    form: bytes
    table: TableShape | None = None
    call_kind: int = 0
    tells_left: bool = False
    """Of calls, and they are recorded: those, too, that are over without having returned."""


class CaptureTable:
    """The table of one process."""

    def __init__(self) -> None:
        self.rows: list[CaptureRow] = []
        self.was_used = False
        """There was ever a row."""
        self._known: set[CaptureRow] = set()
        self._starts: dict[bytes, int] = {}
        self._n_bytes = 0
        self._n_written = 0

    @property
    def is_written(self) -> bool:
        """Whether the table in the shared memory has all rows."""
        return self._n_written == len(self.rows)

    def append(self, row: CaptureRow) -> None:
        """Have one more row, if it is not there already. Raises UsageError: there is no room."""
        if row in self._known:
            # A fork's child began with it.
            return
        is_new = row.form not in self._starts
        n_bytes = self._n_bytes + (len(row.form) if is_new else 0)
        if len(self.rows) >= MAX_CAPTURES or n_bytes > MAX_CAPTURE_BYTES:
            raise UsageError(f"there are {len(self.rows)} captures already: there is no room for more")
        if is_new:
            self._starts[row.form] = self._n_bytes
        self._n_bytes = n_bytes
        self.was_used = True
        self.rows.append(row)
        self._known.add(row)

    def replace(self, rows: Sequence[CaptureRow]) -> None:
        """Have other rows, in other places: no thread may read meanwhile. Raises UsageError: there is no room."""
        before = list(self.rows)
        self._clear()
        try:
            for row in rows:
                self.append(row)
        except UsageError:
            self._clear()
            for row in before:
                self.append(row)
            raise

    def write(self, memory: mmap.mmap, offset: int) -> None:
        """Write what was not written yet, into the table at an offset of the shared memory."""
        for index, row in enumerate(self.rows[self._n_written :], self._n_written):
            start = self._starts[row.form]
            form_at, place_at = offset + _PLACES_BYTES + start, offset + index * CAPTURE_PLACE_BYTES
            memory[form_at : form_at + len(row.form)] = row.form
            table: dict[str, int] = {}
            if row.table is not None:
                table = {
                    "table_start": row.table.start,
                    "table_keys": row.table.n_keys,
                    "table_rows_log2": row.table.rows_log2,
                    "table_has_values": row.table.has_values,
                    "table_has_histograms": row.table.has_histograms,
                }
            memory[place_at : place_at + CAPTURE_PLACE_BYTES] = pack_struct(
                "CapturePlace",
                pc=row.pc,
                number=row.number,
                action=row.action,
                form_start=start,
                form_bytes=len(row.form),
                call_kind=row.call_kind,
                tells_left=row.tells_left,
                **table,
            )
        self._n_written = len(self.rows)

    def _clear(self) -> None:
        self.rows.clear()
        self._known.clear()
        self._starts.clear()
        self._n_bytes = self._n_written = 0
