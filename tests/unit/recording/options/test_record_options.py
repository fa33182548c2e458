"""What people write of a recording becomes one value, or is refused before anything is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.errors import UsageError
from clew.protocol._constants import Mode
from clew.recording.options.filters import parse_filter
from clew.recording.options.record_options import RecordOptions, parse_options


def test_what_is_not_said_is_as_in_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLEW_RELAYOUT", raising=False)
    assert parse_options(Path("t")) == RecordOptions(Path("t"))


def test_names_and_numbers_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_RELAYOUT", "7")
    parsed = parse_options(
        Path("t"), mode="auto", budget=2.5, include="libc.so*", exclude=["a!b", "0x10-0x20"], follow=False
    )
    assert (parsed.mode, parsed.budget, parsed.busy_limit, parsed.follow) == (Mode.FULL, 2_500_000, 0, False)
    assert parsed.include == (parse_filter("libc.so*"),)
    assert parsed.exclude == (parse_filter("a!b"), parse_filter("0x10-0x20"))
    assert parsed.relayout_executions == 7
    assert parse_options(Path("t"), mode="region", busy_limit=3).busy_limit == 3


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"mode": "all"}, "mode 'all': no such mode; choose coverage, counts, region, full, auto"),
        ({"budget": 1.0}, "--budget is for --mode auto, not for counts"),
        ({"mode": "auto", "budget": -1.0}, "budget -1: not a number of MB a second"),
        ({"busy_limit": 3}, "busy limit 3: only for mode region"),
        ({"include": ["libc.so!"]}, "filter 'libc.so!'"),
    ],
)
def test_what_can_not_be_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_options(Path("t"), **given)
    assert caught.value.message.startswith(told)
