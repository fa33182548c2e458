"""Source lines of code, from debugging information.

Runs in the controller; the parsing itself in a process of its own. Debugging information is the most intricate part of
a file that may be hostile, and its parser is native code: should it crash or never end, only the lines are missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clew.binary.elf import open_elf
from clew.binary.symbols import DEBUG_DIRECTORY
from clew.errors import BinaryError

__all__ = ["SourceLine", "find_lines"]

TIMEOUT_SECONDS: Final = 60.0
MAX_OUTPUT_BYTES: Final = 1 << 28


@dataclass(frozen=True)
class SourceLine:
    """A line of a source file, 1 the first, as the compiler was given it."""

    file: str
    line: int


def find_lines(
    path: Path, offsets: Sequence[int], *, timeout_seconds: float = TIMEOUT_SECONDS
) -> list[SourceLine | None]:
    """The source line of each of the image offsets `offsets` of the ELF file at `path`; None where it is not known.

    Without debugging information, or with such that can't be read, all are None.
    """
    nothing: list[SourceLine | None] = [None] * len(offsets)
    if not offsets or not has_debug_information(path):
        return nothing
    question = json.dumps({"path": str(path), "offsets": [int(offset) for offset in offsets]})
    try:
        answer = subprocess.run(
            # Nothing may be imported from the directory that clew happens to be called in.
            [sys.executable, "-P", "-m", "clew.binary.lines"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if os.path.isabs(path))},
            input=question.encode("utf-8", "surrogateescape"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_seconds,
            check=False,
        )
        rows = json.loads(answer.stdout[:MAX_OUTPUT_BYTES])
    except (OSError, ValueError, subprocess.SubprocessError):
        return nothing
    if not isinstance(rows, list) or len(rows) != len(offsets):
        return nothing
    return [_to_line(row) for row in rows]


def has_debug_information(path: Path) -> bool:
    """Whether the file at `path`, or its installed debug file, says which lines its code came from."""
    return any(_has_lines(candidate) for candidate in (path, _find_debug_file(path)) if candidate is not None)


def _to_line(row: Any) -> SourceLine | None:
    if isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], int) and row[1] > 0:
        return SourceLine(row[0], row[1])
    return None


def _has_lines(path: Path) -> bool:
    try:
        with open_elf(path) as elf:
            return any(section.name in (".debug_line", ".zdebug_line") for section in elf.sections)
    except BinaryError:
        return False


def _find_debug_file(path: Path) -> Path | None:
    try:
        with open_elf(path) as elf:
            build_id = elf.build_id
    except BinaryError:
        return None
    if not build_id or len(build_id) <= 2:
        return None
    debug_path = DEBUG_DIRECTORY / build_id[:2] / f"{build_id[2:]}.debug"
    return debug_path if debug_path.exists() else None


def _answer(question: dict[str, Any]) -> list[list[str | int] | None]:
    """Look up lines in this process."""
    import drgn

    path = Path(question["path"])
    with open_elf(path) as elf:
        base, size_bytes = elf.lowest_address, elf.loaded_bytes
    program = drgn.Program()
    module = program.extra_module(str(path), create=True)
    module.address_range = (base, base + size_bytes)
    module.try_file(str(path))
    debug_path = _find_debug_file(path)
    if module.wants_debug_file() and debug_path is not None:
        module.try_file(str(debug_path))
    rows: list[list[str | int] | None] = []
    for offset in question["offsets"]:
        try:
            # The innermost inlined function is where the code was written.
            place = program.source_location(base + offset)[0]
            rows.append([place.filename, place.line])
        except (LookupError, ValueError, OverflowError):
            rows.append(None)
    return rows


if __name__ == "__main__":
    json.dump(_answer(json.loads(sys.stdin.buffer.read().decode("utf-8", "surrogateescape"))), sys.stdout)
