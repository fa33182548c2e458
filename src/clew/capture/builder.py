"""The instructions of a form while it is made: values, each worked out once, and what one becomes as another type.

Runs in the controller.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from clew.binary.variable_places import Constant, Operation, Register, Stored, Term, ThreadPointer, Vector
from clew.capture.form import Instruction
from clew.capture.types import CType, is_float
from clew.errors import CaptureError
from clew.protocol._constants import CaptureContext, CaptureOperation, CaptureType

__all__ = ["I32", "I64", "U64", "FormBuilder", "Made", "TermBuilder"]

_Op, _Type = CaptureOperation, CaptureType
U64, I64, I32 = CType(_Type.U64), CType(_Type.I64), CType(_Type.I32)
_OPERATIONS: Final = {
    "add": (_Op.ADD, U64),
    "subtract": (_Op.SUBTRACT, U64),
    "multiply": (_Op.MULTIPLY, U64),
    "divide_signed": (_Op.DIVIDE, I64),
    "divide": (_Op.DIVIDE, U64),
    "remainder": (_Op.REMAINDER, U64),
    "and": (_Op.BIT_AND, U64),
    "or": (_Op.BIT_OR, U64),
    "xor": (_Op.BIT_XOR, U64),
    "shift_left": (_Op.SHIFT_LEFT, U64),
    "shift_right": (_Op.SHIFT_RIGHT, U64),
    "shift_right_signed": (_Op.SHIFT_RIGHT, I64),
    "not_greater": (_Op.LESS_EQUAL, U64),
}
_UNSIGNED: Final = {1: _Type.U8, 2: _Type.U16, 4: _Type.U32, 8: _Type.U64}


class Made(NamedTuple):
    """The value of an instruction."""

    number: int
    type: CType


class FormBuilder:
    """Instructions so far, and the bytes of literals. `text` is the expression that is being read."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.data = bytearray()
        self.text = ""
        self._known: dict[Instruction, int] = {}

    def add(self, operation: CaptureOperation, made: CType, a: int = 0, b: int = 0, immediate: int = 0) -> Made:
        """The value of an instruction: one that was worked out already is not worked out again."""
        instruction = Instruction(operation, made.kind, a, b, immediate)
        number = self._known.setdefault(instruction, len(self.instructions))
        if number == len(self.instructions):
            self.instructions.append(instruction)
        result = instruction.result
        return Made(number, made if result == made.kind else CType(result))

    def constant(self, value: int, kind: CaptureType) -> Made:
        """A number, by its bits."""
        return self.add(_Op.CONSTANT, CType(kind), immediate=value & (1 << 64) - 1)

    def load(self, address: Made, target: CType) -> Made:
        """What is in memory at an address."""
        return self.add(_Op.LOAD, target, address.number)

    def offset(self, base: Made, distance: int) -> Made:
        """An address, so many bytes on."""
        if not distance:
            return base
        return self.add(_Op.ADD, U64, base.number, self.constant(distance, _Type.U64).number)

    def convert(self, value: Made, target: CType) -> Made:
        """The value as one of another type."""
        if value.type.kind == target.kind:
            return Made(value.number, target)
        return self.add(_Op.CONVERT, target, value.number, immediate=value.type.kind)

    def ask_number(self, value: Made, at: int) -> None:
        """Raises CaptureError where a value is bytes."""
        if value.type.kind == _Type.TEXT:
            raise self.error("a string is only compared with == and !=", at)

    def pointer(self, value: Made, at: int) -> Made:
        """An address, or a size, of what an integer is. Raises CaptureError."""
        if value.type.kind == _Type.TEXT or is_float(value.type.kind):
            raise self.error("an address is an integer", at)
        return self.convert(value, CType(_Type.U64, value.type.target, value.type.data))

    def error(self, why: str, at: int) -> CaptureError:
        """What is raised about a place in the expression."""
        return CaptureError(f"{self.text!r}, at character {at + 1}: {why}")


class TermBuilder:
    """Makes instructions of terms: of a variable's place, by DWARF's numbers of registers (`registers`: their names).

    `numbers` are the numbers of registers by names, as forms have them.
    """

    def __init__(self, builder: FormBuilder, registers: tuple[str, ...], numbers: dict[str, int], at: int) -> None:
        self._builder, self._registers, self._numbers, self._at = builder, registers, numbers, at
        self._made: dict[int, Made] = {}

    def make(self, term: Term) -> Made:
        """The value of a term, u64. Raises CaptureError where a form can't have it."""
        # Terms are shared: by their identity, since to compare them may take as long as they are deep.
        if id(term) not in self._made:
            self._made[id(term)] = self._work_out(term)
        return self._made[id(term)]

    def _work_out(self, term: Term) -> Made:
        builder = self._builder
        match term:
            case Constant():
                return builder.constant(term.value, _Type.U64)
            case Register():
                name = self._registers[term.number] if term.number < len(self._registers) else ""
                if name not in self._numbers:
                    raise builder.error(f"it is in register {name or term.number}, which is not read", self._at)
                return builder.add(_Op.REGISTER, U64, immediate=self._numbers[name])
            case ThreadPointer():
                return builder.add(_Op.CONTEXT, U64, immediate=CaptureContext.THREAD_POINTER)
            case Stored():
                found = builder.load(self.make(term.address), CType(_UNSIGNED[term.size_bytes]))
                return builder.convert(found, U64)
            case Operation():
                return self._operation(term)
            case Vector():
                raise builder.error("an integer in a vector register is not read", self._at)

    def _operation(self, term: Operation) -> Made:
        builder = self._builder
        operation, kind = _OPERATIONS[term.name]
        if term.name.startswith("shift") and not (isinstance(term.right, Constant) and term.right.value < 64):
            raise builder.error("where it is depends on a shift by a variable, which is not read", self._at)
        left, right = (builder.convert(self.make(one), kind) for one in (term.left, term.right))
        return builder.convert(builder.add(operation, kind, left.number, right.number), U64)
