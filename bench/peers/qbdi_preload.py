"""QBDI by way of PyQBDI's preloaded library: following alone, and counts of basic blocks.

It follows the main thread from main() on, and no other; libc and the dynamic linker run natively. Every callback of
PyQBDI goes through Python; the cheapest exact count is one in front of each instruction that ends a block, put there by
an instruction rule: a third cheaper than the event of a block's entry, which makes an object for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.counted import BLOCKS, Counted
from bench.peers.venv import INSIDE, PYTHON, find_version
from bench.tools import Tool, make_environment

_KINDS = {
    "follow": ("", "QBDI, no callbacks: follows the main thread outside of libc, counts nothing"),
    "counts": (BLOCKS, "PyQBDI, a callback for each block: exact counts of the same code"),
}
NAMES = tuple(f"qbdi-{kind}" for kind in _KINDS)


def make_tools() -> list[Tool]:
    """FileNotFoundError where PyQBDI is not installed."""
    version = find_version("pyqbdi")
    return [
        Tool(
            f"qbdi-{kind}",
            about,
            partial(_wrap, kind),
            make_environment(),
            version=version,
            is_peer=True,
            same_code_as="" if unit else "qbdi-counts",
            read_counted=partial(_read_counted, unit),
        )
        for kind, (unit, about) in _KINDS.items()
    ]


def _wrap(kind: str, command: Sequence[str], folder: Path) -> list[str]:
    # The preloaded library is told of its script by name alone, so what the script is to do comes by `env`.
    settings = [f"BENCH_KIND={kind}", f"BENCH_COUNTED={folder / 'counted'}"]
    script = str(INSIDE / "count_qbdi.py")
    return ["env", *settings, str(PYTHON), "-m", "pyqbdipreload", script, "--", *command]


def _read_counted(unit: str, folder: Path) -> Counted:
    return {unit: int((folder / "counted").read_text())} if unit else {}
