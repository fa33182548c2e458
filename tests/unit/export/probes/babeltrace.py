"""Reads CTF by babeltrace2, which knows nothing of what wrote it; skips, and says so, where it is not installed."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

# Run by the system's Python, to which babeltrace2's bindings (package python3-bt2) belong.
_SCRIPT = """
import json, sys
import bt2
def plain(field):
    cls = type(field).__name__
    if "Structure" in cls:
        return {name: plain(value) for name, value in field.items()}
    if "Array" in cls:
        return [plain(value) for value in field]
    if "String" in cls:
        return str(field)
    return float(field).hex() if "Real" in cls else int(field)
for message in bt2.TraceCollectionMessageIterator(sys.argv[1:]):
    kind = type(message).__name__
    if kind == "_EventMessageConst":
        event = message.event
        time, cpu = message.default_clock_snapshot.ns_from_origin, int(event.packet.context_field["cpu_id"])
        print(json.dumps([time, event.name, cpu, plain(event.common_context_field), plain(event.payload_field)]))
    elif kind == "_DiscardedEventsMessageConst":
        print(json.dumps(["lost", message.count, message.beginning_default_clock_snapshot.ns_from_origin,
                          message.end_default_clock_snapshot.ns_from_origin]))
"""
_PYTHON = "/usr/bin/python3"


def _run(*command: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


@functools.cache
def _has_bindings() -> bool:
    return Path(_PYTHON).exists() and not _run(_PYTHON, "-c", "import bt2").returncode


def print_ctf(*folders: Path, options: Sequence[str] = ()) -> list[bytes]:
    """The lines that babeltrace2 prints."""
    if not shutil.which("babeltrace2"):
        pytest.skip("there is no babeltrace2: what reads CTF was not asked (package babeltrace2)")
    run = _run("babeltrace2", "--clock-gmt", *options, *folders)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def read_ctf(*folders: Path) -> tuple[list[list[Any]], list[list[Any]]]:
    """Events as [time_ns, name, cpu, contexts, fields], floating-point numbers in hexadecimal digits, in the order in
    which they are told; and losses as ["lost", count, from, to]."""
    if not _has_bindings():
        pytest.skip("there are no bindings of babeltrace2: what reads CTF was not asked (package python3-bt2)")
    run = _run(_PYTHON, "-c", _SCRIPT, *folders)
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    return [one for one in found if one[0] != "lost"], [one for one in found if one[0] == "lost"]
