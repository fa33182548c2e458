"""What DWARF calls things by number, as far as variables and their types need it (DWARF 5, 7.5 to 7.7).

Runs in the controller.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Attribute", "Encoding", "Tag"]


class Tag(IntEnum):
    """Kinds of entries (DW_TAG_*)."""

    ARRAY_TYPE = 0x01
    CLASS_TYPE = 0x02
    ENUMERATION_TYPE = 0x04
    FORMAL_PARAMETER = 0x05
    LEXICAL_BLOCK = 0x0B
    MEMBER = 0x0D
    POINTER_TYPE = 0x0F
    REFERENCE_TYPE = 0x10
    COMPILE_UNIT = 0x11
    STRUCTURE_TYPE = 0x13
    SUBROUTINE_TYPE = 0x15
    TYPEDEF = 0x16
    UNION_TYPE = 0x17
    UNSPECIFIED_PARAMETERS = 0x18
    INHERITANCE = 0x1C
    INLINED_SUBROUTINE = 0x1D
    SUBRANGE_TYPE = 0x21
    BASE_TYPE = 0x24
    CONST_TYPE = 0x26
    ENUMERATOR = 0x28
    SUBPROGRAM = 0x2E
    VARIABLE = 0x34
    VOLATILE_TYPE = 0x35
    RESTRICT_TYPE = 0x37
    NAMESPACE = 0x39
    UNSPECIFIED_TYPE = 0x3B
    PARTIAL_UNIT = 0x3C
    RVALUE_REFERENCE_TYPE = 0x42
    ATOMIC_TYPE = 0x47
    SKELETON_UNIT = 0x4A


class Attribute(IntEnum):
    """What is said of entries (DW_AT_*)."""

    SIBLING = 0x01
    LOCATION = 0x02
    NAME = 0x03
    BYTE_SIZE = 0x0B
    BIT_OFFSET = 0x0C
    BIT_SIZE = 0x0D
    STMT_LIST = 0x10
    LOW_PC = 0x11
    HIGH_PC = 0x12
    LANGUAGE = 0x13
    CONST_VALUE = 0x1C
    INLINE = 0x20
    UPPER_BOUND = 0x2F
    ABSTRACT_ORIGIN = 0x31
    COUNT = 0x37
    CALLING_CONVENTION = 0x36
    DATA_MEMBER_LOCATION = 0x38
    DECL_LINE = 0x3B
    DECLARATION = 0x3C
    EXTERNAL = 0x3F
    ENCODING = 0x3E
    FRAME_BASE = 0x40
    SPECIFICATION = 0x47
    ENTRY_PC = 0x52
    TYPE = 0x49
    VIRTUALITY = 0x4C
    RANGES = 0x55
    SIGNATURE = 0x69
    DATA_BIT_OFFSET = 0x6B
    LINKAGE_NAME = 0x6E
    STR_OFFSETS_BASE = 0x72
    ADDR_BASE = 0x73
    RNGLISTS_BASE = 0x74
    DWO_NAME = 0x76
    ALIGNMENT = 0x88
    NORETURN = 0x87
    DEFAULTED = 0x8B
    LOCLISTS_BASE = 0x8C
    GNU_VECTOR = 0x2107
    GNU_DWO_NAME = 0x2130


class Encoding(IntEnum):
    """How a base type is encoded (DW_ATE_*)."""

    ADDRESS = 0x01
    BOOLEAN = 0x02
    COMPLEX_FLOAT = 0x03
    FLOAT = 0x04
    SIGNED = 0x05
    SIGNED_CHAR = 0x06
    UNSIGNED = 0x07
    UNSIGNED_CHAR = 0x08
    UTF = 0x10
