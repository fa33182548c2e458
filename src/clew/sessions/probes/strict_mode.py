"""Threads that go into strict seccomp mode: from then on the kernel lets them read no time stamps, and ends their
process where they do (prctl(2), PR_SET_SECCOMP and PR_SET_TSC).

Runs in the controller. Threads stop where they are about to, so that nothing that needs a time stamp is left in their
way.
"""

from __future__ import annotations

from typing import Final

from clew.capture.compiler import compile_capture
from clew.capture.machine import Machine
from clew.process.linux import number_of_call
from clew.process.processors.chosen import native_processor

__all__ = ["strict_forms"]

_PR_SET_SECCOMP: Final = 22
_MODE_STRICT: Final = 1
_SET_MODE_STRICT: Final = 0
"""Of seccomp(2)."""


def strict_forms(machine: Machine) -> dict[str, bytes]:
    """By functions of C libraries under which conditions threads stop there, packed."""
    architecture = native_processor().architecture
    prctl, seccomp = (number_of_call(name, architecture) for name in ("prctl", "seccomp"))
    conditions = {
        "prctl": f"(i32)arg1 == {_PR_SET_SECCOMP} && arg2 == {_MODE_STRICT}",
        "syscall": (
            f"arg1 == {prctl} && (i32)arg2 == {_PR_SET_SECCOMP} && arg3 == {_MODE_STRICT}"
            f" || arg1 == {seccomp} && (u32)arg2 == {_SET_MODE_STRICT}"
        ),
    }
    return {name: compile_capture([], machine, text).pack() for name, text in conditions.items()}
