"""What can be taken at a place in a program's code: its variables, their types, and where each is.

Runs in the controller, in any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.binary.debug_types import type_of
from clew.binary.variable_places import Constant, Operation, Place, Register, Stored, Term, ThreadPointer, Vector
from clew.capture.compiler import compile_capture
from clew.capture.machine import Machine
from clew.dataclass import dataclass, replace
from clew.errors import BinaryError, CaptureError
from clew.sessions.scopes import ProgramScope

if TYPE_CHECKING:
    from clew.binary.variables import CodePlace, DebugVariable

__all__ = ["Variable", "read_variables"]

MAX_VARIABLES: Final = 4096
MAX_TERMS: Final = 16
"""Of a location in words."""
_SIGNS: Final = {"add": "+", "subtract": "-", "multiply": "*", "and": "&", "or": "|", "xor": "^"}


@dataclass(frozen=True)
class Variable:
    """A variable at a place: `var:NAME` in captures.

    `kind` is `parameter`, `local` or `global`; `type` as C writes it. `location` says where it is, in words; where it
    can't be taken it is empty, and `problem` says why. `is_value`: `var:NAME` alone has a value; of a structure its
    members have.
    """

    name: str
    kind: str
    type: str
    location: str
    problem: str
    is_value: bool


def read_variables(scope: ProgramScope, machine: Machine) -> list[Variable]:
    """Those at a place, the innermost first: what others hide is left out. Raises CaptureError where none is known."""
    place = scope.place
    found: dict[str, Variable] = {}
    try:
        for one in place.variables():
            if one.name not in found:
                found[one.name] = _describe(place, one, scope, machine)
            if len(found) >= MAX_VARIABLES:
                break
    except BinaryError as error:
        if not found:
            raise CaptureError(error.reason) from error
    return list(found.values())


def _describe(place: CodePlace, one: DebugVariable, scope: ProgramScope, machine: Machine) -> Variable:
    text = ""
    try:
        text = str(type_of(one.entry))
        location = _name_place(place.place(one), scope.registers, machine)
    except (BinaryError, CaptureError) as error:
        reason = error.reason if isinstance(error, BinaryError) else error.message
        return Variable(one.name, one.kind, text, "", reason, False)
    is_value = True
    try:
        compile_capture([f"var:{one.name}"], replace(machine, scope=scope))
    except CaptureError:
        is_value = False
    return Variable(one.name, one.kind, text, location, "", is_value)


def _name_place(place: Place, registers: tuple[str, ...], machine: Machine) -> str:
    namer = _Namer(registers, machine.vectors)
    if place.address is not None:
        return f"*({namer.name(place.address)})"
    return ":".join("?" if word is None else namer.name(word) for word in place.words) or "nothing"


class _Namer:
    """Terms as text, as far as they are short."""

    def __init__(self, registers: tuple[str, ...], vectors: str) -> None:
        self._registers, self._vectors = registers, vectors
        self._left = MAX_TERMS

    def name(self, term: Term) -> str:
        self._left -= 1
        if self._left < 0:
            return "..."
        match term:
            case Constant():
                return hex(term.value)
            case Register():
                return self._registers[term.number]
            case Vector():
                return f"{self._vectors}{term.number}"
            case ThreadPointer():
                return "thread"
            case Stored():
                return f"*({self.name(term.address)})"
            case Operation():
                return self._operation(term)

    def _operation(self, term: Operation) -> str:
        right = term.right
        if term.name == "add" and isinstance(right, Constant) and right.value >> 63:
            return f"{self.name(term.left)} - {(1 << 64) - right.value:#x}"
        return f"{self.name(term.left)} {_SIGNS.get(term.name, term.name)} {self.name(right)}"
