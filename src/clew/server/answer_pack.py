"""Answers in a file: packed, compressed, and bounded in size.

Runs in the controller. Knows nothing of traces and of pages. A *chunk* is what is compressed together: one container,
or an object of several JSON answers by their keys. The *index* says which keys each chunk has. A *key* is the path and
the query that the page would ask a server for, the words of the query sorted.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

__all__ = ["AnswerPack", "make_key"]

_JSON_CHUNK_BYTES: Final = 1 << 19
"""About so much JSON is one chunk: repeated words are told once, and one answer is found without reading all."""

_LEVEL: Final = 9

Answer = bytes | Mapping[str, Any]


def make_key(path: str, words: Mapping[str, object]) -> str:
    """The key of what is asked for. `words` are of numbers and plain letters, so nothing in them is escaped."""
    return path + ("?" + urlencode(sorted((name, str(value)) for name, value in words.items())) if words else "")


class AnswerPack:
    """Chunks of answers, which together take at most `limit_bytes` as text."""

    def __init__(self, limit_bytes: int) -> None:
        self.chunks: list[str] = []
        self._index: list[dict[str, Any]] = []
        self._room = limit_bytes

    def add(self, answers: Iterable[tuple[str, Answer]]) -> bool:
        """Add all of some answers; none of them, and false, where there is no room for all.

        They are made as they are asked for, and no more of them once they are too many.
        """
        chunks: list[str] = []
        index: list[dict[str, Any]] = []
        room = self._room
        batch: dict[str, str] = {}

        def close(kind: str, keys: list[str], content: bytes) -> None:
            nonlocal room
            chunks.append(_encode(content))
            index.append({"kind": kind, "keys": keys})
            # What the index takes at most, before it is compressed.
            room -= len(chunks[-1]) + sum(len(key) + 3 for key in keys) * 4 // 3

        def close_batch() -> None:
            if batch:
                content = "{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in batch.items()) + "}"
                close("json", list(batch), content.encode())
                batch.clear()

        batched = 0
        for key, answer in answers:
            if isinstance(answer, bytes):
                close("arrays", [key], answer)
            else:
                batch[key] = json.dumps(answer, separators=(",", ":"))
                batched += len(batch[key])
                if batched >= _JSON_CHUNK_BYTES:
                    close_batch()
                    batched = 0
            if room < 0:
                return False
        close_batch()
        if room < 0:
            return False
        self._room = room
        self.chunks += chunks
        self._index += index
        return True

    def encode_index(self, about: Mapping[str, Any]) -> str:
        """The index, with `about`, as the chunks are: text."""
        return _encode(json.dumps({**about, "chunks": self._index}, separators=(",", ":")).encode())


def _encode(content: bytes) -> str:
    """Compressed (RFC 1951) and written in letters that mean nothing to HTML."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(content) + packer.flush()).decode("ascii")
