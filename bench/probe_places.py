"""Probes of clew's at places that its sessions do not offer: what is added up, and what can only trap.

Runs on the machine that measures, in the controller.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from clew.address import Pid
from clew.binary.elf import open_elf
from clew.capture.compiler import compile_capture
from clew.dataclass import replace
from clew.probing.leaving import leave
from clew.probing.placing import Placing
from clew.probing.planning import Planning, Site
from clew.probing.probed_process import ProbedProcess
from clew.probing.x86_64.exits import find_exits
from clew.probing.x86_64.image_code import read_image_code
from clew.probing.x86_64.plans import Technique
from clew.process.capture_table import CaptureRow
from clew.process.runtime_image import default_runtime_path, load_runtime_image
from clew.process.table_shape import TableShape
from clew.protocol._constants import CaptureAction
from clew.recording.drain.slots import Slots
from clew.sessions.memory import Images
from clew.sessions.probes.process_machine import make_machine
from clew.sessions.probes.pulse import Pulse

__all__ = ["PlacedProbes"]

_KIND = 1
_HISTOGRAM = TableShape(0, 0, 0, True, True)


class PlacedProbes:
    """Makers of probes in a process; what they give reads what was written, and says how much was lost."""

    @staticmethod
    def histogram(pid: Pid, path: str, function: str) -> contextlib.AbstractContextManager[Callable[[], int]]:
        """How long calls of a function take is added up."""
        return _placed(pid, path, function, is_histogram=True)

    @staticmethod
    def trapped(pid: Pid, path: str, function: str) -> contextlib.AbstractContextManager[Callable[[], int]]:
        """A record each time that a thread traps at a function's first byte."""
        return _placed(pid, path, function, is_histogram=False)


@contextlib.contextmanager
def _placed(pid: Pid, path: str, name: str, *, is_histogram: bool) -> Iterator[Callable[[], int]]:
    machine = make_machine(pid, Images())
    process = ProbedProcess.attach(pid, load_runtime_image(default_runtime_path()))
    pulse = Pulse()
    pulse.add(process.shared)
    with contextlib.ExitStack() as stack:
        elf = stack.enter_context(open_elf(Path(path)))
        # The program is linked to one place.
        image = read_image_code(elf, 0x400000)
        code = next(one for one in image.functions if one.start == _address_of(path, name))
        planning = Planning() if is_histogram else Planning((Technique.TRAP,))

        def want(address: int, row: CaptureRow, *, is_exit: bool = False) -> None:
            site = Site(address, code, image, is_exit=is_exit)
            site.rows = (row,)
            planning.add(site)

        if is_histogram:
            returned = compile_capture(["duration"], replace(machine, entry=machine)).pack()
            for one in find_exits(code):
                row = CaptureRow(0, 2, CaptureAction.AGGREGATE, returned, _HISTOGRAM, _KIND)
                want(one.address, row, is_exit=True)
            kept = compile_capture([], machine).pack()
            want(code.start, CaptureRow(0, 1, CaptureAction.CALL, kept, call_kind=_KIND))
        else:
            want(code.start, CaptureRow(0, 1, CaptureAction.RECORD, compile_capture([], machine).pack()))
        placing = Placing(process, lambda starts: False)
        made, gone = planning.changes()
        assert is_histogram or all(group.plan.technique == Technique.TRAP for group in made)
        assert not placing.apply(made, gone)
        planning.confirm()
        slots = Slots(process.shared)
        n_lost = 0

        def read() -> int:
            nonlocal n_lost
            for slot in slots.find_used():
                head, first, second = slots.read_ring(slot)
                first.release()
                second.release()
                slots.free_room(slot, head)
            before, n_lost = n_lost, int(slots.status()["lost_records"])
            return n_lost - before

        try:
            yield read
        finally:
            if process.is_served():
                leave(process, placing)
            slots.close()
            pulse.close()
            process.close()


def _address_of(path: str, name: str) -> int:
    """Where a symbol of a program is that is linked to one place."""
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    return next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(f" {name}"))
