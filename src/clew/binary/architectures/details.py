"""What is known of one machine instruction, on any architecture.

Runs in the controller. Pure.
"""

from __future__ import annotations

from clew.dataclass import dataclass

__all__ = ["InstructionDetails", "MemoryAccess"]


@dataclass(frozen=True)
class MemoryAccess:
    """Memory that an instruction names: at base + index * scale + displacement, names of registers or empty.

    `access` is `r`, `w` or `rw`. `size_bytes` is 0 where that is only known when it is executed. Where base and index are
    empty the displacement is the address.
    """

    base: str
    index: str
    scale: int
    displacement: int
    segment: str
    size_bytes: int
    access: str


@dataclass(frozen=True)
class InstructionDetails:
    """An instruction: where it is, its bytes and its text, and what it does.

    `groups` say how it goes on, where that is not behind itself (`unconditional_branch`, `conditional_branch`,
    `indirect_branch`, `call`, `indirect_call`, `return`, `interrupt`, `exception`), and what a processor has that knows it
    (`sse2`, `avx512f`). `reads` and `writes` are the registers that it does so with, `rflags` among them, also where it
    does not name them. `may_go_elsewhere`: it may go on elsewhere than behind itself.
    """

    address: int
    code: bytes
    mnemonic: str
    operands: str
    groups: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    memory: tuple[MemoryAccess, ...]
    may_go_elsewhere: bool
    uses_own_segment: bool
    """It names what is the runtime's where code is translated."""
