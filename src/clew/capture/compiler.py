"""Makes the typed form of an expression: finds what its names mean, gives each value a type, folds nothing.

Runs in the controller.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Final

from clew.capture.builder import I32, I64, U64, FormBuilder, Made
from clew.capture.form import CONTEXT_TYPES, MAX_BYTES, WORD_BYTES, Form, check_form
from clew.capture.grammar import parse
from clew.capture.machine import Machine
from clew.capture.objects import Objects
from clew.capture.syntax import (
    Binary,
    Call,
    Index,
    Load,
    Member,
    Name,
    Node,
    Number,
    Text,
    ThreadLocal,
    TypeName,
    Unary,
    Variable,
)
from clew.capture.types import CType, common_type, data_type, find_type, is_float, is_plain, promote
from clew.errors import BinaryError, CaptureError
from clew.protocol._constants import (
    CAPTURE_NAME_BYTES,
    MAX_BACKTRACE_FRAMES,
    MAX_KEPT_VALUES,
    CaptureContext,
    CaptureOperation,
    CaptureType,
)

__all__ = ["DEFAULT_STRING_BYTES", "asks_program", "compile_capture"]

DEFAULT_STRING_BYTES: Final = 256
"""Of a string without a limit of its own."""

_Op, _Type = CaptureOperation, CaptureType
_ARGUMENT: Final = re.compile(r"(f?)arg([1-9][0-9]?)")
_UNNAMED: Final = (CaptureContext.THREAD_POINTER, CaptureContext.BEHIND)
_WORDS: Final = {what.name.lower(): what for what in CaptureContext if what not in _UNNAMED}
_OF_CALLS: Final = (CaptureContext.DURATION, CaptureContext.BEGAN, CaptureContext.FRAME)
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
_FUNCTIONS: Final = {
    "str": (1, 2, "str(p[, max])"),
    "bytes": (2, 3, "bytes(p, n[, max])"),
    "words": (2, 2, "words(p, max)"),
}
"""How many arguments they take, and how that is said."""
_INTERPRETED: Final = {"match": (2, 2, "match(text, pattern)"), "fd_path": (1, 1, "fd_path(fd)")}
_OF_TWO: Final = _ARITHMETIC | _COMPARISONS
_SWAPPED: Final = {">": _Op.LESS, ">=": _Op.LESS_EQUAL}


def compile_capture(
    fields: Sequence[str],
    machine: Machine,
    condition: str | None = None,
    kinds: Sequence[CaptureType] | None = None,
    entry_condition: str | None = None,
) -> Form:
    """The form that takes the values of some expressions, where a condition holds; each of a type of `kinds`, if these
    are given. Of what is taken when calls return `entry_condition` chooses those for which something is kept when they
    begin. Raises CaptureError."""
    compiler = _Compiler(machine)
    try:
        numbers = [compiler.compile(text, None if kinds is None else kinds[index]) for index, text in enumerate(fields)]
        asked = None if condition is None else compiler.truth_of(condition)
        if entry_condition is not None:
            compiler.choose_calls(entry_condition)
    except RecursionError:
        raise CaptureError(f"{compiler.builder.text!r} is nested too deeply") from None
    return compiler.form(numbers, asked)


def asks_program(text: str) -> bool:
    """Whether what an expression means depends on where it is taken: it names variables, or types of the program's.

    Raises CaptureError where it is no expression.
    """
    try:
        return _asks(parse(text))
    except RecursionError:
        raise CaptureError(f"{text!r} is nested too deeply") from None


def _asks(node: Node) -> bool:
    match node:
        case Variable() | ThreadLocal():
            return True
        case Unary():
            is_own = node.cast is not None and find_type(node.cast) is None and not is_plain(node.cast)
            return is_own or _asks(node.operand)
        case Binary():
            return _asks(node.left) or _asks(node.right)
        case Call():
            return any(_asks(one) for one in node.arguments)
        case Member():
            return _asks(node.operand)
        case Index():
            return _asks(node.operand) or _asks(node.index)
    return False


class _Compiler:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.builder = FormBuilder()
        self._objects = Objects(self.builder, machine.scope, machine.registers, self._make)
        self._add, self._convert, self._error = self.builder.add, self.builder.convert, self.builder.error
        self._constant, self._pointer = self.builder.constant, self.builder.pointer
        self._ask_number = self.builder.ask_number
        self._entry = None if machine.entry is None else _Compiler(machine.entry)
        self._kept: list[int] = []
        """What the call keeps for who asks when it returns: numbers of instructions."""
        self._chosen: int | None = None
        """The number of the instruction that says of which calls."""

    def compile(self, text: str, kind: CaptureType | None) -> int:
        """Add what an expression needs, as a value of a type if one is given; the number of its instruction."""
        made = self._parse(text)
        return (made if kind is None else self._as_kind(made, kind)).number

    def form(self, fields: Sequence[int], condition: int | None = None) -> Form:
        """The form that takes those values. Raises CaptureError."""
        entry = None if self._entry is None else self._entry.form(self._entry._kept, self._entry._chosen)
        form = Form(self.builder.instructions, fields, condition, bytes(self.builder.data), entry)
        check_form(form)
        return form

    def choose_calls(self, text: str) -> None:
        """Of what is taken when calls return: have something kept only of those for which an expression is not 0."""
        assert self._entry is not None
        self._entry._chosen = self._entry.truth_of(text)

    def keep(self, node: Node, text: str) -> tuple[int, Made]:
        """Have a value kept when the call begins: which field it is, and its type."""
        self.builder.text = text
        made = self._make(node)
        if made.number not in self._kept:
            self._kept.append(made.number)
        return self._kept.index(made.number), made

    def _parse(self, text: str) -> Made:
        self.builder.text = text
        return self._make(parse(text))

    def truth_of(self, text: str) -> int:
        """Add the question whether an expression is anything but 0."""
        return self._truth(self._parse(text), 0).number

    def _as_kind(self, made: Made, kind: CaptureType) -> Made:
        """The value as one of another type; bytes stay what they are. Raises CaptureError."""
        if made.type.kind != kind and _Type.TEXT in (made.type.kind, kind):
            raise self._error("this is of another type here than elsewhere", 0)
        return self._convert(made, CType(kind))

    def _make(self, node: Node) -> Made:
        match node:
            case Number():
                return self._number(node)
            case Text():
                start = len(self.builder.data)
                self.builder.data += node.value
                return self._add(_Op.LITERAL, CType(_Type.TEXT), immediate=len(node.value) << 32 | start)
            case Name():
                return self._name(node)
            case Load():
                base = self._register(node.register, node.at)
                return self.builder.load(self.builder.offset(base, node.distance), U64)
            case Call():
                return self._call(node)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)
            case Variable() | ThreadLocal() | Member() | Index():
                return self._objects.value_of(node)

    def _number(self, node: Number) -> Made:
        value = node.value
        if isinstance(value, float):
            bits = int.from_bytes(struct.pack("<d", value), "little")
            return self._add(_Op.CONSTANT, CType(_Type.F64), immediate=bits)
        # Of 64 bits, as gdb has it: a mask or a shifted 1 is meant to be as wide as a register.
        return self._constant(value, _Type.I64 if value < 1 << 63 else _Type.U64)

    def _name(self, node: Name) -> Made:
        name, machine = node.name, self.machine
        if not node.is_register:
            argument = _ARGUMENT.fullmatch(name)
            if argument:
                return self._argument(int(argument[2]) - 1, bool(argument[1]), node.at)
            if name == "retval":
                return self._convert(self._register(machine.result, node.at), CType(_Type.I64))
            if name in _WORDS:
                what = _WORDS[name]
                if what in _OF_CALLS and self._entry is None:
                    raise self._error(f"{name} is known only when a call has returned", node.at)
                return self._add(_Op.CONTEXT, CType(CONTEXT_TYPES.get(what, _Type.U32)), immediate=what)
        if name in machine.registers or node.is_register or self._is_vector(name):
            return self._register(name, node.at)
        address = machine.find_symbol(name)
        if address is None:
            raise self._error(f"{name}: no register, no word of captures, and no symbol", node.at)
        return self._constant(address, _Type.U64)

    def _is_vector(self, name: str) -> bool:
        number = name.removeprefix(self.machine.vectors)
        return number != name and number.isdecimal() and int(number) < self.machine.n_vectors

    def _register(self, name: str, at: int) -> Made:
        if self._is_vector(name):
            number = int(name.removeprefix(self.machine.vectors))
            return self._add(_Op.VECTOR, CType(_Type.F64), immediate=number)
        if name not in self.machine.registers:
            raise self._error(f"{name}: no such register", at)
        return self._add(_Op.REGISTER, U64, immediate=self.machine.registers.index(name))

    def _argument(self, index: int, is_float: bool, at: int) -> Made:
        machine = self.machine
        if is_float:
            if index >= machine.n_vectors:
                raise self._error(f"of floating-point arguments the first {machine.n_vectors} are known", at)
            return self._register(f"{machine.vectors}{index}", at)
        if index < len(machine.arguments):
            return self._register(machine.arguments[index], at)
        return self.builder.load(self._stack_argument(index, at), U64)

    def _stack_argument(self, index: int, at: int) -> Made:
        """Where an argument is that has no register."""
        if self.machine.stack_arguments is None:
            raise self._error(f"there are {len(self.machine.arguments)} arguments here", at)
        distance = self.machine.stack_arguments + 8 * (index - len(self.machine.arguments))
        return self.builder.offset(self._register(self.machine.stack_pointer, at), distance)

    def _address_of(self, node: Node) -> Made:
        """`&` in front of a node: what debug information has, or an argument on the stack."""
        found = _ARGUMENT.fullmatch(node.name) if isinstance(node, Name) else None
        index = int(found[2]) - 1 if found is not None and not found[1] else -1
        if index < len(self.machine.arguments):
            return self._objects.address_of(node)
        return self._stack_argument(index, node.at)

    def _from_entry(self, node: Call) -> Made:
        """What was kept when the call began that has returned."""
        if self._entry is None:
            raise self._error("entry(...) is what something was when a call began that has returned now", node.at)
        if len(node.arguments) != 1:
            raise self._error("entry takes 1 argument", node.at)
        index, made = self._entry.keep(node.arguments[0], self.builder.text)
        if index >= MAX_KEPT_VALUES:
            raise self._error(f"of one call {MAX_KEPT_VALUES} values are kept at most", node.at)
        size = max(self._entry.text_bytes(made), 1) if made.type.kind == _Type.TEXT else 0
        return self._add(_Op.KEPT, made.type, immediate=size << 32 | index)

    def text_bytes(self, made: Made) -> int:
        """How many bytes a value that is bytes has at most."""
        one = self.builder.instructions[made.number]
        if one.operation == _Op.LITERAL:
            return one.immediate >> 32
        return CAPTURE_NAME_BYTES if one.operation == _Op.CONTEXT else one.immediate

    def _call(self, node: Call) -> Made:
        if node.function == "entry":
            return self._from_entry(node)
        if node.function == "backtrace" and self.machine.unwinds and len(node.arguments) == 1:
            n_frames = self._limit(node.arguments[0], MAX_BYTES // MAX_BACKTRACE_FRAMES)
            return self._add(_Op.BACKTRACE, CType(_Type.TEXT), immediate=n_frames)
        wanted = _FUNCTIONS | (_INTERPRETED if self.machine.is_interpreted else {})
        if node.function not in wanted:
            known = ", ".join([*(text for _, _, text in wanted.values()), "entry(x)"])
            raise self._error(f"{node.function}: no such function; there is {known}", node.at)
        least, most, _ = wanted[node.function]
        if not least <= len(node.arguments) <= most:
            raise self._error(
                f"{node.function} takes {least if least == most else f'{least} or {most}'} arguments", node.at
            )
        if node.function in _INTERPRETED:
            return self._interpreted(node)
        address = self._pointer(self._make(node.arguments[0]), node.at)
        if node.function == "str":
            limit = self._limit(node.arguments[1]) if len(node.arguments) == 2 else DEFAULT_STRING_BYTES
            return self._add(_Op.STRING, CType(_Type.TEXT), address.number, immediate=limit)
        if node.function == "words":
            limit = self._limit(node.arguments[1], WORD_BYTES)
            return self._add(_Op.WORDS, CType(_Type.TEXT), address.number, immediate=limit * WORD_BYTES)
        size = self._pointer(self._make(node.arguments[1]), node.at)
        constant = self.builder.instructions[size.number]
        limit = self._limit(node.arguments[2]) if len(node.arguments) == 3 else MAX_BYTES
        if constant.operation == _Op.CONSTANT:
            limit = min(constant.immediate, limit)
        return self._add(_Op.BYTES, CType(_Type.TEXT), address.number, size.number, max(limit, 1))

    def _interpreted(self, node: Call) -> Made:
        """What only the dispatcher works out."""
        first = self._make(node.arguments[0])
        if node.function == "fd_path":
            self._ask_number(first, node.at)
            descriptor = self._convert(first, I32).number
            return self._add(_Op.DESCRIPTOR_PATH, CType(_Type.TEXT), descriptor, immediate=MAX_BYTES)
        pattern = self._make(node.arguments[1])
        if first.type.kind != _Type.TEXT or pattern.type.kind != _Type.TEXT:
            raise self._error("a string is held against a pattern: take one by str(p)", node.at)
        return self._add(_Op.TEXT_MATCH, I32, first.number, pattern.number)

    def _limit(self, node: Node, size: int = 1) -> int:
        if isinstance(node, Number) and isinstance(node.value, int) and 0 < node.value <= MAX_BYTES // size:
            return node.value
        what = "bytes of a string" if size == 1 else "words"
        raise self._error(f"the most {what} are a number from 1 to {MAX_BYTES // size}", node.at)

    def _unary(self, node: Unary) -> Made:
        if node.operator == "cast":
            assert node.cast is not None
            return self._cast(self._make(node.operand), node.cast, node.at)
        if node.operator == "&":
            return self._address_of(node.operand)
        value = self._make(node.operand)
        if node.operator == "!":
            return self._add(_Op.LOGICAL_NOT, I32, self._truth(value, node.at).number)
        self._ask_number(value, node.at)
        if node.operator == "*":
            self._pointer(value, node.at)
            return self._objects.value_of(node)
        value = self._convert(value, CType(promote(value.type.kind)))
        if node.operator == "+":
            return value
        if node.operator == "~" and is_float(value.type.kind):
            raise self._error("a floating-point number has no bits to turn round", node.at)
        return self._add(_Op.NEGATE if node.operator == "-" else _Op.COMPLEMENT, value.type, value.number)

    def _cast(self, value: Made, name: TypeName, at: int) -> Made:
        target = find_type(name) or self._find_data_type(name, at)
        if target is None:
            raise self._error(f"{name.name}: no such type", at)
        if name.name == "void" and not name.n_pointers:
            raise self._error("nothing is a value of void", at)
        self._ask_number(value, at)
        return self._convert(value, target)

    def _find_data_type(self, name: TypeName, at: int) -> CType | None:
        """A type that only debugging information knows, or a pointer to it."""
        if is_plain(name):
            return None
        try:
            found = self._objects.scope(at).find_type(name.name)
            target = None if found is None or name.n_pointers else data_type(found)
        except BinaryError as error:
            raise self._error(f"{name.name}: {error.reason}", at) from error
        if found is None:
            return None
        if not name.n_pointers:
            if target is None:
                raise self._error(f"{found} is no single value: cast to a pointer to it", at)
            return target
        target = CType(_Type.U64, data=found)
        for _ in range(name.n_pointers - 1):
            target = CType(_Type.U64, target)
        return target

    def _binary(self, node: Binary) -> Made:
        operator = node.operator
        left, right = self._make(node.left), self._make(node.right)
        if operator in ("&&", "||"):
            operation = _Op.LOGICAL_AND if operator == "&&" else _Op.LOGICAL_OR
            return self._add(operation, I32, self._truth(left, node.at).number, self._truth(right, node.at).number)
        if operator in ("==", "!=") and _Type.TEXT in (left.type.kind, right.type.kind):
            if left.type.kind != right.type.kind:
                raise self._error("a string is compared with a string: take one by str(p)", node.at)
            equal = self._add(_Op.TEXT_EQUAL, I32, left.number, right.number)
            return equal if operator == "==" else self._add(_Op.LOGICAL_NOT, I32, equal.number)
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
        return self._add(_OF_TWO[operator], both, a, b)

    def _shift(self, node: Binary, left: Made, right: Made) -> Made:
        if is_float(left.type.kind) or is_float(right.type.kind):
            raise self._error(f"{node.operator} is not for floating-point numbers", node.at)
        kept = CType(promote(left.type.kind))
        a, b = self._convert(left, kept).number, self._convert(right, kept).number
        return self._add(_SHIFTS[node.operator], kept, a, b)

    def _pointer_arithmetic(self, node: Binary, left: Made, right: Made) -> Made | None:
        """`p + n` and `p - n`: so many of what the pointer points at; None where there is no such pointer."""
        if node.operator not in ("+", "-"):
            return None
        if node.operator == "+" and not left.type.is_pointer and right.type.is_pointer:
            left, right = right, left
        if not left.type.is_pointer or is_float(right.type.kind):
            return None
        try:
            if right.type.is_pointer:
                return self._distance(left, right, node.at) if node.operator == "-" else None
            return self._objects.step(left, self._convert(right, U64), _ARITHMETIC[node.operator])
        except BinaryError as error:
            raise self._error(error.reason, node.at) from error

    def _distance(self, left: Made, right: Made, at: int) -> Made:
        """`p - q`: so many of what both point at."""
        size = left.type.step_bytes
        if size != right.type.step_bytes:
            raise self._error("both pointers of a difference point at the same type", at)
        a, b = self._convert(left, I64), self._convert(right, I64)
        distance = self._add(_Op.SUBTRACT, I64, a.number, b.number)
        return self._add(_Op.DIVIDE, I64, distance.number, self._constant(size, _Type.I64).number)

    def _truth(self, value: Made, at: int) -> Made:
        """1 or 0: whether a value is anything but 0."""
        self._ask_number(value, at)
        if self.builder.instructions[value.number].result == _Type.I32 and self._is_answer(value.number):
            return value
        kept = CType(promote(value.type.kind))
        value = self._convert(value, kept)
        return self._add(_Op.NOT_EQUAL, kept, value.number, self._zero(kept.kind).number)

    def _is_answer(self, number: int) -> bool:
        operation = self.builder.instructions[number].operation
        return _Op.EQUAL <= operation <= _Op.TEXT_EQUAL or operation == _Op.TEXT_MATCH

    def _zero(self, kind: CaptureType) -> Made:
        return self._constant(0, kind)
