"""Which peers there are, and what they leave behind of what they counted; none of them is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.counted import BLOCKS, CALLS, INSTRUCTIONS
from bench.peers import finding, frida_stalker, qbdi_preload, valgrind
from bench.tools import Tool

TRUE = ("true",)


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all were installed."""
    for module in (frida_stalker, qbdi_preload):
        monkeypatch.setattr(module, "find_version", lambda _: "1.2.3")
    monkeypatch.setattr(valgrind, "find_version", lambda: "3.19.0")


def by_name() -> dict[str, Tool]:
    return {tool.name: tool for module in finding.FAMILIES.values() for tool in module.make_tools()}


@pytest.mark.usefixtures("versions")
def test_peers_are_those_that_are_named() -> None:
    names = {name for module in finding.FAMILIES.values() for name in module.NAMES}
    assert by_name().keys() == names
    assert all(tool.is_peer and tool.version and tool.about for tool in by_name().values())


@pytest.mark.usefixtures("versions")
def test_who_counts_nothing_names_one_that_follows_the_same_code() -> None:
    peers = by_name()
    followers = {name: tool.same_code_as for name, tool in peers.items() if tool.same_code_as}
    assert followers.keys() == {"frida-follow", "qbdi-follow", "valgrind-none"}
    assert set(followers.values()) <= peers.keys()


@pytest.mark.usefixtures("versions")
def test_the_command_comes_last_as_it_is() -> None:
    command = ("gzip", "-9c", "--", "a b")
    for tool in by_name().values():
        assert tuple(tool.wrap(command, Path("folder"))[-len(command) :]) == command


@pytest.mark.usefixtures("versions")
def test_what_was_counted_is_read(tmp_path: Path) -> None:
    (tmp_path / "counted.json").write_text('{"status": 0, "counted": 7, "threads": 1}')
    (tmp_path / "counted").write_text("8")
    (tmp_path / "callgrind.out").write_text("summary: 9\n\ntotals: 9\n")
    found = {name: tool.read_counted(tmp_path) for name, tool in by_name().items()}
    assert found == {
        "frida-follow": {},
        "frida-counts": {BLOCKS: 7},
        "frida-calls": {CALLS: 7},
        "qbdi-follow": {},
        "qbdi-counts": {BLOCKS: 8},
        "valgrind-none": {},
        "callgrind": {INSTRUCTIONS: 9},
    }


def test_a_peer_that_is_missing_is_left_out_aloud(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(frida_stalker, "find_version", missing)
    assert finding.find_peers(["frida-counts"], TRUE) == []
    assert capsys.readouterr().err == "frida-counts: not installed: try this; left out\n"


def missing(_: str) -> str:
    raise FileNotFoundError("not installed: try this")


@pytest.mark.usefixtures("versions")
def test_a_peer_that_cannot_run_true_is_left_out_aloud(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(finding, "_try", lambda tool, _: "" if tool.name == "callgrind" else "status 1 on `true`: oh")
    assert [tool.name for tool in finding.find_peers(["valgrind"], TRUE)] == ["callgrind"]
    assert capsys.readouterr().err == "valgrind-none: status 1 on `true`: oh; left out\n"


def test_a_name_that_is_no_peer_is_refused() -> None:
    with pytest.raises(SystemExit, match="no such peer: pin; there are callgrind, frida"):
        finding.find_peers(["pin"], TRUE)
