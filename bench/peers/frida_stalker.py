"""frida's Stalker: following alone, a counter in front of each block, and its call summary.

What is measured follows all threads from main() on: before that frida lets no script in. Child processes are not
followed. The call summary is frida's own, with the queue it has unless told otherwise: calls that come faster than the
queue is emptied are lost, so it counts fewer than there were.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.counted import BLOCKS, CALLS, Counted
from bench.peers.venv import INSIDE, PYTHON, find_version
from bench.tools import Tool, make_environment

_KINDS = {
    "follow": ("", "frida Stalker, no events: follows, counts nothing"),
    "counts": (BLOCKS, "frida Stalker, a counter in the code of each block: exact counts of blocks"),
    "calls": (CALLS, "frida Stalker, call summary: counts calls, and loses those its queue has no room for"),
}
NAMES = tuple(f"frida-{kind}" for kind in _KINDS)


def make_tools() -> list[Tool]:
    """FileNotFoundError where frida is not installed."""
    version = find_version("frida")
    return [
        Tool(
            f"frida-{kind}",
            about,
            partial(_wrap, kind),
            make_environment(),
            version=version,
            is_peer=True,
            same_code_as="" if unit else "frida-counts",
            read_counted=partial(_read_counted, unit),
        )
        for kind, (unit, about) in _KINDS.items()
    ]


def _wrap(kind: str, command: Sequence[str], folder: Path) -> list[str]:
    return [str(PYTHON), str(INSIDE / "follow_frida.py"), kind, str(folder / "counted.json"), *command]


def _read_counted(unit: str, folder: Path) -> Counted:
    return {unit: int(json.loads((folder / "counted.json").read_text())["counted"])} if unit else {}
