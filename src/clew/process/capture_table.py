"""The table of what a target captures, as it lies in the shared memory: places, and the forms that they have.

Runs in the controller. What a form means is not known here. Rows keep their places while more are appended, so that a
thread which reads the table meanwhile finds each as it was, or not yet. A recording has a thousand rows, in each of its
processes: they are packed once, when they come, and a fork's child takes over its parent's bytes.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Final, NamedTuple

from clew.errors import UsageError
from clew.process.table_shape import TableShape
from clew.protocol._constants import CAPTURE_PLACE_BYTES, MAX_CAPTURE_BYTES, MAX_CAPTURES, CaptureAction
from clew.protocol.layout import row_of

__all__ = ["CaptureRow", "CaptureTable"]

_PLACES_BYTES: Final = MAX_CAPTURES * CAPTURE_PLACE_BYTES

_PACKED: Final = row_of("CapturePlace")
_NO_TABLE: Final = TableShape(0, 0, 0, False, False)


class CaptureRow(NamedTuple):
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
        self._places, self._forms = bytearray(), bytearray()
        self._n_written = self._n_form_bytes_written = 0

    @property
    def is_written(self) -> bool:
        """Whether the table in the shared memory has all rows."""
        return self._n_written == len(self.rows)

    def copy(self) -> CaptureTable:
        """The same for another process, of which nothing is written yet."""
        other = CaptureTable()
        other.rows, other.was_used = list(self.rows), bool(self.rows)
        other._known, other._starts = set(self._known), dict(self._starts)
        other._places, other._forms = bytearray(self._places), bytearray(self._forms)
        return other

    def append(self, row: CaptureRow) -> None:
        """Have one more row, if it is not there already. Raises UsageError: there is no room."""
        if row in self._known:
            # A fork's child began with it.
            return
        start = self._starts.get(row.form)
        n_bytes = len(self._forms) + (len(row.form) if start is None else 0)
        if len(self.rows) >= MAX_CAPTURES or n_bytes > MAX_CAPTURE_BYTES:
            raise UsageError(f"there are {len(self.rows)} captures already: there is no room for more")
        if start is None:
            start = self._starts[row.form] = len(self._forms)
            self._forms += row.form
        packed = (row.pc, row.number, row.action, start, len(row.form), *(row.table or _NO_TABLE))
        self._places += _PACKED.pack(*packed, row.call_kind, row.tells_left)
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
        n_places, n_form_bytes = self._n_written * CAPTURE_PLACE_BYTES, self._n_form_bytes_written
        forms_at = offset + _PLACES_BYTES
        memory[forms_at + n_form_bytes : forms_at + len(self._forms)] = bytes(self._forms[n_form_bytes:])
        memory[offset + n_places : offset + len(self._places)] = bytes(self._places[n_places:])
        self._n_written, self._n_form_bytes_written = len(self.rows), len(self._forms)

    def _clear(self) -> None:
        self.rows.clear()
        self._known.clear()
        self._starts.clear()
        self._places.clear()
        self._forms.clear()
        self._n_written = self._n_form_bytes_written = 0
