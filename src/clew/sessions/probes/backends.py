"""By which means threads come to probes: what somebody chose, and what that leaves to the planner.

Runs in the controller. Pure.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from clew.dataclass import dataclass
from clew.errors import UsageError
from clew.probing.native import Technique

__all__ = ["AUTO", "BACKENDS", "Backend", "BackendChoice", "backend_of", "parse_backend", "parse_native_backend"]


class Backend(Enum):
    """AUTO takes what costs a thread least. JUMP does as well, and what has to trap is told. TRAP has all places trap.
    ENGINE follows the program, and takes captures in translated code. UPROBE has the kernel do it."""

    AUTO = "auto"
    JUMP = "jump"
    TRAP = "trap"
    ENGINE = "engine"
    UPROBE = "uprobe"


BACKENDS: Final = tuple(one.value for one in Backend)


def backend_of(technique: Technique) -> Backend:
    """How threads come to a probe, where a program runs its own code."""
    return Backend.TRAP if technique == Technique.TRAP else Backend.JUMP


@dataclass(frozen=True)
class BackendChoice:
    """`requires_jump`: what would trap is refused."""

    backend: Backend = Backend.AUTO
    requires_jump: bool = False

    @property
    def without(self) -> frozenset[Technique]:
        """Techniques that may not be used."""
        if self.backend == Backend.TRAP:
            return frozenset(Technique) - {Technique.TRAP}
        return frozenset((Technique.TRAP,)) if self.requires_jump else frozenset()

    @property
    def tells_traps(self) -> bool:
        """Whether people are to be told of each place that traps."""
        return self.backend == Backend.JUMP


AUTO: Final = BackendChoice()


def parse_backend(backend: str, require: str | None = None) -> BackendChoice:
    """What was chosen; `require` is `jump` or nothing. Raises UsageError."""
    if backend not in BACKENDS:
        raise UsageError(f"backend {backend}: it is one of {', '.join(BACKENDS)}")
    if require not in (None, "jump"):
        raise UsageError(f"require {require}: only a jump can be required")
    choice = BackendChoice(Backend(backend), require is not None)
    if choice.requires_jump and choice.backend not in (Backend.AUTO, Backend.JUMP):
        raise UsageError(f"a jump can't be required of backend {backend}")
    return choice


def parse_native_backend(backend: str, require: str | None = None) -> BackendChoice:
    """The same where a program runs its own code, and the kernel has no part in it. Raises UsageError."""
    choice = parse_backend(backend, require)
    if choice.backend == Backend.ENGINE:
        raise UsageError("backend engine: a program that is followed has probes by clew.spawn or clew.attach_session")
    if choice.backend == Backend.UPROBE:
        raise UsageError("backend uprobe: there is `clew trace --backend uprobe` for that")
    return choice
