"""A processor that does not exist, as far from the real ones as the interface lets it be: four registers with names of
their own, instructions of four bytes, a call's number in a register that its result does not touch.

What it "executes" is in `MadeUpProcessor.tasks`: registers by thread.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from clew.binary.architectures.architecture import Architecture
from clew.process.processors.processor import Features, Processor, Registers
from clew.process.ptrace import TaskId
from clew.protocol._constants import THREAD_STATE_BYTES
from clew.protocol.architecture import ArchitectureDefinition
from clew.protocol.generate_python import struct_format
from clew.protocol.schema import parse_schema

__all__ = ["ARCHITECTURE", "DEFINITION", "PROCESSOR", "THREAD_STATE", "MadeUpArchitecture", "MadeUpProcessor"]

_SCHEMA: Final = f"""
[protocol]
version = 1
magic = 1
note_name = "clew"
note_type = 1
[limits]
[enums]
[architectures.made_up]
doc = "none"
title = "Made-Up"
machine = 4711
page_bytes = 4096
registers = ["one", "two", "three", "four"]
more_held_registers = ["where", "carry"]
program_counter = "where"
stack_pointer = "four"
[structs.ThreadState]
doc = "a thread"
size = {THREAD_STATE_BYTES}
shared = false
fields = [
  {{ name = "mask", type = "u64", offset = 0, doc = "mask" }},
  {{ name = "where", type = "u64", offset = 8, architecture = "made_up", doc = "pc" }},
  {{ name = "registers", type = "u64[registers]", offset = 16, doc = "general" }},
  {{ name = "rseq_area", type = "u64", offset = 48, doc = "area" }},
  {{ name = "carry", type = "u32", offset = 56, architecture = "made_up", doc = "flags" }},
  {{ name = "tid", type = "u32", offset = 60, doc = "thread" }},
  {{ name = "call_code", type = "u32", offset = 64, doc = "error" }},
  {{ name = "rseq_signature", type = "u32", offset = 68, doc = "signature" }},
  {{ name = "is_captured", type = "u32", offset = 72, doc = "captured" }},
  {{ name = "has_calls", type = "u32", offset = 76, doc = "calls" }},
  {{ name = "reserved", type = "u8[{THREAD_STATE_BYTES - 80}]", offset = 80, doc = "zero" }},
]
"""
_PARSED: Final = parse_schema(_SCHEMA)
DEFINITION: Final[ArchitectureDefinition] = _PARSED.architectures[0]
THREAD_STATE: Final = (
    _PARSED.structs[0].size_bytes,
    {field.name: (field.offset, struct_format(field)) for field in _PARSED.structs[0].fields},
)
"""Of LAYOUTS what struct ThreadState is here."""

_CALLS: Final = {"futex": 1, "mmap": 2, "recvfrom": 3, "restart_syscall": 9}
_NAMES: Final = {0x11: "nop", 0x22: "jump", 0x33: "enter"}
_WORD_BYTES: Final = 4


class MadeUpArchitecture(Architecture):
    """Each instruction has four bytes: an operation, and three of its operand."""

    machine = DEFINITION.machine
    program_counter = DEFINITION.program_counter
    max_instruction_bytes = _WORD_BYTES
    restart_call = _CALLS["restart_syscall"]
    relative_relocation = 77
    function_relocations = (5,)

    def iter_instructions(self, code: bytes, address: int) -> Iterator[tuple[int, int, str, str]]:
        for at in range(0, len(code) - _WORD_BYTES + 1, _WORD_BYTES):
            if code[at] not in _NAMES:
                return
            yield address + at, _WORD_BYTES, _NAMES[code[at]], f"{int.from_bytes(code[at + 1 : at + 4], 'little'):#x}"

    def is_call(self, name: str) -> bool:
        return name == "enter"

    def find_call_name(self, number: int) -> str | None:
        return next((name for name, one in _CALLS.items() if one == number), None)

    def find_call(self, name: str) -> int | None:
        return _CALLS.get(name)

    def find_stub_slots(self, code: npt.NDArray[np.uint8], address: int) -> tuple[npt.NDArray[np.int64], object]:
        at = np.flatnonzero(code[::_WORD_BYTES] == 0x22) * _WORD_BYTES
        return at, (at + address + 0x100).astype(np.uint64)


ARCHITECTURE: Final = MadeUpArchitecture(DEFINITION.name, DEFINITION.title)


class MadeUpRegisters(Registers):
    """`values` by the names of the architecture, and `waits_in`: the call that the thread is inside of."""

    def __init__(self, waits_in: int | None = None, **values: int) -> None:
        self.values = dict.fromkeys(DEFINITION.held_registers, 0) | {"base": 0, "narrow": 0} | values
        self.waits_in = waits_in

    def copy(self) -> MadeUpRegisters:
        return MadeUpRegisters(self.waits_in, **self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MadeUpRegisters) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def pc(self) -> int:
        return self.values["where"]

    @pc.setter
    def pc(self, value: int) -> None:
        self.values["where"] = value

    @property
    def stack_pointer(self) -> int:
        return self.values["four"]

    @stack_pointer.setter
    def stack_pointer(self, value: int) -> None:
        self.values["four"] = value

    @property
    def context(self) -> int:
        return self.values["base"]

    @context.setter
    def context(self, value: int) -> None:
        self.values["base"] = value

    @property
    def argument(self) -> int:
        return self.values["two"]

    @argument.setter
    def argument(self, value: int) -> None:
        self.values["two"] = value

    @property
    def general(self) -> tuple[int, ...]:
        return tuple(self.values[name] for name in DEFINITION.registers)

    @general.setter
    def general(self, values: Sequence[int]) -> None:
        self.values.update(zip(DEFINITION.registers, values, strict=True))

    @property
    def own(self) -> dict[str, int]:
        return {"carry": self.values["carry"]}

    def give_own(self, values: Mapping[str, int], *, keeps_code: bool = False) -> None:
        self.values["carry"] = values["carry"]
        if not keeps_code:
            self.choose_own_code()

    @property
    def is_in_own_code(self) -> bool:
        return not self.values["narrow"]

    def choose_own_code(self) -> None:
        self.values["narrow"] = 0

    @property
    def is_stepping(self) -> bool:
        return False

    def end_stepping(self) -> None:
        return

    def begin(self, pc: int) -> None:
        self.values["where"], self.values["carry"] = pc, 0
        self.leave_call()

    @property
    def result(self) -> int:
        return self.values["one"]

    @result.setter
    def result(self, value: int) -> None:
        self.values["one"] = value

    @property
    def call_number(self) -> int | None:
        return self.waits_in

    @property
    def is_in_front_of_call(self) -> bool:
        return self.waits_in is None

    def leave_call(self) -> None:
        self.waits_in = None

    def set_call(self, number: int, arguments: Sequence[int]) -> None:
        self.values["three"] = number
        self.values["one"], self.values["two"] = (*arguments, 0, 0)[:2]
        self.leave_call()

    def step_in_front_of_call(self, number: int) -> None:
        self.values["where"] -= _WORD_BYTES
        self.values["three"] = number

    def step_into_call(self, error: int) -> None:
        self.waits_in, self.values["one"] = self.values["three"], -error
        self.values["where"] += _WORD_BYTES

    def make_call_at(self, pc: int, number: int) -> None:
        self.values["where"], self.values["three"] = pc, number
        self.leave_call()


class MadeUpProcessor(Processor):
    """Threads are numbers in a dictionary."""

    architecture = ARCHITECTURE
    definition = DEFINITION
    call_instruction = b"CALL"
    trap_code = 1
    bases = (0x1A00000000, 0x2A00000000)

    def __init__(self) -> None:
        self.tasks: dict[int, MadeUpRegisters] = {}

    def get_registers(self, task: TaskId) -> MadeUpRegisters:
        return self.tasks[task].copy()

    def set_registers(self, task: TaskId, registers: Registers) -> None:
        assert isinstance(registers, MadeUpRegisters)
        self.tasks[task] = registers.copy()

    def get_extended_state(self, task: TaskId) -> bytes:
        return b""

    def set_extended_state(self, task: TaskId, state: bytes) -> None:
        assert state == b""

    def start_fields(self, registers: Registers) -> dict[str, int | Sequence[int]]:
        return {"registers": registers.general}

    def refuge_code(self, registers: Registers, mask: int) -> bytes:
        return self.call_instruction + struct.pack("<4QQ", *registers.general, mask)

    def features(self) -> Features:
        return Features("none")


PROCESSOR: Final = MadeUpProcessor()
