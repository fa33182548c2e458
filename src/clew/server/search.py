"""Searches that the page asks for: what may be asked, and what is told of what was found.

Runs in the controller. Symbols are searched in the page, which has the names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from clew.analysis.graph.search import CodeSearch, Found, parse_bytes, split_text
from clew.errors import UsageError
from clew.server.served_trace import ServedTrace

__all__ = ["search"]

_MAX_HITS: Final = 1000
_SECONDS: Final = 1.5
"""After which a search gives what it has."""


def search(served: ServedTrace, process_id: int, by: str, query: str, limit: int) -> dict[str, Any]:
    """Blocks found `by` address, bytes or text: by index, with their function, and their executions by all threads.

    Raises UsageError for a query that means nothing.
    """
    if not 1 <= limit <= _MAX_HITS:
        raise UsageError(f"limit: from 1 to {_MAX_HITS}")
    if by not in _FINDERS:
        raise UsageError(f"by: {by[:40]!r} is none of {', '.join(_FINDERS)}")
    graph = served.graph(process_id)
    code = served.once(("search", process_id), lambda: CodeSearch(graph))
    found = _FINDERS[by](code, query, limit)
    return {
        "by": by,
        "stopped": found.stopped,
        "hits": [
            {
                "block": hit.block,
                "function": int(graph.function[hit.block]),
                "address": hex(hit.address),
                "text": hit.text,
                "count": hit.count,
                "executions": int(code.executions[hit.block]),
            }
            for hit in found.hits
        ],
    }


def _find_address(code: CodeSearch, query: str, limit: int) -> Found:
    digits = query.strip().lower().removeprefix("0x").replace("`", "")
    if not 1 <= len(digits) <= 16 or not set(digits) <= set("0123456789abcdef"):
        raise UsageError(f"address: {query[:40]!r} is not like 0x55d0c0ffee")
    return code.find_address(int(digits, 16), limit)


_FINDERS: Final[dict[str, Callable[[CodeSearch, str, int], Found]]] = {
    "address": _find_address,
    "bytes": lambda code, query, limit: code.find_bytes(parse_bytes(query), limit, _SECONDS),
    "text": lambda code, query, limit: code.find_text(split_text(query), limit, _SECONDS),
}
