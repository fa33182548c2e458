"""Whether a process is frozen by its control group: it runs nothing then, and no tracer can make it (cgroups(7)).

Runs in the controller. Reads files of the kernel's alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["is_frozen"]


def is_frozen(task: int) -> bool:
    """Whether a process or thread is frozen, as far as it can be seen from here."""
    try:
        groups = Path(f"/proc/{task}/cgroup").read_text().splitlines()
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return False
    for line in groups:
        number, controllers, group = line.split(":", 2)
        if number == "0":
            name, told = "cgroup.events", "frozen 1"
            places = _iter_places(mounts, "cgroup2", "")
        elif "freezer" in controllers.split(","):
            name, told = "freezer.state", "FROZEN"
            places = _iter_places(mounts, "cgroup", "freezer")
        else:
            continue
        for place in places:
            try:
                if told in (place / group.lstrip("/") / name).read_text():
                    return True
            except OSError:
                continue
    return False


def _iter_places(mounts: list[str], kind: str, option: str) -> Iterator[Path]:
    """Where file systems of a kind are mounted, with an option if one is wanted."""
    for line in mounts:
        _, place, found, options, *_ = line.split(" ")
        if found == kind and (not option or option in options.split(",")):
            yield Path(place)
