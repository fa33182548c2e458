"""What programs are run under: nothing (native), and each mode of `clew record`; the peers are made in bench/peers.

Runs on the machine that measures. Knows command lines and where a tool leaves what it counted; starts nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.counted import Counted, read_trace_counted

ROOT = Path(__file__).resolve().parents[1]

MODES = ("counts", "coverage", "region", "full", "auto")
USUAL_MODES = ("counts", "coverage")
NATIVE_NAME = "native"


def _read_nothing(_: Path) -> Counted:
    return {}


@dataclass(frozen=True)
class Tool:
    """A way to run a command. `wrap` and `read_counted` are given an empty folder of the run's own.

    `read_counted` says what was counted, and nothing where the tool follows without counting; `same_code_as` then names
    the tool that follows the same code and counts. `version` is empty for what is built here; `about` is a line for
    people.
    """

    name: str
    about: str
    wrap: Callable[[Sequence[str], Path], list[str]]
    environment: dict[str, str]
    version: str = ""
    is_peer: bool = False
    same_code_as: str = ""
    read_counted: Callable[[Path], Counted] = _read_nothing


def make_environment(**more: str) -> dict[str, str]:
    """What every run is given, whatever the tool: the same bytes of output come of it."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "HOME", "TMPDIR", "CLEW_RUNTIME", "CLEW_RELAYOUT")
        if name in os.environ
    }
    return {**kept, "LC_ALL": "C", "PYTHONHASHSEED": "0", **more}


def make_native() -> Tool:
    return Tool(
        NATIVE_NAME,
        "the program alone",
        lambda command, _: list(command),
        make_environment(PYTHONPATH=str(ROOT / "src")),
    )


def make_recorder(mode: str) -> Tool:
    """`clew record` in a mode of it, without the summary that it prints."""

    def wrap(command: Sequence[str], folder: Path) -> list[str]:
        recorder = [sys.executable, "-m", "clew", "record", "-q", "--mode", mode, "-o", str(folder / "trace.clew")]
        return [*recorder, "--", *command]

    def read_counted(folder: Path) -> Counted:
        return read_trace_counted(folder / "trace.clew")

    return Tool(
        mode,
        f"clew record --mode {mode}",
        wrap,
        make_environment(PYTHONPATH=str(ROOT / "src")),
        read_counted=read_counted if mode == "counts" else _read_nothing,
    )
