"""What one count of each counter means: how many instructions and blocks were executed.

Runs in the controller, after the target ended. Pure. So many were executed between two checkpoints of a path, whose
counters are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.recording.assemble_flow import ProcessFlow
from clew.recording.assemble_records import Fragments
from clew.recording.blocks import Blocks

__all__ = ["CounterWeights", "weigh_counters"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class CounterWeights:
    """By index of a counter, i64: instructions and blocks. Negative ones set right what others counted too."""

    instructions: Array
    blocks: Array

    def weigh(self, index: Array, rise: Array) -> tuple[int, int]:
        """Instructions and blocks executed when counters `index` rose by `rise`."""
        known = index < len(self.instructions)
        at, by = index[known].astype(np.int64), rise[known].astype(np.int64)
        return int((self.instructions[at] * by).sum()), int((self.blocks[at] * by).sum())


def weigh_counters(fragments: Fragments, flow: ProcessFlow, blocks: Blocks, n_counters: int) -> CounterWeights:
    """Weights of the counters below `n_counters`."""
    paths = flow.paths
    counted = np.flatnonzero((paths.counter >= 0) & (paths.counter < n_counters))
    fragment, stop_pc, counter = paths.fragment[counted], paths.stop_pc[counted], paths.counter[counted]
    instructions, n_blocks = np.zeros(n_counters, np.int64), np.zeros(n_counters, np.int64)
    executed = fragments.count_instructions(fragment, fragments.app_pc[fragment], stop_pc).astype(np.int64)
    np.add.at(instructions, counter, executed)
    np.add.at(n_blocks, counter, _count_blocks(blocks, fragments, fragment, stop_pc))
    for weights in (instructions, n_blocks):
        _set_right(weights, fragments)
    return CounterWeights(instructions, n_blocks)


def _count_blocks(blocks: Blocks, fragments: Fragments, fragment: Array, stop_pc: Array) -> Array:
    """How many blocks start in each fragment in front of `stop_pc`."""
    code = blocks.code
    before = np.concatenate([[0], np.cumsum(blocks.piece_starts & (blocks.piece_block >= 0))])
    first, last = code.first[fragment], code.first[fragment + 1]
    for row in np.flatnonzero(stop_pc != fragments.end_pc[fragment]).tolist():
        last[row] = first[row] + np.searchsorted(code.start_pc[first[row] : last[row]], stop_pc[row])
    counted: Array = before[last] - before[first]
    return counted


def _set_right(weights: Array, fragments: Fragments) -> None:
    """Where one counter of two counts both ways of a branch, the other one counts nothing of its own."""
    counter = fragments.counter_index
    pairs = np.flatnonzero((counter >= 0) & (counter + 1 < len(weights)))
    first, second = counter[pairs], counter[pairs] + 1
    weight_first, weight_second = weights[first], weights[second]
    is_first_both, is_second_both = fragments.first_is_both[pairs], fragments.second_is_both[pairs]
    weights[second[is_first_both]] -= weight_first[is_first_both]
    weights[first[is_second_both]] -= weight_second[is_second_both]
