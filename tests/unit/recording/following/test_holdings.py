"""Who is let go when everything is left."""

from __future__ import annotations

from typing import cast

from clew.recording.following.followed import FollowedProcess
from clew.recording.following.holding import Holding
from clew.recording.following.holdings import Holdings


class _Released:
    def __init__(self) -> None:
        self.is_released = False

    def release(self) -> None:
        self.is_released = True


def test_who_has_ended_is_not_let_go() -> None:
    holdings = Holdings(lambda followed: None)
    ended, live = (cast(FollowedProcess, object()) for _ in range(2))
    both = {ended: _Released(), live: _Released()}
    for followed, holding in both.items():
        holdings._by_process[followed] = cast(Holding, holding)
    holdings.release([live])
    # The memory that was shared with the other is given back already.
    assert (both[ended].is_released, both[live].is_released) == (False, True)
