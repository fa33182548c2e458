"""What machine code and system calls of an architecture mean: the interface, and the answers where it is not known.

Runs in the controller. A trace may be of an architecture that this clew does not know, or name one that nobody does: of
that nothing is decoded, and all else is shown as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from clew.dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from clew.binary.architectures.details import InstructionDetails
    from clew.binary.arguments import Signature, Signed

__all__ = ["Architecture", "FrameShape", "WrappedCallout"]


@dataclass(frozen=True)
class WrappedCallout:
    """Machine code of a callout, for any address. With `registers` (numbers of the architecture's) it uses no stack and
    changes these, and flags that are to be kept where `keeps_flags` says so; without, it keeps everything itself and
    needs the runtime's stack."""

    code: bytes
    registers: tuple[int, ...] | None = None
    keeps_flags: bool = False


@dataclass(frozen=True)
class FrameShape:
    """What the kernel puts on a stack for a signal's handler, seen from the word where that returns to; distances are
    in words. `marks`: of words so many behind it, which bits have which value. `stack_pointer`: where the interrupted
    one is; `stack_start` and `stack_bytes`: where the thread's stack for signals is told, and its size."""

    marks: tuple[tuple[int, int, int], ...]
    stack_pointer: int
    stack_start: int
    stack_bytes: int


class Architecture:
    """An architecture by its `name`, as traces and uname(2) have it. A known one is a class that says more.

    `title` is for people; `machine` is e_machine in ELF files, -1: not known.
    """

    machine = -1

    page_bytes = 4096
    """The least of a file that is mapped at once."""

    este_name = ""
    """What the files of Este call it."""

    program_counter = ""
    """What the register is called that says where a thread is."""

    dwarf_registers: tuple[str, ...] = ()
    """What the registers are called that DWARF has by these numbers."""
    kernel_registers: tuple[str, ...] = ()
    """What the words of the kernel's `struct pt_regs` hold, in order; empty: nothing that a stopped thread has."""
    first_dwarf_vector = -1
    """DWARF's number of the first vector register."""
    frame_pointer = ""
    """The one by which frames are linked, where code does that."""

    vector_registers = ""
    n_vector_registers = 0
    """What vector registers are called, less their numbers, and how many of them are known of a stopped thread."""
    argument_registers: tuple[str, ...] = ()
    result_register = ""
    stack_arguments = 0
    """Of functions of the platform's C: the registers of the first arguments and of the result; and how far from the
    stack pointer further arguments are where a function begins."""
    call_registers: tuple[str, ...] = ()
    """Of system calls: those of the arguments."""

    handler_returns: tuple[bytes, ...] = ()
    handler_frame = 0
    """The code by which C libraries return from handlers, and how far from the stack pointer there the signal's number
    is (`siginfo_t`)."""
    frame: FrameShape | None = None
    """How a word of a stack is told that is where a signal's handler returns to."""

    dtv_offset = 0
    dtv_entry_bytes = 0
    """Of the C library: how far from the thread pointer the address of the thread's table of thread-local blocks is,
    by the numbers of modules, and how large an entry of that is. 0: not known."""
    module_relocation = -1
    thread_offset_relocation = -1
    """Types of relocations: of words that the dynamic linker fills with a module's number, and with how far from the
    thread pointer a thread-local variable is. The program's own block ends at the thread pointer."""

    none_relocation = -1
    relative_relocation = -1
    function_relocations: tuple[int, ...] = ()
    word_relocation = -1
    chosen_relocation = -1
    """Types of relocations: of nothing, of base + addend, of words that the dynamic linker fills with functions, of
    words that it fills with whatever has a name, and of those that it fills with what the code at base + addend
    returns."""

    other_width = "32-bit"
    """What a program of the same machine is that has other words, for people."""

    max_instruction_bytes = 1
    assembler_directives = ""
    """What stands in front of instructions that the platform's assembler is given, so that they read as they are
    shown."""
    system_call_bytes = 1
    """Of the instruction that makes one."""
    signal_returns: tuple[bytes, ...] = ()
    """The code that handlers of signals return to, as C libraries have it."""
    restart_call = -1
    """The system call made by nobody by which the kernel goes on with one that waits for some time, and that a stop
    interrupted."""

    def __init__(self, name: str, title: str = "") -> None:
        self.name = name
        self.title = title or name

    def __repr__(self) -> str:
        return f"<architecture {self.name}>"

    def iter_instructions(self, code: bytes, address: int) -> Iterator[tuple[int, int, str, str]]:
        """Of each instruction of `code`, which is at `address`: its address, its bytes, its name and its operands. Ends
        where there is none."""
        return iter(())

    def iter_details(self, code: bytes, address: int) -> Iterator[InstructionDetails]:
        """Instructions of `code`, which is at `address`, with all that is known of them. Ends where there is none."""
        return iter(())

    def wrap_callout(self, text: bytes, entry: int, size_bytes: int, *, keeps_flags: bool) -> WrappedCallout:
        """Machine code, for any address, that calls the function of `size_bytes` at `entry` of some compiled code:
        with what registers it shows it, and keeping flags if they may be needed."""
        raise NotImplementedError

    def place_arguments(self, signature: Signature) -> Signed:
        """Where a function of the platform's C has its arguments and its result. Raises BinaryError."""
        from clew.binary.arguments import Signed

        why = "how arguments are passed is not known"
        return Signed([why] * len(signature.parameters), why)

    def express_operand(self, operand: str, kind: str, find_symbol: Callable[[str], str]) -> str:
        """An operand as the platform's assembler writes it, as an expression of captures' of a type (`i32`, `f64`).

        `find_symbol` gives what captures call a symbol. Raises ValueError, with why there is no such expression."""
        raise ValueError("operands of this architecture's assembler are not understood")

    callout_header = ""
    """What stands in front of a callout's source in C: what it is shown of registers, and how it is compiled."""
    callout_options: tuple[str, ...] = ()

    def is_call(self, name: str) -> bool:
        """Whether the instruction of that name is a call."""
        return False

    def find_target(self, text: str) -> int | None:
        """Where an instruction with this text leads, if it is a direct branch or call."""
        return None

    def find_call_number(self, code: bytes) -> int | None:
        """The number of the system call that `code`, run from its start, makes at its end; None where what came before
        decides, or none is made."""
        return None

    def find_call_name(self, number: int) -> str | None:
        """The name of system call `number`; None if it has none."""
        return None

    def find_call(self, name: str) -> int | None:
        """The number of the system call of that name; None if there is none."""
        return None

    def find_stub_slots(self, code: npt.NDArray[np.uint8], address: int) -> tuple[Any, Any]:
        """Places in a section of stubs, which is at `address`, where code jumps through a word in memory (i64), and the
        address of that (u64)."""
        raise NotImplementedError

    def is_for_other_width(self, head: bytes) -> bool:
        """Whether the first bytes of a file are those of a program that this machine may run, with words of another
        width: clew does not follow it."""
        return False

    def name_system_call(self, number: int) -> str:
        """`openat` for its number; `system call 999` for a number without a name."""
        return self.find_call_name(number) or f"system call {number}"

    def name_wait(self, number: int) -> str:
        """What a thread waits in, of its system call: of one that nobody wrote, what is known."""
        if number == self.restart_call:
            return "a system call that a stop interrupted"
        return self.name_system_call(number)
