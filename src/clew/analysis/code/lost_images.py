"""Files that code ran from and that are not what they were, so that they give no lines.

Runs in the controller. Looks at the files as they are now.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from clew.binary.elf import open_elf
from clew.errors import BinaryError
from clew.store.trace import Trace

__all__ = ["find_lost_images", "is_same_file"]

Loss = Literal["changed", "gone", "unreadable"]
"""Why a file gives no lines: by its build-id it is another by now, or there is none, or it may not be read."""


def find_lost_images(trace: Trace, image_rows: Iterable[int]) -> list[tuple[str, Loss]]:
    """Paths of files that give no lines because they are not what they were, and why, among some rows of the images."""
    images = trace.read_rows("images", sorted(image_rows), ["path", "build_id"])
    known = {(image["path"], image["build_id"]) for image in images}
    lost = {(path, _find_loss(path, build_id)) for path, build_id in known if _is_file_name(path)}
    return sorted((path, loss) for path, loss in lost if loss is not None)


def is_same_file(path: Path, build_id: str | None) -> bool:
    """Whether there is an ELF file at `path` with that build-id, or none."""
    try:
        with open_elf(path) as elf:
            return elf.build_id == build_id
    except BinaryError:
        return False


def _is_file_name(path: str) -> bool:
    # Not what the kernel maps by itself, nor memory that has no name in any folder.
    return path.startswith("/") and not path.startswith("/memfd:")


def _find_loss(path: str, build_id: str | None) -> Loss | None:
    if not os.path.exists(path):
        return "gone"
    if not os.access(path, os.R_OK):
        return "unreadable"
    return "changed" if build_id not in (None, _read_build_id(path)) else None


def _read_build_id(path: str) -> str | None:
    """None where there is none, or no ELF file that can be read."""
    with contextlib.suppress(BinaryError), open_elf(Path(path)) as elf:
        return elf.build_id
    return None
