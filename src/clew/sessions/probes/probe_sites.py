"""Where probes are in one process: the sites of each, what is captured there, and by which technique they are placed.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from clew.dataclass import dataclass
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


class NamedPlace(Protocol):
    """A place of a process."""

    @property
    def name(self) -> str:
        """What it is called, for people."""


@dataclass(frozen=True)
class ArmedProbe:
    """A probe at a place of a process: by which technique, and why no better one; `role` is `point`, `entry` or
    `return`. `index` is the probe's in its session."""

    index: int
    name: str
    place: NamedPlace
    address: int
    role: str
    technique: Technique
    reason: str

    @property
    def backend(self) -> str:
        """`jump` or `trap`."""
        return backend_of(self.technique).value


class ProbeSites:
    """The sites of probes in one process. `read_memory` gives its code as it is without probes; raises TargetError."""

    def __init__(self, process: ProbedProcess, code: ProcessCode, read_memory: Callable[[int, int], bytes]) -> None:
        self._process, self._code, self._read_memory = process, code, read_memory

    def iter_sites(self, probe: AskedProbe, place: ProcessPlace) -> Iterator[tuple[Site, str]]:
        """The sites of a probe at a place, and their roles: where a function begins comes first. Raises UsageError,
        CaptureError."""
        address, spec = place.address, probe.spec
        if not spec.is_function:
            site = self.site_at(address)
            site.rows = [self._point_row(site, probe)]
            yield site, "point"
            return
        if place.place is not None and place.place.kind == PlaceKind.CHOOSER:
            # It chooses the function that is meant, which is known once the dynamic linker has called it.
            return
        code, image = self._code.find(address)
        if address != code.start:
            raise UsageError(f"{probe.spec.where}: {address:#x} is not where a function begins")
        entry = self.site_at(find_body(code))
        if spec.consequence is not None and not spec.at_return:
            entry.rows = [self._point_row(entry, probe)]
            yield entry, "entry"
            return
        chosen = probe.kept_form_at(self._process.pid, self._process.task, address)
        kept = CaptureRow(entry.pc, probe.kept_number, CaptureAction.CALL, chosen, call_kind=probe.call_kind)
        entry.rows = [self._row(entry, probe.number, probe.form), kept] if spec.has_events else [kept]
        yield entry, "entry"
        for piece, one in find_all_exits(code, image.parts.get(code.start, ())):
            is_taken = one.kind == ExitKind.CONDITIONAL_TAIL
            foreign = self._foreign_of(piece)
            left = Site(one.address, piece, image, is_exit=True, is_taken=is_taken, foreign=foreign)
            if spec.has_events:
                left.rows = [self._row(left, probe.return_number, probe.return_form, probe.call_kind)]
            else:
                left.rows = [self._point_row(left, probe)]
            yield left, "return"

    def site_at(self, address: int) -> Site:
        """The site at an address, without anything that is captured yet. Raises UsageError."""
        code, image = self._code.find_any(address)
        return Site(address, code, image, foreign=self._foreign_of(code))

    def _foreign_of(self, code: FunctionCode) -> list[Foreign]:
        return find_foreign(code, self._read_memory)

    def _point_row(self, site: Site, probe: AskedProbe) -> CaptureRow:
        """The only row of a site, as whatever the probe is for has it."""
        if probe.spec.has_events:
            return self._row(site, probe.number, probe.form)
        make = probe.sum_row if probe.spec.wish is not None else probe.consequence_row
        return make(site.pc, self._process.pid, self._process.task, site.address)

    def _row(self, site: Site, number: int, form: AskedForm, call_kind: int = 0) -> CaptureRow:
        packed = form.form_at(self._process.pid, self._process.task, site.address)
        return CaptureRow(site.pc, number, CaptureAction.RECORD, packed, call_kind=call_kind)
