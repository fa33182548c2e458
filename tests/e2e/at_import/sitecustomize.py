"""Interrupts the interpreter's process group when it is about to import the module that INTERRUPT_AT names.

On the path of interpreters that `test_failures.py` starts; no part of the tests themselves.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path


def interrupt(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook: once, and leaves the file that INTERRUPT_NOTE names."""
    note = Path(os.environ["INTERRUPT_NOTE"])
    if event == "import" and arguments[0] == os.environ["INTERRUPT_AT"] and not note.exists():
        note.touch()
        os.killpg(0, signal.SIGINT)


sys.addaudithook(interrupt)
