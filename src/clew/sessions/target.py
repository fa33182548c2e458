"""The process that a session is about: what is asked of its owner, its memory, and the names in it.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from clew.address import Pid
from clew.api.ring_entries import RESULT_WORD, WORDS
from clew.capture.machine import Machine
from clew.errors import ControlError, TargetError, UsageError
from clew.process.maps import Mapping as CodeMapping
from clew.process.maps import read_maps
from clew.process.processors.chosen import native_processor
from clew.sessions.backtrace import Frame, unwind
from clew.sessions.memory import Image, Images, read_memory, write_memory
from clew.sessions.where import parse_where

if TYPE_CHECKING:
    from clew.recording.control.commands import Control
    from clew.sessions.call_values import CallValues
    from clew.sessions.live_clock import LiveClock
    from clew.sessions.variables import Variable
    from clew.sessions.worker import Worker

__all__ = ["SessionTarget"]

T = TypeVar("T")


class SessionTarget:
    """The first process of a session, which `worker` owns."""

    def __init__(self, worker: Worker, images: Images | None = None) -> None:
        """`images` are somebody else's, who closes them."""
        self.worker = worker
        self.pid: Pid = worker.pid
        self.images = images or Images()
        self._has_own_images = images is None
        self._values: CallValues | None = None

    def run(self, steps: Callable[[Control], Iterator[T | None]]) -> T:
        """Have something done by the owner, and wait for it. Raises ClewError."""
        return self.worker.do(steps)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Have a command done for the process, as `clew control` gives them. Raises ControlError."""
        return self.run(lambda control: control.do(question | {"pid": self.pid}))

    def while_stopped(self, control: Control, change: Callable[[], None]) -> Iterator[None]:
        """Make a change while all threads are stopped; if they were not before they go on afterwards."""
        followed = control.find({"pid": self.pid})
        for _ in control.changing(lambda: [one for one in control.processes.live if one is followed], change):
            yield None

    def flush(self, clock: LiveClock) -> None:
        """Have everything taken out of the rings that is in them now, and `clock` told of the time."""

        def steps(control: Control) -> Iterator[bool | None]:
            # A look at the rings may be under way; behind the next one everything is there.
            yield None
            yield True

        # What has ended has left everything.
        with contextlib.suppress(ControlError):
            self.run(steps)
        clock.note()

    def read_maps(self) -> list[CodeMapping]:
        """What is mapped. Raises TargetError if the process is gone."""
        try:
            return read_maps(self.pid)
        except OSError as error:
            raise TargetError(self.pid, f"process {self.pid}: {error.strerror}") from error

    def loaded(self) -> list[Image]:
        """The images, by their addresses. Raises TargetError if the process is gone."""
        return self.images.of(self.pid)

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory: as much from an address on as can be read. Raises TargetError if the process is gone."""
        return read_memory(self.pid, address, size_bytes)

    def write(self, address: int, data: bytes) -> None:
        """Change memory; code that is changed is executed as it is then. Raises TargetError."""
        write_memory(self.pid, address, data)
        end = address + len(data)
        if any(one.start < end and address < one.end for one in self.loaded()):
            page_bytes = native_processor().definition.page_bytes
            pages = list(range(address // page_bytes * page_bytes, end, page_bytes))
            self.run(lambda control: self._tell_changed(control, pages))

    def find(self, name: str) -> int:
        """The one address of a function or, where none is called so, of a variable, as `parse_where` takes it. Raises
        ControlError."""
        where, mappings = parse_where(name), self.read_maps()
        found = sorted(where.find_in(self.images, mappings) or where.find_data_in(self.images, mappings))
        if len(found) != 1:
            there = f"there are {len(found)} of it; give IMAGE!SYMBOL" if found else "nothing that is loaded has it"
            raise ControlError(f"{name}: {there}")
        return found[0]

    def name(self, address: int) -> str:
        """Image, symbol and distance of an address, as much of it as is known."""
        return str(Frame(address, *self.images.name(self.loaded(), address)))

    def unwind(self, registers: Mapping[str, int]) -> list[Frame]:
        """The open calls of a thread that is stopped with these registers."""
        processor = native_processor()
        architecture, definition = processor.architecture, processor.definition
        return unwind(self.images, self.loaded(), dict(registers), self.read, architecture, definition)

    @property
    def values(self) -> CallValues:
        """Arguments and results by name and type."""
        if self._values is None:
            from clew.sessions.call_values import CallValues

            self._values = CallValues(self.images, self.machine())
        return self._values

    def machine(self, *, of_system_calls: bool = False, of_rings: bool = False) -> Machine:
        """What names mean in captures here: at functions, at system calls, or at operations of io_uring."""
        processor = native_processor()
        architecture, definition = processor.architecture, processor.definition
        return Machine(
            registers=WORDS if of_rings else definition.held_registers,
            vectors=architecture.vector_registers,
            n_vectors=architecture.n_vector_registers,
            arguments=architecture.call_registers if of_system_calls else architecture.argument_registers,
            result=RESULT_WORD if of_rings else architecture.result_register,
            stack_pointer=definition.stack_pointer,
            stack_arguments=None if of_system_calls or of_rings else architecture.stack_arguments,
            find_symbol=self._find_symbol,
        )

    def variables(self, where: str | int) -> list[Variable]:
        """What can be taken at a place. Raises ControlError where there is none, or several; CaptureError."""
        from clew.sessions.scopes import ProgramScope
        from clew.sessions.variables import read_variables

        address = self.find(where) if isinstance(where, str) else where
        with self.images.lock:
            scope = ProgramScope(self.images, self.pid, address, native_processor().architecture)
            return read_variables(scope, self.machine())

    def close(self) -> None:
        """Let go of the files."""
        if self._has_own_images:
            self.images.close()

    def _find_symbol(self, name: str) -> int | None:
        with contextlib.suppress(ControlError, UsageError):
            return self.find(name)
        return None

    def _tell_changed(self, control: Control, pages: list[int]) -> Iterator[bool]:
        followed = control.find({"pid": self.pid})
        followed.shared.tell_changed(pages)
        control.processes.holdings.of(followed).bring_in()
        yield True
