"""Frames of a recording that goes on: however they are put together, the picture is the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.server import live_graph
from clew.server.live_rows import LiveRows, match_rows
from tests.e2e.live_client import LivePicture
from tests.unit.server.live_frames import MadeUpRecording


def content(picture: LivePicture) -> tuple[Any, ...]:
    """All that a page has, but what it was told last."""
    counts = {name: {row: n for row, n in table.items() if n} for name, table in picture.counts.items()}
    return picture.sequence, picture.rows, counts, picture.images, picture.threads


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_frames_put_together_in_any_way_are_the_whole_picture(seed: int, with_rewriting: bool) -> None:
    recording, rng = MadeUpRecording(seed, with_rewriting=with_rewriting, max_steps=500), random.Random(seed)
    # One takes each frame, one now and then, one loses its connection and comes back later, one begins late.
    each, seldom, broken = LivePicture(), LivePicture(), LivePicture()
    while not recording.is_over:
        recording.advance()
        each.apply(recording.encode(each.sequence))
        if rng.random() < 0.3:
            seldom.apply(recording.encode(seldom.sequence))
        if rng.random() < 0.2:
            recording.encode(broken.sequence)  # It never arrived.
        elif rng.random() < 0.5:
            broken.apply(recording.encode(broken.sequence))
    whole = LivePicture()
    whole.apply(recording.encode(-1))
    for picture in (seldom, broken):
        picture.apply(recording.encode(picture.sequence))
    # Counts of what is gone are told to nobody who did not have them.
    live = {name: set(table) for name, table in whole.rows.items()}
    for picture in (each, seldom, broken, whole):
        picture.counts = {
            name: {row: n for row, n in table.items() if row in live[name]} for name, table in picture.counts.items()
        }
        assert content(picture) == content(whole)
    assert whole.rows["block"]


def test_times_of_functions_and_blocks_are_of_one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = MadeUpRecording(5)
    status = recording.counters.status
    start_tsc, start_ns, n_ticks = int(status["start_tsc"]), int(status["start_ns"]), 10**12
    # It is looked at long after the newest code came. A tick is three nanoseconds.
    monkeypatch.setattr(live_graph, "_read_clocks", lambda: (start_tsc + n_ticks, start_ns + 3 * n_ticks))
    while not recording.is_over:
        recording.advance()
    first_ns = {3.0 * (tsc - start_tsc) for tsc in recording.process.work_out().blocks.first_tsc.tolist()}
    # What was there for a while only, as counters are not read at one time, is gone.
    discovered, first = (
        set(rows.columns[name][~rows.is_gone].tolist())
        for rows, name in ((recording.graph.functions, "discovered"), (recording.graph.blocks, "first"))
    )
    assert discovered and discovered <= first <= first_ns


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sets(st.integers(0, 12), max_size=8), min_size=1, max_size=8), st.integers(0, 7))
def test_rows_keep_their_numbers_and_know_when_they_changed(steps: list[set[int]], since: int) -> None:
    rows = LiveRows({"key": "u4", "value": "i4", "first": "i4"}, ("key",), ("first",))
    known: dict[int, int] = {}
    states: list[dict[int, tuple[int, int, bool]]] = [{}]
    for sequence, keys in enumerate(steps, 1):
        wanted = np.array(sorted(keys), np.int64)
        number = rows.update(
            {"key": wanted, "value": wanted * (sequence // 3), "first": wanted * 0 + sequence}, sequence
        )
        for key, row in zip(wanted.tolist(), number.tolist(), strict=True):
            assert known.setdefault(key, row) == row
        told = zip(
            *(rows.columns[name].tolist() for name in ("key", "value", "first")), rows.is_gone.tolist(), strict=True
        )
        states.append({row: (value, first, gone) for row, (_, value, first, gone) in enumerate(told)})
    since = min(since, len(steps))
    changed = set(rows.find_changed(since).tolist())
    before, now = states[since], states[-1]
    assert {row for row in now if now[row] != before.get(row)} <= changed
    assert all(first <= len(steps) for _, first, _ in now.values())


def test_equal_rows_are_found_by_several_columns() -> None:
    known = [np.array([5, 5, 7]), np.array([1, 2, 1])]
    wanted = [np.array([7, 5, 5, 6]), np.array([1, 3, 2, 1])]
    assert match_rows(known, wanted).tolist() == [2, -1, 1, -1]
    nothing = [np.zeros(0, np.int64)] * 2
    assert match_rows(nothing, nothing).tolist() == []
