"""What may be chosen of techniques, and what that leaves to the planner."""

from __future__ import annotations

import pytest

from clew.errors import UsageError
from clew.probing.native import Technique
from clew.sessions.probes.backends import BACKENDS, Backend, backend_of, parse_backend, parse_native_backend


def test_each_backend_leaves_some_techniques() -> None:
    left = {one: frozenset(Technique) - parse_backend(one).without for one in BACKENDS}
    assert left["trap"] == {Technique.TRAP}
    assert all(left[one] == frozenset(Technique) for one in ("auto", "jump"))
    required = frozenset(Technique) - parse_backend("jump", "jump").without
    assert required == parse_backend("auto", "jump").without ^ frozenset(Technique)
    assert {backend_of(one) for one in required} == {Backend.JUMP} and backend_of(Technique.TRAP) == Backend.TRAP


def test_only_jump_tells_of_traps() -> None:
    assert [one for one in BACKENDS if parse_backend(one).tells_traps] == ["jump"]


@pytest.mark.parametrize("wrong", [("jumps", None), ("auto", "trap"), ("trap", "jump"), ("engine", "jump"), ("", None)])
def test_what_is_no_choice_is_refused(wrong: tuple[str, str | None]) -> None:
    with pytest.raises(UsageError):
        parse_backend(*wrong)


@pytest.mark.parametrize(("backend", "way_out"), [("engine", "clew.spawn"), ("uprobe", "clew trace --backend uprobe")])
def test_what_is_elsewhere_is_told(backend: str, way_out: str) -> None:
    with pytest.raises(UsageError, match=way_out):
        parse_native_backend(backend)
