"""Random forms of captures, sound ones: for what runs them in several ways."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from clew.capture.form import Form, Instruction, check_form, count_operands
from clew.capture.types import SIZES, is_float
from clew.dataclass import replace
from clew.protocol._constants import (
    CAPTURE_NAME_BYTES,
    MAX_CAPTURE_FIELDS,
    MAX_KEPT_VALUES,
    CaptureContext,
    CaptureOperation,
    CaptureType,
)

__all__ = ["TURN_REGISTER", "make_condition", "make_form", "make_returned"]

_Op, _T = CaptureOperation, CaptureType
TURN_REGISTER = 7
"""rdi: the first field of every form, by which calls are told apart."""
_POINTERS = (6, 2, 4)
_NUMBERS = (_T.I32, _T.U32, _T.I64, _T.U64, _T.F32, _T.F64)
_INTEGERS = _NUMBERS[:4]
_DATA = b"needle\0at end x"
_PATTERNS = b"*e[a-z]?*[!/]*/dev/*l*[]"
_CORNERS = (0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 63, (1 << 63) - 1, (1 << 64) - 1)


class _Maker:
    def __init__(self, dice: random.Random, entry: Form | None = None) -> None:
        self.dice = dice
        self.kept = [] if entry is None else [_keep(entry, index) for index in range(len(entry.fields))]
        turn = Instruction(_Op.REGISTER, _T.U64, immediate=TURN_REGISTER)
        self.made: list[Instruction] = [turn] if entry is None else [self.kept[0]]

    def add(self, operation: CaptureOperation, kind: CaptureType, a: int = 0, b: int = 0, immediate: int = 0) -> int:
        self.made.append(Instruction(operation, kind, a, b, immediate))
        return len(self.made) - 1

    def pick(self, kind: CaptureType) -> int:
        """The number of a value of a type: mostly one that is there."""
        there = [number for number, one in enumerate(self.made) if one.result == kind]
        if there and self.dice.random() < 0.8:
            return self.dice.choice(there)
        if kind == _T.TEXT:
            return self.text()
        if kind == _T.I32 and self.dice.random() < 0.5:
            return self.comparison()
        return self.constant(kind)

    def constant(self, kind: CaptureType) -> int:
        dice = self.dice
        if is_float(kind):
            value = dice.choice(
                [0.0, -0.0, 1.5, -3.0, 1e30, -1e-40, float("inf"), float("nan"), 2.0**63, dice.random()]
            )
            bits = int.from_bytes(struct.pack("<f" if kind == _T.F32 else "<d", value), "little")
            return self.add(_Op.CONSTANT, kind, immediate=bits)
        value = dice.choice([*_CORNERS, dice.getrandbits(64), dice.randrange(100)])
        return self.add(_Op.CONSTANT, kind, immediate=value)

    def source(self) -> int:
        dice = self.dice
        if self.kept and dice.random() < 0.5:
            self.made.append(dice.choice(self.kept))
            return len(self.made) - 1
        choice = dice.randrange(4)
        if choice == 0:
            return self.add(_Op.VECTOR, dice.choice([_T.F32, _T.F64]), immediate=dice.choice([0, 1, 2, 7, 20]))
        if choice == 1:
            what, kind = dice.choice(
                [
                    (CaptureContext.TID, _T.U32),
                    (CaptureContext.PID, _T.U32),
                    (CaptureContext.DEPTH, _T.U32),
                    (CaptureContext.COMM, _T.TEXT),
                    (CaptureContext.THREAD_POINTER, _T.U64),
                ]
            )
            return self.add(_Op.CONTEXT, kind, immediate=what)
        return self.add(_Op.REGISTER, _T.U64, immediate=dice.randrange(18))

    def address(self) -> int:
        if self.dice.random() < 0.2:
            return self.pick(_T.U64)
        pointer = self.add(_Op.REGISTER, _T.U64, immediate=self.dice.choice(_POINTERS))
        offset = self.add(_Op.CONSTANT, _T.U64, immediate=self.dice.randrange(-4, 12) & (1 << 64) - 1)
        return self.add(_Op.ADD, _T.U64, pointer, offset)

    def load(self) -> int:
        kind = self.dice.choice([one for one in CaptureType if one != _T.TEXT])
        return self.add(_Op.LOAD, kind, self.address())

    def text(self) -> int:
        limit = self.dice.choice([1, 3, 6, 8, 40, 300])
        choice = self.dice.randrange(4)
        if choice == 3:
            return self.add(_Op.WORDS, _T.TEXT, self.address(), immediate=self.dice.choice([8, 16, 40, 304]))
        if choice == 0:
            start = self.dice.randrange(len(_DATA))
            size = self.dice.randrange(len(_DATA) - start + 1)
            return self.add(_Op.LITERAL, _T.TEXT, immediate=start | size << 32)
        if choice == 1:
            size = self.add(_Op.CONSTANT, _T.U64, immediate=self.dice.choice([0, 1, 5, 6, 1 << 40]))
            return self.add(_Op.BYTES, _T.TEXT, self.address(), size, limit)
        return self.add(_Op.STRING, _T.TEXT, self.address(), immediate=limit)

    def arithmetic(self) -> int:
        kind = self.dice.choice(_NUMBERS)
        operations = [_Op.ADD, _Op.SUBTRACT, _Op.MULTIPLY, _Op.DIVIDE, _Op.NEGATE]
        if not is_float(kind):
            operations += [_Op.REMAINDER, _Op.BIT_AND, _Op.BIT_OR, _Op.BIT_XOR, _Op.SHIFT_LEFT, _Op.SHIFT_RIGHT]
            operations.append(_Op.COMPLEMENT)
        return self.add(self.dice.choice(operations), kind, self.pick(kind), self.pick(kind))

    def comparison(self) -> int:
        operation = self.dice.choice([_Op.EQUAL, _Op.NOT_EQUAL, _Op.LESS, _Op.LESS_EQUAL])
        kind = self.dice.choice(_NUMBERS)
        if kind == _T.I32:
            kind = _T.I64
        return self.add(operation, kind, self.pick(kind), self.pick(kind))

    def conversion(self) -> int:
        source = self.dice.randrange(len(self.made))
        kind = self.made[source].result
        if kind == _T.TEXT:
            return self.text()
        return self.add(_Op.CONVERT, self.dice.choice([*SIZES]), source, immediate=kind)

    def logic(self) -> int:
        operation = self.dice.choice([_Op.LOGICAL_AND, _Op.LOGICAL_OR, _Op.LOGICAL_NOT])
        return self.add(operation, _T.I32, self.pick(_T.I32), self.pick(_T.I32))

    def equality(self) -> int:
        return self.add(_Op.TEXT_EQUAL, _T.TEXT, self.pick(_T.TEXT), self.pick(_T.TEXT))

    def match(self) -> int:
        return self.add(_Op.TEXT_MATCH, _T.TEXT, self.pick(_T.TEXT), self.pattern())

    def pattern(self) -> int:
        start = self.dice.randrange(len(_DATA), len(_DATA) + len(_PATTERNS))
        size = self.dice.randrange(len(_DATA) + len(_PATTERNS) - start + 1)
        return self.add(_Op.LITERAL, _T.TEXT, immediate=start | size << 32)

    def path(self) -> int:
        descriptor = self.add(_Op.CONSTANT, _T.I32, immediate=self.dice.choice([0, 1, 2, 99, 0xFFFFFFFF]))
        return self.add(_Op.DESCRIPTOR_PATH, _T.TEXT, descriptor, immediate=self.dice.choice([1, 5, 300]))


def make_condition(dice: random.Random, n_operations: int) -> Form:
    """A form of a condition that only the dispatcher works out, without fields: of integers, texts and patterns."""
    while True:
        maker = _Maker(dice)
        makers = [
            maker.source,
            maker.load,
            maker.text,
            maker.arithmetic,
            maker.comparison,
            maker.conversion,
            maker.logic,
        ]
        makers += [maker.equality, maker.match, maker.match, maker.path]
        while len(maker.made) < n_operations:
            dice.choice(makers)()
        answers = [number for number, one in enumerate(maker.made) if one.result == _T.I32]
        form = Form(maker.made, [], dice.choice(answers[-4:]) if answers else None, _DATA + _PATTERNS)
        check_form(form)
        if form.condition is not None and not _has_floats(form, form.condition):
            return form


def _has_floats(form: Form, number: int) -> bool:
    """Whether an operation is made of floating-point numbers, which the dispatcher has not."""
    one = form.instructions[number]
    sources = [one.a, one.b][: count_operands(one.operation)]
    is_one = is_float(one.kind) or (one.operation == _Op.CONVERT and is_float(CaptureType(one.immediate)))
    return is_one or any(_has_floats(form, source) for source in sources)


def _keep(entry: Form, index: int) -> Instruction:
    """What a call keeps of one of the fields of its beginning, where it has returned."""
    one = entry.instructions[entry.fields[index]]
    size = 0
    if one.result == _T.TEXT:
        size = one.immediate >> 32 if one.operation == _Op.LITERAL else one.immediate
        size = CAPTURE_NAME_BYTES if one.operation == _Op.CONTEXT else max(size, 1)
    return Instruction(_Op.KEPT, one.result, immediate=size << 32 | index)


def make_returned(dice: random.Random, n_operations: int) -> Form:
    """The same of what is taken when a call has returned: the first is what `TURN_REGISTER` was when it began."""
    begun = make_form(dice, n_operations // 2)
    others = dice.sample(range(1, len(begun.instructions)), min(MAX_KEPT_VALUES, len(begun.instructions)) - 1)
    return make_form(dice, n_operations, replace(begun, fields=[0, *others], condition=None))


def make_form(dice: random.Random, n_operations: int, entry: Form | None = None) -> Form:
    """A form of so many operations or a few more, all of whose values are taken: the first is `TURN_REGISTER`.

    With `entry` it is taken when a call has returned, for which that form was taken when it began.
    """
    maker = _Maker(dice, entry)
    makers: list[Callable[[], int]] = [
        maker.source,
        maker.load,
        maker.text,
        maker.arithmetic,
        maker.arithmetic,
        maker.comparison,
        maker.conversion,
        maker.logic,
        maker.equality,
    ]
    while len(maker.made) < n_operations:
        dice.choice(makers)()
    answers = [number for number, one in enumerate(maker.made) if one.result == _T.I32]
    condition = dice.choice(answers) if answers and dice.random() < 0.4 else None
    fields = range(min(len(maker.made), MAX_CAPTURE_FIELDS))
    form = Form(maker.made, list(fields), condition, _DATA, entry)
    check_form(form)
    return form
