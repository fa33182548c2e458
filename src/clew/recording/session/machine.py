"""Facts about this machine for the manifest of a trace.

Runs in the controller.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

__all__ = ["machine_facts"]


def machine_facts() -> dict[str, Any]:
    """`architecture`, `kernel`, `cpu` (its model name, or empty), `processors`, `page_bytes`, and `clock_offset_ns`:
    how far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC."""
    system = os.uname()
    return {
        "architecture": system.machine,
        "kernel": f"{system.sysname} {system.release}",
        "cpu": _cpu_model(),
        "processors": os.cpu_count() or 1,
        "page_bytes": os.sysconf("SC_PAGE_SIZE"),
        "clock_offset_ns": time.time_ns() - time.monotonic_ns(),
    }


def _cpu_model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return ""
