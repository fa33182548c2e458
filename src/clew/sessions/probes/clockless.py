"""Threads that forbid themselves time stamps, by strict seccomp mode or outright: the kernel ends their process where
they read one (prctl(2), PR_SET_SECCOMP and PR_SET_TSC).

Runs in the controller. Threads stop where they are about to, so that nothing that needs a time stamp is left in their
way.
"""

from __future__ import annotations

from typing import Final

from clew.capture.compiler import compile_capture
from clew.capture.machine import Machine
from clew.process.linux import number_of_call
from clew.process.processors.chosen import native_processor

__all__ = ["clockless_forms"]

_PR_SET_SECCOMP, _MODE_STRICT = 22, 1
_PR_SET_TSC, _TSC_SIGSEGV = 26, 2
_SET_MODE_STRICT: Final = 0
"""Of seccomp(2)."""


def clockless_forms(machine: Machine) -> dict[str, bytes]:
    """By functions of C libraries under which conditions threads stop there, packed."""
    architecture = native_processor().architecture
    prctl, seccomp = (number_of_call(name, architecture) for name in ("prctl", "seccomp"))
    conditions = {
        "prctl": _forbids("arg1", "arg2"),
        "syscall": (
            f"arg1 == {prctl} && ({_forbids('arg2', 'arg3')}) || arg1 == {seccomp} && (u32)arg2 == {_SET_MODE_STRICT}"
        ),
    }
    return {name: compile_capture([], machine, text).pack() for name, text in conditions.items()}


def _forbids(option: str, value: str) -> str:
    """Whether prctl with such arguments does."""
    return (
        f"(i32){option} == {_PR_SET_SECCOMP} && {value} == {_MODE_STRICT}"
        f" || (i32){option} == {_PR_SET_TSC} && (u32){value} == {_TSC_SIGSEGV}"
    )
