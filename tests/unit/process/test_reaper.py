"""Who adopts orphans."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.address import Pid
from clew.process import reaper
from tests.programs.build import find_adopter, is_adopter_known


def test_it_is_the_one_that_an_orphan_gets() -> None:
    if not is_adopter_known():
        pytest.skip("orphans go to a process that nothing tells of here")
    assert reaper.find_reaper(Pid(os.getpid())) == find_adopter()


@pytest.mark.parametrize(("name", "expected"), [("systemd", 300), ("bash", 1)])
def test_the_nearest_that_asks_for_orphans(monkeypatch: pytest.MonkeyPatch, name: str, expected: int) -> None:
    parents = {700: 300, 300: 20, 20: 1}
    names = {300: name, 20: "login", 1: "init"}
    monkeypatch.setattr(reaper, "read_parent", lambda pid: Pid(parents[pid]))
    monkeypatch.setattr(Path, "read_bytes", lambda path: names[int(path.parts[2])].encode() + b"\n")
    assert reaper.find_reaper(Pid(700)) == expected
