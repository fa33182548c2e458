"""The arguments and results of calls as the page tells them, to be searched: `fd=3, buf="hello" = 5`.

Runs in the controller. Millions of calls are put into words by regular expressions, and kept where there is room.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from clew.analysis.tables.arrays import Array, to_numpy
from clew.analysis.tables.told_json import MAX_TEXT, read_json, tell_value
from clew.store.trace import Trace

__all__ = ["ToldCalls", "put_in_words", "tell_arguments"]

_MAX_ARGUMENTS: Final = 64
_MOST_KEPT: Final = 256 << 20
"""Bytes of texts that are kept for the next search."""

_IN_QUOTES: Final = r'(?:[^"\\]|\\.)*'
_ARGUMENT: Final = (
    rf'\{{(?:"name": "({_IN_QUOTES})", )?(?:"type": "{_IN_QUOTES}", )?'
    rf'(?:(?:"value": (?:"{_IN_QUOTES}"|[^,{{}}"]+), )?"text": "({_IN_QUOTES})"|"value": "?([^,{{}}"\\]*)"?)\}}'
)
"""An argument as `clew api` writes it."""
_ALONE: Final = r'\{"value": "?([^,{}"\\]*)"?\}'
"""One of which nothing but the value is known."""
_ASKED: Final = re.compile(r"(\w+)=(\S.*)")
_END: Final = r"(?:, | = |$)"


def tell_arguments(text: str) -> list[dict[str, str]]:
    """The arguments of a call, each with what is told of `name`, `type`, `value` and `text`; never more than some.

    What is no such JSON is one argument whose `text` it is.
    """
    told = read_json(text)
    if not isinstance(told, list):
        return [{"text": text[:MAX_TEXT]}] if text else []
    found = []
    for one in told[:_MAX_ARGUMENTS]:
        words = one if isinstance(one, dict) else {"value": one}
        found.append(
            {name: tell_value(words[name]) for name in ("name", "type", "value", "text") if words.get(name) is not None}
        )
    return found


class ToldCalls:
    """The calls of an excerpt, by row. Raises TraceDamagedError when they are read."""

    def __init__(self, excerpt: Trace) -> None:
        self._excerpt = excerpt
        self._kept: list[pa.Array] | None = None

    def find(self, text: str) -> Array:
        """Rows (i64) of the calls that have a text in whatever case; `NAME=VALUE`: those with an argument whose name is
        that or ends so and whose value is that, where `*` stands for anything; `path=VALUE`: whatever it is called."""
        import pyarrow.compute as pc

        first, found = 0, [np.zeros(0, np.int64)]
        pattern = _pattern(text)
        # JSON may have letters beyond ASCII by their numbers.
        spellings = dict.fromkeys([text, json.dumps(text)[1:-1] if not text.isascii() else text])
        for piece in self._pieces():
            hits = np.zeros(len(piece), bool)
            if pattern is not None:
                hits |= to_numpy(pc.match_substring_regex(piece, pattern, ignore_case=True))
            for spelling in spellings if pattern is None else ():
                hits |= to_numpy(pc.match_substring(piece, spelling, ignore_case=True))
            found.append(first + np.flatnonzero(hits))
            first += len(piece)
        return np.concatenate(found)

    def _pieces(self) -> Iterator[pa.Array]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[pa.Array] | None = []
        n_bytes = 0
        for piece in self._excerpt.iter_pieces("calls", ["arguments", "result_text", "error"]):
            told = put_in_words(piece)
            n_bytes += told.nbytes
            if kept is not None:
                kept.append(told)
            if n_bytes > _MOST_KEPT:
                kept = None
            yield told
        self._kept = kept


def _pattern(text: str) -> str | None:
    """A regular expression for an argument of some name; None for a plain text."""
    asked = _ASKED.fullmatch(text.strip())
    if asked is None or ", " in text:
        return None
    name, value = asked.groups()
    # What any character may be is none that ends a value in quotes.
    glob = "".join('[^"]*' if one == "*" else re.escape(one) for one in re.sub(r"\*+", "*", value.strip('"')))
    if name.lower() == "path":
        return f'="{glob}"(?:\\.\\.\\.)?{_END}'
    return f'(?:^|, )\\w*{re.escape(name)}="?{glob}"?(?:\\.\\.\\.)?{_END}'


def put_in_words(piece: pa.Table) -> pa.Array:
    """Calls, of which `arguments`, `result_text` and `error` are given, in words."""
    import pyarrow.compute as pc

    given, result, error = (piece[name].combine_chunks() for name in piece.column_names)
    told = given
    if pc.any(pc.match_substring(told, '{"value"')).as_py():
        told = pc.replace_substring_regex(told, _ALONE, r"\1")
    told = pc.replace_substring_regex(told, _ARGUMENT, r"\1=\2\3")
    # A quote within a text has a backslash in front: what is left of an object is one of another shape.
    others = np.flatnonzero(to_numpy(pc.match_substring(told, '{"')))
    told = pc.utf8_slice_codeunits(told, 1, -1)
    for before, after in ((r"\"", '"'), ("\\\\", "\\")):
        told = pc.replace_substring(told, before, after)
    if len(others):
        texts = told.to_pylist()
        for row in others.tolist():
            texts[row] = ", ".join(map(_tell_one, tell_arguments(given[row].as_py())))
        told = pa.array(texts, pa.string())
    for column, before in ((result, " = "), (error, " ")):
        told = pc.binary_join_element_wise(told, pc.fill_null(column.cast(pa.string()), ""), before)
    return told


def _tell_one(argument: dict[str, str]) -> str:
    told = argument.get("text", argument.get("value", "?"))
    return f"{argument['name']}={told}" if "name" in argument else told
