"""Runs in the target, loaded by PyQBDI's preloaded library: follows from main() on, and counts blocks if told to.

Takes BENCH_KIND (follow, counts) and BENCH_COUNTED (the file to write the count into) from the environment.
"""

from __future__ import annotations

import atexit
import os
from pathlib import Path

import pyqbdi

_KIND = os.environ["BENCH_KIND"]
_COUNTED = Path(os.environ["BENCH_COUNTED"])

# One list of one number for each instruction that ends a block.
_cells: list[list[int]] = []


def _hit(_vm: object, _gpr: object, _fpr: object, cell: list[int]) -> object:
    cell[0] += 1
    return pyqbdi.CONTINUE


def _instrument(_vm: object, instruction: pyqbdi.InstAnalysis, _data: object) -> list[object]:
    if not instruction.affectControlFlow:
        return []
    cell = [0]
    _cells.append(cell)
    return [pyqbdi.InstrRuleDataCBK(_hit, cell, pyqbdi.PREINST)]


def _write_counted() -> None:
    _COUNTED.write_text(str(sum(cell[0] for cell in _cells)) if _KIND == "counts" else "")


def pyqbdipreload_on_run(vm: pyqbdi.VM, start: int, stop: int) -> None:
    atexit.register(_write_counted)  # exit() within main never comes back here
    if _KIND == "counts":
        vm.addInstrRule(_instrument, pyqbdi.ANALYSIS_INSTRUCTION, None)
    vm.run(start, stop)
