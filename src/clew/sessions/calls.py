"""A call that a thread is in, or has come back from, as a callback sees it: its thread waits meanwhile.

Runs in the controller, in the thread that runs callbacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any

from clew.address import Pid
from clew.capture.interpreter import Value, interpret
from clew.errors import UsageError
from clew.sessions.backtrace import Frame
from clew.sessions.memory import read_memory, write_memory
from clew.sessions.thread_place import ThreadPlace, read_comm
from clew.sessions.threads import SessionThread

if TYPE_CHECKING:
    from clew.binary.architectures.architecture import Architecture
    from clew.capture.form import Form
    from clew.recording.following.followed import FollowedProcess
    from clew.sessions.call_values import TypedValue
    from clew.sessions.stops import Stop
    from clew.sessions.target import SessionTarget

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
    """The arguments of a call.

    By number, from 0 on: the integer ones, without a sign, where the platform's C passes them; as many as are asked
    for. By name: of their own types, where the program has debugging information; `names` are those, `by_name()` all of
    them.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def __getitem__(self, key: Any) -> Any:
        return self._call._named(key).take(self._call) if isinstance(key, str) else self._call._read_argument(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            self._call._write_named(key, value)
        else:
            self._call._write_argument(key, value)

    def __delitem__(self, index: Any) -> None:
        raise UsageError("an argument can't be taken away")

    def insert(self, index: int, value: int) -> None:
        """Not possible: a call has the arguments that it has."""
        raise UsageError("a call has the arguments that it has")

    def __len__(self) -> int:
        """How many are in registers; there may be fewer, or more on the stack."""
        return len(self._call._architecture.argument_registers)

    @property
    def names(self) -> list[str]:
        """What the parameters are called, in their order; none where no debugging information tells."""
        return list(self._call._parameters)

    def by_name(self) -> dict[str, Value]:
        """The arguments by their names, in their order; None for one that can't be had, as of a structure."""
        values: dict[str, Value] = {}
        for name, value in self._call._parameters.items():
            values[name] = None if value.form is None else value.take(self._call)
        return values


class Call(ThreadPlace):
    """A call of a function in thread `tid`, `registers` are its registers.

    `call[text]` is what an expression of `capture` came to: a number, bytes, or None where it could not be had.
    `number` is the same for a call and its return, 0 where nobody waits for that.
    """

    def __init__(
        self, stop: Stop, form: Form, texts: list[str], target: SessionTarget, kept: Sequence[Value] = ()
    ) -> None:
        super().__init__(stop.pid, stop.memory_pid, stop.thread, kept, stop.began_ns)
        self.is_return = stop.is_return
        self.number = stop.call
        self._stop, self._target, self._texts = stop, target, texts
        self._definition = stop.thread.definition
        self._registers: Registers | None = None
        self._changed: dict[str, int] = {}
        # Now: later the program may have gone on.
        self._values = interpret(form, self) if form.instructions else ()

    @property
    def registers(self) -> Registers:
        """The thread's registers by name."""
        # Late, as much as else is: each callback waits for what is made here.
        if self._registers is None:
            self._registers = Registers(self._stop.thread.by_name | self._changed, self._definition.program_counter)
        return self._registers

    @property
    def followed(self) -> FollowedProcess:
        """Its process."""
        return self._stop.holding.followed

    @property
    def changed_registers(self) -> Registers | None:
        """Them, if the callback set some."""
        return self._registers if self._registers is not None and self._registers.are_changed else None

    def take_over(self, changed: Mapping[str, int]) -> None:
        """Have registers that another callback set."""
        self._changed = dict(changed)

    @property
    def holds(self) -> bool:
        """Whether the probe's condition held."""
        return self._values is not None

    @property
    def _architecture(self) -> Architecture:
        from clew.process.processors.chosen import native_processor

        return native_processor().architecture

    @property
    def thread(self) -> SessionThread:
        """The thread, which is stopped here."""
        name = (read_comm(self._stop.memory_pid, self.tid) or b"").decode("utf-8", "replace")
        return SessionThread(self.tid, name, "stopped", None, self.registers, self._target.unwind)

    @property
    def pc(self) -> int:
        """Where the thread is: at the function's first instruction, or behind the call."""
        return self.registers[self._definition.program_counter]

    @property
    def arguments(self) -> Arguments:
        """The arguments of a call that begins, by number and by name; they can be set."""
        if self.is_return:
            raise UsageError("a call that has returned has no arguments any more: capture them when it begins")
        return Arguments(self)

    @property
    def result(self) -> Any:
        """What the call returned; it can be set, but for floating-point numbers.

        Of its own type where the program has debugging information, None of a function that returns nothing; else, and
        of structures, an integer without a sign.
        """
        self._ask_returned()
        values, where = self._target.values, (self._stop.memory_pid, self._stop.function)
        if values.returns_nothing(*where):
            return None
        found = values.result(*where)
        if found is not None and found.form is not None:
            return found.take(self)
        return self.registers[self._architecture.result_register]

    @result.setter
    def result(self, value: int) -> None:
        self._ask_returned()
        found = self._target.values.result(self._stop.memory_pid, self._stop.function)
        if not isinstance(value, int) or (found is not None and found.form is not None and not found.register):
            raise UsageError("a result in a vector register can't be set")
        self.registers[self._architecture.result_register] = value

    def _ask_returned(self) -> None:
        if not self.is_return:
            raise UsageError("a call that begins has no result yet")

    def __getitem__(self, text: str) -> Value:
        if self._values is None or text not in self._texts:
            raise KeyError(f"{text!r} is not captured here")
        return self._values[self._texts.index(text)]

    @property
    def captured(self) -> dict[str, Value]:
        """All that was captured, by expression."""
        return {} if self._values is None else dict(zip(self._texts, self._values, strict=True))

    def backtrace(self) -> list[Frame]:
        """The open calls, from this one on."""
        return self._target.unwind(self.registers)

    def read_memory(self, address: int, size_bytes: int) -> bytes:
        """The target's memory: as much as can be read."""
        return read_memory(self._stop.memory_pid, address, size_bytes)

    # Arguments by name.
    @property
    def _parameters(self) -> Mapping[str, TypedValue]:
        return self._target.values.parameters(self._stop.memory_pid, self._stop.function)

    def _named(self, name: str) -> TypedValue:
        found = self._parameters.get(name)
        if found is None:
            known = ", ".join(self._parameters) or "none: the program has no debugging information there"
            raise KeyError(f"{name!r} is no parameter that is known here; known are {known}")
        return found

    def _write_named(self, name: str, value: int) -> None:
        register = self._named(name).register
        if not register or not isinstance(value, int):
            raise UsageError(f"argument {name!r} can't be set: it is no integer in a register")
        self.registers[register] = value

    # What forms ask of a place.
    def register(self, number: int) -> int:
        """A general register by the architecture's number."""
        if self._registers is None and not self._changed:
            return self._stop.thread.registers[number]
        # As a callback may have set it.
        return self.registers[self._definition.held_registers[number]]

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
