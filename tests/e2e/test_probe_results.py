"""Results of functions in events: of the type that debugging information says, by whatever technique."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain

FUNCTIONS = ("negative", "half", "is_even", "small", "wide")


def results(tmp_path: Path, *options: str, debug: str = "-g") -> dict[str, dict[str, Any]]:
    """By function what its event has where it returned."""
    program, out = build_plain(SOURCES / "probes" / "probed_results.c", "-O1", debug), tmp_path / "events.json"
    command: list[str | Path] = [*runs.CLEW, "trace", *options, "--format", "json", "-o", out, "--", program]
    done = subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, b"-3 2.50 1 -5 65535\n-7 2.25 yes\n"), done.stderr
    events = [json.loads(line) for line in out.read_text().splitlines()]
    return {one["event"].removesuffix("_exit"): one["fields"] for one in events if one["event"].endswith("_exit")}


@pytest.mark.parametrize("backend", ["jump", "trap", "engine"])
def test_results_have_their_own_types(backend: str, tmp_path: Path) -> None:
    chosen = [word for name in FUNCTIONS for word in ("--function", name)]
    found = results(tmp_path, "--backend", backend, *chosen)
    values = {name: fields["retval"] for name, fields in found.items()}
    assert values == {"negative": -3, "half": 2.5, "is_even": 1, "small": -5, "wide": 65535}


def test_results_are_words_where_nothing_says_what_they_are(tmp_path: Path) -> None:
    found = results(tmp_path, "--function", "negative", "--function", "wide", debug="-g0")
    assert found["negative"]["retval"] & 0xFFFFFFFF == (1 << 32) - 3
    assert found["wide"]["retval"] & 0xFFFF == 65535


def test_results_of_a_pattern_are_words(tmp_path: Path) -> None:
    """Of several functions, whose events have one form."""
    found = results(tmp_path, "--function", "[nw]*e")
    assert found["negative"]["retval"] & 0xFFFFFFFF == (1 << 32) - 3
    assert found["wide"]["retval"] & 0xFFFF == 65535


def test_what_a_result_leads_to_can_be_taken(tmp_path: Path) -> None:
    wanted = ("-r", "x=var:$retval->x", "-r", "y=var:$retval->y")
    assert results(tmp_path, "--function", "find", *wanted)["find"].items() >= {"x": -7, "y": 2.25}.items()
    assert results(tmp_path, "--function", "name", "-r", "text=str(retval)")["name"]["text"] == "yes"
    assert results(tmp_path, "--function", "name", "-r", "text=str(var:$retval)")["name"]["text"] == "yes"
