"""The peers that give events of a running program to Python: frida's Stalker, and PyQBDI.

frida sends the bytes of events out of the target, in the order of each thread, and Python makes numpy arrays of them.
All threads are followed from main() on. Events for which a thread's queue has no room are lost. `frida` has room for
2^20 of them, and empties it every 5 ms: with longer intervals it was slower. `frida-usual` leaves both as frida has
them: 16,384 events, 250 ms.

PyQBDI calls Python in the target for each block, which appends its address to an array. It follows the main thread from
main() on, without libc.
"""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.measure import Limit, measure
from bench.peers.venv import INSIDE, PYTHON, find_version
from bench.taken import Taken
from bench.tools import make_environment

_FRIDA_KINDS = ("block", "call,ret", "exec")
KINDS = {"frida": _FRIDA_KINDS, "frida-usual": _FRIDA_KINDS, "qbdi": ("block",)}
_PACKAGES = {"frida": "frida", "frida-usual": "frida", "qbdi": "pyqbdi"}

_GRACE_SECONDS = 60.0
"""To start, and to end what was cut."""
_PROCESSORS = 64
_SIGNALLED = 128


def find_peers(names: Sequence[str]) -> dict[str, str]:
    """Those of these peers that are installed, with their versions. FileNotFoundError tells people what to do."""
    return {name: find_version(_PACKAGES[name]) for name in names}


def take_with_peer(name: str, command: Sequence[str], kinds: str, code: str, limit_seconds: float) -> Taken:
    """Have a peer take events of a command; the arguments are those of `take_with_clew`."""
    wrap = _WRAPS[name]
    wall_seconds = limit_seconds + _GRACE_SECONDS
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        result = Path(folder, "taken.json")
        environment = {**make_environment(), "TMPDIR": folder}
        done = measure(
            wrap(kinds, code, limit_seconds, result, command),
            environment,
            limit=Limit(cpu_seconds=wall_seconds * _PROCESSORS, wall_seconds=wall_seconds),
        )
        if done.was_cut:
            return Taken(failure="hangs")
        if done.status or not result.exists():
            return Taken(failure=_describe_end(done.status, done.said))
        found = json.loads(result.read_text())
    return Taken(found["n_events"], found["n_own"], found["seconds"], found["was_cut"])


def _describe_end(status: int, said: str) -> str:
    if status > _SIGNALLED:
        return signal.Signals(status - _SIGNALLED).name
    return f"status {status}: {said}" if said else f"status {status}"


def _wrap_frida(
    queue: str, kinds: str, code: str, limit_seconds: float, result: Path, command: Sequence[str]
) -> list[str]:
    script = str(INSIDE / "follow_frida_events.py")
    return [str(PYTHON), script, kinds, code, queue, str(limit_seconds), str(result), *command]


def _wrap_qbdi(_kinds: str, code: str, limit_seconds: float, result: Path, command: Sequence[str]) -> list[str]:
    # The preloaded library is told of its script by name alone, so what the script is to do comes by `env`.
    settings = [f"BENCH_CODE={code}", f"BENCH_SECONDS={limit_seconds}", f"BENCH_TAKEN={result}"]
    script = str(INSIDE / "take_qbdi_blocks.py")
    return ["env", *settings, str(PYTHON), "-m", "pyqbdipreload", script, "--", *command]


_WRAPS: dict[str, Callable[[str, str, float, Path, Sequence[str]], list[str]]] = {
    "frida": partial(_wrap_frida, f"{1 << 20},5"),
    "frida-usual": partial(_wrap_frida, "usual"),
    "qbdi": _wrap_qbdi,
}
