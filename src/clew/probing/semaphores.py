"""The counters of static probes that a process has in its memory: 16 bits that say how many want to hear of a probe.

Runs in the controller. A program looks at such a counter before it works out what it tells there (the `semaphore` of a
note of <sys/sdt.h>): where nobody has raised it, no thread comes to the place. What raised them lowers them again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.errors import TargetError
from clew.probing.patch_table import PatchTable
from clew.probing.probed_process import ProbedProcess
from clew.process.linux import PROT_WRITE
from clew.process.maps import read_maps

__all__ = ["Semaphores"]

_BYTES: Final = 2
_MOST: Final = 0xFFFF


class Semaphores:
    """Of one process. Whoever counts there at the very same time, as another tracer might, may count wrong: so the
    kernel has it, too (`__update_ref_ctr`, kernel/events/uprobes.c)."""

    def __init__(self, process: ProbedProcess, table: PatchTable) -> None:
        self._process, self._table = process, table
        self._raised: set[RemoteAddress] = set()
        self._left: dict[RemoteAddress, int] = {}
        """What was there when the process itself was left."""

    def want(self, addresses: Collection[RemoteAddress]) -> None:
        """Have these raised, each by one, and no others; what can't be written to is none. Raises TargetError."""
        new = {address for address in addresses if address not in self._raised}
        gone = self._raised.difference(addresses)
        if not new and not gone:
            return
        if new:
            writable = [(one.start, one.end) for one in read_maps(self._process.task) if one.protection & PROT_WRITE]
            new = {one for one in new if any(start <= one and one + _BYTES <= end for start, end in writable)}
        # First: what is in the table and was not raised is lowered to nothing less than 0.
        self._set(self._raised | new)
        for address in new:
            self._write(address, min(self._read(address) + 1, _MOST))
        for address in gone:
            with contextlib.suppress(TargetError):
                self._write(address, max(self._read(address) - 1, 0))
        self._set(self._raised - gone)

    def forget(self, is_there: Callable[[int], bool]) -> None:
        """What holds these may be there no more. Raises TargetError."""
        gone = {address for address in self._raised if not is_there(address)}
        if gone:
            self._set(self._raised - gone)

    def begin_leaving(self) -> None:
        """From now on none is raised any more."""
        for address in self._raised:
            with contextlib.suppress(TargetError):
                self._left[address] = self._read(address)
        self._set(set())

    def restore(self, pid: Pid) -> None:
        """Lower what was raised, in the process or in a forks' child, which has a copy if that was raised before the
        fork. All its threads are held; it may be tried again. Raises OSError."""
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as file:
            for address, value in self._left.items():
                with contextlib.suppress(OSError):
                    if value and os.pread(file.fileno(), _BYTES, address) == value.to_bytes(_BYTES, "little"):
                        os.pwrite(file.fileno(), (value - 1).to_bytes(_BYTES, "little"), address)

    def _set(self, raised: set[RemoteAddress]) -> None:
        self._raised = raised
        self._table.set_raised(self._process.pid, raised)

    def _read(self, address: RemoteAddress) -> int:
        return int.from_bytes(self._process.read(address, _BYTES), "little")

    def _write(self, address: RemoteAddress, value: int) -> None:
        self._process.write(address, value.to_bytes(_BYTES, "little"))
