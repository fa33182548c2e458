"""What a thread of the target asks of the controller.

Runs in the controller.
"""

from __future__ import annotations

from clew.dataclass import dataclass

__all__ = ["Request"]


@dataclass(frozen=True)
class Request:
    """What a thread asks and waits for: `kind` of RequestKind, unchecked `tid` and `arguments`."""

    slot: int
    tid: int
    kind: int
    arguments: tuple[int, ...]

    def __init__(self, slot: int, tid: int, kind: int, arguments: tuple[int, ...]) -> None:
        # A thread waits meanwhile: a third of the time that it takes for any fields.
        own = self.__dict__
        own["slot"], own["tid"], own["kind"], own["arguments"] = slot, tid, kind, arguments
