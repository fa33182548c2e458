"""What docs/probe-locations.md says is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clew.probing.locations.syntax import AddressPlace, LinePlace, NamePlace, UsdtPlace, parse_location

TEXT = (Path(__file__).parents[4] / "docs/probe-locations.md").read_text()
ROWS = [line.split(" | ", 1)[0] for line in TEXT.splitlines() if line.startswith("| `")]
KINDS = {
    "an address": AddressPlace,
    "the code of a line": LinePlace,
    "static probes": UsdtPlace,
}


@pytest.mark.parametrize("row", ROWS)
def test_each_place_of_the_table_is_one(row: str) -> None:
    (line,) = [one for one in TEXT.splitlines() if one.startswith(row)]
    means = line.split(" | ", 1)[1]
    kind = next((kind for text, kind in KINDS.items() if means.startswith(text)), NamePlace)
    examples = re.findall(r"`([^`]+)`", row)
    assert examples
    for example in examples:
        assert isinstance(parse_location(example), kind), example


def test_numbers_of_the_first_row_are_one() -> None:
    places = [parse_location(one) for one in re.findall(r"`([^`]+)`", ROWS[0])]
    assert len({one.address for one in places if isinstance(one, AddressPlace)}) == 1
    assert len(places) == 3
