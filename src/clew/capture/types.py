"""Types of C as captures have them: names, sizes, and what two operands become.

Runs in the controller. As the System V ABI has it: `long` and pointers have 64 bits, `char` has a sign.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from clew.binary.debug_types import DebugType, TypeKind
from clew.capture.syntax import TypeName
from clew.protocol._constants import CaptureType

__all__ = ["SIZES", "CType", "common_type", "data_type", "find_type", "is_float", "is_plain", "is_signed", "promote"]

SIZES: Final = {
    CaptureType.I8: 1,
    CaptureType.U8: 1,
    CaptureType.I16: 2,
    CaptureType.U16: 2,
    CaptureType.I32: 4,
    CaptureType.U32: 4,
    CaptureType.I64: 8,
    CaptureType.U64: 8,
    CaptureType.F32: 4,
    CaptureType.F64: 8,
}
"""Bytes of each type but text."""

_NAMES: Final = {
    "char": CaptureType.I8,
    "bool": CaptureType.U8,
    "float": CaptureType.F32,
    "f32": CaptureType.F32,
    "double": CaptureType.F64,
    "f64": CaptureType.F64,
    "pointer": CaptureType.U64,
    "size_t": CaptureType.U64,
    "uintptr_t": CaptureType.U64,
    "ssize_t": CaptureType.I64,
    "intptr_t": CaptureType.I64,
    "void": CaptureType.U8,
    "_Bool": CaptureType.U8,
    **{f"{name}{bits}": CaptureType[f"U{bits}"] for name in ("u", "uint") for bits in (8, 16, 32, 64)},
    **{f"{name}{bits}": CaptureType[f"I{bits}"] for name in ("i", "s", "int") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": CaptureType[f"U{bits}"] for bits in (8, 16, 32, 64)},
    **{f"int{bits}_t": CaptureType[f"I{bits}"] for bits in (8, 16, 32, 64)},
}
_C_WORDS: Final = {"char": 8, "short": 16, "int": 32, "long": 64}


class CType(NamedTuple):
    """A type: how a value of it is kept, and, of a pointer, what it points at, `data` where debugging information tells
    that."""

    kind: CaptureType
    target: CType | None = None
    data: DebugType | None = None

    @property
    def size_bytes(self) -> int:
        return SIZES[self.kind]

    @property
    def is_pointer(self) -> bool:
        """Whether it is known to point at something of a type."""
        return self.target is not None or self.data is not None

    @property
    def step_bytes(self) -> int:
        """How far a pointer goes by 1; as GNU C has it, 1 where it points at nothing of a size. Raises BinaryError."""
        if self.data is not None:
            return self.data.size_bytes or 1
        return 1 if self.target is None else self.target.size_bytes


def data_type(data: DebugType) -> CType | None:
    """How a value of a type known from debugging information is kept; None: not as one value. Raises BinaryError."""
    kind, size = data.kind, data.size_bytes
    match kind:
        case TypeKind.POINTER:
            return CType(CaptureType.U64, data=data.target)
        case TypeKind.FLOAT:
            found = {4: CaptureType.F32, 8: CaptureType.F64}.get(size or 0)
            return None if found is None else CType(found)
        case TypeKind.BOOL | TypeKind.INTEGER | TypeKind.ENUM:
            sign = "I" if kind != TypeKind.BOOL and data.is_signed else "U"
            return CType(CaptureType[f"{sign}{8 * size}"]) if size in (1, 2, 4, 8) else None
    return None


def find_type(name: TypeName) -> CType | None:
    """The type of that name; None if there is none."""
    kind = _NAMES.get(name.name)
    if kind is None:
        kind = _find_words(name.name.split())
    if kind is None:
        return None
    found = CType(kind)
    for _ in range(name.n_pointers):
        found = CType(CaptureType.U64, found)
    return found


def _find_words(words: list[str]) -> CaptureType | None:
    """`unsigned long`, `long long int`, ..."""
    signs = [word for word in words if word in ("signed", "unsigned")]
    sizes = [word for word in words if word in _C_WORDS]
    if len(signs) + len(sizes) != len(words) or len(signs) > 1 or not words:
        return None
    sizes = [word for word in sizes if word != "int"] or ["int"]
    if len(set(sizes)) > 1 or len(sizes) > (2 if sizes[0] == "long" else 1):
        return None
    sign = "U" if signs == ["unsigned"] else "I"
    return CaptureType[f"{sign}{_C_WORDS[sizes[0]]}"]


def is_plain(name: TypeName) -> bool:
    """Whether a type's name is made of words that C has for numbers: debugging information has no other of it."""
    return all(word in _NAMES or word in _C_WORDS or word in ("signed", "unsigned") for word in name.name.split())


def is_float(kind: CaptureType) -> bool:
    """Whether it is a floating-point number."""
    return kind in (CaptureType.F32, CaptureType.F64)


def is_signed(kind: CaptureType) -> bool:
    """Whether it is an integer with a sign."""
    return kind in (CaptureType.I8, CaptureType.I16, CaptureType.I32, CaptureType.I64)


def promote(kind: CaptureType) -> CaptureType:
    """What an operand becomes that stands alone (C11, 6.3.1.1)."""
    return CaptureType.I32 if kind < CaptureType.I32 else kind


def common_type(left: CaptureType, right: CaptureType) -> CaptureType:
    """What two operands become (C11, 6.3.1.8): the one whose type has the greater number decides, from i32 on."""
    return max(promote(left), promote(right))
