"""The vDSO: code of the kernel's that is mapped in every process of a machine, the same one, and is no file.

Runs in the controller, which has it itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from clew.binary.elf import ElfFile, open_elf_bytes
from clew.errors import BinaryError

__all__ = ["VDSO_NAME", "open_vdso"]

VDSO_NAME: Final = "[vdso]"
"""As mappings call it."""


@contextmanager
def open_vdso() -> Iterator[ElfFile]:
    """This process's vDSO, as a file. Raises BinaryError if it has none, OSError."""
    with open("/proc/self/maps") as maps:
        line = next((line for line in maps if line.rstrip().endswith(VDSO_NAME)), None)
    if line is None:
        raise BinaryError(Path(VDSO_NAME), "there is none")
    start, end = (int(address, 16) for address in line.split()[0].split("-"))
    with open("/proc/self/mem", "rb") as memory:
        memory.seek(start)
        code = memory.read(end - start)
    with open_elf_bytes(code, VDSO_NAME) as elf:
        yield elf
