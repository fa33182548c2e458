"""What a request asks of a trace, or one process of it, checked: numbers, words, threads, ranges of functions.

Runs in the controller. Nothing is known here of answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clew.errors import UsageError
from clew.server.served_trace import ServedTrace

__all__ = ["Query", "parse_number"]

_MAX_THREADS: Final = 8192
_MAX_THREAD_ID: Final = 1 << 31
_MAX_DIGITS: Final = 20
_MAX_NUMBER: Final = 1 << 53
"""What the page's numbers hold; times and positions far beyond it would not fit into arrays."""


class Query:
    """What is asked of a trace, or a process of it: `path` has parts of the path by name, `words` those of the query.

    Methods raise UsageError for words that mean nothing.
    """

    def __init__(self, path: Mapping[str, Any], words: Mapping[str, str], served: Sequence[ServedTrace]) -> None:
        self.path = path
        self._all = served
        self.served = self._find_trace("trace")
        self._words = words

    def _find_trace(self, name: str) -> ServedTrace:
        index = int(self.path[name])
        if not 0 <= index < len(self._all):
            raise UsageError(f"no trace {index}: there are {len(self._all)}")
        return self._all[index]

    @property
    def process_id(self) -> int:
        if self.whose is None:
            raise UsageError("this is told of single processes")
        return self.whose

    @property
    def whose(self) -> int | None:
        """The process that is asked about; None where all of the trace are."""
        return int(self.path["process"]) if "process" in self.path else None

    @property
    def other(self) -> ServedTrace:
        """The trace that it is compared with."""
        return self._find_trace("other")

    @property
    def other_process_id(self) -> int:
        return int(self.path["other_process"])

    @property
    def tid(self) -> int:
        return int(self.path["tid"])

    def words(self) -> dict[str, str]:
        """All words, each at most 100 characters of it."""
        return {name: text[:100] for name, text in self._words.items()}

    def word(self, name: str, default: str = "") -> str:
        """A word, at most 1,000 characters of it."""
        return self._words.get(name, default)[:1000]

    def number(self, name: str, default: int | None = None) -> int:
        """An integer, decimal or, with 0x, hexadecimal."""
        text = self._words.get(name)
        if text is None:
            if default is None:
                raise UsageError(f"{name} is missing")
            return default
        return parse_number(name, text)

    def flag(self, name: str) -> bool:
        """Whether something is asked for."""
        return self._words.get(name) in ("1", "true")

    def threads(self) -> list[int] | None:
        """Ids of threads, None for all."""
        text = self._words.get("threads")
        if text is None or text == "all":
            return None
        try:
            found = [int(word) for word in text.split(",") if word]
        except ValueError:
            raise UsageError(f"threads: {text[:40]!r} is no list of numbers") from None
        if len(found) > _MAX_THREADS:
            raise UsageError(f"threads: more than {_MAX_THREADS}")
        if not all(0 <= thread < _MAX_THREAD_ID for thread in found):
            raise UsageError(f"threads: ids are below {_MAX_THREAD_ID}")
        return found

    def functions(self) -> tuple[int, int] | None:
        """A range of functions, `first-last`, the last not in it; None for all."""
        text = self._words.get("functions")
        if text is None:
            return None
        first, _, last = text.partition("-")
        if not first.isdecimal() or not last.isdecimal():
            raise UsageError(f"functions: {text[:40]!r} is no range")
        n = self.served.graph(self.process_id).n_functions
        # Python reads no number of thousands of digits.
        if max(len(first), len(last)) > _MAX_DIGITS or not 0 <= int(first) <= int(last) <= n:
            raise UsageError(f"functions: there are {n}")
        return int(first), int(last)


def parse_number(name: str, text: str) -> int:
    """An integer, decimal or, with 0x, hexadecimal. Raises UsageError for what is none, or too large."""
    try:
        found = int(text, 0)
    except ValueError:
        raise UsageError(f"{name}: {text[:40]!r} is no number") from None
    if abs(found) > _MAX_NUMBER:
        raise UsageError(f"{name}: numbers are at most {_MAX_NUMBER}")
    return found
