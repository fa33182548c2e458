"""One process with probes in it: what is wanted is found in its code, planned, put there, and taken out again.

Runs in the controller, all of it in one thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

import numpy as np

from clew.address import Pid
from clew.dataclass import dataclass
from clew.errors import TargetError, UsageError
from clew.probing.locations.in_process import ProcessPlace, open_process
from clew.probing.locations.syntax import parse_location
from clew.probing.patches import Patch
from clew.probing.placing import Placing, WantedSite
from clew.probing.planning import Planning
from clew.probing.probed_process import ProbedProcess
from clew.probing.x86_64.exits import find_exits
from clew.probing.x86_64.plans import Technique
from clew.process.capture_table import CaptureRow
from clew.process.maps import read_maps
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import CaptureAction
from clew.recording.drain.slots import ImpossibleHeadError, Slots
from clew.sessions.capture_sink import CaptureSink
from clew.sessions.probes.asked import AskedProbe
from clew.sessions.probes.image_code import ProcessCode

__all__ = ["ArmedProbe", "ProbedTarget"]

_TECHNIQUES: Final = {
    Technique.JUMP: "jump",
    Technique.JUMP_GUARDED: "jump",
    Technique.JUMP_PADDING: "jump",
    Technique.JUMP_PUNNED: "jump",
    Technique.BRANCHES: "jump",
    Technique.TRAP: "trap",
}


@dataclass(frozen=True)
class ArmedProbe:
    """A probe at a place of a process: by which technique, and why no better one; `role` is `point`, `entry` or
    `return`."""

    name: str
    place: ProcessPlace
    address: int
    role: str
    technique: Technique
    reason: str

    @property
    def backend(self) -> str:
        """`jump` or `trap`."""
        return _TECHNIQUES[self.technique]


class ProbedTarget:
    """The probes in one process."""

    def __init__(self, process: ProbedProcess, stopped: StoppedProcess | None = None) -> None:
        """`stopped`: the process, if it is stopped before its first instruction."""
        self.process = process
        self.pid: Pid = process.pid
        self._placing = Placing(process)
        self._placing.stopped = stopped
        self._planning = Planning()
        self._open = contextlib.ExitStack()
        self._places = self._open.enter_context(open_process(process.task))
        self._code = ProcessCode(self._places)
        self._slots = Slots(process.shared)
        self.armed: list[ArmedProbe] = []
        self.warnings: list[str] = []
        self._patches: list[Patch] = []
        self._n_lost = 0

    def arm(self, probes: Sequence[AskedProbe]) -> list[AskedProbe]:
        """Put probes to their places; those whose place is nowhere that is loaded are given back.

        Raises UsageError where there can be none, TargetError, CaptureError.
        """
        self._places.renew(read_maps(self.process.task))
        pending: list[AskedProbe] = []
        wanted: list[WantedSite] = []
        for probe in probes:
            found = self._places.resolve(parse_location(probe.spec.where), with_inlined=probe.spec.with_inlined)
            self.warnings += [one for one in found.warnings if one not in self.warnings]
            if not found.places:
                probe.missing = found.missing
                pending.append(probe)
                continue
            for place in found.places:
                wanted += self._plan(probe, place)
        if wanted:
            self._patches += self._placing.place(wanted)
        return pending

    def _plan(self, probe: AskedProbe, place: ProcessPlace) -> list[WantedSite]:
        address = place.address
        if not probe.spec.is_function:
            return [self._site(probe, place, address, "point", [(probe.number, CaptureAction.RECORD, 0, probe.form)])]
        code, image = self._code.find(address)
        if address != code.start:
            raise UsageError(f"{probe.spec.where}: {address:#x} is not where a function begins")
        entry, leaving = probe.form, probe.return_form
        assert leaving is not None
        rows = [
            (probe.number, CaptureAction.RECORD, 0, entry),
            (probe.kept_number, CaptureAction.CALL, probe.call_kind, None),
        ]
        row = (probe.return_number, CaptureAction.RECORD, probe.call_kind, leaving)
        # These first: what they displace may begin with the function's first instruction.
        sites = [self._site(probe, place, one.address, "return", [row]) for one in find_exits(code)]
        return [*sites, self._site(probe, place, address, "entry", rows)]

    def _site(self, probe: AskedProbe, place: ProcessPlace, address: int, role: str, rows) -> WantedSite:  # type: ignore[no-untyped-def]
        code, image = self._code.find(address)
        plan, index = self._planning.plan(
            address, code, image.entries, is_exit=role == "return", branches=image.branches
        )
        captures = []
        for number, action, kind, form in rows:
            packed = probe.kept_form if form is None else form.form_at(self.pid, self.process.task, address)
            captures.append(CaptureRow(address, number, action, packed, call_kind=kind))
        self.armed.append(ArmedProbe(probe.spec.name, place, address, role, plan.technique, plan.reason))
        return WantedSite(plan, index, captures)

    def let_go(self) -> None:
        """The process is about to run."""
        self._placing.stopped = None

    def drain(self, sink: CaptureSink) -> int:
        """Hand over what is in the rings; how many records."""
        n = 0
        for slot in self._slots.find_used():
            try:
                head, first, second = self._slots.read_ring(slot)
            except ImpossibleHeadError:
                continue
            data = bytes(first) + bytes(second)
            first.release()
            second.release()
            self._slots.free_room(slot, head)
            if data:
                records = np.frombuffer(data, np.uint8).reshape(-1, 64)
                sink.keep(int(self.pid), records)
                n += len(records)
        return n

    def take_lost(self) -> int:
        """How many events were lost since this was asked last."""
        lost = int(self._slots.status()["lost_records"])
        lost += sum(self.process.sites.missed(number) for patch in self._patches for number in patch.numbers.values())
        before, self._n_lost = self._n_lost, lost
        return lost - before

    def close(self) -> None:
        """Take all probes out, and the runtime's task, as far as the process is there still."""
        with contextlib.suppress(TargetError, OSError):
            self._placing.close()
        self._open.close()


