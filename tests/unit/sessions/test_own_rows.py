"""Which events are those of a body that is followed from inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from clew.protocol.codec import FlowKind
from clew.protocol.codec_layouts import FLOW_EVENT
from clew.sessions.inside import own_rows
from clew.sessions.inside.own_rows import OwnRows

Array = npt.NDArray[Any]

MARKER = 110
PYTHON, LIBRARY, ELSEWHERE = 0x1000, 0x5000, 0x9000
CALL, RET, BLOCK, EXEC, SYSCALL = FlowKind.CALL, FlowKind.RET, FlowKind.BLOCK, FlowKind.EXEC, FlowKind.SYSCALL
MARKED = [
    (CALL, PYTHON, LIBRARY),
    (BLOCK, LIBRARY, LIBRARY + 8),
    (SYSCALL, LIBRARY + 6, MARKER),
    (BLOCK, LIBRARY + 8, PYTHON + 5),
    (RET, LIBRARY + 8, PYTHON + 5),
]


def rows_of(events: Sequence[tuple[int, int, int]]) -> Array:
    """Events of kind, address and target."""
    rows = np.zeros(len(events), FLOW_EVENT)
    for name, values in zip(("kind", "address", "target"), zip(*events, strict=True), strict=True):
        rows[name] = values
    rows["sequence"] = np.arange(len(events)) + 1000
    return rows


def told(
    body: Sequence[tuple[int, int, int]],
    *,
    within: bool = True,
    kinds: int = (1 << 10) - 1,
    n_each: int = 1000,
    is_marked: bool = True,
    end: Sequence[tuple[int, int, int]] = MARKED,
) -> Sequence[tuple[int, int, int]]:
    """What is told of a body, with what comes before and behind, in batches of so many."""
    before = [(BLOCK, PYTHON, LIBRARY), (SYSCALL, LIBRARY + 0x100, 0), *MARKED]
    rows = rows_of([*before, *body, *end, (SYSCALL, LIBRARY + 0x100, 1)])
    ranges = ([], []) if within else ([(PYTHON, PYTHON + 0x1000)], [(LIBRARY, LIBRARY + 0x1000)])
    own = OwnRows(kinds, MARKER, *ranges)
    pieces = [piece for start in range(0, len(rows), n_each) for piece in own.take(rows[start : start + n_each])]
    pieces += own.end(is_marked=is_marked)
    whole = np.concatenate([np.zeros(0, FLOW_EVENT), *pieces])
    assert (whole["sequence"] == np.arange(len(whole))).all()
    return [tuple(row) for row in whole[["kind", "address", "target"]].tolist()]


@pytest.mark.parametrize("n_each", [1, 2, 3, 7, 1000])
def test_what_is_between_the_markers_is_told(n_each: int) -> None:
    many = [(BLOCK, ELSEWHERE + index, ELSEWHERE + index + 1) for index in range(300)]
    for body in ([], many[:1], many, [*many, *MARKED, *many], [(BLOCK, LIBRARY + 0x40, LIBRARY + 0x80)]):
        assert told(body, n_each=n_each) == body


def test_only_what_is_wanted_is_told() -> None:
    body = [(BLOCK, ELSEWHERE, ELSEWHERE + 4), (SYSCALL, ELSEWHERE, 1), (EXEC, ELSEWHERE, ELSEWHERE + 2)]
    assert told(body, kinds=1 << EXEC) == body[2:]
    assert told(body, kinds=1 << SYSCALL | 1 << BLOCK) == body[:2]


def test_a_thread_that_made_no_marker_behind_it_has_all_told() -> None:
    body = [(BLOCK, ELSEWHERE, ELSEWHERE + 4)]
    assert told(body, is_marked=False, end=[])[0] == body[0]
    assert told(body, is_marked=False)[: 1 + len(MARKED)] == body + MARKED


def test_much_behind_a_marker_is_the_body_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_rows, "MOST_HELD_ROWS", 100)
    many = [(BLOCK, ELSEWHERE + index, ELSEWHERE + index + 1) for index in range(300)]
    assert told([*MARKED, *many], n_each=10) == [*MARKED, *many]


def test_the_interpreter_and_what_it_calls_of_the_library_are_left_out() -> None:
    body = [
        (CALL, PYTHON, LIBRARY),
        (BLOCK, LIBRARY, PYTHON),
        (RET, LIBRARY, PYTHON),
        (BLOCK, PYTHON, ELSEWHERE),
        (CALL, PYTHON, ELSEWHERE),
        (BLOCK, ELSEWHERE, LIBRARY),
        (CALL, ELSEWHERE, LIBRARY),
        (BLOCK, LIBRARY, LIBRARY + 9),
        (SYSCALL, LIBRARY, 5),
        (RET, LIBRARY, ELSEWHERE),
        (CALL, ELSEWHERE, PYTHON),
        (BLOCK, PYTHON, LIBRARY),
        (BLOCK, LIBRARY, PYTHON),
        (RET, PYTHON, ELSEWHERE),
        (BLOCK, ELSEWHERE, PYTHON),
        (RET, ELSEWHERE, PYTHON),
        (SYSCALL, LIBRARY, 5),
    ]
    expected = [*body[4:11], *body[13:16]]
    for n_each in (1, 4, 1000):
        assert told(body, within=False, n_each=n_each) == expected
    without_blocks = [row for row in body if row[0] != BLOCK]
    assert told(without_blocks, within=False) == [row for row in expected if row[0] != BLOCK]


def chosen_one_by_one(body: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """What is told without the interpreter, by what the documentation says."""

    def place(address: int) -> str:
        return "python" if address >> 12 == PYTHON >> 12 else "library" if address >> 12 == LIBRARY >> 12 else "other"

    chosen, was_other = [], False
    for kind, address, target in body:
        if place(address) != "library":
            was_other = place(address) == "other"
        is_border = kind in (CALL, RET)
        if was_other or (is_border and place(target) == "other"):
            chosen.append((kind, address, target))
        if (is_border or kind == BLOCK) and place(target) != "library":
            was_other = place(target) == "other"
    return chosen


@pytest.mark.parametrize("seed", range(40))
def test_random_events_are_chosen_as_one_by_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    bases, weights = [PYTHON, LIBRARY, ELSEWHERE], random.dirichlet([1, 1, 1])
    body: list[tuple[int, int, int]] = []
    address = ELSEWHERE
    for _ in range(300):
        kind = int(random.choice([CALL, RET, BLOCK, EXEC, SYSCALL]))
        target = int(random.choice(bases, p=weights)) + int(random.integers(0x40, 0x1000))
        body.append((kind, address, 7 if kind == SYSCALL else target))
        address = target if random.random() < 0.8 else int(random.choice(bases)) + int(random.integers(0x40, 0x1000))
    assert told(body, within=False, n_each=int(random.choice([1, 13, 100, 1000]))) == chosen_one_by_one(body)
