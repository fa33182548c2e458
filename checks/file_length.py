"""Source files stay short: over 400 lines is said, over 600 lines fails. Generated files are let be.

Run as `python -m checks.file_length [ROOT]`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from checks.violation import Violation, report

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "runtime/src", "pathcodec/src", "checks", "tests", "bench", "web/src")
SUFFIXES = frozenset({".py", ".rs", ".ts", ".tsx", ".css"})
LONG_LINES = 400
MAX_LINES = 600
_GENERATED_MARK = "do not edit"


def iter_long_files(root: Path, longer_than: int) -> Iterator[Violation]:
    """Yield the source files below `root` that have more than `longer_than` lines and are not generated."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            if len(lines) > longer_than and not any(_GENERATED_MARK in line for line in lines[:3]):
                yield Violation(str(path.relative_to(root)), f"{len(lines)} lines: split it by what it holds")


def main(arguments: list[str]) -> int:
    """Check the tree at `arguments[0]`, or this repository; return the exit status."""
    root = Path(arguments[0]) if arguments else ROOT
    too_long = list(iter_long_files(root, MAX_LINES))
    for violation in iter_long_files(root, LONG_LINES):
        if violation not in too_long:
            print(f"warning: {violation}", file=sys.stderr)
    return report(too_long, "file lengths")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
