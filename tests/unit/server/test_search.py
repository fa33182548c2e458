"""What the page is told of a search, and what it may not ask."""

from __future__ import annotations

import pytest

from clew.errors import UsageError
from clew.server.search import search
from clew.server.served_trace import ServedTrace
from tests.unit.small_trace import BASE, MakeTrace, Rows


@pytest.fixture
def served(make_trace: MakeTrace, rows: Rows) -> ServedTrace:
    return ServedTrace(make_trace(rows).directory, 0)


@pytest.mark.parametrize(
    ("by", "query", "text"),
    [
        ("address", "0x400041", ""),
        ("address", "400041", ""),
        ("bytes", "31c0", "31 c0"),
        ("text", "xor", "xor eax, eax"),
    ],
)
def test_a_hit(served: ServedTrace, by: str, query: str, text: str) -> None:
    answer = search(served, 0, by, query, 10)
    (hit,) = answer["hits"]
    graph = served.graph(0)
    assert graph.names[hit["function"]] == "f"
    assert int(graph.app_pc[hit["block"]]) == BASE + 0x40
    assert (hit["text"], hit["executions"], answer["stopped"]) == (text, 5, None)


@pytest.mark.parametrize(
    ("by", "query", "limit"),
    [
        ("symbol", "main", 10),
        ("address", "0xg", 10),
        ("address", "", 10),
        ("address", "-1", 10),
        ("address", "1" * 17, 10),
        ("bytes", "??", 10),
        ("text", "", 10),
        ("text", "nop", 0),
        ("text", "nop", 1001),
    ],
)
def test_what_means_nothing(served: ServedTrace, by: str, query: str, limit: int) -> None:
    with pytest.raises(UsageError):
        search(served, 0, by, query, limit)
