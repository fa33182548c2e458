"""A thread that is stopped, as it shows itself.

Runs in the controller.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from clew.address import RemoteAddress, Tid
from clew.dataclass import dataclass
from clew.protocol._constants import HoldReason

if TYPE_CHECKING:
    from clew.protocol.architecture import ArchitectureDefinition

__all__ = ["StoppedThread"]


@dataclass(frozen=True)
class StoppedThread:
    """A thread that is stopped: why (HoldReason), and its registers in the order that its architecture has.

    `vectors` are the low halves of its first vector registers; `thread_pointer` is where its thread-local variables are
    found from; `behind` is CaptureContext.BEHIND.
    """

    tid: Tid
    reason: HoldReason
    registers: tuple[int, ...]
    vectors: tuple[int, ...]
    thread_pointer: int
    behind: int
    definition: ArchitectureDefinition

    def __init__(
        self,
        tid: Tid,
        reason: HoldReason,
        registers: tuple[int, ...],
        vectors: tuple[int, ...],
        thread_pointer: int,
        behind: int,
        definition: ArchitectureDefinition,
    ) -> None:
        # The thread waits meanwhile: a third of the time that it takes for any fields.
        own = self.__dict__
        own["tid"], own["reason"], own["registers"], own["vectors"] = tid, reason, registers, vectors
        own["thread_pointer"], own["behind"], own["definition"] = thread_pointer, behind, definition

    @property
    def by_name(self) -> dict[str, int]:
        """Its registers by their names, in their order."""
        return dict(zip(self.definition.held_registers, self.registers, strict=True))

    @cached_property
    def pc(self) -> RemoteAddress:
        """Where it is: in front of the instruction there."""
        return RemoteAddress(self._register(self.definition.program_counter))

    @property
    def stack_pointer(self) -> int:
        """The address of its stack's last word."""
        return self._register(self.definition.stack_pointer)

    def _register(self, name: str) -> int:
        # Most of those who come by ask for one or two only.
        return self.registers[self.definition.held_registers.index(name)]
