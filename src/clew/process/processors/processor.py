"""What the controller asks of a processor: its registers, how system calls are made and made again, how code begins.

Runs in the controller. The interface alone: a module each beside this one holds names and encodings, and nothing else
in clew does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from clew.binary.architectures.architecture import Architecture
from clew.dataclass import dataclass
from clew.protocol.architecture import ArchitectureDefinition

if TYPE_CHECKING:
    from clew.process.ptrace import TaskId

__all__ = ["Features", "Processor", "Registers"]


@dataclass(frozen=True)
class Features:
    """What of a processor matters to a recording: `detail`, and `way_out` where something could be better."""

    detail: str
    way_out: str = ""


class Registers(ABC):
    """The general registers of a stopped thread, and what else the kernel keeps of its state beside vectors.

    Numbers are unsigned, of 64 bits; `result` is signed. Changes reach the thread by `Processor.set_registers`.
    """

    @abstractmethod
    def copy(self) -> Registers:
        """The same ones, to be changed apart."""

    @property
    @abstractmethod
    def pc(self) -> int:
        """Where it goes on."""

    @pc.setter
    @abstractmethod
    def pc(self, value: int) -> None: ...

    @property
    @abstractmethod
    def stack_pointer(self) -> int:
        """Its stack."""

    @stack_pointer.setter
    @abstractmethod
    def stack_pointer(self, value: int) -> None: ...

    @property
    @abstractmethod
    def context(self) -> int:
        """Where, under the runtime, its context is: in the register that leads there."""

    @context.setter
    @abstractmethod
    def context(self, value: int) -> None: ...

    @property
    @abstractmethod
    def argument(self) -> int:
        """The first argument of a function that is about to begin."""

    @argument.setter
    @abstractmethod
    def argument(self, value: int) -> None: ...

    @property
    @abstractmethod
    def general(self) -> tuple[int, ...]:
        """The general registers in the order of `ArchitectureDefinition.registers`."""

    @general.setter
    @abstractmethod
    def general(self, values: Sequence[int]) -> None: ...

    @property
    @abstractmethod
    def own(self) -> dict[str, int]:
        """What `ArchitectureDefinition.own_fields` has of struct ThreadState, where it goes on apart."""

    @abstractmethod
    def give_own(self, values: Mapping[str, int], *, keeps_code: bool = False) -> None:
        """Set what `own` told; with `keeps_code` but for which kind of code it goes on in."""

    @property
    @abstractmethod
    def is_in_own_code(self) -> bool:
        """Whether it is in code of the architecture, not in that of another width, which the runtime can't be entered
        from."""

    @abstractmethod
    def choose_own_code(self) -> None:
        """Have it go on in code of the architecture."""

    @property
    @abstractmethod
    def is_stepping(self) -> bool:
        """Whether it traps behind the next instruction."""

    @abstractmethod
    def end_stepping(self) -> None:
        """Have it not do so."""

    @abstractmethod
    def begin(self, pc: int) -> None:
        """Have it go on at the first instruction of something at `pc`, with flags as they are there, and in no system
        call."""

    # System calls. A thread that is stopped inside one shows an error that the kernel keeps to itself and acts upon
    # when the thread goes on.

    @property
    @abstractmethod
    def result(self) -> int:
        """Of a system call that has ended: what it gave, or an error number, negative. Inside of one: its internal
        error, negative."""

    @result.setter
    @abstractmethod
    def result(self, value: int) -> None: ...

    @property
    @abstractmethod
    def call_number(self) -> int | None:
        """The system call that it is stopped inside of, or that has just ended; None: it is in none, or makes none
        again."""

    @property
    @abstractmethod
    def is_in_front_of_call(self) -> bool:
        """Whether it is stopped at the entry of a system call, where it can also be stopped at its end."""

    @abstractmethod
    def leave_call(self) -> None:
        """Have the kernel make no system call again, whatever it was in."""

    @abstractmethod
    def set_call(self, number: int, arguments: Sequence[int]) -> None:
        """Have it make a system call, with up to six arguments, at the instruction where it goes on."""

    @abstractmethod
    def step_in_front_of_call(self, number: int) -> None:
        """From inside a call to in front of its instruction, which makes the call of that number."""

    @abstractmethod
    def step_into_call(self, error: int) -> None:
        """From in front of a call's instruction to inside it, interrupted with this internal error."""

    @abstractmethod
    def make_call_at(self, pc: int, number: int) -> None:
        """Have it go on at `pc`, where the call of that number is made anew."""


class Processor(ABC):
    """A processor, as programs for one architecture see it.

    `architecture` says what their code means, `definition` what the schema says.
    """

    architecture: Architecture
    definition: ArchitectureDefinition

    call_instruction: bytes
    """Makes a system call."""

    trap_code: int
    """si_code of the trap by which the runtime parks a thread."""

    perf_registers: tuple[int, ...]
    """What perf events call the registers of `definition.held_registers`."""

    bases: tuple[int, ...]
    """Where to map the runtime, in order of preference: none is near a heap, a stack, a library or a sanitizer's shadow
    memory."""

    @abstractmethod
    def get_registers(self, task: TaskId) -> Registers:
        """The registers of a stopped tracee. Raises OSError."""

    @abstractmethod
    def set_registers(self, task: TaskId, registers: Registers) -> None:
        """Give a stopped tracee these registers. Raises OSError."""

    @abstractmethod
    def get_extended_state(self, task: TaskId) -> bytes:
        """Vector and floating-point registers of a stopped tracee, for `set_extended_state`. Raises OSError."""

    @abstractmethod
    def set_extended_state(self, task: TaskId, state: bytes) -> None:
        """Give a stopped tracee the registers that `get_extended_state` told. Raises OSError."""

    @abstractmethod
    def start_fields(self, registers: Registers) -> dict[str, int | Sequence[int]]:
        """Of struct StartBlock what says how a program with these registers begins."""

    @abstractmethod
    def refuge_code(self, registers: Registers, mask: int) -> bytes:
        """A system call's instruction, and behind it what makes `registers` and the signal mask the thread's again; to
        be put anywhere, with its data."""

    @abstractmethod
    def features(self) -> Features:
        """What this machine's one has. Raises OSError."""
