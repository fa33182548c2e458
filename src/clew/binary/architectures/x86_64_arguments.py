"""Where C's functions on x86-64 find their arguments, and leave their result (System V ABI, AMD64 supplement, 3.2.3).

Runs in the controller. Types come from a file that may be hostile: what is too large to be in registers is not looked
into, and what is not known is said to be so, as is all that comes behind it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from clew.binary.arguments import Signature, Signed
from clew.binary.debug_names import Attribute
from clew.binary.debug_types import DebugType, TypeKind
from clew.binary.variable_places import Constant, Operation, Place, Register, Stored, Term, Vector
from clew.dataclass import dataclass

__all__ = ["place_arguments"]

_INTEGERS: Final = (5, 4, 1, 2, 8, 9)
"""DWARF's numbers of rdi, rsi, rdx, rcx, r8, r9."""
_RESULTS: Final = (0, 1)
"""Of rax and rdx."""
_STACK_POINTER: Final = 7
_FIRST_ON_STACK: Final = 8
_N_VECTORS: Final = 8
_MAX_BYTES: Final = 16
"""Of what may be in registers."""
_MAX_DEPTH: Final = 16
_MAX_ALIGNMENT: Final = 64


class _Class(IntEnum):
    NONE = 0
    SSE = 1
    INTEGER = 2
    MEMORY = 3


class _UnknownError(Exception):
    """How something is passed is not known here."""


@dataclass(frozen=True)
class _Passed:
    """By what a type is passed: a class for each eight bytes, or (MEMORY,)."""

    classes: tuple[_Class, ...]
    size_bytes: int
    alignment: int

    @property
    def is_memory(self) -> bool:
        return _Class.MEMORY in self.classes

    def count(self, kind: _Class) -> int:
        """How many registers of a kind it takes."""
        return sum(one == kind for one in self.classes)


def place_arguments(signature: Signature) -> Signed:
    """Raises BinaryError where types make no sense."""
    try:
        result, hides_pointer = _place_result(signature.result)
    except _UnknownError as error:
        why = str(error)
        return Signed([f"behind a result of which {why}"] * len(signature.parameters), why)
    places: list[Place | str] = []
    n_integers, n_vectors, on_stack = int(hides_pointer), 0, _FIRST_ON_STACK
    why = ""
    for parameter, by_reference in zip(signature.parameters, signature.by_reference, strict=True):
        if why:
            places.append(f"behind an argument of which {why}")
            continue
        try:
            if by_reference:
                passed = _Passed((_Class.INTEGER,), 8, 8)
            else:
                passed = _pass(parameter)
        except _UnknownError as error:
            why = str(error)
            places.append(why)
            continue
        wants = passed.count(_Class.INTEGER), passed.count(_Class.SSE)
        fits = n_integers + wants[0] <= len(_INTEGERS) and n_vectors + wants[1] <= _N_VECTORS
        if not passed.size_bytes:
            places.append(Place(None, ()))
        elif passed.is_memory or not fits:
            on_stack += -(on_stack - _FIRST_ON_STACK) % max(passed.alignment, 8)
            address: Term = Operation("add", Register(_STACK_POINTER), Constant(on_stack))
            on_stack += -(-passed.size_bytes // 8) * 8
            places.append(Place(Stored(address, 8) if by_reference else address))
        else:
            words: list[Term] = []
            for kind in passed.classes:
                if kind == _Class.INTEGER:
                    words.append(Register(_INTEGERS[n_integers]))
                    n_integers += 1
                else:
                    words.append(Vector(n_vectors))
                    n_vectors += 1
            places.append(Place(words[0]) if by_reference else Place(None, tuple(words)))
    return Signed(places, result)


def _place_result(result: DebugType) -> tuple[Place, bool]:
    """Where it is, and whether the caller says where it is to be, in front of all arguments."""
    if result.kind == TypeKind.VOID:
        return Place(None, ()), False
    if result.is_passed_by_reference:
        return Place(Register(_RESULTS[0])), True
    passed = _pass(result)
    if passed.is_memory:
        if result.kind == TypeKind.FLOAT:
            raise _UnknownError("its type, long double, is returned in a register that is not read")
        return Place(Register(_RESULTS[0])), True
    integers, vectors = iter(_RESULTS), iter(range(2))
    words = (Register(next(integers)) if one == _Class.INTEGER else Vector(next(vectors)) for one in passed.classes)
    return Place(None, tuple(words)), False


def _pass(whole: DebugType) -> _Passed:
    size = whole.size_bytes
    if size is None:
        raise _UnknownError(f"the size of its type, {whole}, is not known")
    if whole.kind == TypeKind.ARRAY:
        raise _UnknownError(f"its type, {whole}, is a vector's")
    alignment = _align(whole, 0)
    if size > _MAX_BYTES:
        return _Passed((_Class.MEMORY,), size, alignment)
    classes = [_Class.NONE] * -(-size // 8)
    _classify(whole, 0, classes, 0)
    if _Class.MEMORY in classes:
        return _Passed((_Class.MEMORY,), size, alignment)
    # Padding alone is passed as if there were a floating-point number.
    return _Passed(tuple(one or _Class.SSE for one in classes), size, alignment)


def _classify(whole: DebugType, offset: int, classes: list[_Class], depth: int) -> None:
    """Merge what lies at an offset into the classes of the eight bytes that it is in."""
    kind, size = whole.kind, whole.size_bytes
    if depth > _MAX_DEPTH or size is None:
        raise _UnknownError(f"how its type, {whole}, is passed is not known")
    if kind in (TypeKind.RECORD, TypeKind.UNION):
        for member in whole.members:
            if member.n_bits is not None:
                _merge(classes, (8 * offset + member.bit_offset) // 64, _Class.INTEGER)
            elif member.type.size_bytes:
                _classify(member.type, offset + member.offset, classes, depth + 1)
        return
    if kind == TypeKind.ARRAY:
        _refuse_vectors(whole)
        element = whole.target
        step = element.size_bytes or 0
        for at in range(0, size if step > 0 and size <= _MAX_BYTES else 0, max(step, 1)):
            _classify(element, offset + at, classes, depth + 1)
        return
    unit = size // 2 if kind == TypeKind.COMPLEX else size
    if unit and offset % min(unit, 16) != 0:
        _merge(classes, offset // 8, _Class.MEMORY)
        return
    one = _Class.INTEGER
    if kind in (TypeKind.FLOAT, TypeKind.COMPLEX):
        one = _Class.SSE
        if unit > 8:
            if "long double" not in str(whole):
                raise _UnknownError(f"how its type, {whole}, is passed is not known")
            one = _Class.MEMORY
    for at in range(offset // 8, -(-(offset + size) // 8)):
        _merge(classes, at, one)


def _merge(classes: list[_Class], index: int, one: _Class) -> None:
    if index >= len(classes):
        raise _UnknownError("a member lies outside of its structure")
    classes[index] = max(classes[index], one)


def _refuse_vectors(whole: DebugType) -> None:
    if whole.is_vector:
        raise _UnknownError(f"its type, {whole}, is a vector's")


def _align(whole: DebugType, depth: int) -> int:
    kind = whole.kind
    told = whole.number(Attribute.ALIGNMENT) or 1
    if depth > _MAX_DEPTH:
        return 1
    if kind in (TypeKind.RECORD, TypeKind.UNION):
        found = max((_align(member.type, depth + 1) for member in whole.members), default=1)
    elif kind == TypeKind.ARRAY:
        found = _align(whole.target, depth + 1)
    else:
        size = whole.size_bytes or 1
        found = size // 2 if kind == TypeKind.COMPLEX else size
    return min(max(found, told), _MAX_ALIGNMENT)
