"""The graph of one thread, counted as its executions come: how often it ran each block, and went from one to another.

Runs in the controller. What is in memory grows with the code, not with how often it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.export.este.code import NO_ROUTINE
from clew.store.columns import Array

if TYPE_CHECKING:
    from clew.export.este.routines import Routines
    from clew.export.este.rows import BlockRows

__all__ = ["ThreadGraph"]


class ThreadGraph:
    """Counts rows of a thread: numbers of blocks, -1 where it left them, and of the routines that they called."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._links: Counter[tuple[int, int]] = Counter()
        self._links_outside: Counter[tuple[int, int, int]] = Counter()
        self._last: tuple[int, int] | None = None
        """The last block, and the routine that it called."""
        self._has_left = False

    def add(self, idx: Array, routine: Array) -> None:
        """Go on by some rows: numbers of blocks and of routines (i64)."""
        inside = np.flatnonzero(idx >= 0)
        if not len(inside):
            self._has_left = True
            return
        blocks, called = idx[inside], routine[inside]
        # A row in between, or in front, says that it was outside.
        is_across = np.diff(inside, prepend=-1) > 1
        is_across[0] |= self._has_left
        self._has_left = bool(idx[-1] < 0)
        _count(self._counts, blocks)
        sources, targets = blocks[:-1], blocks[1:]
        called_before = called[:-1]
        if self._last is not None:
            sources = np.append(self._last[0], sources)
            called_before = np.append(self._last[1], called_before)
            targets = blocks
        is_across = is_across[len(blocks) - len(targets) :]
        self._last = int(blocks[-1]), int(called[-1])
        plain = np.flatnonzero(~is_across)
        keys, counts = np.unique(sources[plain] << 32 | targets[plain], return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            self._links[key >> 32, key & 0xFFFFFFFF] += count
        across = np.flatnonzero(is_across)
        columns = (sources[across], targets[across], called_before[across])
        self._links_outside.update(zip(*(column.tolist() for column in columns), strict=True))

    def break_off(self) -> None:
        """What ran next is not known: nothing leads to what comes then."""
        self._last = None
        self._has_left = False

    @property
    def n_executions(self) -> int:
        """How often blocks were executed."""
        return self._counts.total()

    def iter_nodes(self, blocks: BlockRows) -> Iterator[dict[str, Any]]:
        """The blocks that the thread executed, by their numbers."""
        for idx, count in sorted(self._counts.items()):
            address, size, content, image, section = blocks.row(idx)
            yield {
                "idx": idx,
                "addr": address,
                "size": size,
                "bytes": content.hex().upper(),
                "image_idx": image,
                "section_idx": section,
                "id": idx,
                "count": count,
            }

    def iter_links(self, routines: Routines) -> Iterator[dict[str, Any]]:
        """From block to block, and those over a stretch outside: by source and target."""
        links = [(*pair, 0, NO_ROUTINE, count) for pair, count in self._links.items()]
        links += [(source, target, 1, called, n) for (source, target, called), n in self._links_outside.items()]
        for source, target, is_outside, called, count in sorted(links):
            link: dict[str, Any] = {"source": source, "target": target, "count": count}
            if is_outside:
                link["non_white"] = 1
            if called != NO_ROUTINE:
                link["rtn_called"] = routines.name(called)
            yield link


def _count(counter: Counter[int], values: Array) -> None:
    counts = np.bincount(values)
    found = np.flatnonzero(counts)
    for value, count in zip(found.tolist(), counts[found].tolist(), strict=True):
        counter[value] += count
