"""Work during which Python looks for no circles among objects.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["all_kept", "nothing_collected"]


@contextlib.contextmanager
def nothing_collected() -> Iterator[None]:
    """Plans are many objects, all of which stay: looking for circles among them takes longer than making them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def all_kept() -> Iterator[None]:
    """What is made meanwhile stays to the end of this process: it is not looked through later either, which would take
    seconds of plans of a hundred thousand functions, in which nobody reads events."""
    with nothing_collected():
        try:
            yield
        finally:
            gc.freeze()
