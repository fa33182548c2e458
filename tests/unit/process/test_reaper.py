"""Who adopts orphans."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from clew.address import Pid
from clew.process import reaper

ORPHAN = """
import os, time
parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        time.sleep(0.001)
    print(os.getppid(), flush=True)
os._exit(0)
"""


def test_it_is_the_one_that_an_orphan_gets() -> None:
    output = subprocess.run([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, check=True).stdout
    assert reaper.find_reaper(Pid(os.getpid())) == int(output)


@pytest.mark.parametrize(("name", "expected"), [("systemd", 300), ("bash", 1)])
def test_the_nearest_that_asks_for_orphans(monkeypatch: pytest.MonkeyPatch, name: str, expected: int) -> None:
    parents = {700: 300, 300: 20, 20: 1}
    names = {300: name, 20: "login", 1: "init"}
    monkeypatch.setattr(reaper, "read_parent", lambda pid: Pid(parents[pid]))
    monkeypatch.setattr(Path, "read_bytes", lambda path: names[int(path.parts[2])].encode() + b"\n")
    assert reaper.find_reaper(Pid(700)) == expected
