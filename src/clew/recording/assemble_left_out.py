"""What was counted only because ordered paths lead through it: code that is not to be recorded.

Runs in the controller, after the target ended. Pure.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clew.recording.assemble_edges import Edges, ThreadCounts
from clew.recording.blocks import Blocks

__all__ = ["without_left_out"]


def without_left_out(blocks: Blocks, edges: Edges) -> Edges:
    """`edges` whose counts are those of recorded blocks, and of edges that one of them is at an end of.

    Blocks and edges stay what they are, by number: paths name them.
    """
    is_recorded = np.append(blocks.is_recorded, True)
    if is_recorded.all():
        return edges
    # A start has no source, and is recorded where it leads to recorded code.
    touches = is_recorded[edges.target] | ((edges.source >= 0) & is_recorded[edges.source])

    def count(thread: ThreadCounts) -> ThreadCounts:
        block, edge = is_recorded[thread.block], touches[thread.edge]
        return ThreadCounts(thread.block[block], thread.block_count[block], thread.edge[edge], thread.edge_count[edge])

    ran = [thread.block for thread in edges.threads]
    passed = np.unique(np.concatenate(ran)) if ran else np.zeros(0, np.int64)
    return replace(edges, threads=[count(thread) for thread in edges.threads], passed=passed[~is_recorded[passed]])
