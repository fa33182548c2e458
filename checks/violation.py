"""What a check found: the place and what is wrong there. Knows no rule itself."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Violation:
    """One broken rule. `place` is `file`, `file:line` or an address in an image; `message` says what and why."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


def report(violations: Iterable[Violation], checked: str) -> int:
    """Print every violation to stderr, or one line that all is well to stdout; return the exit status, 1 or 0."""
    found = list(violations)
    for violation in found:
        print(violation, file=sys.stderr)
    if found:
        print(f"{checked}: {len(found)} rules broken", file=sys.stderr)
        return 1
    print(f"{checked}: good")
    return 0
