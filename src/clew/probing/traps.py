"""Where threads go on that trap for the sake of probes: the tables in the shared memory, and the process' actions.

Runs in the controller. Of two tables one is read by threads at any time; the other is written, and then is the one.
"""

from __future__ import annotations

import signal
import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from clew.address import RemoteAddress
from clew.errors import TargetError
from clew.process.shared_memory import SharedMemory
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import MAX_TRAPS, TRAP_ROW_BYTES
from clew.protocol.layout import field_offset

__all__ = ["TrapTable"]

_ACTION: Final = struct.Struct("<4Q")
_SIGNALS: Final = (signal.SIGTRAP, signal.SIGILL)
"""In the order in which the program's own actions are kept (StatusPage.trap_actions)."""
_SA_SIGINFO, _SA_ONSTACK, _SA_RESTART, _SA_RESTORER = 0x4, 0x0800_0000, 0x1000_0000, 0x0400_0000
_SA_NODEFER: Final = 0x4000_0000
_FLAGS: Final = _SA_SIGINFO | _SA_ONSTACK | _SA_RESTART | _SA_RESTORER | _SA_NODEFER
_OTHERS: Final = (1 << 64) - 1 - sum(1 << number - 1 for number in _SIGNALS)
"""Blocked while a thread is led on: another handler might come to a place that traps. Traps are not, which nothing
there raises: who writes code live looks at whether threads can trap."""
_MASK_BYTES: Final = 8


class TrapTable:
    """Of one process; `scratch` is memory of it that calls may read and write."""

    def __init__(self, shared: SharedMemory, scratch: RemoteAddress) -> None:
        self._map, self._layout, self._scratch = shared.map, shared.layout, scratch
        self._table = self._n_written = 0
        self._rows = np.zeros((0, 2), np.uint64)
        """By address: where threads go on that trap there."""
        self.is_installed = False
        """The process' actions are the runtime's."""

    def add(self, pid: int, rows: npt.NDArray[np.uint64]) -> None:
        """Have threads that trap at addresses, which rise, go on where each leads to, both in a row. What was there
        before stays, since a thread may have trapped a while ago. Raises TargetError: too many."""
        pairs = rows
        if len(self._rows):
            # The new ones come first, and of two of one address the first is taken.
            together = np.concatenate((rows, self._rows))
            _, chosen = np.unique(together[:, 0], return_index=True)
            pairs = together[chosen]
        if np.array_equal(pairs, self._rows):
            return
        if len(pairs) > MAX_TRAPS:
            raise TargetError(pid, f"process {pid}: more than {MAX_TRAPS} places that trap")
        self._rows = pairs
        self._table ^= 1
        self._n_written += 1
        at = self._layout.traps_offset + self._table * MAX_TRAPS * TRAP_ROW_BYTES
        self._map[at : at + pairs.nbytes] = pairs.tobytes()
        # Never the same twice, so that threads see that it is another one.
        self._set_word("trap_table", self._n_written << 32 | len(pairs) << 1 | self._table)

    def install(self, process: StoppedProcess) -> None:
        """Have the process' actions for such traps be the runtime's; a stopped thread of it makes the calls."""
        handler, restorer = self._word("trap_handler"), self._word("trap_restorer")
        for index, number in enumerate(_SIGNALS):
            process.call("rt_sigaction", number, 0, self._scratch, _MASK_BYTES)
            own = process.read(self._scratch, _ACTION.size)
            if _ACTION.unpack(own)[0] == handler:
                continue
            at = self._offset("trap_actions") + index * _ACTION.size
            self._map[at : at + _ACTION.size] = own
            process.write(self._scratch, _ACTION.pack(handler, _FLAGS, restorer, _OTHERS))
            process.call("rt_sigaction", number, self._scratch, 0, _MASK_BYTES)
        self.is_installed = True

    def take_out(self, process: StoppedProcess) -> bool:
        """Give the process its own actions back, where it has not others by now; whether none of them is the runtime's
        any more, nor can be: others may keep it, and give it back."""
        is_out = True
        handler = self._word("trap_handler")
        for index, number in enumerate(_SIGNALS):
            process.call("rt_sigaction", number, 0, self._scratch, _MASK_BYTES)
            if _ACTION.unpack(process.read(self._scratch, _ACTION.size))[0] == handler:
                at = self._offset("trap_actions") + index * _ACTION.size
                process.write(self._scratch, self._map[at : at + _ACTION.size])
                process.call("rt_sigaction", number, self._scratch, 0, _MASK_BYTES)
            else:
                is_out = False
        self.is_installed = False
        return is_out

    def _offset(self, name: str) -> int:
        return self._layout.status_offset + field_offset("StatusPage", name)

    def _word(self, name: str) -> int:
        at = self._offset(name)
        return int.from_bytes(self._map[at : at + 8], "little")

    def _set_word(self, name: str, value: int) -> None:
        at = self._offset(name)
        self._map[at : at + 8] = value.to_bytes(8, "little")
