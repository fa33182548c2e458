"""The baseline, and results compared with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import baseline, compare
from tests.unit.bench.made_up_result import make_result, make_spread


def grow(result: dict[str, Any], factor: float) -> dict[str, Any]:
    """gzip's ratio of counts, that many times as great."""
    ratio = result["rows"][1]["modes"]["counts"]["ratio"]
    result["rows"][1]["modes"]["counts"]["ratio"] = {name: value * factor for name, value in ratio.items()}
    return result


def write(path: Path, result: dict[str, Any]) -> str:
    path.write_text(json.dumps(result))
    return str(path)


@pytest.mark.parametrize(("factor", "status"), [(1.0, 0), (1.2, 0), (2.0, 1), (0.5, 0)])
def test_worse_is_what_grew_beyond_its_noise(tmp_path: Path, factor: float, status: int) -> None:
    old = write(tmp_path / "old.json", make_result())
    new = write(tmp_path / "new.json", grow(make_result(), factor))
    assert compare.main([old, new]) == status


def test_a_baseline_compares_as_the_result_it_was_made_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write(tmp_path / "old.json", baseline.shorten(make_result()))
    new = write(tmp_path / "new.json", grow(make_result(), 2.0))
    assert compare.main([old, new]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "| gzip | short | counts | 1.50 | 3.00 | +100% worse |" in lines
    assert "| translating once | ns | counts | 250.00 | 250.00 | +0% |" in lines
    assert "| first_instruction | ms | counts | 200.00 | 200.00 | +0% |" in lines
    assert not any("callgrind" in line for line in lines)


def test_times_of_another_machine_are_not_compared() -> None:
    old, new = make_result(), make_result()
    new["machine"]["processor"] = "another"
    new["translation"][0]["ns_per_instruction"] = make_spread(9000.0)
    assert {key[1] for key in compare.find_figures(old, new)[1]} == {"short"}


def test_a_baseline_has_no_path_of_the_machine() -> None:
    short = baseline.shorten(make_result())
    assert "/home" not in json.dumps(short)
    assert "/usr" not in json.dumps(short)
    assert short["rows"][1]["command"] == ["gzip", "-9c", "text", ":memory:", ".read script.sql"]
    assert short["rows"][1]["native_cpu_seconds"] == 0.1
    assert short["rows"][1]["modes"]["counts"]["cpu_seconds"] == 0.25


@pytest.mark.parametrize(
    ("processor", "name"),
    [
        ("AMD EPYC 9B14", "amd-epyc-9b14"),
        ("Intel(R) Xeon(R) Processor", "intel-xeon"),
        ("Intel(R) Core(TM) i7-1185G7 @ 3.00GHz", "intel-core-i7-1185g7"),
        ("../../x", "x"),
        ("", "unknown"),
    ],
)
def test_a_baseline_is_of_one_processor(processor: str, name: str) -> None:
    result = make_result()
    result["machine"]["processor"] = processor
    assert baseline.find_baseline(result) == baseline.BASELINES / f"{name}.json"


def test_options_are_no_paths() -> None:
    words = ["java", "-cp", "/a/b/bin", "--in=/c/d.txt", "a/b", "1/2"]
    assert baseline.shorten_command(words) == ["java", "-cp", "bin", "--in=d.txt", "a/b", "1/2"]


@pytest.mark.parametrize("path", sorted(baseline.BASELINES.glob("*.json")), ids=lambda path: path.stem)
def test_a_committed_baseline_can_be_compared_with(path: Path) -> None:
    result = json.loads(path.read_text())
    assert baseline.find_baseline(result) == path
    assert compare.find_ratios(result)
    assert {"processor", "processors", "kernel", "python", "peers"} <= result["machine"].keys()
    assert not any(word.startswith("/") for row in result["rows"] for word in row["command"])
