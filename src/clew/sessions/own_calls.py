"""Functions of the program that a stopped thread calls because Python wants it to.

Runs in the controller. A function is entered as a signal's handler is, and left by the code by which the program's C
library returns from handlers: what the thread had is kept by a signal's frame, on its own stack.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from clew.address import RemoteAddress, Tid
from clew.binary.elf import PF_X, PT_LOAD
from clew.errors import BinaryError, ControlError, UsageError
from clew.process.processors.chosen import native_processor
from clew.protocol._constants import HoldReason
from clew.recording.following.own_calls import N_VECTORS, OwnCall
from clew.sessions.memory import bias_of

if TYPE_CHECKING:
    from clew.binary.elf import ElfFile
    from clew.recording.control.commands import Control
    from clew.recording.following.holding import Holding
    from clew.sessions.target import SessionTarget

__all__ = ["call_function"]

MAX_CODE_BYTES: Final = 1 << 26
"""No more of a file is looked through for the code that returns from handlers."""
_MASK: Final = (1 << 64) - 1


def _find_return_code(target: SessionTarget) -> RemoteAddress:
    """The code by which the program returns from handlers. Raises ControlError if nothing that is loaded has any."""
    codes = native_processor().architecture.handler_returns
    for image in target.loaded():
        elf = target.images.elf(image)
        if elf is None:
            continue
        for code in codes:
            place = _find_code(elf, code)
            if place is not None:
                return RemoteAddress(bias_of(image, elf) + place)
    raise ControlError(
        f"process {target.pid}: nothing that is loaded returns from handlers, so no function can be called"
    )


def _find_code(elf: ElfFile, code: bytes) -> int | None:
    """The link address of the first such code in a file's executable segments."""
    for segment in elf.segments:
        if segment.kind != PT_LOAD or not segment.flags & PF_X:
            continue
        try:
            content = elf.read(segment.file_offset, min(segment.file_bytes, MAX_CODE_BYTES))
        except BinaryError:
            continue
        at = content.find(code)
        if at >= 0:
            return segment.address + at
    return None


def call_function(
    target: SessionTarget, tid: int, function: int, arguments: Sequence[int | float], patience_seconds: float
) -> tuple[int, float]:
    """Have a stopped thread of a session's process call a function, and wait until that has returned: what is in the
    register of integer results, and in that of floating-point numbers. The process is stopped then, but if the thread
    waited at a place for a callback: then it does so again, and the others run on.

    Raises ControlError, UsageError.
    """
    registers, vectors = _place(arguments)
    return_pc = _find_return_code(target)
    mark = native_processor().architecture.handler_frame

    def is_own(stack_pointer: int) -> bool:
        # A frame of signal 0 is no handler's.
        return target.read(stack_pointer + mark, 4) == bytes(4)

    def steps(control: Control) -> Iterator[tuple[int, float] | None]:
        holding = control.processes.holdings.of(control.find({"pid": target.pid}))
        thread = Tid(tid) if tid else holding.chosen
        if thread is None:
            raise ControlError("no thread is stopped: pause the session first")
        is_visitor = holding.visits.is_waiting(thread)
        if is_visitor:
            holding.take_visitor(thread)
        try:
            yield from call(holding, thread, is_visitor=is_visitor)
        finally:
            if is_visitor:
                holding.give_back_visitor(thread)

    def call(holding: Holding, thread: Tid, *, is_visitor: bool) -> Iterator[tuple[int, float] | None]:
        before = holding.find_stopped(thread)
        holding.call(thread, OwnCall(thread, RemoteAddress(function), return_pc, registers, vectors, is_own))
        deadline = time.monotonic() + patience_seconds
        yield from _await(holding, thread, deadline, is_visitor=is_visitor)
        found = holding.stopped.get(thread)
        if found is None:
            if not is_visitor:
                holding.hold()
            raise ControlError(
                f"thread {thread} has not come back from {function:#x} within {patience_seconds} seconds"
            )
        if found.pc != return_pc or found.reason != HoldReason.STEPPED:
            raise ControlError(f"thread {thread} can't call a function where it is")
        result = found.by_name[native_processor().architecture.result_register]
        (number,) = struct.unpack("<d", found.vectors[0].to_bytes(8, "little"))
        holding.return_to(thread, before)
        yield from _await(holding, thread, deadline, is_visitor=is_visitor)
        found = holding.stopped.get(thread)
        if found is None or found.registers != before.registers:
            if not is_visitor:
                holding.hold()
            raise ControlError(f"thread {thread} has not come back to where it was within {patience_seconds} seconds")
        yield result, number

    return target.run(steps)


def _await(holding: Holding, tid: Tid, deadline: float, *, is_visitor: bool) -> Iterator[None]:
    """Until a thread is stopped again, and all others with it, unless they may wait for the callback that waits."""
    yield None
    while time.monotonic() < deadline:
        if tid in holding.stopped and (is_visitor or holding.is_settled):
            return
        if is_visitor:
            holding.let_visitor_by(tid)
        yield None


def _place(arguments: Sequence[int | float]) -> tuple[dict[str, int], list[int]]:
    """Where the platform's C passes arguments: registers by name, and vector registers. Raises UsageError."""
    architecture = native_processor().architecture
    names = list(architecture.argument_registers)
    registers: dict[str, int] = {}
    vectors: list[int] = []
    for argument in arguments:
        if isinstance(argument, float):
            vectors.append(struct.unpack("<Q", struct.pack("<d", argument))[0])
        elif isinstance(argument, int) and names:
            registers[names.pop(0)] = argument & _MASK
        else:
            raise UsageError(
                f"argument {argument!r}: at most {len(architecture.argument_registers)} integers can be passed"
            )
    if len(vectors) > N_VECTORS:
        raise UsageError(f"at most {N_VECTORS} floating-point numbers can be passed")
    # How many vector registers hold arguments, for functions that take as many as they are given.
    registers[architecture.result_register] = len(vectors)
    return registers, vectors + [0] * (N_VECTORS - len(vectors))
