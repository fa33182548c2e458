"""Source lines of the places at which threads part.

Runs in the controller. Reads the files of the images as they are now; one that was built anew since, by its build-id,
gives no lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from clew.analysis.code.lost_images import is_same_file
from clew.binary.lines import find_lines
from clew.store.trace import Trace

__all__ = ["add_lines"]

Row = dict[str, Any]


def add_lines(trace: Trace, places: Iterable[Row], returns: Iterable[Row] = ()) -> None:
    """Add to each place of a trace its `line`, `FILE:LINE`, None if that is not known; `returns` are places behind
    calls, of which it is the call's."""
    by_image: dict[str | None, list[tuple[int, Row]]] = {}
    for back, rows in ((0, places), (1, returns)):
        for row in rows:
            row["line"] = None
            if row["image"] is not None and row["offset"] is not None:
                by_image.setdefault(row["image"], []).append((int(row["offset"], 16) - back, row))
    images = trace.read("images", ["path", "build_id"])
    build_ids = dict(zip(images["path"].to_pylist(), images["build_id"].to_pylist(), strict=True))
    for path, wanted in by_image.items():
        if path is None or not is_same_file(Path(path), build_ids.get(path)):
            continue
        lines = find_lines(Path(path), [offset for offset, _ in wanted])
        for (_, row), line in zip(wanted, lines, strict=True):
            row["line"] = None if line is None else f"{line.file}:{line.line}"
