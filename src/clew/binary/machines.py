"""Names of processors for people, by their numbers in ELF files (elf(5), e_machine)."""

from __future__ import annotations

from typing import Final

from clew.binary.architectures.known import architecture_of_machine

__all__ = ["name_machine"]

_NAMES: Final = {
    3: "32-bit x86",
    8: "MIPS",
    20: "PowerPC",
    21: "64-bit PowerPC",
    22: "S390",
    40: "32-bit ARM",
    43: "SPARC",
    183: "AArch64",
    243: "RISC-V",
    258: "LoongArch",
}


def name_machine(machine: int) -> str:
    """`AArch64` for 183; `ELF machine 999` for a number without a name."""
    architecture = architecture_of_machine(machine)
    if architecture is not None:
        return architecture.title
    return _NAMES.get(machine, f"ELF machine {machine}")
