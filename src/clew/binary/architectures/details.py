"""What is known of one machine instruction, on any architecture.

Runs in the controller. Pure.
"""

from __future__ import annotations

from clew.dataclass import dataclass

__all__ = ["InstructionDetails", "MemoryAccess"]


@dataclass(frozen=True)
class MemoryAccess:
    """Memory that an instruction accesses: at base + index * scale + displacement, names of registers or empty.

    `access` is `r`, `w` or `rw`. `size_bytes` is 0 where that is only known when it is executed. Where base and index
    are empty the displacement is the address.
    """

    base: str
    index: str
    scale: int
    displacement: int
    segment: str
    size_bytes: int
    access: str


class InstructionDetails:
    """An instruction: where it is, its bytes, and what it does; a class for each architecture works the latter out.

    `may_go_elsewhere`: it may go on elsewhere than behind itself. `uses_own_segment`: it names what is the runtime's
    where code is translated.
    """

    def __init__(self, address: int, code: bytes, *, may_go_elsewhere: bool, uses_own_segment: bool) -> None:
        self.address, self.code = address, code
        self.may_go_elsewhere, self.uses_own_segment = may_go_elsewhere, uses_own_segment

    @property
    def mnemonic(self) -> str:
        """Its name, with prefixes such as `rep` and `lock`."""
        raise NotImplementedError

    @property
    def operands(self) -> str:
        """Its operands as text, as the platform's assembler reads them."""
        raise NotImplementedError

    @property
    def groups(self) -> tuple[str, ...]:
        """How it goes on, where that is not behind itself (`unconditional_branch`, `conditional_branch`,
        `indirect_branch`, `call`, `indirect_call`, `return`, `interrupt`, `exception`), and what a processor has that
        knows it (`sse2`, `avx512f`)."""
        raise NotImplementedError

    @property
    def reads(self) -> tuple[str, ...]:
        """Registers that it reads, flags among them, also where it does not name them."""
        raise NotImplementedError

    @property
    def writes(self) -> tuple[str, ...]:
        """Registers that it writes."""
        raise NotImplementedError

    @property
    def reads_flags(self) -> bool:
        """What it does depends on flags."""
        raise NotImplementedError

    @property
    def overwrites_flags(self) -> bool:
        """Whatever flags were before they are not any more."""
        raise NotImplementedError

    @property
    def memory(self) -> tuple[MemoryAccess, ...]:
        """Memory that it reads and writes, also where it does not name it, as on the stack."""
        raise NotImplementedError
