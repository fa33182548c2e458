"""Where variables are, as terms over registers and memory: what the expressions of their locations come to.

Runs in the controller. DWARF 5, 2.5 and 2.6, as compilers write it: no branches and no calls. An expression comes from
a file that may be hostile: the number of steps is bounded, and one that makes no sense, or is not known here, raises
BinaryError.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from clew.binary.dwarf_reader import DwarfReader
from clew.dataclass import dataclass, replace
from clew.errors import BinaryError

__all__ = [
    "Constant",
    "Frame",
    "Operation",
    "Place",
    "Register",
    "Stored",
    "Term",
    "ThreadPointer",
    "Vector",
    "read_place",
]

MAX_STEPS: Final = 128
MAX_DEPTH: Final = 32
MAX_WORDS: Final = 8
_MASK: Final = (1 << 64) - 1

_LIT0, _LIT31, _REG0, _REG31, _BREG0, _BREG31 = 0x30, 0x4F, 0x50, 0x6F, 0x70, 0x8F
_CONSTANTS: Final = {0x08: 1, 0x09: -1, 0x0A: 2, 0x0B: -2, 0x0C: 4, 0x0D: -4, 0x0E: 8, 0x0F: -8}
"""DW_OP_const1u to DW_OP_const8s: bytes, negative where they are signed."""
_TWO: Final = {
    0x1A: "and",
    0x1B: "divide_signed",
    0x1C: "subtract",
    0x1D: "remainder",
    0x1E: "multiply",
    0x21: "or",
    0x22: "add",
    0x24: "shift_left",
    0x25: "shift_right",
    0x26: "shift_right_signed",
    0x27: "xor",
}
_TLS: Final = (0x9B, 0xE0)
"""DW_OP_form_tls_address, DW_OP_GNU_push_tls_address."""
_ENTRY_VALUE: Final = (0xA3, 0xF3)
_PIECE, _PIECES = 0x93, (0x93, 0x9D)
_POWERS: Final = {1: 1, 2: 2, 4: 4}


@dataclass(frozen=True)
class Constant:
    """A number of 64 bits, without a sign."""

    value: int


@dataclass(frozen=True)
class Register:
    """A general register, by DWARF's number."""

    number: int


@dataclass(frozen=True)
class Vector:
    """The low half of a vector register, by its own number."""

    number: int


@dataclass(frozen=True)
class ThreadPointer:
    """Where the thread's control block is."""


@dataclass(frozen=True)
class Stored:
    """What is in memory at an address, `size_bytes` of it, without a sign."""

    address: Term
    size_bytes: int


@dataclass(frozen=True)
class Operation:
    """`add`, `subtract`, `multiply`, `divide_signed`, `remainder`, `and`, `or`, `xor`, `shift_left`, `shift_right`,
    `shift_right_signed`, `not_greater` of two terms, 64 bits."""

    name: str
    left: Term
    right: Term


Term = Constant | Register | Vector | ThreadPointer | Stored | Operation


@dataclass(frozen=True)
class Place:
    """Where a variable is: in memory at `address`; or, where that is None, its bytes are `words`, eight in each.

    A word that was optimised away is None.
    """

    address: Term | None
    words: tuple[Term | None, ...] = ()


@dataclass(frozen=True)
class Frame:
    """What an expression may count from, at one place in code.

    `base` is the function's DW_AT_frame_base, as an expression; `find_cfa` gives the frame's address, as a term, or
    raises BinaryError. `vectors` is DWARF's number of the first vector register, and `n_vectors` how many of them are
    known. `is_entry`: the function begins here, so the values on entry are those that are in place. `thread_local`
    gives the address of what is at an offset of the file's thread-local block, `address` that of a link address;
    `indexed` the link address of a number in the unit's table, `integer` the bytes of the integer type at an offset of
    the unit and whether it has a sign, None where that is no such type.
    """

    path: Path
    base: bytes | None
    find_cfa: Callable[[], Term]
    n_registers: int
    vectors: int
    n_vectors: int
    is_entry: bool
    thread_local: Callable[[int], Term]
    address: Callable[[int], Term]
    indexed: Callable[[int], int]
    integer: Callable[[int], tuple[int, bool] | None]


def read_place(expression: bytes, frame: Frame) -> Place:
    """Where a variable is whose location is `expression`. Raises BinaryError: nowhere, or in a way not known here."""
    if not expression:
        raise BinaryError(frame.path, "it was optimised away here")
    try:
        return _Machine(expression, frame, 0).run()
    except IndexError as error:
        raise BinaryError(frame.path, "where it is makes no sense") from error


class _Machine:
    def __init__(self, expression: bytes, frame: Frame, depth: int) -> None:
        if depth > 4:
            raise IndexError
        self._reader, self._end = DwarfReader(expression, 0, len(expression)), len(expression)
        self._frame, self._depth = frame, depth
        self._stack: list[Term] = []
        self._value: list[Term | None] | None = None
        """What it is, where that is no longer asked about: the words of a value."""
        self._pieces: list[Term | None] = []

    def run(self) -> Place:
        steps = 0
        while self._reader.at < self._end:
            steps += 1
            if steps > MAX_STEPS or len(self._stack) > MAX_DEPTH:
                raise IndexError
            op = self._reader.word(1)
            if op in _PIECES:
                self._end_piece(op)
            elif self._value is not None:
                raise IndexError
            else:
                self._do(op)
        if self._pieces:
            return Place(None, tuple(self._pieces))
        if self._value is not None:
            return Place(None, tuple(self._value))
        return Place(self._stack[-1])

    def _end_piece(self, op: int) -> None:
        """What was there until now is a word of the value."""
        size = self._reader.number()
        is_last = self._reader.at >= self._end
        if op != _PIECE or len(self._pieces) >= MAX_WORDS or not (size == 8 or (is_last and 0 < size < 8)):
            raise self._refuse("it is in pieces that are no whole words")
        if self._value is None and self._stack:
            # A piece in memory: what is at the end of it is not needed, and may not be there.
            self._value = [Stored(self._stack[-1], _POWERS.get(size, 8))]
        self._pieces += self._value if self._value else [None]
        self._value = None
        self._stack.clear()

    def _do(self, op: int) -> None:
        reader, stack, frame = self._reader, self._stack, self._frame
        if _LIT0 <= op <= _LIT31:
            stack.append(Constant(op - _LIT0))
        elif _REG0 <= op <= _REG31 or op == 0x90:
            self._value = [self._register(op - _REG0 if op != 0x90 else reader.number())]
        elif _BREG0 <= op <= _BREG31:
            stack.append(self._sum(self._general(op - _BREG0), reader.signed_number()))
        elif op in _CONSTANTS:
            size = _CONSTANTS[op]
            value = reader.word(abs(size))
            if size < 0 and value >> -8 * size - 1:
                value -= 1 << -8 * size
            stack.append(Constant(value & _MASK))
        elif op in _TWO:
            right, left = stack.pop(), stack.pop()
            stack.append(_fold(_TWO[op], left, right))
        elif op in _TLS:
            offset = stack.pop()
            if not isinstance(offset, Constant):
                raise IndexError
            stack.append(frame.thread_local(offset.value))
        elif op in _ENTRY_VALUE:
            self._entry_value(reader.block(reader.number()))
        else:
            self._do_more(op)

    def _do_more(self, op: int) -> None:
        reader, stack, frame = self._reader, self._stack, self._frame
        match op:
            case 0x03:  # addr
                # Behind it, what belongs to a thread is only an offset.
                value = reader.word(8)
                is_local = reader.at < self._end and self._peek() in _TLS
                stack.append(Constant(value) if is_local else frame.address(value))
            case 0xA1 | 0xFB:  # addrx
                stack.append(frame.address(frame.indexed(reader.number())))
            case 0xA2 | 0xFC:  # constx
                stack.append(Constant(frame.indexed(reader.number()) & _MASK))
            case 0x06:  # deref
                stack.append(Stored(stack.pop(), 8))
            case 0x94:  # deref_size
                size = reader.word(1)
                if size not in (1, 2, 4, 8):
                    raise IndexError
                stack.append(Stored(stack.pop(), size))
            case 0x10:  # constu
                stack.append(Constant(reader.number() & _MASK))
            case 0x11:  # consts
                stack.append(Constant(reader.signed_number() & _MASK))
            case 0x12:  # dup
                stack.append(stack[-1])
            case 0x13:  # drop
                stack.pop()
            case 0x14:  # over
                stack.append(stack[-2])
            case 0x16:  # swap
                stack[-1], stack[-2] = stack[-2], stack[-1]
            case 0x1F:  # neg
                stack.append(_fold("subtract", Constant(0), stack.pop()))
            case 0x20:  # not
                stack.append(_fold("xor", stack.pop(), Constant(_MASK)))
            case 0x23:  # plus_uconst
                stack.append(self._sum(stack.pop(), reader.number()))
            case 0x91:  # fbreg
                stack.append(self._sum(self._frame_base(), reader.signed_number()))
            case 0x92:  # bregx
                number = reader.number()
                stack.append(self._sum(self._general(number), reader.signed_number()))
            case 0x96:  # nop
                pass
            case 0x9C:  # call_frame_cfa
                stack.append(frame.find_cfa())
            case 0xA8 | 0xA9 | 0xF7 | 0xF9:  # convert, reinterpret
                stack.append(self._as_type(stack.pop(), reader.number()))
            case 0xA5 | 0xF5:  # regval_type
                held = self._general(reader.number())
                stack.append(self._as_type(held, reader.number()))
            case 0xA6 | 0xF6:  # deref_type
                size = reader.word(1)
                if size not in (1, 2, 4, 8):
                    raise IndexError
                stack.append(self._as_type(Stored(stack.pop(), size), reader.number()))
            case 0x9E:  # implicit_value
                data = reader.block(reader.number())
                if len(data) > 8 * MAX_WORDS:
                    raise self._refuse("its value is too long")
                starts = range(0, max(len(data), 1), 8)
                self._value = [Constant(int.from_bytes(data[at : at + 8], "little")) for at in starts]
            case 0x9F:  # stack_value
                self._value = [stack.pop()]
            case 0xA0 | 0xF2:  # implicit_pointer
                raise self._refuse("what it points at was optimised away")
            case _:
                raise self._refuse(f"where it is needs operation {op:#x}, which is not known here")

    def _as_type(self, term: Term, offset: int) -> Term:
        """A value as one of an integer type: its low bits, widened as that has it. 0: as a word."""
        found = (8, False) if not offset else self._frame.integer(offset)
        if found is None or found[0] not in (1, 2, 4, 8):
            raise self._refuse("it is worked out by floating-point numbers, which is not read")
        size, is_signed = found
        if size == 8:
            return term
        if not is_signed:
            return Operation("and", term, Constant((1 << 8 * size) - 1))
        up = Constant(64 - 8 * size)
        return Operation("shift_right_signed", Operation("shift_left", term, up), up)

    def _entry_value(self, inner: bytes) -> None:
        if not self._frame.is_entry:
            raise self._refuse("it is known only where the function begins")
        place = _Machine(inner, self._frame, self._depth + 1).run()
        self._stack.append(self._only(place))

    def _frame_base(self) -> Term:
        if self._frame.base is None:
            raise self._refuse("its function has no frame")
        return self._only(_Machine(self._frame.base, replace(self._frame, base=None), self._depth + 1).run())

    def _only(self, place: Place) -> Term:
        """The number that an expression inside of another one comes to."""
        found = place.words[0] if place.address is None else place.address
        if found is None or isinstance(found, Vector):
            raise IndexError
        return found

    def _register(self, number: int) -> Term:
        frame = self._frame
        if frame.vectors <= number < frame.vectors + frame.n_vectors:
            return Vector(number - frame.vectors)
        return self._general(number)

    def _general(self, number: int) -> Term:
        if not 0 <= number < self._frame.n_registers:
            raise self._refuse(f"it is in a register that is not read (DWARF's {number})")
        return Register(number)

    def _sum(self, term: Term, distance: int) -> Term:
        return _fold("add", term, Constant(distance & _MASK))

    def _peek(self) -> int:
        at = self._reader.at
        found = self._reader.word(1)
        self._reader.at = at
        return found

    def _refuse(self, why: str) -> BinaryError:
        return BinaryError(self._frame.path, why)


def _fold(name: str, left: Term, right: Term) -> Term:
    """An operation, worked out where it is of numbers, or adds to a sum with one."""
    if name == "add" and isinstance(right, Constant):
        if not right.value:
            return left
        if isinstance(left, Constant):
            return Constant(left.value + right.value & _MASK)
        if isinstance(left, Operation) and left.name == "add" and isinstance(left.right, Constant):
            return _fold("add", left.left, Constant(left.right.value + right.value & _MASK))
    return Operation(name, left, right)
