"""What `--stats` prints: every number with its name and what it is, and the same in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from clew.cli.statistics_text import GROUPS, iter_statistics
from clew.protocol._generated import STATUS_PAGE
from clew.recording.following.statistics import ADDED

ROOT = Path(__file__).resolve().parents[3]
OF_ATTACHING = {"attach_microseconds", "detach_microseconds"}


def test_every_number_is_explained_once() -> None:
    explained = [name for names in GROUPS.values() for name in names]
    assert len(explained) == len(set(explained))
    assert set(explained) == {*ADDED, *OF_ATTACHING}
    assert all(text and len(text) < 90 for names in GROUPS.values() for text in names.values())
    assert set(ADDED) <= set(STATUS_PAGE.names or ())


def test_the_documentation_has_every_number() -> None:
    text = (ROOT / "docs/statistics.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    assert all(len(row) == 5 and row[2].strip() and row[3].strip() for row in rows)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row[1])]
    assert sorted(named) == sorted({*ADDED, *OF_ATTACHING})


def test_lines() -> None:
    lines = list(iter_statistics({"waits": 12, "cache_bytes": 86_156_776, "heap_bytes": 1536, "something_new": 3}))
    assert lines == [
        "memory, added up over processes:",
        "  cache_bytes    86156776  translated code (82.2 MiB)",
        "  heap_bytes         1536  what the runtime knows of it (1.5 KiB)",
        "records:",
        "  waits                12  times that a thread waited for clew to make room in its ring",
        "others:",
        "  something_new         3",
    ]
    assert list(iter_statistics({})) == []
