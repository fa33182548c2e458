"""Patterns of bytes, held against Python's own."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.capture.globs import matches

_TEXTS = st.text("ab-/]!\xff", max_size=8)
_PATTERNS = st.text("ab-/]!\xff*?[", max_size=10)


@given(_TEXTS, _PATTERNS)
def test_they_mean_what_python_has_them_mean(text: str, pattern: str) -> None:
    # What remains of a set without its empty ranges Python takes for another one, if a ! comes first.
    if "!" not in pattern.replace("[!", ""):
        assert matches(text.encode("latin-1"), pattern.encode("latin-1")) == fnmatchcase(text, pattern)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        (b"/etc/passwd", b"/etc/*", True),
        (b"/etc/a/b", b"/etc/*", True),
        (b"/etc", b"/etc/*", False),
        (b"a]c", b"a[]]c", True),
        (b"a[c", b"a[c", True),
        (b"abc", b"a[b-a]c", False),
        (b"a\nc\xfe", b"a?c*", True),
        (b"a" * 4096, b"*a" * 2000 + b"b", False),
    ],
)
def test_what_they_mean(text: bytes, pattern: bytes, expected: bool) -> None:
    assert matches(text, pattern) == expected
