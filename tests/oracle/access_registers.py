"""Registers of a stopped thread (ptrace(2), struct user_regs_struct)."""

from __future__ import annotations

import ctypes
from typing import Final

__all__ = ["Registers", "read_registers"]

Registers = dict[str, int]

PTRACE_GETREGS: Final = 12
_NAMES: Final = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def read_registers(pid: int) -> Registers:
    """By their names."""
    words = (ctypes.c_uint64 * len(_NAMES))()
    assert _libc.ptrace(PTRACE_GETREGS, pid, None, ctypes.byref(words)) == 0
    return dict(zip(_NAMES, words, strict=True))
