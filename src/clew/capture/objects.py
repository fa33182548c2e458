"""Objects of the program that an expression names: variables, members, elements; and the values that lie in them.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from clew.binary.debug_types import DebugType, TypeKind
from clew.binary.variable_places import Constant, Stored, Term, Vector
from clew.capture.builder import I32, U64, FormBuilder, Made, TermBuilder
from clew.capture.scope import Known, Scope
from clew.capture.syntax import Index, Member, Node, ThreadLocal, Unary, Variable
from clew.capture.types import SIZES, CType, data_type, is_float
from clew.dataclass import dataclass, replace
from clew.errors import BinaryError, CaptureError
from clew.protocol._constants import CaptureOperation, CaptureType

__all__ = ["Object", "Objects"]

_Op, _Type = CaptureOperation, CaptureType
_UNSIGNED: Final = {1: _Type.U8, 2: _Type.U16, 4: _Type.U32, 8: _Type.U64}
_RECORDS: Final = (TypeKind.RECORD, TypeKind.UNION)


@dataclass(frozen=True)
class Object:
    """Something of a type: in memory at `address`; or, where that is None, from byte `offset` of `words` on.

    Of a bit-field `bits` are the first, counted from the address or from that byte, and their number.
    """

    type: DebugType | CType
    address: Made | None
    words: Sequence[Term | None] = ()
    terms: TermBuilder | None = None
    offset: int = 0
    bits: tuple[int, int] | None = None


class Objects:
    """Those of one form. `make` gives the value of a node; `registers` are the names of registers in forms."""

    def __init__(
        self, builder: FormBuilder, scope: Scope | None, registers: Sequence[str], make: Callable[[Node], Made]
    ) -> None:
        self._builder, self._scope, self._make = builder, scope, make
        self._registers = registers

    def scope(self, at: int) -> Scope:
        """What knows the program's names. Raises CaptureError where nothing does."""
        if self._scope is None:
            raise self._builder.error("the program's variables and types are known at a place in its code only", at)
        return self._scope

    def value_of(self, node: Node) -> Made:
        """The value of what a node names. Raises CaptureError."""
        return self._about(node, lambda: self._read(self.locate(node), node.at))

    def address_of(self, node: Node) -> Made:
        """`&` in front of a node. Raises CaptureError."""
        return self._about(node, lambda: self._address(self.locate(node), node.at))

    def _about(self, node: Node, work: Callable[[], Made]) -> Made:
        try:
            return work()
        except BinaryError as error:
            raise self._builder.error(error.reason, node.at) from error

    def locate(self, node: Node) -> Object:
        """What a node names. Raises CaptureError, BinaryError."""
        match node:
            case Variable():
                return self._known(f"var:{node.name}", lambda: self.scope(node.at).find_variable(node.name), node.at)
            case ThreadLocal():
                name = node.name if node.name == "errno" and not node.image else f"tls:{node.name}"
                find = self.scope(node.at).find_thread_local
                return self._known(name, lambda: find(node.image, node.name), node.at)
            case Member():
                return self._member(node)
            case Index():
                index = self._make(node.index)
                base = self._make(node.operand)
                return self._element(base, index, node.at)
            case Unary() if node.operator == "*":
                return self._at_pointer(self._make(node.operand), node.at)
        raise self._builder.error("this has no place in memory: name a variable, a member or an element", node.at)

    def _known(self, name: str, find: Callable[[], Known], at: int) -> Object:
        try:
            known = find()
        except BinaryError as error:
            raise self._builder.error(f"{name}: {error.reason}", at) from error
        except CaptureError as error:
            raise self._builder.error(f"{name}: {error.message}", at) from error
        numbers = {name: number for number, name in enumerate(self._registers)}
        terms = TermBuilder(self._builder, known.registers, numbers, at)
        address = known.place.address
        found = Object(known.type, None if address is None else terms.make(address), known.place.words, terms)
        return self._see_through(found, at)

    def _see_through(self, one: Object, at: int) -> Object:
        """What a reference of C++'s refers to; anything else itself."""
        if isinstance(one.type, CType) or not one.type.is_reference:
            return one
        return self._at_pointer(self._read(one, at), at)

    def _at_pointer(self, pointer: Made, at: int) -> Object:
        """What a pointer points at; a word where it is not known to be one."""
        target: DebugType | CType = pointer.type.data or pointer.type.target or U64
        return Object(target, self._builder.pointer(pointer, at))

    def _element(self, base: Made, index: Made, at: int) -> Object:
        if index.type.is_pointer and not base.type.is_pointer:
            base, index = index, base
        if not base.type.is_pointer:
            raise self._builder.error("only elements of arrays and of what pointers point at have numbers", at)
        return self._at_pointer(self.step(base, self._builder.pointer(index, at), _Op.ADD), at)

    def step(self, base: Made, n: Made, operation: CaptureOperation) -> Made:
        """A pointer, so many of what it points at further on, or back."""
        builder = self._builder
        size = base.type.step_bytes
        if size != 1:
            n = builder.add(_Op.MULTIPLY, U64, n.number, builder.constant(size, _Type.U64).number)
        return builder.add(operation, base.type, base.number, n.number)

    def _member(self, node: Member) -> Object:
        builder = self._builder
        if node.is_arrow:
            pointer = self._make(node.operand)
            if not pointer.type.is_pointer:
                raise builder.error("-> needs a pointer to a structure: var:NAME, or a cast to struct NAME *", node.at)
            base = self._at_pointer(pointer, node.at)
        else:
            base = self.locate(node.operand)
        whole = base.type
        if isinstance(whole, CType) or whole.kind not in _RECORDS:
            hint = ", but a pointer: use ->" if not isinstance(whole, CType) and whole.kind == TypeKind.POINTER else ""
            raise builder.error(f"{_name(whole)} is no structure{hint}", node.at)
        member = whole.find_member(node.name)
        if member is None:
            raise builder.error(f"{whole} has no member {node.name}", node.at)
        bits = None if member.n_bits is None else (member.bit_offset, member.n_bits)
        if bits is not None:
            return replace(base, type=member.type, bits=bits)
        if base.address is not None:
            found = replace(base, type=member.type, address=builder.offset(base.address, member.offset))
        else:
            found = replace(base, type=member.type, offset=base.offset + member.offset)
        return self._see_through(found, node.at)

    def _address(self, one: Object, at: int) -> Made:
        if one.address is None or one.bits is not None:
            raise self._builder.error("this has no address: it is a bit-field, or in a register", at)
        if isinstance(one.type, CType):
            return Made(one.address.number, CType(_Type.U64, one.type))
        return Made(one.address.number, CType(_Type.U64, data=one.type))

    def _read(self, one: Object, at: int) -> Made:
        builder = self._builder
        whole = one.type
        if isinstance(whole, CType):
            kept = whole
        else:
            kind = whole.kind
            if kind in (TypeKind.ARRAY, TypeKind.FUNCTION):
                # As in C: the address of the first element, or of the function.
                address = self._address(one, at)
                return Made(address.number, CType(_Type.U64, data=whole.target if kind == TypeKind.ARRAY else whole))
            single = data_type(whole)
            if single is None:
                way_out = ": name a member of it" if kind in _RECORDS else ""
                raise builder.error(f"{whole} is no single value{way_out}", at)
            kept = single
        if one.bits is not None:
            return self._read_bits(one, kept, one.bits, at)
        if one.address is not None:
            return builder.load(one.address, kept)
        return self._read_word(one, kept, at)

    def _read_word(self, one: Object, kept: CType, at: int) -> Made:
        """A value that is not in memory."""
        builder = self._builder
        word, inside = self._word(one, one.offset, at), one.offset % 8
        if inside + SIZES[kept.kind] > 8:
            raise builder.error("it lies across two registers, which is not read", at)
        if isinstance(word, Vector) and is_float(kept.kind) and not inside:
            return builder.add(_Op.VECTOR, kept, immediate=word.number)
        if is_float(kept.kind):
            if isinstance(word, Constant):
                return builder.constant(word.value >> 8 * inside, kept.kind)
            if isinstance(word, Stored) and word.size_bytes >= inside + SIZES[kept.kind]:
                assert one.terms is not None
                return builder.load(builder.offset(one.terms.make(word.address), inside), kept)
            raise builder.error("a floating-point number in that register, or that half of one, is not read", at)
        value = self._value(one, word, at)
        if inside:
            value = builder.add(_Op.SHIFT_RIGHT, U64, value.number, builder.constant(8 * inside, _Type.U64).number)
        return builder.convert(value, kept)

    def _word(self, one: Object, offset: int, at: int) -> Term:
        word = one.words[offset // 8] if offset // 8 < len(one.words) else None
        if word is None:
            raise self._builder.error("this part of it was optimised away", at)
        return word

    def _value(self, one: Object, word: Term, at: int) -> Made:
        assert one.terms is not None
        return one.terms.make(word)

    def _read_bits(self, one: Object, kept: CType, bits: tuple[int, int], at: int) -> Made:
        """A bit-field: its bits moved to the upper end of a word, and down again, so that its sign goes with them."""
        builder = self._builder
        first, n = bits
        is_signed = kept.kind in (_Type.I8, _Type.I16, _Type.I32, _Type.I64)
        if one.address is None:
            place = 8 * one.offset + first
            if place % 64 + n > 64:
                raise builder.error("it lies across two registers, which is not read", at)
            word, inside = self._value(one, self._word(one, place // 8, at), at), place % 64
        else:
            unit = 8 * SIZES[kept.kind]
            start = first // unit * unit
            if first + n > start + unit:
                # A packed one lies across what it is declared as.
                start = first // 8 * 8
                unit = next((size for size in (8, 16, 32, 64) if first + n <= start + size), 0)
                if not unit:
                    raise builder.error("a bit-field across nine bytes is not read", at)
            address = builder.offset(one.address, start // 8)
            word = builder.convert(builder.load(address, CType(_UNSIGNED[unit // 8])), U64)
            inside = first - start
        up = builder.constant(64 - n - inside, _Type.U64)
        raised = builder.add(_Op.SHIFT_LEFT, U64, word.number, up.number)
        wide = builder.convert(raised, CType(_Type.I64 if is_signed else _Type.U64))
        down = builder.constant(64 - n, wide.type.kind)
        found = builder.add(_Op.SHIFT_RIGHT, wide.type, wide.number, down.number)
        # What an int holds all values of becomes one (C11, 6.3.1.1).
        return builder.convert(found, I32 if n < 32 or (n == 32 and is_signed) else kept)


def _name(whole: DebugType | CType) -> str:
    return whole.kind.name.lower() if isinstance(whole, CType) else str(whole)
