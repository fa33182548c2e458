"""Makes the typed form of an expression: finds what its names mean, gives each value a type, folds nothing.

Runs in the controller.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from typing import Final

from clew.capture.form import MAX_BYTES, Form, Instruction, check_form
from clew.capture.grammar import parse
from clew.capture.syntax import Binary, Call, Load, Name, Node, Number, Text, TypeName, Unary
from clew.capture.types import CType, common_type, find_type, is_float, promote
from clew.dataclass import dataclass, field
from clew.errors import CaptureError
from clew.protocol._constants import CaptureContext, CaptureOperation, CaptureType

__all__ = ["DEFAULT_STRING_BYTES", "Machine", "compile_capture"]

DEFAULT_STRING_BYTES: Final = 256
"""Of a string without a limit of its own."""

_Op, _Type = CaptureOperation, CaptureType
_U64, _I32 = CType(_Type.U64), CType(_Type.I32)
_ARGUMENT: Final = re.compile(r"(f?)arg([1-9][0-9]?)")
_WORDS: Final = {what.name.lower(): what for what in CaptureContext}
_ARITHMETIC: Final = {
    "+": _Op.ADD,
    "-": _Op.SUBTRACT,
    "*": _Op.MULTIPLY,
    "/": _Op.DIVIDE,
    "%": _Op.REMAINDER,
    "&": _Op.BIT_AND,
    "|": _Op.BIT_OR,
    "^": _Op.BIT_XOR,
}
_SHIFTS: Final = {"<<": _Op.SHIFT_LEFT, ">>": _Op.SHIFT_RIGHT}
_COMPARISONS: Final = {"==": _Op.EQUAL, "!=": _Op.NOT_EQUAL, "<": _Op.LESS, "<=": _Op.LESS_EQUAL}
_SWAPPED: Final = {">": _Op.LESS, ">=": _Op.LESS_EQUAL}


@dataclass(frozen=True)
class Machine:
    """What names mean at a place.

    `registers` are the general ones in the architecture's order; `vectors` is how the vector registers are called, less
    their numbers, of which there are `n_vectors`. `arguments` are the registers of a function's first arguments,
    `result` that of what it returns, `stack_pointer` that of its stack, where further arguments are from
    `stack_arguments` bytes on. `find_symbol` gives the address of a symbol, None if there is none.
    """

    registers: Sequence[str]
    vectors: str
    n_vectors: int
    arguments: Sequence[str]
    result: str
    stack_pointer: str
    stack_arguments: int
    find_symbol: Callable[[str], int | None]


def compile_capture(fields: Sequence[str], machine: Machine, condition: str | None = None) -> Form:
    """The form that takes the values of some expressions, where a condition holds. Raises CaptureError."""
    builder = _Builder(machine)
    numbers = [builder.compile(text).number for text in fields]
    asked = None if condition is None else builder.truth_of(condition)
    form = Form(builder.instructions, numbers, asked, bytes(builder.data))
    check_form(form)
    return form


@dataclass(frozen=True)
class _Made:
    """The value of an instruction."""

    number: int
    type: CType


@dataclass
class _Builder:
    machine: Machine
    instructions: list[Instruction] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    _known: dict[Instruction, int] = field(default_factory=dict)
    _text: str = ""

    def compile(self, text: str) -> _Made:
        """Add what an expression needs."""
        self._text = text
        return self._make(parse(text))

    def truth_of(self, text: str) -> int:
        """Add the question whether an expression is anything but 0."""
        return self._truth(self.compile(text), 0).number

    def _add(self, operation: CaptureOperation, made: CType, a: int = 0, b: int = 0, immediate: int = 0) -> _Made:
        # What was worked out already is not worked out again: nothing here changes anything.
        instruction = Instruction(operation, made.kind, a, b, immediate)
        if instruction not in self._known:
            self._known[instruction] = len(self.instructions)
            self.instructions.append(instruction)
        number = self._known[instruction]
        return _Made(number, made if instruction.result == made.kind else CType(instruction.result))

    def _make(self, node: Node) -> _Made:
        match node:
            case Number():
                return self._number(node)
            case Text():
                start = len(self.data)
                self.data += node.value
                return self._add(_Op.LITERAL, CType(_Type.TEXT), immediate=len(node.value) << 32 | start)
            case Name():
                return self._name(node)
            case Load():
                base = self._register(node.register, node.at)
                return self._load(self._offset(base, node.distance), _U64)
            case Call():
                return self._call(node)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)

    def _number(self, node: Number) -> _Made:
        value = node.value
        if isinstance(value, float):
            bits = int.from_bytes(struct.pack("<d", value), "little")
            return self._add(_Op.CONSTANT, CType(_Type.F64), immediate=bits)
        # Of 64 bits, as gdb has it: a mask or a shifted 1 is meant to be as wide as a register.
        return self._constant(value, _Type.I64 if value < 1 << 63 else _Type.U64)

    def _constant(self, value: int, kind: CaptureType) -> _Made:
        return self._add(_Op.CONSTANT, CType(kind), immediate=value & (1 << 64) - 1)

    def _name(self, node: Name) -> _Made:
        name, machine = node.name, self.machine
        if not node.is_register:
            argument = _ARGUMENT.fullmatch(name)
            if argument:
                return self._argument(int(argument[2]) - 1, bool(argument[1]), node.at)
            if name == "retval":
                return self._convert(self._register(machine.result, node.at), CType(_Type.I64))
            if name in _WORDS:
                what = _WORDS[name]
                kinds = {CaptureContext.COMM: _Type.TEXT, CaptureContext.TIME: _Type.U64}
                return self._add(_Op.CONTEXT, CType(kinds.get(what, _Type.U32)), immediate=what)
        if name in machine.registers or node.is_register or self._is_vector(name):
            return self._register(name, node.at)
        address = machine.find_symbol(name)
        if address is None:
            raise self._error(f"{name}: no register, no word of captures, and no symbol", node.at)
        return self._constant(address, _Type.U64)

    def _is_vector(self, name: str) -> bool:
        number = name.removeprefix(self.machine.vectors)
        return number != name and number.isdecimal() and int(number) < self.machine.n_vectors

    def _register(self, name: str, at: int) -> _Made:
        if self._is_vector(name):
            number = int(name.removeprefix(self.machine.vectors))
            return self._add(_Op.VECTOR, CType(_Type.F64), immediate=number)
        if name not in self.machine.registers:
            raise self._error(f"{name}: no such register", at)
        return self._add(_Op.REGISTER, _U64, immediate=self.machine.registers.index(name))

    def _argument(self, index: int, is_float: bool, at: int) -> _Made:
        machine = self.machine
        if is_float:
            if index >= machine.n_vectors:
                raise self._error(f"of floating-point arguments the first {machine.n_vectors} are known", at)
            return self._register(f"{machine.vectors}{index}", at)
        if index < len(machine.arguments):
            return self._register(machine.arguments[index], at)
        distance = machine.stack_arguments + 8 * (index - len(machine.arguments))
        return self._load(self._offset(self._register(machine.stack_pointer, at), distance), _U64)

    def _offset(self, base: _Made, distance: int) -> _Made:
        return self._add(_Op.ADD, _U64, base.number, self._constant(distance, _Type.U64).number)

    def _load(self, address: _Made, target: CType) -> _Made:
        return self._add(_Op.LOAD, target, address.number)

    def _call(self, node: Call) -> _Made:
        wanted = {"str": (1, 2), "bytes": (2, 2)}.get(node.function)
        if wanted is None:
            raise self._error(f"{node.function}: no such function; there is str(p[, max]) and bytes(p, n)", node.at)
        least, most = wanted
        if not least <= len(node.arguments) <= most:
            raise self._error(
                f"{node.function} takes {least if least == most else f'{least} or {most}'} arguments", node.at
            )
        address = self._pointer(self._make(node.arguments[0]), node.at)
        if node.function == "str":
            limit = self._limit(node.arguments[1]) if len(node.arguments) == 2 else DEFAULT_STRING_BYTES
            return self._add(_Op.STRING, CType(_Type.TEXT), address.number, immediate=limit)
        size = self._pointer(self._make(node.arguments[1]), node.at)
        constant = self.instructions[size.number]
        limit = min(constant.immediate, MAX_BYTES) if constant.operation == _Op.CONSTANT else MAX_BYTES
        return self._add(_Op.BYTES, CType(_Type.TEXT), address.number, size.number, max(limit, 1))

    def _limit(self, node: Node) -> int:
        if isinstance(node, Number) and isinstance(node.value, int) and 0 < node.value <= MAX_BYTES:
            return node.value
        raise self._error(f"the most bytes of a string are a number from 1 to {MAX_BYTES}", node.at)

    def _pointer(self, value: _Made, at: int) -> _Made:
        """An address, or a size, of what an integer is."""
        if value.type.kind == _Type.TEXT or is_float(value.type.kind):
            raise self._error("an address is an integer", at)
        return self._convert(value, CType(_Type.U64, value.type.target))

    def _unary(self, node: Unary) -> _Made:
        if node.operator == "cast":
            assert node.cast is not None
            return self._cast(self._make(node.operand), node.cast, node.at)
        value = self._make(node.operand)
        if node.operator == "!":
            return self._add(_Op.LOGICAL_NOT, _I32, self._truth(value, node.at).number)
        self._ask_number(value, node.at)
        if node.operator == "*":
            target = value.type.target
            if is_float(value.type.kind):
                raise self._error("an address is an integer", node.at)
            return self._load(self._pointer(value, node.at), _U64 if target is None else target)
        value = self._convert(value, CType(promote(value.type.kind)))
        if node.operator == "+":
            return value
        if node.operator == "~" and is_float(value.type.kind):
            raise self._error("a floating-point number has no bits to turn round", node.at)
        return self._add(_Op.NEGATE if node.operator == "-" else _Op.COMPLEMENT, value.type, value.number)

    def _cast(self, value: _Made, name: TypeName, at: int) -> _Made:
        target = find_type(name)
        if target is None:
            raise self._error(f"{name.name}: no such type", at)
        if name.name == "void" and not name.n_pointers:
            raise self._error("nothing is a value of void", at)
        self._ask_number(value, at)
        return self._convert(value, target)

    def _binary(self, node: Binary) -> _Made:
        operator = node.operator
        left, right = self._make(node.left), self._make(node.right)
        if operator in ("&&", "||"):
            operation = _Op.LOGICAL_AND if operator == "&&" else _Op.LOGICAL_OR
            return self._add(operation, _I32, self._truth(left, node.at).number, self._truth(right, node.at).number)
        if operator in ("==", "!=") and _Type.TEXT in (left.type.kind, right.type.kind):
            if left.type.kind != right.type.kind:
                raise self._error("a string is compared with a string: take one by str(p)", node.at)
            equal = self._add(_Op.TEXT_EQUAL, _I32, left.number, right.number)
            return equal if operator == "==" else self._add(_Op.LOGICAL_NOT, _I32, equal.number)
        self._ask_number(left, node.at)
        self._ask_number(right, node.at)
        if operator in _SHIFTS:
            return self._shift(node, left, right)
        scaled = self._pointer_arithmetic(node, left, right)
        if scaled is not None:
            return scaled
        both = CType(common_type(left.type.kind, right.type.kind))
        if is_float(both.kind) and operator in ("%", "&", "|", "^"):
            raise self._error(f"{operator} is not for floating-point numbers", node.at)
        a, b = self._convert(left, both).number, self._convert(right, both).number
        if operator in _SWAPPED:
            return self._add(_SWAPPED[operator], both, b, a)
        return self._add((_ARITHMETIC | _COMPARISONS)[operator], both, a, b)

    def _shift(self, node: Binary, left: _Made, right: _Made) -> _Made:
        if is_float(left.type.kind) or is_float(right.type.kind):
            raise self._error(f"{node.operator} is not for floating-point numbers", node.at)
        kept = CType(promote(left.type.kind))
        a, b = self._convert(left, kept).number, self._convert(right, kept).number
        return self._add(_SHIFTS[node.operator], kept, a, b)

    def _pointer_arithmetic(self, node: Binary, left: _Made, right: _Made) -> _Made | None:
        """`p + n` and `p - n`: so many of what the pointer points at; None where there is no such pointer."""
        if node.operator not in ("+", "-"):
            return None
        if node.operator == "+" and left.type.target is None and right.type.target is not None:
            left, right = right, left
        target = left.type.target
        if target is None or right.type.target is not None or is_float(right.type.kind):
            return None
        n = self._convert(right, _U64)
        size = self._constant(target.size_bytes, _Type.U64)
        distance = n if target.size_bytes == 1 else self._add(_Op.MULTIPLY, _U64, n.number, size.number)
        return self._add(_ARITHMETIC[node.operator], left.type, left.number, distance.number)

    def _truth(self, value: _Made, at: int) -> _Made:
        """1 or 0: whether a value is anything but 0."""
        self._ask_number(value, at)
        if self.instructions[value.number].result == _Type.I32 and self._is_answer(value.number):
            return value
        kept = CType(promote(value.type.kind))
        value = self._convert(value, kept)
        return self._add(_Op.NOT_EQUAL, kept, value.number, self._zero(kept.kind).number)

    def _is_answer(self, number: int) -> bool:
        operation = self.instructions[number].operation
        return operation >= _Op.EQUAL

    def _zero(self, kind: CaptureType) -> _Made:
        return self._constant(0, kind)

    def _convert(self, value: _Made, target: CType) -> _Made:
        if value.type.kind == target.kind:
            return _Made(value.number, target)
        return self._add(_Op.CONVERT, target, value.number, immediate=value.type.kind)

    def _ask_number(self, value: _Made, at: int) -> None:
        if value.type.kind == _Type.TEXT:
            raise self._error("a string is only compared with == and !=", at)

    def _error(self, why: str, at: int) -> CaptureError:
        return CaptureError(f"{self._text!r}, at character {at + 1}: {why}")
