"""The typed form of a capture: instructions without loops or jumps, each of which makes one value.

Runs in the controller. protocol/schema.toml says what each operation means. A form is checked before it is run or
compiled, whoever made it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

from clew.capture.types import is_float
from clew.dataclass import dataclass
from clew.errors import CaptureError
from clew.protocol._constants import (
    CAPTURE_NAME_BYTES,
    MAX_BACKTRACE_FRAMES,
    MAX_CAPTURE_OPERATIONS,
    MAX_CAPTURE_TEXT,
    MAX_CAPTURE_TEXTS,
    MAX_CAPTURE_VALUES,
    MAX_KEPT_VALUES,
    NO_CONDITION,
    CaptureContext,
    CaptureOperation,
    CaptureType,
)
from clew.protocol.layout import row_of

__all__ = [
    "CONTEXT_TYPES",
    "MAX_BYTES",
    "MAX_INSTRUCTIONS",
    "WORD_BYTES",
    "CaptureRoom",
    "Form",
    "Instruction",
    "check_form",
    "count_operands",
]

MAX_INSTRUCTIONS: Final = MAX_CAPTURE_OPERATIONS
MAX_BYTES: Final = MAX_CAPTURE_TEXT
"""Of one value that is bytes, and of the data."""
WORD_BYTES: Final = 8
_N_AROUND_FRAMES: Final = 3
"""Words of a backtrace beside its frames, as long as a place has it."""

CONTEXT_TYPES: Final = {
    CaptureContext.COMM: CaptureType.TEXT,
    CaptureContext.TIME: CaptureType.U64,
    CaptureContext.THREAD_POINTER: CaptureType.U64,
    CaptureContext.DURATION: CaptureType.U64,
    CaptureContext.BEGAN: CaptureType.U64,
    CaptureContext.FRAME: CaptureType.U64,
    CaptureContext.DELAY_EXIT: CaptureType.U64,
}
"""Of what is known of a place: the types; of all else u32."""

_HEAD, _PACKED = row_of("CaptureForm"), row_of("CaptureInstruction")

_Op = CaptureOperation
_ANSWERS: Final = frozenset(one for one in _Op if _Op.EQUAL <= one <= _Op.TEXT_EQUAL or one == _Op.TEXT_MATCH)
_OF_ONE: Final = (
    *(_Op.LOAD, _Op.STRING, _Op.WORDS, _Op.CONVERT, _Op.NEGATE, _Op.COMPLEMENT, _Op.LOGICAL_NOT, _Op.DESCRIPTOR_PATH),
)
_INTEGERS_ONLY: Final = (
    _Op.REMAINDER,
    _Op.BIT_AND,
    _Op.BIT_OR,
    _Op.BIT_XOR,
    _Op.SHIFT_LEFT,
    _Op.SHIFT_RIGHT,
    _Op.COMPLEMENT,
)


class Instruction(NamedTuple):
    """One operation: `kind` is the type that it works on, `a` and `b` are numbers of instructions before it."""

    operation: CaptureOperation
    kind: CaptureType
    a: int = 0
    b: int = 0
    immediate: int = 0

    @property
    def result(self) -> CaptureType:
        """The type of its value."""
        return CaptureType.I32 if self.operation in _ANSWERS else self.kind


class CaptureRoom(NamedTuple):
    """Of the captures at one place: operations, bytes of the values that are bytes, bytes of literals."""

    n_operations: int = 0
    n_text_bytes: int = 0
    n_data_bytes: int = 0

    def add(self, other: CaptureRoom) -> CaptureRoom | None:
        """Both together; None: a place does not hold so much."""
        both = CaptureRoom(
            self.n_operations + other.n_operations,
            self.n_text_bytes + other.n_text_bytes,
            self.n_data_bytes + other.n_data_bytes,
        )
        is_much = (
            both.n_operations > MAX_CAPTURE_VALUES
            or both.n_text_bytes > MAX_CAPTURE_TEXTS
            or both.n_data_bytes > MAX_CAPTURE_TEXT
        )
        return None if is_much else both


@dataclass(frozen=True)
class Form:
    """`fields` are the instructions whose values are taken.

    `condition` is the one, of type i32, where which is 0 or missing nothing is taken; None: always. `data` are the
    bytes of literals. Of what is taken when a call returns, `entry` is what is kept when it begins: its fields, of
    calls that its condition chooses.
    """

    instructions: Sequence[Instruction]
    fields: Sequence[int]
    condition: int | None = None
    data: bytes = b""
    entry: Form | None = None

    @cached_property
    def room(self) -> CaptureRoom:
        """How much of a place's room it takes at most."""
        return CaptureRoom(len(self.instructions), sum(map(_count_text_bytes, self.instructions)), len(self.data))

    def only_behind(self, mark: int) -> Form:
        """The same, only where the thread comes from an instruction of that mark (PieceKind.MARK). Raises
        CaptureError."""
        made = list(self.instructions)
        made.append(Instruction(_Op.CONTEXT, CaptureType.U32, immediate=CaptureContext.BEHIND))
        made.append(Instruction(_Op.CONSTANT, CaptureType.U32, immediate=mark))
        made.append(Instruction(_Op.EQUAL, CaptureType.U32, len(made) - 2, len(made) - 1))
        if self.condition is not None:
            # First where it comes from: what the condition asks for may not be there elsewhere.
            made.append(Instruction(_Op.LOGICAL_AND, CaptureType.I32, len(made) - 1, self.condition))
        form = Form(made, self.fields, len(made) - 1, self.data)
        check_form(form)
        return form

    def pack(self) -> bytes:
        """As the runtime gets it."""
        return self._packed

    @cached_property
    def _packed(self) -> bytes:
        condition = NO_CONDITION if self.condition is None else self.condition
        head = _HEAD.pack(len(self.instructions), len(self.fields), condition, len(self.data))
        body = b"".join(
            _PACKED.pack(one.operation, one.kind, one.a, one.b, 0, one.immediate) for one in self.instructions
        )
        return head + body + struct.pack(f"<{len(self.fields)}H", *self.fields) + self.data

    @classmethod
    def unpack(cls, packed: bytes) -> Form:
        """What `pack` made, checked. Raises CaptureError."""
        try:
            n_instructions, n_fields, condition, n_data = _HEAD.unpack_from(packed)
            at = _HEAD.size
            instructions = []
            for _ in range(n_instructions):
                operation, kind, a, b, _, immediate = _PACKED.unpack_from(packed, at)
                instructions.append(Instruction(CaptureOperation(operation), CaptureType(kind), a, b, immediate))
                at += _PACKED.size
            fields = struct.unpack_from(f"<{n_fields}H", packed, at)
            data = packed[at + 2 * n_fields :]
        except (struct.error, ValueError) as error:
            raise CaptureError(f"not the form of a capture: {error}") from error
        form = cls(instructions, list(fields), None if condition == NO_CONDITION else condition, data)
        if len(data) != n_data:
            raise CaptureError(f"the form of a capture has {len(data)} bytes of data where it says {n_data}")
        check_form(form)
        return form


def check_form(form: Form) -> None:
    """Raises CaptureError where a form is none: an operand that is not there, or of another type than it must be."""
    n = len(form.instructions)
    if n > MAX_INSTRUCTIONS or len(form.fields) > MAX_INSTRUCTIONS or len(form.data) > MAX_BYTES:
        raise CaptureError(f"a capture of {n} operations: at most {MAX_INSTRUCTIONS} can be done at a place")
    for number, one in enumerate(form.instructions):
        reason = _find_fault(form, number, one)
        if reason:
            raise CaptureError(f"operation {number} of a capture, {one.operation.name.lower()}: {reason}")
    for field in form.fields:
        if not 0 <= field < n:
            raise CaptureError(f"field {field} of a capture: there is no such operation")
    asked = form.condition
    if asked is not None and (not 0 <= asked < n or form.instructions[asked].result != CaptureType.I32):
        raise CaptureError("the condition of a capture is not the number of an i32")


def _find_fault(form: Form, number: int, one: Instruction) -> str:
    operation, kind = one.operation, one.kind
    operands = [one.a, one.b][: count_operands(operation)]
    if any(not 0 <= operand < number for operand in operands):
        return "an operand is not there yet"
    types = [form.instructions[operand].result for operand in operands]
    is_text = kind == CaptureType.TEXT
    if any(form.instructions[operand].operation == _Op.BACKTRACE for operand in operands):
        return "a backtrace is no operand"
    if operation == _Op.BACKTRACE:
        return "" if is_text and 0 < one.immediate <= MAX_BACKTRACE_FRAMES else "a backtrace is bytes of so many frames"
    if operation in (_Op.STRING, _Op.BYTES, _Op.WORDS, _Op.LITERAL):
        if not is_text:
            return "bytes are of type text"
        if any(found != CaptureType.U64 for found in types):
            return "an address, or a size, is a u64"
        start, size = one.immediate & 0xFFFFFFFF, one.immediate >> 32
        if operation == _Op.LITERAL:
            return "" if start + size <= len(form.data) else "its bytes are not in the data"
        if operation == _Op.WORDS and one.immediate % WORD_BYTES:
            return "words are of eight bytes"
        return "" if 0 < one.immediate <= MAX_BYTES else f"from 1 to {MAX_BYTES} bytes are taken"
    if operation == _Op.DESCRIPTOR_PATH:
        is_sound = is_text and types == [CaptureType.I32] and 0 < one.immediate <= MAX_BYTES
        return "" if is_sound else "a descriptor is an i32, and its path bytes"
    if operation in (_Op.TEXT_EQUAL, _Op.TEXT_MATCH):
        return "" if types == [CaptureType.TEXT] * 2 else "both operands are bytes"
    if operation == _Op.CONTEXT:
        return _find_fault_of_context(one)
    if operation == _Op.KEPT:
        field, size = one.immediate & 0xFFFFFFFF, one.immediate >> 32
        is_sound = field < MAX_KEPT_VALUES and (0 < size <= MAX_BYTES if is_text else not size)
        return "" if is_sound else "no such field is kept"
    if is_text:
        return "text has no arithmetic"
    if operation in (_Op.REGISTER, _Op.VECTOR):
        is_kept = kind == CaptureType.U64 if operation == _Op.REGISTER else is_float(kind)
        return "" if is_kept and one.immediate < 64 else "no such register"
    if operation == _Op.LOAD:
        return "" if types == [CaptureType.U64] else "an address is a u64"
    if operation == _Op.CONVERT:
        return "" if one.immediate == types[0] != CaptureType.TEXT else "what is converted is of another type"
    if operation >= _Op.LOGICAL_AND:
        return "" if all(found == CaptureType.I32 for found in types) else "logic is of i32"
    if operation in _INTEGERS_ONLY and is_float(kind):
        return "not of floating-point numbers"
    if operation != _Op.CONSTANT:
        if kind < CaptureType.I32:
            return "arithmetic is of 32 bits and more"
        if any(found != kind for found in types):
            return "an operand is of another type"
    return ""


def _find_fault_of_context(one: Instruction) -> str:
    if one.immediate not in [int(member) for member in CaptureContext]:
        return "nothing of that number is known"
    if one.kind != CONTEXT_TYPES.get(CaptureContext(one.immediate), CaptureType.U32):
        return "it is of another type"
    return ""


def count_operands(operation: CaptureOperation) -> int:
    """How many of `a` and `b` an operation has."""
    if operation in (_Op.CONSTANT, _Op.REGISTER, _Op.VECTOR, _Op.CONTEXT, _Op.LITERAL, _Op.KEPT, _Op.BACKTRACE):
        return 0
    if operation in _OF_ONE:
        return 1
    return 2


def _count_text_bytes(one: Instruction) -> int:
    if one.operation in (_Op.STRING, _Op.BYTES, _Op.WORDS):
        return one.immediate + 7 & -8
    if one.operation == _Op.KEPT:
        return (one.immediate >> 32) + 7 & -8
    if one.operation == _Op.BACKTRACE:
        return WORD_BYTES * (one.immediate + _N_AROUND_FRAMES)
    return CAPTURE_NAME_BYTES if one.operation == _Op.CONTEXT and one.kind == CaptureType.TEXT else 0
