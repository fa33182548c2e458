"""Where probes are in one process: the sites of each, what is captured there, and by which technique they are placed.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from clew.errors import UsageError
from clew.probing.foreign import find_foreign
from clew.probing.locations.in_process import ProcessPlace
from clew.probing.locations.place import PlaceKind
from clew.probing.native import ExitKind, FunctionCode, Technique, find_all_exits, find_body
from clew.probing.planning import Foreign, Site
from clew.probing.probed_process import ProbedProcess
from clew.process.capture_table import CaptureRow
from clew.protocol._constants import CaptureAction
from clew.sessions.probes.asked import AskedForm, AskedProbe
from clew.sessions.probes.backends import backend_of
from clew.sessions.probes.image_code import ProcessCode

__all__ = ["ArmedProbe", "ProbeSites"]

_SEEN_BYTES: Final = 1 << 15
Rows = tuple[CaptureRow, ...]


class NamedPlace(Protocol):
    """A place of a process."""

    @property
    def name(self) -> str:
        """What it is called, for people."""


class ArmedProbe:
    """A probe at a place of a process: by which technique, and why no better one; `role` is `point`, `entry` or
    `return`. `index` is the probe's in its session."""

    __slots__ = ("address", "index", "name", "place", "reason", "role", "technique")

    def __init__(
        self, index: int, name: str, place: NamedPlace, address: int, role: str, technique: Technique, reason: str
    ) -> None:
        self.index, self.name, self.place, self.address = index, name, place, address
        self.role, self.technique, self.reason = role, technique, reason

    @property
    def backend(self) -> str:
        """`jump` or `trap`."""
        return backend_of(self.technique).value


class ProbeSites:
    """The sites of probes in one process. `read_memory` gives its code as it is without probes; raises TargetError."""

    def __init__(self, process: ProbedProcess, code: ProcessCode, read_memory: Callable[[int, int], bytes]) -> None:
        self._process, self._code, self._read_memory = process, code, read_memory
        self._rows: dict[Rows, Rows] = {}
        """What is taken at places: the same is kept once."""
        self._common: dict[int, CaptureRow] = {}
        """What is taken wherever it is, by the numbers of captures."""
        self.begin()

    def begin(self) -> None:
        """Look at the process' memory anew from now on."""
        self._seen = 0, b""
        self._foreign: tuple[FunctionCode | None, list[Foreign]] = None, []

    def iter_sites(self, probe: AskedProbe, place: ProcessPlace) -> Iterator[tuple[Site, str]]:
        """The sites of a probe at a place, and their roles: where a function begins comes first. Raises UsageError,
        CaptureError."""
        address, spec = place.address, probe.spec
        if not spec.is_function:
            site = self.site_at(address)
            site.rows = self._kept(self._point_row(site, probe))
            yield site, "point"
            return
        if place.place is not None and place.place.kind == PlaceKind.CHOOSER:
            # It chooses the function that is meant, which is known once the dynamic linker has called it.
            return
        code, image = self._code.find(address)
        if address != code.start:
            raise UsageError(f"{probe.spec.where}: {address:#x} is not where a function begins")
        entry = Site(find_body(code), code, image, foreign=self._foreign_of(code))
        if spec.consequence is not None and not spec.at_return:
            entry.rows = self._kept(self._point_row(entry, probe))
            yield entry, "entry"
            return
        exits = list(find_all_exits(code, image.parts.get(code.start, ())))
        leaves_at = exits[0][1].address if exits else address
        chosen = probe.kept_form_at(self._process.pid, self._process.task, address, leaves_at)
        kept = CaptureRow(0, probe.kept_number, CaptureAction.CALL, chosen, call_kind=probe.call_kind)
        rows = (self._row(entry, probe.number, probe.form), kept) if spec.has_events else (kept,)
        entry.rows = self._kept(*rows)
        yield entry, "entry"
        for piece, one in exits:
            is_taken = one.kind == ExitKind.CONDITIONAL_TAIL
            foreign = self._foreign_of(piece)
            left = Site(one.address, piece, image, is_exit=True, is_taken=is_taken, foreign=foreign)
            if spec.has_events:
                row = self._row(left, probe.return_number, probe.return_form, probe.call_kind, address)
            else:
                row = self._point_row(left, probe, address)
            left.rows = self._kept(row)
            yield left, "return"

    def site_at(self, address: int) -> Site:
        """The site at an address, without anything that is captured yet. Raises UsageError."""
        code, image = self._code.find_any(address)
        return Site(address, code, image, foreign=self._foreign_of(code))

    def _foreign_of(self, code: FunctionCode) -> list[Foreign]:
        if self._foreign[0] is not code:
            self._foreign = code, find_foreign(code, self._read)
        return self._foreign[1]

    def _read(self, address: int, size_bytes: int) -> bytes:
        """Memory of a function, and of those behind it, which are looked at next."""
        start, seen = self._seen
        if not start <= address <= address + size_bytes <= start + len(seen):
            start, seen = self._seen = address, self._read_memory(address, max(size_bytes, _SEEN_BYTES))
        return seen[address - start : address - start + size_bytes]

    def _kept(self, *rows: CaptureRow) -> Rows:
        return self._rows.setdefault(rows, rows)

    def _point_row(self, site: Site, probe: AskedProbe, begins_at: int | None = None) -> CaptureRow:
        """The only row of a site, as whatever the probe is for has it; `begins_at`: the function that is left there."""
        if probe.spec.has_events:
            return self._row(site, probe.number, probe.form)
        make = probe.sum_row if probe.spec.wish is not None else probe.consequence_row
        return make(0, self._process.pid, self._process.task, site.address, begins_at)

    def _row(
        self, site: Site, number: int, form: AskedForm, call_kind: int = 0, begins_at: int | None = None
    ) -> CaptureRow:
        row = self._common.get(number)
        if row is None:
            packed = form.form_at(self._process.pid, self._process.task, site.address, begins_at)
            row = CaptureRow(0, number, CaptureAction.RECORD, packed, call_kind=call_kind)
            if not form.events.wanted.is_placed:
                self._common[number] = row
        return row
