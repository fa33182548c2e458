"""JSON in tables, which the traced program had a hand in: read only where it is not too large, told as short texts.

Pure.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["MAX_TEXT", "read_json", "tell_value"]

MAX_TEXT: Final = 400
_MAX_JSON: Final = 1 << 16

_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Halves of characters: JSON can name one alone, UTF-8 can not."""


def read_json(text: str) -> Any:
    """What JSON says; None for what is none, or too large."""
    try:
        return json.loads(text) if len(text) <= _MAX_JSON else None
    except (ValueError, RecursionError):
        return None


def tell_value(value: object) -> str:
    """A value as text, no longer than MAX_TEXT, which UTF-8 can write."""
    text = value if isinstance(value, str) else json.dumps(value)
    return _HALVES.sub("\ufffd", text[:MAX_TEXT])
