"""What the schema says of one architecture: its number, its registers, what is its own in the shared layouts.

Pure data. What a processor does is `clew.process.processors`'; what its code means `clew.binary.architectures`'.
"""

from __future__ import annotations

from clew.dataclass import dataclass

__all__ = ["ArchitectureDefinition"]


@dataclass(frozen=True)
class ArchitectureDefinition:
    """An architecture. `title` is for people, `machine` is e_machine in ELF files, `page_bytes` the
    least that is mapped at once.

    `registers` are the general ones in the order of StartBlock.registers and ThreadState.registers, `held_registers`
    those of ThreadSlot.held_registers; `program_counter` and `stack_pointer` are two of these. `own_fields` are, by
    struct, the fields that this architecture alone has.
    """

    name: str
    doc: str
    title: str
    machine: int
    page_bytes: int
    registers: tuple[str, ...]
    held_registers: tuple[str, ...]
    program_counter: str
    stack_pointer: str
    own_fields: dict[str, tuple[str, ...]]
