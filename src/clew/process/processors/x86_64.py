"""x86-64, as the controller meets it in a stopped thread.

Runs in the controller. A thread that is stopped inside a system call has in rax an error that the kernel keeps to
itself, and the call's number in orig_rax (arch/x86/kernel/signal.c, arch_do_signal_or_restart).
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from clew.address import Pid
from clew.binary.architectures import x86_64 as code
from clew.process import ptrace
from clew.process.linux import AT_HWCAP2
from clew.process.maps import read_auxiliary_vector
from clew.process.processors.processor import Features, Processor, Registers
from clew.process.processors.x86_64_refuge import SYSCALL_INSTRUCTION, refuge_code
from clew.process.ptrace import TaskId
from clew.protocol._constants import ARCHITECTURES

__all__ = ["X86_64", "UserRegisters", "X8664Registers"]

_DEFINITION: Final = ARCHITECTURES["x86_64"]
_NAMES: Final = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)
_ARGUMENTS: Final = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
_GETREGS: Final = 12
_SETREGS: Final = 13
_NT_X86_XSTATE: Final = 0x202
_NT_PRFPREG: Final = 2
_HWCAP2_FSGSBASE: Final = 2
_USER_CS: Final = 0x33
_USER_SS: Final = 0x2B
"""Selectors of 64-bit programs (arch/x86/include/asm/segment.h)."""

_TRAP_FLAG: Final = 1 << 8
_FLAGS: Final = 0x202
"""Interrupts are on, all else is off."""

_U64: Final = (1 << 64) - 1
_NO_CALL: Final = _U64
_FEATURES: Final = {
    "fsgsbase": "fsgsbase",
    "avx2": "avx2",
    "avx512f": "avx512",
    "rtm": "rtm",
    "shstk": "user shadow stacks",
}


class UserRegisters(ctypes.Structure):
    """struct user_regs_struct."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in _NAMES]

    def __getattr__(self, name: str) -> int:  # for the type checker: every field is an integer
        raise AttributeError(name)


class X8664Registers(Registers):
    """Of x86-64: `raw` are those of the kernel."""

    def __init__(self, raw: UserRegisters) -> None:
        self.raw = raw

    def copy(self) -> X8664Registers:
        return X8664Registers(UserRegisters.from_buffer_copy(self.raw))

    @property
    def pc(self) -> int:
        return self.raw.rip

    @pc.setter
    def pc(self, value: int) -> None:
        self.raw.rip = value

    @property
    def stack_pointer(self) -> int:
        return self.raw.rsp

    @stack_pointer.setter
    def stack_pointer(self, value: int) -> None:
        self.raw.rsp = value

    @property
    def context(self) -> int:
        return self.raw.gs_base

    @context.setter
    def context(self, value: int) -> None:
        self.raw.gs_base = value

    @property
    def argument(self) -> int:
        return self.raw.rdi

    @argument.setter
    def argument(self, value: int) -> None:
        self.raw.rdi = value

    @property
    def general(self) -> tuple[int, ...]:
        return tuple(getattr(self.raw, name) for name in _DEFINITION.registers)

    @general.setter
    def general(self, values: Sequence[int]) -> None:
        for name, value in zip(_DEFINITION.registers, values, strict=True):
            setattr(self.raw, name, value)

    @property
    def own(self) -> dict[str, int]:
        raw = self.raw
        return {
            "rflags": raw.eflags,
            "gs_base": raw.gs_base,
            "code_selector": 0 if raw.cs == _USER_CS else raw.cs,
            "stack_selector": 0 if raw.ss == _USER_SS else raw.ss,
        }

    def give_own(self, values: Mapping[str, int], *, keeps_code: bool = False) -> None:
        self.raw.eflags, self.raw.gs_base = values["rflags"], values["gs_base"]
        if not keeps_code:
            self.raw.cs = values["code_selector"] or _USER_CS
            self.raw.ss = values["stack_selector"] or _USER_SS

    @property
    def is_in_own_code(self) -> bool:
        return self.raw.cs == _USER_CS

    def choose_own_code(self) -> None:
        self.raw.cs, self.raw.ss = _USER_CS, _USER_SS

    @property
    def is_stepping(self) -> bool:
        return bool(self.raw.eflags & _TRAP_FLAG)

    def end_stepping(self) -> None:
        self.raw.eflags &= ~_TRAP_FLAG

    def begin(self, pc: int) -> None:
        self.raw.rip, self.raw.eflags = pc, _FLAGS
        self.leave_call()

    @property
    def result(self) -> int:
        return self.raw.rax - (1 << 64) if self.raw.rax >> 63 else self.raw.rax

    @result.setter
    def result(self, value: int) -> None:
        self.raw.rax = value & _U64

    @property
    def call_number(self) -> int | None:
        return None if self.raw.orig_rax >> 63 else self.raw.orig_rax

    @property
    def is_in_front_of_call(self) -> bool:
        return self.result == -errno.ENOSYS

    def leave_call(self) -> None:
        self.raw.orig_rax = _NO_CALL

    def set_call(self, number: int, arguments: Sequence[int]) -> None:
        self.raw.rax = number
        for index, name in enumerate(_ARGUMENTS):
            setattr(self.raw, name, arguments[index] & _U64 if index < len(arguments) else 0)
        self.leave_call()

    def step_in_front_of_call(self, number: int) -> None:
        self.raw.rip -= len(SYSCALL_INSTRUCTION)
        self.raw.rax = number

    def step_into_call(self, error: int) -> None:
        raw = self.raw
        raw.orig_rax = raw.rax
        self.result = -error
        raw.rip += len(SYSCALL_INSTRUCTION)
        raw.rcx, raw.r11 = raw.rip, raw.eflags

    def make_call_at(self, pc: int, number: int) -> None:
        self.raw.rip, self.raw.rax = pc, number
        self.leave_call()


class _X86_64(Processor):  # noqa: N801
    architecture = code.X86_64
    definition = _DEFINITION
    call_instruction = SYSCALL_INSTRUCTION
    # SI_KERNEL, of an int3.
    trap_code = 0x80
    # include/uapi/asm/perf_regs.h has another order.
    perf_registers = (0, 2, 3, 1, 7, 6, 4, 5, *range(16, 24), 8, 9)
    bases = (0x2A0000000000, 0x3A0000000000, 0x1A0000000000, 0x4A0000000000)

    def get_registers(self, task: TaskId) -> X8664Registers:
        # Not by GETREGSET: of a thread in 32-bit code that tells of less.
        raw = UserRegisters()
        ptrace.request(_GETREGS, task, ctypes.addressof(raw))
        return X8664Registers(raw)

    def set_registers(self, task: TaskId, registers: Registers) -> None:
        assert isinstance(registers, X8664Registers)
        ptrace.request(_SETREGS, task, ctypes.addressof(registers.raw))

    def get_extended_state(self, task: TaskId) -> bytes:
        try:
            return ptrace.get_register_set(task, _NT_X86_XSTATE)
        except OSError:
            # A processor without XSAVE.
            return ptrace.get_register_set(task, _NT_PRFPREG)

    def set_extended_state(self, task: TaskId, state: bytes) -> None:
        try:
            ptrace.set_register_set(task, _NT_X86_XSTATE, state)
        except OSError:
            ptrace.set_register_set(task, _NT_PRFPREG, state)

    def start_fields(self, registers: Registers) -> dict[str, int | Sequence[int]]:
        assert isinstance(registers, X8664Registers)
        return {
            "registers": registers.general,
            "rip": registers.raw.rip,
            "rflags": registers.raw.eflags,
            "fs_base": registers.raw.fs_base,
            "gs_base": registers.raw.gs_base,
            "has_fsgsbase": _has_fsgsbase(),
        }

    def refuge_code(self, registers: Registers, mask: int) -> bytes:
        assert isinstance(registers, X8664Registers)
        return refuge_code({name: getattr(registers.raw, name) for name in _NAMES}, mask)

    def features(self) -> Features:
        flags: set[str] = set()
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("flags"):
                flags = set(line.partition(":")[2].split())
                break
        found = [label for flag, label in _FEATURES.items() if flag in flags]
        detail = "with " + ", ".join(found) if found else "none of fsgsbase, avx2, avx512, rtm"
        if "fsgsbase" not in flags:
            return Features(f"{detail}; no fsgsbase", "threads start slower; nothing to do")
        return Features(detail)


@cache
def _has_fsgsbase() -> bool:
    """Whether programs may change their gs base by an instruction: the kernel tells all of them the same."""
    return bool(read_auxiliary_vector(Pid(os.getpid())).get(AT_HWCAP2, 0) & _HWCAP2_FSGSBASE)


X86_64: Final = _X86_64()
