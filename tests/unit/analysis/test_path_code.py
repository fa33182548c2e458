"""Events of paths as the codec wants them: at the blocks that would run next."""

from __future__ import annotations

import numpy as np

from clew.analysis.order.path_code import ProcessCode
from clew.binary.path_codec import PathCode
from clew.protocol._generated import PATH_EVENT_RECORD, PathEventKind
from clew.protocol.codec import NOWHERE, Action
from clew.protocol.codec_layouts import BLOCK

STARTS, ENDS, BRANCHES = (np.array(row, np.uint64) for row in ([16, 32, 48], [24, 48, 50], [22, 44, 48]))


def made_up_code() -> ProcessCode:
    blocks = np.zeros(3, BLOCK)
    blocks["pc"], blocks["end_pc"] = STARTS, ENDS
    numbers, nothing = np.arange(3), np.zeros(0, np.int64)
    return ProcessCode(
        PathCode(blocks, np.zeros(0, np.uint32)), numbers, numbers, BRANCHES, numbers * 0, (nothing,) * 4
    )


def test_paths_end_and_change_inside_blocks_too() -> None:
    """Where a thread was left after single steps; where fragments of one block meet. What leads elsewhere does not."""
    kinds = [PathEventKind.END, PathEventKind.UNLIKE, PathEventKind.RESUME, PathEventKind.END, PathEventKind.END]
    records = np.zeros(len(kinds), PATH_EVENT_RECORD)
    records["event_kind"], records["pc"] = kinds, [36, 40, 36, 48, 28]
    records["value"] = [0, 44, 16, 0, 0]
    code = made_up_code()
    events, numbers = code.convert_events(records, code.code.blocks)
    assert numbers.tolist() == [0, 1, 2, 3, 4]
    assert events["block"].tolist() == [1, 1, NOWHERE, 2, NOWHERE]
    assert events["action"].tolist() == [Action.END, Action.EXPECT, Action.RESUME, Action.END, Action.END]
