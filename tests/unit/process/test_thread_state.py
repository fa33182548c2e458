"""What a stopped thread's registers say of the system call that it is inside of; states as the runtime reads them."""

from __future__ import annotations

import pytest

from clew.address import Tid
from clew.binary.architectures.x86_64 import X86_64
from clew.process.processors.x86_64 import UserRegisters, X8664Registers
from clew.process.thread_state import ThreadState, call_to_make_again, parse_state
from clew.protocol._constants import ARCHITECTURES

FUTEX, EPOLL_WAIT, NANOSLEEP, RESTART_SYSCALL = 202, 232, 35, 219


@pytest.mark.parametrize(
    ("call", "result", "wanted"),
    [
        (FUTEX, -512, (512, FUTEX)),
        (FUTEX, -513, (513, FUTEX)),
        (FUTEX, -514, (514, FUTEX)),
        (NANOSLEEP, -516, (516, RESTART_SYSCALL)),
        (RESTART_SYSCALL, -516, (516, RESTART_SYSCALL)),
        # A stop ends this one; no handler can have run.
        (EPOLL_WAIT, -4, (514, EPOLL_WAIT)),
        (FUTEX, -4, (0, 0)),
        (FUTEX, 0, (0, 0)),
        (FUTEX, -110, (0, 0)),
        # Not inside a system call: what looks like an error is the program's.
        (-1, -512, (0, 0)),
        (-1, -4, (0, 0)),
    ],
)
def test_the_call_to_make_again(call: int, result: int, wanted: tuple[int, int]) -> None:
    registers = UserRegisters(orig_rax=call & (1 << 64) - 1, rax=result & (1 << 64) - 1)
    assert call_to_make_again(X8664Registers(registers), X86_64) == wanted


def test_a_state_survives_being_packed() -> None:
    definition = ARCHITECTURES["x86_64"]
    own = {"rflags": 0x246, "gs_base": 0x7000, "code_selector": 0x23, "stack_selector": 0x2B}
    state = ThreadState(Tid(7), tuple(range(100, 116)), 0x401000, own, 1 << 63 | 1, 514)
    assert parse_state(state.packed(definition), definition) == state
    inside = ThreadState(**{**vars(state), "tid_inside": Tid(2)})
    assert parse_state(inside.packed(definition), definition).tid == 2
