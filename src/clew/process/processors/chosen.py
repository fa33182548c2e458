"""The processors that this clew knows, and the one that a process has.

Runs in the controller. Programs of another architecture than the machine's own are not followed, so all have one.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from clew.errors import ClewError
from clew.process.processors.processor import Processor
from clew.process.processors.x86_64 import X86_64
from clew.process.ptrace import TaskId

__all__ = ["PROCESSORS", "native_processor", "processor_named", "processor_of"]

PROCESSORS: Final[tuple[Processor, ...]] = (X86_64,)


def processor_named(name: str) -> Processor | None:
    """The processor that uname(2) calls `name`, if it is known."""
    return next((one for one in PROCESSORS if one.architecture.name == name), None)


@cache
def native_processor() -> Processor:
    """This machine's. Raises ClewError if it is not known."""
    name = os.uname().machine
    processor = processor_named(name)
    if processor is None:
        titles = ", ".join(one.architecture.title for one in PROCESSORS)
        raise ClewError(f"this machine is {name}; clew follows programs on {titles}")
    return processor


def processor_of(task: TaskId) -> Processor:
    """The processor as the program of a stopped tracee sees it. Raises ClewError."""
    return native_processor()
