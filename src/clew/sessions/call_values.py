"""Arguments and results of calls by name and type, where debugging information knows the function.

Runs in the controller, in the thread that runs callbacks. What is known of a function is worked out once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.binary.debug_types import DebugType, TypeKind, type_of
from clew.binary.variable_places import Place, Register
from clew.capture.compiler import compile_capture
from clew.capture.interpreter import Value, interpret
from clew.capture.machine import Machine
from clew.capture.scope import Known
from clew.dataclass import dataclass, replace
from clew.errors import BinaryError, CaptureError
from clew.sessions.scopes import ProgramScope

if TYPE_CHECKING:
    from clew.capture.form import Form
    from clew.capture.interpreter import Place as Taken
    from clew.sessions.memory import Images

__all__ = ["CallValues", "TypedValue"]

MAX_FUNCTIONS = 4096
"""Of which what is known is kept."""


@dataclass(frozen=True)
class TypedValue:
    """A value that can be had: by `form`; `why` says why not where that is None.

    `register` is the general one that alone has it, empty where none does.
    """

    form: Form | None
    is_bool: bool
    register: str
    why: str

    def take(self, place: Taken) -> Value:
        """It, where a thread is; None where memory can't be read. Raises CaptureError."""
        if self.form is None:
            raise CaptureError(self.why)
        values = interpret(self.form, place)
        value = None if values is None else values[0]
        return bool(value) if self.is_bool and value is not None else value


@dataclass(frozen=True)
class _Function:
    parameters: Mapping[str, TypedValue]
    result: TypedValue | None
    returns_nothing: bool


_UNKNOWN = _Function({}, None, False)


class _One:
    """A scope in which one thing is known."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def find_variable(self, name: str) -> Known:
        return self._known

    def find_thread_local(self, image: str, name: str) -> Known:
        raise CaptureError("no such variable")

    def find_type(self, name: str) -> DebugType | None:
        return None


class CallValues:
    """Of one session."""

    def __init__(self, images: Images, machine: Machine) -> None:
        self._images, self._machine = images, machine
        self._known: dict[tuple[str, int], _Function] = {}

    def parameters(self, pid: Pid, address: int) -> Mapping[str, TypedValue]:
        """Parameters by their names, in their order, at an address; none where no debugging information tells."""
        return self._of(pid, address).parameters

    def result(self, pid: Pid, address: int) -> TypedValue | None:
        """What the function at an address has returned; None where nothing tells its type."""
        return self._of(pid, address).result

    def returns_nothing(self, pid: Pid, address: int) -> bool:
        """Whether the function at an address is one of type void."""
        return self._of(pid, address).returns_nothing

    def _of(self, pid: Pid, address: int) -> _Function:
        from clew.process.processors.chosen import native_processor

        loaded = self._images.of(pid)
        image = next((one for one in loaded if one.start <= address < one.end), None)
        if image is None:
            return _UNKNOWN
        # Forms have addresses of the process in them, where a parameter is a constant's address.
        key = f"{pid} {image.path}", address
        if key not in self._known:
            if len(self._known) >= MAX_FUNCTIONS:
                self._known.clear()
            with self._images.lock:
                scope = ProgramScope(self._images, pid, address, native_processor().architecture)
                try:
                    self._known[key] = self._read(scope)
                except (BinaryError, CaptureError):
                    self._known[key] = _UNKNOWN
        return self._known[key]

    def _read(self, scope: ProgramScope) -> _Function:
        place = scope.place
        result = place.result
        if result is None:
            return _UNKNOWN
        parameters: dict[str, TypedValue] = {}
        inside = {id(one.entry): one for one in place.variables() if one.kind == "parameter"}
        for entry in place.parameters:
            if id(entry) in inside and entry.name not in parameters:
                kind = type_of(entry)
                try:
                    where: Place | str = place.place(inside[id(entry)])
                except BinaryError as error:
                    where = error.reason
                parameters[entry.name] = self._value(entry.name, kind, where, scope)
        if result.kind == TypeKind.VOID:
            return _Function(parameters, None, True)
        try:
            where = place.convention.result
        except BinaryError as error:
            where = error.reason
        return _Function(parameters, self._value("the result", result, where, scope), False)

    def _value(self, name: str, kind: DebugType, where: Place | str, scope: ProgramScope) -> TypedValue:
        if isinstance(where, str):
            return TypedValue(None, False, "", f"{name}: {where}")
        try:
            form = compile_capture(
                ["var:value"], replace(self._machine, scope=_One(Known(kind, where, scope.registers)))
            )
            is_bool = kind.kind == TypeKind.BOOL
        except (BinaryError, CaptureError) as error:
            return TypedValue(None, False, "", f"{name}: {error.message}")
        word = where.words[0] if where.address is None and len(where.words) == 1 else None
        register = scope.registers[word.number] if isinstance(word, Register) else ""
        return TypedValue(form, is_bool, register, "")
