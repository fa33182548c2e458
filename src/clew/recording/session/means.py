"""What it takes to enter a target.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable

from clew.dataclass import dataclass
from clew.process.runtime_image import RuntimeImage
from clew.process.shared_memory import HeaderSettings
from clew.recording.following.processes import Processes
from clew.recording.options.filters import FilterSet
from clew.recording.session.interrupts import InterruptGuard

__all__ = ["Means"]


@dataclass(frozen=True)
class Means:
    """What it takes to enter a target: `processes` follow it from then on. `tell` gets lines for people.

    `start_ns` is when the recording began, CLOCK_REALTIME.
    """

    processes: Processes
    image: RuntimeImage
    settings: HeaderSettings
    filters: FilterSet
    guard: InterruptGuard
    tell: Callable[[str], None]
    start_ns: int
