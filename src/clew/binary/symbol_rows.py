"""Rows of an ELF file's tables, as they lie in it (elf(5)): symbols, and whatever else has rows of one size.

Runs in the controller. What a file claims is checked as far as its size goes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import FileOffset
from clew.binary.elf import ElfFile

__all__ = ["SHT_DYNSYM", "SHT_SYMTAB", "SYMBOL", "read_rows"]

Array = npt.NDArray[Any]

SHT_SYMTAB: Final = 2
SHT_DYNSYM: Final = 11

SYMBOL: Final = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)


def read_rows(elf: ElfFile, offset: FileOffset, size_bytes: int, kind: np.dtype[Any]) -> Array:
    """The whole rows of a kind in a part of a file. Raises BinaryError."""
    data = elf.read(offset, size_bytes)
    return np.frombuffer(data[: len(data) // kind.itemsize * kind.itemsize], kind)
