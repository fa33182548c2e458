"""Which state code was in while something was in use: against a search through all fragments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.recording.assembly.records.records import Fragments
from clew.recording.assembly.records.states import CodeState, CodeStates

_NEVER = int(np.iinfo(np.uint64).max)
_EPOCH = 100


@given(
    states=st.lists(
        st.dictionaries(st.integers(1, 4), st.sampled_from(list(CodeState)), max_size=4), min_size=1, max_size=4
    ),
    data=st.data(),
)
def test_edges_lead_to_code_as_it_was_then(states: list[dict[int, CodeState]], data: st.DataObject) -> None:
    """Filters change every 100 ticks, and everything goes out of use; `states` has what is made until then."""
    made: list[tuple[int, int, int, CodeState]] = []
    for epoch, codes in enumerate(states):
        for pc, state in codes.items():
            times = sorted(data.draw(st.lists(st.integers(1, _EPOCH - 1), min_size=1, max_size=3, unique=True)))
            ends = [*times[1:], _EPOCH]
            is_last = epoch + 1 == len(states)
            for tsc, end in zip(times, ends, strict=True):
                base = epoch * _EPOCH
                made.append((pc, base + tsc, _NEVER if is_last and end == _EPOCH else base + end, state))
    made.sort(key=lambda row: row[0])
    app_pc, made_at, out_at, kept = (np.array([row[column] for row in made], np.uint64) for column in range(4))
    fragments = SimpleNamespace(
        app_pc=app_pc, tsc=made_at, is_left_out=kept >= CodeState.COUNTED, is_excluded=kept == CodeState.EXCLUDED
    )
    found = CodeStates(cast(Fragments, _Sized(fragments)), out_at)
    source = data.draw(st.integers(0, len(made) - 1)) if made else -1
    target = data.draw(st.integers(1, 4))
    if source < 0:
        return
    comes_from, leads_to = found.find_of_ways(
        np.array([source]), app_pc[[source]], np.array([target], np.uint64), np.zeros(1, np.uint64)
    )
    assert comes_from[0] == kept[source]
    epoch = int(made_at[source]) // _EPOCH
    here = states[epoch].get(target)
    if here is not None:
        assert leads_to[0] == here
    elif target not in {row[0] for row in made}:
        assert leads_to[0] == CodeState.RECORDED
    else:
        # It was on its way when filters changed, or it never came there.
        assert leads_to[0] in {codes[target] for codes in states if target in codes}


class _Sized(SimpleNamespace):
    def __init__(self, columns: SimpleNamespace) -> None:
        super().__init__(**vars(columns))

    def __len__(self) -> int:
        return len(self.app_pc)
