"""Tags of a trace by thread, some rows at a time, with blocks as rows of their table.

Runs in the controller. There may be far more tags than memory holds. Of a good trace the rows of a thread follow one
another; here they come in their order also where they do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from clew.analysis.tables.arrays import Array, TraceArrays, find_rows, pack_threads, to_numpy, to_words
from clew.protocol.words import TAG_WORDS, TagWord

__all__ = ["UNKNOWN", "TagRows", "is_kind", "iter_tag_rows"]

UNKNOWN: Final = -2
"""A block that is not in the trace; -1 is none."""

_COLUMNS: Final = ["process_id", "tid", "tag", "kind", "block_id", "target_block_id", "executions", "value", "time_ns"]


@dataclass(frozen=True)
class TagRows:
    """Some tags of one thread (see `pack_threads`), in their order, one row each.

    `row` are their rows in the whole trace, `kind` indices into TAG_WORDS or -1, `block` and `target` rows of blocks,
    -1 or UNKNOWN; the others are -1 where they are null.
    """

    thread: int
    row: Array
    tag: Array
    kind: Array
    block: Array
    target: Array
    executions: Array
    value: Array
    time_ns: Array

    def __len__(self) -> int:
        return len(self.row)

    def take(self, chosen: Array) -> TagRows:
        """The rows that `chosen` names."""
        return TagRows(self.thread, *(column[chosen] for column in self._columns()))

    def follow(self, before: TagRows | None) -> TagRows:
        """`before`, of the same thread, and these."""
        if before is None or not len(before):
            return self
        pairs = zip(before._columns(), self._columns(), strict=True)
        return TagRows(self.thread, *(np.concatenate(pair) for pair in pairs))

    def _columns(self) -> tuple[Array, ...]:
        return (self.row, self.tag, self.kind, self.block, self.target, self.executions, self.value, self.time_ns)


def is_kind(kind: Array, *kinds: TagWord) -> Array:
    """Which kinds of tags (indices, or -1) are among `kinds`."""
    table = np.zeros(len(TAG_WORDS) + 1, bool)
    table[[TAG_WORDS.index(word) for word in kinds]] = True
    found: Array = table[kind]
    return found


def iter_tag_rows(arrays: TraceArrays) -> Iterator[TagRows]:
    """All tags; those of a thread in their order, perhaps not all at once."""
    first_row = 0
    for piece in arrays.trace.iter_pieces("tags", _COLUMNS):
        thread = pack_threads(to_numpy(piece["process_id"]), to_numpy(piece["tid"]))
        columns = (
            arrays.trace.whole_rows("tags", first_row + np.arange(len(thread))),
            to_numpy(piece["tag"]),
            to_words(piece["kind"], TAG_WORDS),
            _find_blocks(arrays, to_numpy(piece["block_id"])),
            _find_blocks(arrays, to_numpy(piece["target_block_id"])),
            *(to_numpy(piece[name]) for name in ("executions", "value", "time_ns")),
        )
        first_row += len(thread)
        borders = np.flatnonzero(np.diff(thread)) + 1
        for first, last in zip([0, *borders.tolist()], [*borders.tolist(), len(thread)], strict=True):
            if first < last:
                yield TagRows(int(thread[first]), *(column[first:last] for column in columns))


def _find_blocks(arrays: TraceArrays, block_id: Array) -> Array:
    row = find_rows(arrays.block_id, block_id)
    row[(row < 0) & (block_id >= 0)] = UNKNOWN
    return row
