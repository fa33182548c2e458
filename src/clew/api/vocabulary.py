"""The words that descriptions may use where only some have a meaning, and their limits.

Runs in the controller. `schema.json` beside this file has them for other programs. Reads nothing.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "DIRECTIONS",
    "EFFECTS",
    "ERROR_CONVENTIONS",
    "FILTERS",
    "FORMAT_KINDS",
    "HIDDEN",
    "INLINE",
    "MAX_ARGUMENTS",
    "MAX_ERRNO",
    "MAX_STRUCT_BYTES",
    "MOMENTS",
    "PARAMETER_TYPES",
    "POINTERS",
    "RAW_TYPES",
    "RESULT",
    "SHARED",
    "SIDES",
    "TABLE_KINDS",
    "WRITTEN",
]

RESULT: Final = -1
"""The index of the result, where the others are arguments."""

MAX_ERRNO: Final = 4095
"""Negative results of system calls down to minus this are errors."""

MAX_ARGUMENTS: Final = 32
"""How many arguments a function may have here."""

FILTERS: Final = (
    *("File", "Directory", "Network", "Process", "Thread", "Memory", "Synchronisation", "DynamicLoading", "Time"),
    *("User", "Crypto", "Compression", "Database", "Terminal", "IPC", "Signal", "Other"),
)
PARAMETER_TYPES: Final = ("Info", "Entity", "Reference", "EntityModifier")
MAX_STRUCT_BYTES: Final = 4096
"""No structure is larger, and nothing of it lies further from its beginning."""

RAW_TYPES: Final = (
    *("int", "uint", "long", "ulong", "hex", "pointer", "fd", "path", "string", "buffer", "size", "offset", "mode"),
    *("pid", "tid", "uid", "gid", "signal", "clock", "flags", "enum", "timespec", "sockaddr", "struct"),
    *("wide_string", "sigset", "bits", "octets", "device", "address4", "limit", "request", "wait_status"),
    *("float", "raw"),
)
POINTERS: Final = frozenset(
    ("pointer", "path", "string", "wide_string", "buffer", "timespec", "sockaddr", "struct", "sigset", "bits", "octets")
)
"""Those of RAW_TYPES that are addresses of something."""

INLINE: Final = POINTERS - {"pointer"}
"""Those of POINTERS that a structure can also have in itself, instead of an address."""

HIDDEN: Final = ("secret", "data")
"""Why something is not told: it is a secret, or it is data and nobody wants any."""

DIRECTIONS: Final = ("in", "out", "inout")
SHARED: Final = ("Files", "Directory", "Memory", "Thread")
"""What of a process its child may share; a thread is one of its own."""

WRITTEN: Final = ("failed", "positive")
SIDES: Final = ("in", "out", "change")
MOMENTS: Final = ("entry", "exit")
ERROR_CONVENTIONS: Final = ("negative_errno", "minus_one_errno", "null_errno", "none")
EFFECTS: Final = (
    *("LinkReference", "UseReference", "DestroyReference", "ModifyReference", "TakeReference"),
    *("PassReferences", "ReceiveReferences"),
    *("UseEntity", "RemoveEntity", "RenameEntity", "ExchangeEntities", "LinkEntity", "GiveAddress", "SetDirectory"),
    *("StartTask", "EndProcess", "EndThread", "MapMemory", "UseMemory", "UnmapMemory"),
)
TABLE_KINDS: Final = ("flags", "enum")
FORMAT_KINDS: Final = ("printf", "scanf")
