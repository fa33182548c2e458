"""Export of events' backtraces to collapsed stacks, what flame graphs are drawn of: `outermost;...;innermost count`.

Runs in the controller. What an address is called is for whoever calls to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from clew.export.probes.event_types import PLACE, EventBatch, EventType, Shape
from clew.export.probes.value_text import plain_text

__all__ = ["CollapsedStacks"]

Stack = tuple[int, ...]


class CollapsedStacks:
    """Counts stacks of events: of each the first backtrace that its type has; events without one are not counted.

    What is kept grows with different stacks, not with events.
    """

    def __init__(self, name_of: Callable[[int, int], str]) -> None:
        """`name_of` names an address of a process, whose number comes first, while events of it come: what is loaded
        there may be something else later."""
        self._name_of = name_of
        self._counts: Counter[str] = Counter()
        self.n_missing = 0
        """Events whose backtrace could not be had."""

    def write(self, batch: EventBatch) -> None:
        """Count the stacks of events. Raises ValueError if a table is not of its type."""
        for event_type, table in batch.tables:
            event_type.check(table)
            index = _find_backtrace(event_type)
            if index is not None:
                self._count(table, index)

    def lines(self) -> list[str]:
        """A line for each stack, the thread's name outermost. Sorted: stacks of one caller stand together."""
        return [f"{stack} {count}" for stack, count in sorted(self._counts.items())]

    def write_lines(self, file: TextIO) -> None:
        """Write the lines. Raises OSError."""
        file.writelines(line + "\n" for line in self.lines())

    def _count(self, table: Any, index: int) -> None:
        pids, comms, stacks = (
            table.column(one).to_pylist()
            for one in (PLACE.get_field_index("pid"), PLACE.get_field_index("comm"), index)
        )
        found: Sequence[tuple[int, bytes, Stack]] = [
            (pid, comm, tuple(stack)) for pid, comm, stack in zip(pids, comms, stacks, strict=True) if stack
        ]
        self.n_missing += len(stacks) - len(found)
        for (pid, comm, stack), count in Counter(found).items():
            # From the caller on an address is where it goes on: the call is in front of it.
            addresses = [*stack[:1], *(address - 1 for address in stack[1:])]
            frames = [plain_text(comm.split(b"\0")[0]), *(self._name_of(pid, one) for one in reversed(addresses))]
            self._counts[";".join(map(_frame_text, frames))] += count


def _find_backtrace(event_type: EventType) -> int | None:
    """The column of the first backtrace."""
    found = (len(PLACE) + index for index, one in enumerate(event_type.values) if one.type is Shape.BACKTRACE)
    return next(found, None)


def _frame_text(name: str) -> str:
    """A name on a line: a semicolon ends a frame."""
    return plain_text(name).replace(";", ":")
