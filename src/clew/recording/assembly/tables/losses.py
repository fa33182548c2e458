"""What is not in a trace: how much of what kind, and who ran on natively, why and since when.

Runs in the controller, after the target ended.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import EventKind, ReleaseReason
from clew.recording.assembly.clock import Clock
from clew.recording.assembly.records.bundles import Bundle
from clew.recording.raw.process import SessionInfo

__all__ = ["Losses"]

Array = npt.NDArray[Any]

_NO_LOSS: Final = (ReleaseReason.DETACH, ReleaseReason.FATAL_FAULT)
"""Asked for; and of a thread whose end it is: the kernel ends the process at the instruction that faulted."""
_NAMES: Final = (
    "dropped_records",
    "damaged_records",
    "damaged_counters",
    "lost_threads",
    "lost_processes",
    "released_threads",
    "unfollowed_children",
    "unfollowed_programs",
    "uncounted_fragments",
    "untagged_fragments",
    "uncounted_instructions",
)


class Losses:
    """The losses of all processes of a recording, for the manifest.

    `counts` by name. `releases` has for each process and reason how many threads went on natively for it, and when the
    first did, in nanoseconds since 1970.
    """

    def __init__(self, session: SessionInfo) -> None:
        self.counts = dict.fromkeys(_NAMES, 0)
        self.counts["unfollowed_programs"] = session.unfollowed_programs
        self.counts["unfollowed_children"] = session.unfollowed_children
        self.releases: list[dict[str, Any]] = []
        self._follow = session.follow

    def add(self, bundle: Bundle, events: Array, *, damaged_records: int, damaged_counters: int) -> None:
        """Add what is missing of `bundle`'s processes, whose event records are `events`."""
        counts = self.counts
        counts["damaged_records"] += damaged_records
        counts["damaged_counters"] += damaged_counters
        if self._follow:
            is_fork = events["event_kind"] == EventKind.FORK
            counts["unfollowed_children"] += int(np.count_nonzero(is_fork & (events["b"] != 1)))
        self._add_releases(bundle, events)
        for process in bundle.processes:
            status = process.status
            counts["dropped_records"] += int(status["lost_records"])
            counts["lost_threads"] += int(status["lost_threads"])
            counts["lost_processes"] += process.is_lost
            counts["uncounted_fragments"] += int(status["uncounted_fragments"])
            counts["untagged_fragments"] += int(status["untagged_fragments"])
            counts["uncounted_instructions"] += int(status["uncounted_instructions"])

    def _add_releases(self, bundle: Bundle, events: Array) -> None:
        released = events[(events["event_kind"] == EventKind.RELEASED) & ~np.isin(events["a"], _NO_LOSS)]
        if not len(released):
            return
        self.counts["released_threads"] += len(released)
        owner = bundle.owner_of(released["app_pc"])
        for number in sorted(set(owner.tolist())):
            process, own = bundle.processes[number], released[owner == number]
            clock = Clock(process)
            for reason in sorted(set(own["a"].tolist())):
                stamps = own["tsc"][own["a"] == reason]
                name = ReleaseReason(reason).name.lower() if reason in set(ReleaseReason) else f"reason_{reason}"
                since_ns = clock.one_to_ns(int(stamps.min()))
                self.releases.append({"pid": process.pid, "reason": name, "threads": len(stamps), "since_ns": since_ns})
