"""Evaluates the expressions of DWARF that unwinders meet (DWARF 5, 2.5): numbers, registers, memory, arithmetic.

Runs in the controller. An expression comes from a file, and what it reads from the target: both may be nonsense, and
the number of steps is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from clew.binary.dwarf_reader import DwarfReader

__all__ = ["evaluate"]

MAX_STEPS: Final = 256
MAX_DEPTH: Final = 64
_MASK: Final = (1 << 64) - 1

_LIT0, _LIT31, _BREG0, _BREG31 = 0x30, 0x4F, 0x70, 0x8F
_CONSTANTS: Final = {
    0x08: (1, False),
    0x09: (1, True),
    0x0A: (2, False),
    0x0B: (2, True),
    0x0C: (4, False),
    0x0D: (4, True),
    0x0E: (8, False),
    0x0F: (8, True),
}
"""DW_OP_const1u to DW_OP_const8s: bytes, and whether they are signed."""


def evaluate(
    expression: bytes,
    registers: Mapping[int, int],
    read: Callable[[int, int], int | None],
    initial: tuple[int, ...] = (),
) -> int | None:
    """The value on top of the stack at the end, of 64 bits; None where it makes no sense, or can't be had.

    `registers` are by DWARF's numbers; `read(address, size_bytes)` reads memory, None if it can't be read; `initial` is
    what the stack begins with.
    """
    try:
        return _Machine(expression, registers, read, initial).run()
    except (IndexError, ValueError):
        return None


class _Machine:
    def __init__(
        self,
        expression: bytes,
        registers: Mapping[int, int],
        read: Callable[[int, int], int | None],
        initial: tuple[int, ...],
    ) -> None:
        self._reader = DwarfReader(expression, 0, len(expression))
        self._end = len(expression)
        self._registers, self._read = registers, read
        self._stack = list(initial)

    def run(self) -> int:
        steps = 0
        while self._reader.at < self._end:
            steps += 1
            if steps > MAX_STEPS or len(self._stack) > MAX_DEPTH:
                raise ValueError("it does not end")
            value = self._do(self._reader.word(1))
            if value is not None:
                self._stack.append(value & _MASK)
        return self._stack[-1]

    def _do(self, op: int) -> int | None:
        """Do one operation; what it leaves on the stack."""
        reader, stack = self._reader, self._stack
        if _LIT0 <= op <= _LIT31:
            return op - _LIT0
        if _BREG0 <= op <= _BREG31:
            return self._register(op - _BREG0) + reader.signed_number()
        if op in _CONSTANTS:
            size_bytes, is_signed = _CONSTANTS[op]
            value = reader.word(size_bytes)
            return value - (1 << 8 * size_bytes) if is_signed and value >> 8 * size_bytes - 1 else value
        if op in _TWO:
            second, first = stack.pop(), stack.pop()
            return _TWO[op](first, second)
        match op:
            case 0x03:  # DW_OP_addr
                return reader.word(8)
            case 0x10:  # DW_OP_constu
                return reader.number()
            case 0x11:  # DW_OP_consts
                return reader.signed_number()
            case 0x92:  # DW_OP_bregx
                return self._register(reader.number()) + reader.signed_number()
            case 0x06:  # DW_OP_deref
                return self._load(stack.pop(), 8)
            case 0x94:  # DW_OP_deref_size
                return self._load(stack.pop(), reader.word(1))
            case 0x12:  # DW_OP_dup
                return stack[-1]
            case 0x13:  # DW_OP_drop
                stack.pop()
            case 0x14:  # DW_OP_over
                return stack[-2]
            case 0x15:  # DW_OP_pick
                return stack[-1 - reader.word(1)]
            case 0x16:  # DW_OP_swap
                stack[-1], stack[-2] = stack[-2], stack[-1]
            case 0x17:  # DW_OP_rot
                stack[-1], stack[-2], stack[-3] = stack[-2], stack[-3], stack[-1]
            case 0x19:  # DW_OP_abs
                return abs(_signed(stack.pop()))
            case 0x1F:  # DW_OP_neg
                return -stack.pop()
            case 0x20:  # DW_OP_not
                return ~stack.pop()
            case 0x23:  # DW_OP_plus_uconst
                return stack.pop() + reader.number()
            case 0x28:  # DW_OP_bra
                distance = _signed(reader.word(2), 16)
                reader.at += distance if stack.pop() else 0
            case 0x2F:  # DW_OP_skip
                reader.at += _signed(reader.word(2), 16)
            case 0x96:  # DW_OP_nop
                pass
            case _:
                raise ValueError(f"operation {op:#x} is not known")
        return None

    def _register(self, number: int) -> int:
        if number not in self._registers:
            raise ValueError(f"register {number} is not known")
        return self._registers[number]

    def _load(self, address: int, size_bytes: int) -> int:
        value = self._read(address, size_bytes) if size_bytes in (1, 2, 4, 8) else None
        if value is None:
            raise ValueError(f"{size_bytes} bytes at {address:#x} can't be read")
        return value


def _signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def _divide(first: int, second: int) -> int:
    # Towards zero, as C does it.
    dividend, divisor = _signed(first), _signed(second)
    if not divisor:
        raise ValueError("division by zero")
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _remainder(first: int, second: int) -> int:
    if not second:
        raise ValueError("division by zero")
    return first % second


def _shift_right(first: int, second: int) -> int:
    return _signed(first) >> min(second, 63)


_TWO: Final[Mapping[int, Callable[[int, int], int]]] = {
    0x1A: lambda first, second: first & second,
    0x1B: _divide,
    0x1C: lambda first, second: first - second,
    0x1D: _remainder,
    0x1E: lambda first, second: first * second,
    0x21: lambda first, second: first | second,
    0x22: lambda first, second: first + second,
    0x24: lambda first, second: first << second if second < 64 else 0,
    0x25: lambda first, second: first >> min(second, 64),
    0x26: _shift_right,
    0x27: lambda first, second: first ^ second,
    0x29: lambda first, second: int(_signed(first) == _signed(second)),
    0x2A: lambda first, second: int(_signed(first) >= _signed(second)),
    0x2B: lambda first, second: int(_signed(first) > _signed(second)),
    0x2C: lambda first, second: int(_signed(first) <= _signed(second)),
    0x2D: lambda first, second: int(_signed(first) < _signed(second)),
    0x2E: lambda first, second: int(_signed(first) != _signed(second)),
}
"""What takes two values: DW_OP_and, div, minus, mod, mul, or, plus, shl, shr, shra, xor, eq to ne."""
