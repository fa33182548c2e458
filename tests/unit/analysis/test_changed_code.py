"""The code as it is at places of a path: changes made one by one are the measure."""

from __future__ import annotations

import numpy as np
import pytest

from clew.analysis.order.changed_code import ChangedCode
from clew.analysis.order.path_code import ProcessCode
from clew.binary.path_codec import PathCode
from clew.protocol._generated import PATH_EVENT_RECORD, PathEventKind
from clew.protocol.codec import NOWHERE, Action, Ending
from clew.protocol.codec_layouts import BLOCK
from clew.store.path_checkpoints import STATE

N_PLACES, N_VERSIONS = 6, 4


def made_up_code() -> ProcessCode:
    """Six places of eight bytes with four versions each, a slot for each place; fragments hold one or two places."""
    n = N_PLACES * N_VERSIONS
    table = np.zeros(n + N_PLACES, BLOCK)
    pc = np.repeat(np.arange(N_PLACES, dtype=np.uint64) * 8 + 16, N_VERSIONS)
    version = np.tile(np.arange(N_VERSIONS, dtype=np.uint32), N_PLACES)
    table["pc"][:n], table["pc"][n:] = pc, pc[::N_VERSIONS]
    table["end_pc"][:n] = pc + np.uint64(8)
    table["ending"][n:] = Ending.SLOT
    table["target"], table["next"] = NOWHERE, NOWHERE
    table["target"][n:] = np.arange(N_PLACES) * N_VERSIONS
    table["is_taken"][: n // 2] = 1
    numbers = np.arange(n)
    held = [(place, version, size) for place in range(N_PLACES) for version in range(N_VERSIONS) for size in (8, 16)]
    start = np.array([place * 8 + 16 for place, _, _ in held], np.uint64)
    size = np.array([size for _, _, size in held], np.uint64)
    later = (np.arange(len(held)) * 3, start, start + size, np.array([version for _, version, _ in held], np.uint32))
    return ProcessCode(
        PathCode(table, np.zeros(0, np.uint32)), numbers, np.ones(n, np.int64), pc + np.uint64(4), version, later
    )


def change_one_by_one(code: ProcessCode, blocks: np.ndarray, kind: int, value: int) -> list[tuple[int, int, int]]:
    """What one event changes of `blocks`, by looking at each block: the action, what it is done to, and the value."""
    n, made = len(code), []
    for block in range(n):
        pc, version = int(blocks["pc"][block]), int(code.code_version[block])
        if kind == PathEventKind.UNLIKE and int(code.branch_pc[block]) == value:
            blocks["is_taken"][block] ^= 1
            made.append((int(Action.EXPECT), block, int(blocks["is_taken"][block])))
        for fragment, start, end, held in zip(*(column.tolist() for column in code.later), strict=True):
            if kind == PathEventKind.CODE and fragment == value and start <= pc < end and held == version:
                slot = n + (pc - 16) // 8
                blocks["target"][slot] = block
                made.append((int(Action.CODE), slot, block))
    return made


def random_events(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    kinds = random.choice([PathEventKind.UNLIKE, PathEventKind.CODE, PathEventKind.LOST], n, p=[0.45, 0.5, 0.05])
    values = np.where(
        kinds == PathEventKind.UNLIKE, random.integers(0, N_PLACES + 1, n) * 8 + 20, random.integers(0, 150, n)
    )
    return kinds, values


@pytest.mark.parametrize("seed", range(3))
def test_places_are_as_if_changes_were_made_one_by_one(seed: int) -> None:
    code = made_up_code()
    kinds, values = random_events(seed, 80)
    states = np.zeros(len(kinds), STATE)
    states["event"], states["kind"], states["value"] = np.arange(len(kinds)), kinds, values
    expected, blocks = [], code.code.blocks.copy()
    for kind, value in zip(kinds.tolist(), values.tolist(), strict=True):
        expected.append(blocks.copy())
        if kind == PathEventKind.LOST:
            blocks = code.code.blocks.copy()
        change_one_by_one(code, blocks, kind, value)
    expected.append(blocks)
    changed = ChangedCode(code, states)
    # In order, then back and forth.
    for n_states in [*range(len(kinds) + 1), *np.random.default_rng(9).permutation(len(kinds) + 1).tolist()]:
        assert (changed.at(n_states) == expected[n_states]).all(), n_states


@pytest.mark.parametrize("seed", range(3))
def test_events_change_what_they_would_one_by_one(seed: int) -> None:
    code = made_up_code()
    kinds, values = random_events(seed, 60)
    records = np.zeros(len(kinds) + 1, PATH_EVENT_RECORD)
    records["event_kind"][:-1], records["value"][:-1] = kinds, values
    records["event_kind"][-1] = PathEventKind.END
    kept = records[records["event_kind"] != PathEventKind.LOST]
    blocks, expected = code.code.blocks.copy(), []
    for number, (kind, value) in enumerate(zip(kept["event_kind"].tolist(), kept["value"].tolist(), strict=True)):
        expected += [(number, *made) for made in change_one_by_one(code, blocks, kind, value)]
    events, numbers = code.convert_events(kept, code.code.blocks)
    assert events["action"][-1] == Action.END
    assert numbers[-1] == len(kept) - 1
    rows = (numbers, events["action"], events["subject"], events["value"])
    assert list(zip(*(row[:-1].tolist() for row in rows), strict=True)) == expected
