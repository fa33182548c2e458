"""What one count of each counter means: how many instructions and blocks were executed.

Runs in the controller, after the target ended. Pure. So many were executed between two checkpoints of a path, whose
counters are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.recording.assembly.arrays.keys import spans
from clew.recording.assembly.blocks.blocks import CutBlocks
from clew.recording.assembly.flow.flow import ProcessFlow
from clew.recording.assembly.flow.leaders import Leaders
from clew.recording.assembly.records.records import Fragments, ParsedRecords
from clew.recording.raw.process import Counters

__all__ = ["CounterWeights", "weigh_counters"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class CounterWeights:
    """By index of a counter, i64: instructions and blocks. Negative ones set right what others counted too."""

    instructions: Array
    blocks: Array
    listed: tuple[Array, Array, Array]
    """Rows of counters, blocks (indices), and how often one count of the counter executes the block (i64)."""

    def weigh(self, index: Array, rise: Array) -> tuple[int, int]:
        """Instructions and blocks executed when counters `index` rose by `rise`."""
        known = index < len(self.instructions)
        at, by = index[known].astype(np.int64), rise[known].astype(np.int64)
        return int((self.instructions[at] * by).sum()), int((self.blocks[at] * by).sum())

    def weigh_all(self, counters: Sequence[Counters]) -> tuple[Array, Array]:
        """Instructions and blocks executed by each of some threads that have these counters, i64."""
        n = len(counters)
        owner = np.repeat(np.arange(n), [len(one.index) for one in counters])
        index = np.concatenate([np.zeros(0, np.int64), *(one.index for one in counters)])
        value = np.concatenate([np.zeros(0, np.uint64), *(one.value for one in counters)])
        known = index < len(self.instructions)
        owner, at, by = owner[known], index[known], value[known].astype(np.int64)
        instructions, blocks = np.zeros(n, np.int64), np.zeros(n, np.int64)
        np.add.at(instructions, owner, self.instructions[at] * by)
        np.add.at(blocks, owner, self.blocks[at] * by)
        return instructions, blocks


def weigh_counters(parsed: ParsedRecords, flow: ProcessFlow, cut: CutBlocks, n_counters: int) -> CounterWeights:
    """Weights of the counters below `n_counters`."""
    fragments, paths = parsed.fragments, flow.paths
    counted = np.flatnonzero((paths.counter >= 0) & (paths.counter < n_counters))
    fragment, stop_pc, counter = paths.fragment[counted], paths.stop_pc[counted], paths.counter[counted]
    instructions, n_blocks = np.zeros(n_counters, np.int64), np.zeros(n_counters, np.int64)
    executed = fragments.count_instructions(fragment, fragments.app_pc[fragment], stop_pc).astype(np.int64)
    np.add.at(instructions, counter, executed)
    row, block = _list_blocks(cut, fragments, fragment, stop_pc)
    np.add.at(n_blocks, counter[row], 1)
    leaders = Leaders(fragments, parsed.links)
    for weights in (instructions, n_blocks):
        _set_right(weights, fragments)
        leaders.weigh(weights)
    listed = leaders.list_causes(*_correct_list(counter[row], block, fragments))
    return CounterWeights(instructions, n_blocks, listed)


def _list_blocks(cut: CutBlocks, fragments: Fragments, fragment: Array, stop_pc: Array) -> tuple[Array, Array]:
    """The blocks that start in each fragment in front of `stop_pc`: rows of `fragment`, and blocks (indices)."""
    code = cut.code
    first, last = code.first[fragment], code.first[fragment + 1]
    for at in np.flatnonzero(stop_pc != fragments.end_pc[fragment]).tolist():
        last[at] = first[at] + np.searchsorted(code.start_pc[first[at] : last[at]], stop_pc[at])
    n_pieces = last - first
    row = np.repeat(np.arange(len(fragment)), n_pieces)
    piece = spans(first, n_pieces)
    starts = np.flatnonzero(cut.piece_starts[piece] & (cut.piece_block[piece] >= 0))
    return row[starts], cut.piece_block[piece[starts]]


def _correct_list(counter: Array, block: Array, fragments: Fragments) -> tuple[Array, Array, Array]:
    """The list with what `_set_right` does to sums: what the other counter of two counts already is taken away."""
    index = fragments.counter_index
    both = np.concatenate([index[fragments.first_is_both], index[fragments.second_is_both] + 1])
    other = np.concatenate([index[fragments.first_is_both] + 1, index[fragments.second_is_both]])
    order = np.argsort(both, kind="stable")
    both, other = both[order], other[order]
    if not len(both):
        return counter, block, np.ones(len(counter), np.int64)
    at = np.minimum(np.searchsorted(both, counter), len(both) - 1)
    shared = np.flatnonzero(both[at] == counter)
    return (
        np.concatenate([counter, other[at[shared]]]),
        np.concatenate([block, block[shared]]),
        np.concatenate([np.ones(len(counter), np.int64), np.full(len(shared), -1)]),
    )


def _set_right(weights: Array, fragments: Fragments) -> None:
    """Where one counter of two counts both ways of a branch, the other one counts nothing of its own."""
    counter = fragments.counter_index
    pairs = np.flatnonzero((counter >= 0) & (counter + 1 < len(weights)))
    first, second = counter[pairs], counter[pairs] + 1
    weight_first, weight_second = weights[first], weights[second]
    is_first_both, is_second_both = fragments.first_is_both[pairs], fragments.second_is_both[pairs]
    weights[second[is_first_both]] -= weight_first[is_first_both]
    weights[first[is_second_both]] -= weight_second[is_second_both]
