"""Names of others in forms that hold them: each name gets another one, and none twice.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

__all__ = ["Names", "make_file_name", "make_identifier", "make_title"]

MAX_BYTES: Final = 255
"""LTTng takes names of events up to that (LTTNG_UST_ABI_SYM_NAME_LEN, with its zero byte)."""


def make_identifier(name: str) -> str:
    """`name` as an identifier of C, but for words that mean something there, and digits at its beginning."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"


def make_title(name: str) -> str:
    """`name` as what stands between quotes: printable, without quotes and backslashes."""
    return "".join(one if one.isprintable() and one not in '"\\' else "_" for one in name) or "_"


def make_file_name(name: str) -> str:
    """`name` as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", name)[:64].lstrip(".") or "_"


class Names:
    """Gives names that `make` makes, cut to MAX_BYTES, with a number behind those that were given before."""

    def __init__(self, make: Callable[[str], str], *, fold: bool = False) -> None:
        """With `fold` two names that differ in case only are one name: some file systems have it so."""
        self._make, self._fold = make, fold
        self._given: dict[str, int] = {}
        """What was given, and how often it has been asked for."""

    def give(self, name: str) -> str:
        """The name for `name`: another one each time."""
        whole = made = _cut(self._make(name), MAX_BYTES)
        while self._key(whole) in self._given:
            self._given[self._key(made)] += 1
            ending = f"_{self._given[self._key(made)]}"
            whole = _cut(made, MAX_BYTES - len(ending)) + ending
        self._given[self._key(whole)] = 1
        return whole

    def take(self, name: str) -> None:
        """Let nobody have `name`."""
        self._given.setdefault(self._key(name), 1)

    def _key(self, name: str) -> str:
        return name.casefold() if self._fold else name


def _cut(text: str, n_bytes: int) -> str:
    """No more bytes of UTF-8, and no half character."""
    return text.encode(errors="replace")[:n_bytes].decode(errors="ignore")
