"""What a process has mapped, and the code of it: it is the same again when nothing is left of probes.

Runs on the machine that tests.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["dirty_code", "maps_text", "read_code", "read_code_of"]


def maps_text(pid: int) -> str:
    """The text of /proc/PID/maps."""
    return Path(f"/proc/{pid}/maps").read_text()


def read_code(pid: int) -> dict[str, bytes]:
    """All code of files that a process executes, by its lines of /proc/PID/maps."""
    lines = maps_text(pid).splitlines()
    return {line: _read(pid, line) for line in lines if " r-xp " in line and "/" in line}


def read_code_of(pid: int, file: Path) -> bytes:
    """The code of a file that a process executes."""
    return _read(
        pid, next(line for line in maps_text(pid).splitlines() if " r-xp " in line and line.endswith(file.name))
    )


def _read(pid: int, line: str) -> bytes:
    start, end = (int(word, 16) for word in line.split()[0].split("-"))
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(start)
        return memory.read(end - start)


def dirty_code(pid: int) -> list[str]:
    """Mappings of files' code of which a process has pages of its own."""
    found, current = [], ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            current = line
        if re.match(r"(Anonymous|Swap):", line) and int(line.split()[1]) and " r-xp " in current:
            found.append(f"{current}: {line}")
    return found
