"""Runs in the target, loaded by PyQBDI's preloaded library: takes the address of each block from main() on.

Takes from the environment BENCH_TAKEN, the file that gets a JSON object as that of follow_frida_events.py, BENCH_CODE,
how the name of the file begins in which the program's own code is, and BENCH_SECONDS, after which the program is ended.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import time
from array import array
from pathlib import Path

import pyqbdi

_TAKEN = Path(os.environ["BENCH_TAKEN"])
_CODE = os.environ["BENCH_CODE"]
_SECONDS = float(os.environ["BENCH_SECONDS"])

_addresses = array("Q")
_started: list[float] = []


def _take(_vm: object, state: pyqbdi.VMState, _gpr: object, _fpr: object, _data: object) -> object:
    _addresses.append(state.basicBlockStart)
    return pyqbdi.CONTINUE


def _find_own_code() -> tuple[int, int]:
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, *_, path = line.split()
        if Path(path).name.startswith(_CODE):
            ranges.append(tuple(int(word, 16) for word in addresses.split("-")))
    return min((low for low, _ in ranges), default=0), max((high for _, high in ranges), default=0)


def _write_taken(was_cut: bool) -> None:
    seconds = time.perf_counter() - _started[0]
    atexit.unregister(_write_taken)
    low, high = _find_own_code()
    n_own = sum(low <= address < high for address in _addresses)
    found = {"n_events": len(_addresses), "n_own": n_own, "seconds": seconds, "was_cut": was_cut}
    _TAKEN.write_text(json.dumps(found))


def _cut(*_: object) -> None:
    _write_taken(True)
    os._exit(0)


def pyqbdipreload_on_run(vm: pyqbdi.VM, start: int, stop: int) -> None:
    atexit.register(_write_taken, False)  # exit() within main never comes back here
    signal.signal(signal.SIGALRM, _cut)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    vm.addVMEventCB(pyqbdi.BASIC_BLOCK_ENTRY, _take, None)
    _started.append(time.perf_counter())
    vm.run(start, stop)
