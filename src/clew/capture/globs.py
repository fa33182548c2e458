"""Whether bytes are as a pattern has it: `*`, `?`, `[abc]`, `[a-z]`, `[!a]`, as shells have them, all also for slashes.

Runs in the controller, as what the runtime is held against (instrument/captures/globs.rs), which does it another way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

__all__ = ["matches"]

_ALL: Final = frozenset(range(256))


def matches(text: bytes, pattern: bytes) -> bool:
    """Whether all of `text` is as `pattern` has it."""
    parts = _parts_of(pattern)
    places = _with_stars({0}, parts)
    for byte in text:
        stay = {at for at in places if at < len(parts) and parts[at] is None}
        go_on = {at + 1 for at in places if at < len(parts) and (part := parts[at]) is not None and byte in part}
        places = _with_stars(stay | go_on, parts)
    return len(parts) in places


def _with_stars(places: set[int], parts: tuple[frozenset[int] | None, ...]) -> set[int]:
    """Places in a pattern, and those that are reached from there by stars that stand for nothing."""
    found = set()
    for place in places:
        at = place
        found.add(at)
        while at < len(parts) and parts[at] is None:
            at += 1
            found.add(at)
    return found


@lru_cache(maxsize=256)
def _parts_of(pattern: bytes) -> tuple[frozenset[int] | None, ...]:
    """What each part of a pattern stands for: one of some bytes; None: any bytes."""
    parts: list[frozenset[int] | None] = []
    at = 0
    while at < len(pattern):
        byte, at = pattern[at : at + 1], at + 1
        if byte == b"*":
            parts.append(None)
        elif byte == b"?":
            parts.append(_ALL)
        elif byte == b"[" and (end := pattern.find(b"]", at + 1 + (pattern[at : at + 1] == b"!"))) >= 0:
            parts.append(_set_of(pattern[at:end]))
            at = end + 1
        else:
            parts.append(frozenset(byte))
    return tuple(parts)


def _set_of(inner: bytes) -> frozenset[int]:
    if inner[:1] == b"!":
        return _ALL - _chosen(inner[1:])
    return _chosen(inner)


def _chosen(inner: bytes) -> frozenset[int]:
    chosen: set[int] = set()
    at = 0
    while at < len(inner):
        if inner[at + 1 : at + 2] == b"-" and at + 2 < len(inner):
            # None, if it goes backwards.
            chosen.update(range(inner[at], inner[at + 2] + 1))
            at += 3
        else:
            chosen.add(inner[at])
            at += 1
    return frozenset(chosen)
