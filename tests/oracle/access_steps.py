"""Accesses to memory of a command, by single-stepping it: registers and memory are read in front of each instruction
and behind it. What an instruction accesses is read off its operands by capstone; what it accesses without saying so is
written down here.

Runs on the machine that tests. Knows nothing of clew.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from capstone import CS_ARCH_X86, CS_MODE_64, Cs, CsInsn
from capstone.x86 import X86_OP_MEM, X86_REG_FS

from tests.oracle.access_registers import Registers, read_registers

__all__ = ["Access", "step_accesses"]

PTRACE_TRACEME, PTRACE_SINGLESTEP = 0, 9
TRAP_FLAG = 0x100
NO_RANDOM_LAYOUT = 0x0040000
STRINGS = {"movs": ("rsi", "rdi"), "cmps": ("rsi", "rdi"), "stos": ("rdi",), "lods": ("rsi",), "scas": ("rdi",)}
ORDER = ("read", "write", "update")
WRITING = {"mov", "stmxcsr", "fnstcw", "fxsave", "fstp", "fistp", "pextrw", "movups", "movhps", "maskmovdqu"}
NONE_AT_ALL = {"lea", "nop", "prefetcht0", "endbr64"}
UPDATING = {
    *("add", "sub", "inc", "dec", "neg", "not", "and", "or", "xor", "adc", "sbb", "shl", "shr", "sar", "rol", "ror"),
    *("xchg", "xadd", "cmpxchg", "cmpxchg16b", "bts", "btr", "btc"),
}


@dataclass
class Access:
    """One access: where the instruction is, what it accesses, how, and the first eight bytes; None: not known."""

    pc: int
    address: int
    size: int
    kind: str
    value: int | None = field(default=None, compare=False)


def step_accesses(path: Path) -> list[Access]:
    """All accesses of a static program without threads, handlers or arguments."""
    pid = _start(path)
    try:
        return _step_all(pid)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _step_all(pid: int) -> list[Access]:
    found: list[Access] = []
    machine = Cs(CS_ARCH_X86, CS_MODE_64)
    machine.detail = True
    known: dict[int, CsInsn] = {}
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        before: Registers | None = read_registers(pid)
        while before is not None:
            pc = before["rip"]
            if pc not in known:
                known[pc] = next(machine.disasm(os.pread(memory.fileno(), 15, pc), pc, 1))
            one = known[pc]
            accesses = sorted(_accesses_of(one, before), key=lambda access: ORDER.index(access.kind))
            for access in accesses:
                if access.kind == "read":
                    access.value = _read(memory.fileno(), access, one)
            libc.ptrace(PTRACE_SINGLESTEP, pid, None, None)
            _, status = os.waitpid(pid, 0)
            after = read_registers(pid) if os.WIFSTOPPED(status) else None
            if after is not None and _is_string(one) and "rep" in one.mnemonic:
                _count_turns(found, accesses, before, after)
            else:
                for access in accesses:
                    if access.kind != "read" and after is not None:
                        access.value = _read(memory.fileno(), access, one)
                found += accesses if after is not None else []
            before = after
    return found


def _start(path: Path) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            libc = ctypes.CDLL(None)
            libc.personality(NO_RANDOM_LAYOUT)
            libc.ptrace(PTRACE_TRACEME, 0, None, None)
            os.execve(path, [os.fspath(path)], {})
        finally:
            os._exit(127)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTRAP
    return pid


def _read(memory: int, access: Access, one: CsInsn) -> int:
    value = int.from_bytes(os.pread(memory, min(access.size, 8), access.address), "little")
    # Stepping shows in the flags.
    return value & ~TRAP_FLAG if one.mnemonic in ("pushfq", "popfq") else value


def _is_string(one: CsInsn) -> bool:
    name = one.mnemonic.split()[-1]
    return name[:4] in STRINGS and name[4:] in tuple("bwdq") and "xmm" not in one.op_str


def _count_turns(found: list[Access], accesses: list[Access], before: Registers, after: Registers) -> None:
    """A step of a repeated instruction is one of its turns, or none at all."""
    n_turns = before["rcx"] - after["rcx"]
    goes_on = len(found) >= len(accesses) and [one.pc for one in found[-len(accesses) :]] == [
        one.pc for one in accesses
    ]
    for index, access in enumerate(accesses):
        access.value = None
        if goes_on and found[-len(accesses) + index].kind == access.kind:
            found[-len(accesses) + index].size += access.size * n_turns
        elif n_turns:
            access.size *= n_turns
            found.append(access)


def _accesses_of(one: CsInsn, registers: Registers) -> Iterator[Access]:
    name = one.mnemonic.split()[-1]
    if name in NONE_AT_ALL:
        return
    if _is_string(one):
        size = {"b": 1, "w": 2, "d": 4, "q": 8}[name[4]]
        for register in STRINGS[name[:4]]:
            is_written = register == "rdi" and name[:4] in ("movs", "stos")
            yield Access(one.address, registers[register], size, "write" if is_written else "read")
        return
    stack, operand_bytes = registers["rsp"], one.operands[0].size if one.operands else 8
    raised = 0
    for index, operand in enumerate(one.operands):
        if operand.type != X86_OP_MEM:
            continue
        if name == "pop" and one.reg_name(operand.mem.base) == "rsp":
            # It is worked out behind the raising of the stack pointer (Intel SDM, POP).
            raised = operand.size
        size, kind = operand.size, _kind_of(name, index)
        if name in ("fxsave", "fxrstor"):
            size = 512
        yield Access(one.address, _address_of(one, operand, registers) + raised, size, kind)
    if name == "maskmovdqu":
        yield Access(one.address, registers["rdi"], 16, "write")
    if name == "push" or name == "call":
        size = 8 if name == "call" else max(operand_bytes, 2 if operand_bytes == 2 else 8)
        yield Access(one.address, stack - size, size, "write")
    elif name == "pushfq":
        yield Access(one.address, stack - 8, 8, "write")
    elif name in ("pop", "popfq", "ret"):
        yield Access(one.address, stack, 8 if name != "pop" else operand_bytes, "read")
    elif name == "leave":
        yield Access(one.address, registers["rbp"], 8, "read")


def _kind_of(name: str, index: int) -> str:
    if index != 0 and name not in ("xchg",):
        return "read"
    if name.startswith(("set", "mov")) or name in WRITING or name == "pop":
        return "write"
    return "update" if name in UPDATING else "read"


def _address_of(one: CsInsn, operand: object, registers: Registers) -> int:
    memory = operand.mem  # type: ignore[attr-defined]
    address = memory.disp
    for number, factor in ((memory.base, 1), (memory.index, memory.scale)):
        register = one.reg_name(number) if number else ""
        if register == "rip":
            address += one.address + one.size
        elif register:
            is_narrow = register.startswith("e") or register.endswith("d")
            value = registers["r" + register[1:] if register.startswith("e") else register.rstrip("d")]
            address += (value & 0xFFFFFFFF if is_narrow else value) * factor
    if memory.segment == X86_REG_FS:
        address += registers["fs_base"]
    return int(address) & (1 << 64) - 1
