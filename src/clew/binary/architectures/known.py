"""The architectures that this clew knows: by name, by the number in ELF files, and this machine's.

Runs in the controller.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from clew.binary.architectures.architecture import Architecture
from clew.binary.architectures.x86_64 import X86_64

__all__ = ["KNOWN", "architecture_named", "architecture_of_machine", "native_architecture"]

KNOWN: Final[tuple[Architecture, ...]] = (X86_64,)
"""The first one is what traces are of that do not say it."""


def architecture_named(name: str) -> Architecture:
    """The architecture that traces and uname(2) call `name`; one of which nothing is known, if clew has none."""
    return next((one for one in KNOWN if one.name == name), None) or Architecture(name)


def architecture_of_machine(machine: int) -> Architecture | None:
    """The architecture of an ELF file, by its e_machine, if it is known."""
    return next((one for one in KNOWN if one.machine == machine), None)


@cache
def native_architecture() -> Architecture:
    """This machine's: that of all programs that are recorded."""
    return architecture_named(os.uname().machine)
