"""The counters of static probes that a process has in its memory: 16 bits that say how many want to hear of a probe.

Runs in the controller. A program looks at such a counter before it works out what it tells there (the `semaphore` of a
note of <sys/sdt.h>): where nobody has raised it, no thread comes to the place. What raised them lowers them again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection

from clew.address import Pid, RemoteAddress
from clew.errors import TargetError
from clew.probing.memory_file import holds, write_all
from clew.probing.patch_table import PatchTable
from clew.probing.probed_process import ProbedProcess
from clew.process.counter_words import COUNTER_BYTES, add_to_counter, find_counters

__all__ = ["Semaphores"]


class Semaphores:
    """Of one process. Whoever counts there at the very same time, as another tracer might, may count wrong: so the
    kernel has it, too (`__update_ref_ctr`, kernel/events/uprobes.c)."""

    def __init__(self, process: ProbedProcess, table: PatchTable) -> None:
        self._process, self._table = process, table
        self._raised: set[RemoteAddress] = set()
        self._left: dict[RemoteAddress, bytes] = {}
        """What was there when the process itself was left."""

    def want(self, addresses: Collection[RemoteAddress]) -> None:
        """Have these raised, each by one, and no others; what can't be written to is none. Raises TargetError."""
        new = {address for address in addresses if address not in self._raised}
        gone = self._raised.difference(addresses)
        if not new and not gone:
            return
        if new:
            new = find_counters(self._process.task, new)
        # First: what is in the table and was not raised is lowered to nothing less than 0.
        self._set(self._raised | new)
        for address in new:
            self._add(address, 1)
        for address in gone:
            with contextlib.suppress(TargetError):
                self._add(address, -1)
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
                self._left[address] = self._process.read(address, COUNTER_BYTES)
        self._set(set())

    def restore(self, pid: Pid) -> None:
        """Lower what was raised, in the process or in a forks' child, which has a copy if that was raised before the
        fork. All its threads are held; it may be tried again. Raises OSError."""
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as file:
            for address, content in self._left.items():
                lowered = add_to_counter(content, -1)
                if lowered != content and holds(file.fileno(), [(address, content)]):
                    write_all(file.fileno(), [(address, lowered)])

    def _set(self, raised: set[RemoteAddress]) -> None:
        self._raised = raised
        self._table.set_raised(self._process.pid, raised)

    def _add(self, address: RemoteAddress, by: int) -> None:
        self._process.write(address, add_to_counter(self._process.read(address, COUNTER_BYTES), by))
