"""Numbers of processors in ELF files (elf(5), e_machine)."""

from __future__ import annotations

from typing import Final

__all__ = ["EM_X86_64"]

EM_X86_64: Final = 62
