"""How values lie in an event of a CTF trace: the members of its structures, one behind the other, without gaps.

Pure. What the metadata says (tsdl.py) and what the streams hold (ctf_records.py) both come from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final

from clew.capture.types import is_float, is_signed
from clew.dataclass import dataclass
from clew.export.probes.event_types import Field, Shape
from clew.export.probes.names import Names, make_identifier
from clew.protocol._constants import CaptureType

__all__ = ["MISSING_TEXT", "NONE_MISSING", "NUMBERS", "CtfStruct", "Form", "Member", "Number", "lay_out"]


@dataclass(frozen=True)
class Number:
    """How a number is stored: as numpy names it, little endian; `base` in which it is shown."""

    dtype: str
    base: int = 10


class Form(Enum):
    """What a member is: one number; bytes up to a zero byte; as many numbers as a member in front of it says;
    numbers with names."""

    NUMBER = "number"
    STRING = "string"
    SEQUENCE = "sequence"
    STRUCT = "struct"


@dataclass(frozen=True)
class Member:
    """A member; `length_name` of a sequence, `names` of a structure's own members."""

    name: str
    form: Form
    number: Number = Number("<u8")
    length_name: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class CtfStruct:
    """The members of some fields, in their order. CTF 1.8 has no missing values: they are stored as 0, texts as
    MISSING_TEXT, and `missing`, a string behind all others, names them (NONE_MISSING: none); it is not there where none
    can be missing.
    """

    members: tuple[Member, ...]
    missing: str


def _number(kind: CaptureType) -> Number:
    bits = 64 if kind.name.endswith("64") else 32 if kind.name.endswith("32") else 16 if "16" in kind.name else 8
    letter = "f" if is_float(kind) else "i" if is_signed(kind) else "u"
    return Number(f"<{letter}{bits // 8}")


NUMBERS: Final = {kind: _number(kind) for kind in CaptureType if kind is not CaptureType.TEXT}
NONE_MISSING: Final = "-"
MISSING_TEXT: Final = "<missing>"
"""Neither is empty: babeltrace2 2.0.4 shows strings of earlier events where later ones have empty ones."""
_HEXADECIMAL: Final = Number("<u8", 16)


class _MemberNames:
    """Gives names of members of one structure.

    They begin with an underscore, which readers take away (CTF 1.8, C.1.2): so no name is a word of TSDL. babeltrace2
    2.0.4 compares names before that with others behind it: no name is another one with one more underscore.
    """

    def __init__(self) -> None:
        self._names = Names(lambda name: "_" + make_identifier(name))

    def give(self, name: str) -> str:
        given = self._names.give(name)
        self._names.take(given[1:])
        self._names.take("_" + given)
        return given


def lay_out(fields: Iterable[Field], own: Sequence[str] = ()) -> CtfStruct:
    """The structure of some fields; `own` are members of it that are there anyway."""
    names = _MemberNames()
    for name in own:
        names.give(name)
    listed = [*fields]
    members = [_lay_out_one(one, names) for one in listed]
    missing = "" if all(one.is_present for one in listed) else names.give("missing")
    return CtfStruct(tuple(members), missing)


def _lay_out_one(one: Field, names: _MemberNames) -> Member:
    name = names.give(one.name)
    if one.type is Shape.POINTER:
        return Member(name, Form.NUMBER, _HEXADECIMAL)
    if one.type is Shape.BYTES:
        return Member(name, Form.SEQUENCE, Number("<u1", 16), names.give(f"{name}_length"))
    if one.type is Shape.BACKTRACE:
        return Member(name, Form.SEQUENCE, _HEXADECIMAL, names.give(f"{name}_length"))
    if one.type is Shape.REGISTERS:
        inner = _MemberNames()
        return Member(name, Form.STRUCT, _HEXADECIMAL, names=tuple(inner.give(part) for part in one.members))
    if one.type is CaptureType.TEXT:
        return Member(name, Form.STRING)
    return Member(name, Form.NUMBER, NUMBERS[one.type])
