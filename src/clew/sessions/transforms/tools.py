"""The machine's compiler, assembler and linker.

Runs in the controller.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from typing import Final

from clew.errors import TransformError

__all__ = ["run_tool"]

_SECONDS: Final = 60.0


def run_tool(command: Sequence[str], given: str, *, what: str, explain: Callable[[str], str] = str.strip) -> str:
    """What a tool prints that is `given` a text. Raises TransformError: `what` went wrong, and what it said, as
    `explain` has that."""
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TransformError(f"{what}: {command[0]} can't be run: {error}") from error
    if done.returncode != 0:
        raise TransformError(f"{what}: {explain(done.stderr)}")
    return done.stdout
