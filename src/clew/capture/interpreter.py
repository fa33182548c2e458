"""What a form means, in plain Python: each operation on one value after the other.

Runs in the controller, where a thread is stopped anyway; and as what other back-ends are held against. Integers are
kept as numbers of their type, floating-point ones as Python's, text as bytes; a missing value is None.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Final, Protocol

from clew.capture.form import WORD_BYTES, Form, Instruction
from clew.capture.globs import matches
from clew.capture.types import SIZES, is_float, is_signed
from clew.protocol._constants import CaptureContext, CaptureOperation, CaptureType

__all__ = ["Place", "Value", "from_bits", "interpret"]

Value = int | float | bytes | None

_Op = CaptureOperation
_REGISTER: Final = int(_Op.REGISTER)
_U64_MASK: Final = (1 << 64) - 1
_FLOATS: Final = {CaptureType.F32: struct.Struct("<f"), CaptureType.F64: struct.Struct("<d")}
_INDEFINITE: Final = -1 << 63
"""What the processor makes of a floating-point number that no integer of 64 bits is (Intel SDM, CVTTSD2SI)."""


class Place(Protocol):
    """Where something is taken: the registers of a thread, its memory, and what is known of it."""

    def register(self, number: int) -> int | None:
        """A general register, u64, by the architecture's number; None where it is not known."""

    def vector(self, number: int) -> int | None:
        """The low 64 bits of a vector register; None where they are not known."""

    def context(self, what: CaptureContext) -> Value:
        """What is asked of the place beside that; None where it is not known."""

    def kept(self, field: int) -> Value:
        """A field that was kept when the call began that has returned; None where there is none."""

    def descriptor_path(self, descriptor: int) -> bytes | None:
        """Where a descriptor of the process leads to; None where there is none."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory from an address on: as much of it as can be read."""


def interpret(form: Form, place: Place) -> tuple[Value, ...] | None:
    """The values of a form's fields at a place; None where its condition does not hold."""
    values: list[Value] = []
    for one in form.instructions:
        # Most forms have little else.
        if one.operation == _REGISTER:
            word = place.register(one.immediate)
            values.append(None if word is None else word & _U64_MASK)
        else:
            values.append(_do(form, one, values, place))
    if form.condition is not None and not values[form.condition]:
        return None
    return tuple(values[field] for field in form.fields)


def _do(form: Form, one: Instruction, values: Sequence[Value], place: Place) -> Value:
    operation, kind = one.operation, one.kind
    match operation:
        case _Op.CONSTANT:
            return from_bits(one.immediate, kind)
        case _Op.VECTOR:
            bits = place.vector(one.immediate)
            return None if bits is None else from_bits(bits, kind)
        case _Op.CONTEXT:
            return place.context(CaptureContext(one.immediate))
        case _Op.KEPT:
            return place.kept(one.immediate & 0xFFFFFFFF)
        case _Op.BACKTRACE:
            # Only the runtime has what it takes.
            return None
        case _Op.LITERAL:
            start = one.immediate & 0xFFFFFFFF
            return form.data[start : start + (one.immediate >> 32)]
    # Of which type they are the form's check knows.
    a: Any = values[one.a]
    b: Any = values[one.b] if one.b < len(values) else None
    if operation == _Op.LOGICAL_AND:
        return None if a is None else 0 if not a else None if b is None else int(bool(b))
    if operation == _Op.LOGICAL_OR:
        return None if a is None else 1 if a else None if b is None else int(bool(b))
    if a is None:
        return None
    match operation:
        case _Op.LOAD:
            return _load(place, a, kind)
        case _Op.STRING:
            return _read_string(place, a, one.immediate)
        case _Op.WORDS:
            return _read_words(place, a, one.immediate)
        case _Op.CONVERT:
            return _convert(a, kind)
        case _Op.NEGATE:
            return _wrap(-a, kind)
        case _Op.COMPLEMENT:
            return _wrap(~a, kind)
        case _Op.LOGICAL_NOT:
            return int(not a)
        case _Op.DESCRIPTOR_PATH:
            path = place.descriptor_path(a)
            return None if path is None else path[: one.immediate]
    if b is None:
        return None
    match operation:
        case _Op.BYTES:
            size_bytes = min(b, one.immediate)
            found = place.read(a, size_bytes)
            return found if len(found) == size_bytes else None
        case _Op.TEXT_EQUAL | _Op.EQUAL:
            return int(a == b)
        case _Op.TEXT_MATCH:
            return int(matches(a, b))
        case _Op.NOT_EQUAL:
            return int(a != b)
        case _Op.LESS:
            return int(a < b)
        case _Op.LESS_EQUAL:
            return int(a <= b)
    return _float_arithmetic(operation, a, b, kind) if is_float(kind) else _arithmetic(operation, a, b, kind)


def _read_words(place: Place, address: int, limit_bytes: int) -> bytes | None:
    found = b""
    while len(found) < limit_bytes:
        word = place.read((address + len(found)) & (1 << 64) - 1, WORD_BYTES)
        if len(word) < WORD_BYTES:
            return None
        if not any(word):
            break
        found += word
    return found


def _arithmetic(operation: CaptureOperation, a: int, b: int, kind: CaptureType) -> Value:
    match operation:
        case _Op.ADD:
            return _wrap(a + b, kind)
        case _Op.SUBTRACT:
            return _wrap(a - b, kind)
        case _Op.MULTIPLY:
            return _wrap(a * b, kind)
        case _Op.DIVIDE | _Op.REMAINDER:
            if not b:
                return None
            # Towards zero, as C has it; what does not fit is wrapped.
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return _wrap(quotient if operation == _Op.DIVIDE else a - quotient * b, kind)
        case _Op.BIT_AND:
            return _wrap(a & b, kind)
        case _Op.BIT_OR:
            return _wrap(a | b, kind)
        case _Op.BIT_XOR:
            return _wrap(a ^ b, kind)
    # Of the count so many bits matter as the processor looks at.
    count = b & 8 * SIZES[kind] - 1
    return _wrap(a << count if operation == _Op.SHIFT_LEFT else a >> count, kind)


def _float_arithmetic(operation: CaptureOperation, a: float, b: float, kind: CaptureType) -> Value:
    match operation:
        case _Op.ADD:
            return _wrap(a + b, kind)
        case _Op.SUBTRACT:
            return _wrap(a - b, kind)
        case _Op.MULTIPLY:
            return _wrap(a * b, kind)
    if b:
        return _wrap(a / b, kind)
    if not a or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _convert(value: int | float, kind: CaptureType) -> Value:
    if is_float(kind):
        return _wrap(float(value), kind) if isinstance(value, float) or kind == CaptureType.F64 else _to_single(value)
    if isinstance(value, float):
        value = int(value) if math.isfinite(value) and -(2.0**63) <= value < 2.0**63 else _INDEFINITE
    return _wrap(value, kind)


def _to_single(value: int) -> float:
    """An integer as f32, rounded once: by way of f64 it would be rounded twice."""
    n_dropped = abs(value).bit_length() - 24
    if n_dropped <= 0:
        return float(value)
    quotient, rest = divmod(abs(value), 1 << n_dropped)
    half = 1 << n_dropped - 1
    quotient += int(rest > half or (rest == half and quotient & 1))
    return math.copysign(float(quotient << n_dropped), value)


def _wrap(value: int | float, kind: CaptureType) -> Value:
    """The value that fits into a type: an integer's low bits, a floating-point number rounded."""
    if kind == CaptureType.F64:
        return float(value)
    if kind == CaptureType.F32:
        single = _FLOATS[kind]
        try:
            rounded: float = single.unpack(single.pack(value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
        return rounded
    bits = 8 * SIZES[kind]
    value = int(value) & (1 << bits) - 1
    return value - (1 << bits) if is_signed(kind) and value >> bits - 1 else value


def from_bits(bits: int, kind: CaptureType) -> Value:
    """The value whose bits are the low ones of a number."""
    if not is_float(kind):
        return _wrap(bits, kind)
    layout = _FLOATS[kind]
    value: float = layout.unpack((bits & (1 << 64) - 1).to_bytes(8, "little")[: layout.size])[0]
    return value


def _load(place: Place, address: int, kind: CaptureType) -> Value:
    found = place.read(address, SIZES[kind])
    return from_bits(int.from_bytes(found, "little"), kind) if len(found) == SIZES[kind] else None


def _read_string(place: Place, address: int, max_bytes: int) -> Value:
    """The bytes up to a zero byte, or as many as may be taken; missing where memory ends before either."""
    found = place.read(address, max_bytes)
    text, zero, _ = found.partition(b"\0")
    return text if zero or len(found) == max_bytes else None
