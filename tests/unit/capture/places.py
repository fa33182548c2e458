"""A place at which captures are tried: registers, a piece of memory, words."""

from __future__ import annotations

from clew.capture.interpreter import Value
from clew.capture.machine import Machine
from clew.protocol._constants import ARCHITECTURES, CaptureContext

REGISTERS = ARCHITECTURES["x86_64"].held_registers
MEMORY_START = 0x1000

MACHINE = Machine(
    registers=REGISTERS,
    vectors="xmm",
    n_vectors=8,
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    result="rax",
    stack_pointer="rsp",
    stack_arguments=8,
    find_symbol={"environ": MEMORY_START, "libc.so.6!errno": MEMORY_START + 8}.get,
)


class MadeUpPlace:
    """Memory from `MEMORY_START` on, and registers by name, all others 0."""

    def __init__(self, memory: bytes = b"", **registers: int) -> None:
        self.memory = memory
        self.of_entry: tuple[Value, ...] = ()
        self.registers = registers

    def register(self, number: int) -> int:
        return self.registers.get(REGISTERS[number], 0)

    def vector(self, number: int) -> int | None:
        return self.registers.get(f"xmm{number}")

    def context(self, what: CaptureContext) -> Value:
        known: dict[CaptureContext, Value] = {
            CaptureContext.TID: 7,
            CaptureContext.COMM: b"worker",
            CaptureContext.DURATION: 1500,
            CaptureContext.BEGAN: 1 << 40,
            CaptureContext.FRAME: MEMORY_START + 64,
        }
        return known.get(what)

    def kept(self, field: int) -> Value:
        return self.of_entry[field] if field < len(self.of_entry) else None

    def descriptor_path(self, descriptor: int) -> bytes | None:
        return b"/etc/passwd" if descriptor == 3 else None

    def read(self, address: int, size_bytes: int) -> bytes:
        start = address - MEMORY_START
        return self.memory[start : start + size_bytes] if start >= 0 else b""
