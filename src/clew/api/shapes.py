"""Which keys the objects of a description file have, and what their values are.

Runs in the controller. `checking.py` holds files against this; what depends on more than one place of a file is said
there.
"""

from __future__ import annotations

from typing import Final

from clew.api.ring_entries import FIELDS
from clew.api.vocabulary import (
    DIRECTIONS,
    EFFECTS,
    ERROR_CONVENTIONS,
    FILTERS,
    FORMAT_KINDS,
    MAX_ARGUMENTS,
    MAX_STRUCT_BYTES,
    MOMENTS,
    PARAMETER_TYPES,
    RAW_TYPES,
    RESULT,
    SHARED,
    SIDES,
    TABLE_KINDS,
    WRITTEN,
)
from clew.dataclass import dataclass

__all__ = [
    "CASE",
    "CONDITION",
    "DOCUMENT",
    "EFFECT",
    "EFFECT_PARAMETERS",
    "FLAG_TABLE",
    "FUNCTION",
    "LIBRARY",
    "MEMBER",
    "MEMBER_CONDITION",
    "PARAMETER",
    "SHARES",
    "STRUCT",
    "SYSTEM_CALL",
    "VARIANTS",
    "Key",
]


@dataclass(frozen=True)
class Key:
    """A key: the Python type of its value (a list or object is looked into by who knows what is in it).

    `words`: the strings that are allowed; none: all but the empty one, and that one where `may_be_empty`. `least` and
    `most`: the range of a number.
    """

    type: type
    is_needed: bool = False
    words: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    may_be_empty: bool = False


_TEXT: Final = Key(str)
_NAME: Final = Key(str, is_needed=True)
_MASK: Final = Key(int, least=1)
_ARGUMENT: Final = Key(int, is_needed=True, least=0, most=MAX_ARGUMENTS - 1)
_PARAMETER: Final = Key(int, least=RESULT, most=MAX_ARGUMENTS - 1)
_BYTES: Final = Key(int, is_needed=True, least=0, most=MAX_STRUCT_BYTES)
_ELEMENTS: Final = Key(int, least=1, most=MAX_STRUCT_BYTES)
_RAW_TYPE: Final = Key(str, is_needed=True, words=RAW_TYPES)

DOCUMENT: Final = {
    "$schema": _TEXT,
    "Source": _TEXT,
    "FlagTables": Key(dict),
    "Structs": Key(dict),
    "SystemCalls": Key(list),
    "RingOperations": Key(list),
    "Libraries": Key(list),
}
FLAG_TABLE: Final = {
    "Kind": Key(str, is_needed=True, words=TABLE_KINDS),
    "Values": Key(list, is_needed=True),
    "Macro": _TEXT,
    "Masks": Key(list),
}
STRUCT: Final = {
    "Size": Key(int, is_needed=True, least=1, most=MAX_STRUCT_BYTES),
    "Members": Key(list, is_needed=True),
    "Plain": Key(bool),
    "More": Key(bool),
    "Length": _TEXT,
    "Align": Key(int, least=1, most=64),
}
MEMBER: Final = {
    "Name": _NAME,
    "Offset": _BYTES,
    "Size": _BYTES,
    "CType": _NAME,
    "RawType": _RAW_TYPE,
    "Leads": Key(bool),
    "Flags": _TEXT,
    "Struct": _TEXT,
    "Count": _TEXT,
    "Elements": _ELEMENTS,
    "Bytes": _TEXT,
    "If": Key(list),
    "Many": Key(bool),
    "Detail": Key(bool),
    "Side": Key(str, words=SIDES),
    "Total": _TEXT,
    "Secret": Key(bool),
    "Bits": Key(list),
}
MEMBER_CONDITION: Final = {"Member": _NAME, "Values": Key(list, is_needed=True), "Mask": _MASK, "Not": Key(bool)}
LIBRARY: Final = {"Name": _NAME, "Functions": Key(list, is_needed=True), "Prefix": _TEXT}
_FUNCTION: Final = {
    "Name": _NAME,
    "Filter": Key(str, is_needed=True, words=FILTERS),
    "Label": _TEXT,
    "Since": _TEXT,
    "Error": Key(str, words=ERROR_CONVENTIONS),
    "Unreturned": Key(int),
    "Parameters": Key(list),
    "Variants": Key(dict),
    "Effects": Key(list),
    "Told": Key(list),
}
SYSTEM_CALL: Final = _FUNCTION | {"Number": Key(dict, is_needed=True)}
RING_OPERATION: Final = _FUNCTION | {"Opcode": Key(int, is_needed=True, least=0, most=255)}
FUNCTION: Final = _FUNCTION | {"Varargs": Key(dict), "SystemCall": _TEXT}
VARARGS: Final = {"Format": _ARGUMENT, "Kind": Key(str, words=FORMAT_KINDS)}
PARAMETER: Final = {
    "Index": Key(int, is_needed=True, least=RESULT, most=MAX_ARGUMENTS - 1),
    "Name": _NAME,
    "CType": _NAME,
    "RawType": _RAW_TYPE,
    "Type": Key(str, words=PARAMETER_TYPES),
    "EntityType": _TEXT,
    "Flags": _TEXT,
    "Direction": Key(str, words=DIRECTIONS),
    "When": Key(str, words=MOMENTS),
    "Count": _PARAMETER,
    "Bytes": _PARAMETER,
    "Room": _PARAMETER,
    "Struct": _TEXT,
    "Elements": _ELEMENTS,
    "Ended": Key(bool),
    "Total": _PARAMETER,
    "Coded": Key(int, least=0, most=MAX_ARGUMENTS - 1),
    "Behind": Key(str, may_be_empty=True),
    "Written": Key(str, words=WRITTEN),
    "Field": Key(str, words=tuple(sorted(FIELDS))),
    "Named": Key(bool),
    "Called": _TEXT,
    "Answered": Key(bool),
    "Conditional": Key(dict),
    "Secret": Key(bool),
}
CONDITION: Final = {"Index": _ARGUMENT, "Member": _TEXT, "Flags": Key(list, is_needed=True)}
VARIANTS: Final = {"By": _ARGUMENT, "Mask": _MASK, "Cases": Key(list, is_needed=True)}
CASE: Final = {
    "Values": Key(list, is_needed=True),
    "Label": _TEXT,
    "Arguments": Key(int, least=0, most=MAX_ARGUMENTS),
    "Parameters": Key(list),
    "Variants": Key(dict),
    "Effects": Key(list),
    "Told": Key(list),
}
_SWITCH: Final = Key(object)
"""True, false or a condition."""
SHARES: Final = dict.fromkeys(SHARED, _SWITCH)
EFFECT: Final = {
    "Effect": Key(str, is_needed=True, words=EFFECTS),
    "Parameters": Key(list, is_needed=True),
    "Role": _TEXT,
    "At": Key(list),
    "Bytes": _PARAMETER,
    "Kind": _TEXT,
    "Parent": _PARAMETER,
    "Each": Key(bool),
    "Within": Key(bool),
    "CloseOnExec": _SWITCH,
    "Conditional": Key(dict),
    "Unless": Key(dict),
    "Shares": Key(dict),
    "Lost": Key(dict),
}
EFFECT_PARAMETERS: Final = {
    "LinkReference": (1, 2),
    "UseReference": (1, MAX_ARGUMENTS),
    "DestroyReference": (1, 2),
    "ModifyReference": (1, 2),
    "TakeReference": (3, 3),
    "PassReferences": (2, 2),
    "ReceiveReferences": (2, 2),
    "UseEntity": (1, MAX_ARGUMENTS),
    "RemoveEntity": (1, 1),
    "RenameEntity": (2, 2),
    "ExchangeEntities": (2, 2),
    "LinkEntity": (2, 2),
    "GiveAddress": (2, 2),
    "SetDirectory": (1, 1),
    "StartTask": (1, 1),
    "EndProcess": (0, 0),
    "EndThread": (0, 0),
    "MapMemory": (2, 3),
    "UseMemory": (2, 2),
    "UnmapMemory": (2, 2),
}
"""The least and the most parameters of each effect."""
