"""Names of C++ and Rust made readable.

Runs in the controller. Names come from files that may be hostile: one that is too long, or that the demanglers refuse,
stays as it is.
"""

from __future__ import annotations

import contextlib
import re
from functools import lru_cache
from typing import Final

__all__ = ["demangle"]

MAX_NAME_LENGTH: Final = 4096
MAX_RESULT_LENGTH: Final = 4096

MAX_BACK_REFERENCES: Final = 40
"""A name may refer back to its parts, and they to theirs: with so many, the result has 16 MB at the very most."""

_BACK_REFERENCE = re.compile(r"[STB][0-9A-Za-z]{0,4}_")
_RUST_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E(\.llvm\.[0-9A-F]+)?$")


@lru_cache(maxsize=65536)
def demangle(name: str) -> str:
    """`name` as its source would write it; itself, if it is not mangled."""
    if len(name) > MAX_NAME_LENGTH or not name.startswith(("_Z", "_R", "__Z")):
        return name
    if sum(1 for _ in _BACK_REFERENCE.finditer(name)) > MAX_BACK_REFERENCES:
        return name
    readable = None
    if name.startswith("_R") or _RUST_LEGACY.match(name):
        readable = _demangle_rust(name)
    if readable is None and name.startswith(("_Z", "__Z")):
        readable = _demangle_cpp(name)
    if readable is None or not readable:
        return name
    return readable if len(readable) <= MAX_RESULT_LENGTH else readable[: MAX_RESULT_LENGTH - 1] + "…"


def _demangle_rust(name: str) -> str | None:
    from rust_demangler import demangle as demangle_rust

    try:
        # It prints what it could make of a name that it refuses.
        with contextlib.redirect_stdout(None):
            return str(demangle_rust(name))
    except (Exception, RecursionError):
        return None


def _demangle_cpp(name: str) -> str | None:
    try:
        import cxxfilt

        # GCC appends words such as .constprop.0 or .cold to the names of copies.
        stem, dot, copy = name.partition(".")
        readable = str(cxxfilt.demangle(stem, external_only=True))
        return None if readable == stem else readable + (f" [{copy}]" if dot else "")
    except (Exception, RecursionError):
        return None
