"""A call that a thread is in, or has come back from, as a callback sees it: its thread waits meanwhile.

Runs in the controller, in the thread that runs callbacks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence
from typing import TYPE_CHECKING, Any

from clew.address import Pid
from clew.capture.interpreter import Value, interpret
from clew.errors import UsageError
from clew.process.identity import read_stat
from clew.process.linux import read_as_program
from clew.protocol._constants import CaptureContext
from clew.sessions.backtrace import Frame
from clew.sessions.memory import read_memory, write_memory
from clew.sessions.threads import SessionThread

if TYPE_CHECKING:
    from clew.capture.form import Form
    from clew.sessions.places import Stop

__all__ = ["Arguments", "Call", "Registers"]

_MASK = (1 << 64) - 1


class Registers(MutableMapping[str, int]):
    """A stopped thread's registers by name, without a sign.

    One that is set has that value when the thread goes on; where the thread is can't be changed.
    """

    def __init__(self, values: Mapping[str, int], fixed: str) -> None:
        self._values = dict(values)
        self._fixed = fixed
        self.are_changed = False

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def __setitem__(self, name: str, value: int) -> None:
        if name not in self._values or name == self._fixed:
            raise UsageError(f"register {name!r} can't be set")
        self._values[name] = value & _MASK
        self.are_changed = True

    def __delitem__(self, name: str) -> None:
        raise UsageError(f"register {name!r} can't be taken away")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Arguments(MutableSequence[int]):
    """The integer arguments of a call, without a sign, where the platform's C passes them; as many as are asked for."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def __getitem__(self, index: Any) -> Any:
        return self._call._read_argument(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._call._write_argument(index, value)

    def __delitem__(self, index: Any) -> None:
        raise UsageError("an argument can't be taken away")

    def insert(self, index: int, value: int) -> None:
        """Not possible: a call has the arguments that it has."""
        raise UsageError("a call has the arguments that it has")

    def __len__(self) -> int:
        """How many are in registers; there may be fewer, or more on the stack."""
        return len(self._call._architecture.argument_registers)


class Call:
    """A call of a function in thread `tid`, `registers` are its registers.

    `call[text]` is what an expression of `capture` came to: a number, bytes, or None where it could not be had.
    `number` is the same for a call and its return, 0 where nobody waits for that.
    """

    def __init__(self, stop: Stop, form: Form, texts: list[str], unwind: Callable[[Mapping[str, int]], list[Frame]]):
        from clew.process.processors.chosen import native_processor

        self.pid = int(stop.pid)
        self.tid = int(stop.thread.tid)
        self.is_return = stop.is_return
        self.number = stop.call
        self._stop, self._unwind = stop, unwind
        self._architecture = native_processor().architecture
        self._definition = stop.thread.definition
        self.registers = Registers(stop.thread.by_name, self._definition.program_counter)
        # Now: later the program may have gone on.
        values = interpret(form, self) if form.instructions else ()
        self._captured = None if values is None else dict(zip(texts, values, strict=True))

    @property
    def holds(self) -> bool:
        """Whether the probe's condition held."""
        return self._captured is not None

    @property
    def thread(self) -> SessionThread:
        """The thread, which is stopped here."""
        name = (_read_comm(self._stop.memory_pid, self.tid) or b"").decode("utf-8", "replace")
        return SessionThread(self.tid, name, "stopped", None, self.registers, self._unwind)

    @property
    def pc(self) -> int:
        """Where the thread is: at the function's first instruction, or behind the call."""
        return self.registers[self._definition.program_counter]

    @property
    def arguments(self) -> Arguments:
        """The integer arguments, of a call that begins; they can be set."""
        if self.is_return:
            raise UsageError("a call that has returned has no arguments any more: capture them when it begins")
        return Arguments(self)

    @property
    def result(self) -> int:
        """What the call returned, as an integer without a sign; it can be set."""
        if not self.is_return:
            raise UsageError("a call that begins has no result yet")
        return self.registers[self._architecture.result_register]

    @result.setter
    def result(self, value: int) -> None:
        if not self.is_return:
            raise UsageError("a call that begins has no result yet")
        self.registers[self._architecture.result_register] = value

    def __getitem__(self, text: str) -> Value:
        captured = self._captured or {}
        if text not in captured:
            raise KeyError(f"{text!r} is not captured here")
        return captured[text]

    @property
    def captured(self) -> dict[str, Value]:
        """All that was captured, by expression."""
        return dict(self._captured or {})

    def backtrace(self) -> list[Frame]:
        """The open calls, from this one on."""
        return self._unwind(self.registers)

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """The target's memory: as much as can be read."""
        return read_memory(self._stop.memory_pid, address, size_bytes)

    # What forms ask of a place.
    def register(self, number: int) -> int:
        """A general register by the architecture's number."""
        return self._stop.thread.registers[number]

    def vector(self, number: int) -> int | None:
        """The low 64 bits of a vector register."""
        vectors = self._stop.thread.vectors
        return vectors[number] if number < len(vectors) else None

    def context(self, what: CaptureContext) -> Value:
        """What is known of the thread."""
        match what:
            case CaptureContext.TID:
                return self.tid
            case CaptureContext.PID:
                return self.pid
            case CaptureContext.COMM:
                return _read_comm(self._stop.memory_pid, self.tid)
            case CaptureContext.TIME:
                return time.monotonic_ns()
            case CaptureContext.THREAD_POINTER:
                return self._stop.thread.thread_pointer
            case CaptureContext.CPU:
                return _read_processor(self._stop.memory_pid, self.tid)
        return None

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory, as much as the program can read."""
        return read_as_program(self._stop.memory_pid, address, size_bytes)

    def _argument_place(self, index: int) -> str | int:
        registers = self._architecture.argument_registers
        if not isinstance(index, int) or index < 0:
            raise IndexError(index)
        if index < len(registers):
            return registers[index]
        stack = self.registers[self._definition.stack_pointer]
        return stack + self._architecture.stack_arguments + 8 * (index - len(registers))

    def _read_argument(self, index: int) -> int:
        place = self._argument_place(index)
        if isinstance(place, str):
            return self.registers[place]
        return int.from_bytes(self.read_memory(place, 8), "little")

    def _write_argument(self, index: int, value: int) -> None:
        place = self._argument_place(index)
        if isinstance(place, str):
            self.registers[place] = value
        else:
            write_memory(Pid(self._stop.memory_pid), place, (value & _MASK).to_bytes(8, "little"))


def _read_comm(pid: Pid, tid: int) -> bytes | None:
    try:
        with open(f"/proc/{pid}/task/{tid}/comm", "rb") as file:
            return file.read(64).rstrip(b"\n")
    except OSError:
        return None


def _read_processor(pid: Pid, tid: int) -> int | None:
    """The processor that a thread ran on last (proc_pid_stat(5), field 39)."""
    fields = read_stat(f"{pid}/task/{tid}")
    return int(fields[36]) if len(fields) > 36 else None
