"""What a description says: functions, their parameters, and tables of flags, as frozen classes.

Runs in the controller. These are the words of the JSON files, `schema.json` beside this file has them for other
programs; how files are checked is in `checking.py`, how they become this in `reading.py`. Reads nothing.
"""

from __future__ import annotations

from typing import Final

from clew.dataclass import dataclass, field

__all__ = [
    "DIRECTIONS",
    "EFFECTS",
    "ERROR_CONVENTIONS",
    "FILTERS",
    "MAX_ARGUMENTS",
    "MAX_ERRNO",
    "MOMENTS",
    "PARAMETER_TYPES",
    "POINTERS",
    "RAW_TYPES",
    "RESULT",
    "SHARED",
    "TABLE_KINDS",
    "Case",
    "Condition",
    "Description",
    "Effect",
    "Flag",
    "FlagTable",
    "Function",
    "Library",
    "Parameter",
    "Variants",
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
RAW_TYPES: Final = (
    *("int", "uint", "long", "ulong", "hex", "pointer", "fd", "path", "string", "buffer", "size", "offset", "mode"),
    *("pid", "tid", "uid", "gid", "signal", "clock", "flags", "enum", "timespec", "sockaddr", "iovec", "struct"),
)
POINTERS: Final = frozenset({"pointer", "path", "string", "buffer", "timespec", "sockaddr", "iovec", "struct"})
"""Those of RAW_TYPES that are addresses of something."""

DIRECTIONS: Final = ("in", "out", "inout")
SHARED: Final = ("Files", "Directory", "Memory")
"""What of a process its child may share."""

MOMENTS: Final = ("entry", "exit")
ERROR_CONVENTIONS: Final = ("negative_errno", "minus_one_errno", "null_errno", "none")
EFFECTS: Final = (
    *("LinkReference", "UseReference", "DestroyReference", "ModifyReference", "TakeReference"),
    *("PassReferences", "ReceiveReferences"),
    *("UseEntity", "RemoveEntity", "RenameEntity", "ExchangeEntities", "LinkEntity", "GiveAddress", "SetDirectory"),
    *("StartTask", "EndProcess", "MapMemory", "UseMemory", "UnmapMemory"),
)
TABLE_KINDS: Final = ("flags", "enum")


@dataclass(frozen=True)
class Flag:
    """A name of a table. With a `mask` it is a value of the field that the mask cuts out, not a bit of its own."""

    name: str
    value: int
    mask: int | None = None


@dataclass(frozen=True)
class FlagTable:
    """Names of bits and fields (`kind` is flags), or of single values (enum), in the order in which they are told."""

    name: str
    kind: str
    flags: tuple[Flag, ...]

    def find(self, name: str) -> Flag | None:
        """The flag of that name."""
        return next((flag for flag in self.flags if flag.name == name), None)


@dataclass(frozen=True)
class Condition:
    """A parameter is there only if argument `index` has all bits of one of `flags`, names of that argument's table."""

    index: int
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Parameter:
    """An argument, or the result where `index` is RESULT.

    `c_type` is the type as the kernel or a header has it, `raw_type` one of RAW_TYPES. `flags` names a table. `count`
    (elements) and `size_index` (bytes) are indexes of the parameter that says how much a pointer leads to, RESULT for
    the result; where that parameter is a pointer, the number it leads to counts. `room_index` is that of the parameter
    that says how many bytes there is room for, where `size_index` can say more than that.
    """

    index: int
    name: str
    c_type: str
    raw_type: str
    type: str = "Info"
    entity_type: str | None = None
    flags: str | None = None
    direction: str = "in"
    when: str = "entry"
    count: int | None = None
    size_index: int | None = None
    room_index: int | None = None
    conditional: Condition | None = None

    @property
    def is_pointer(self) -> bool:
        """Whether the value is an address."""
        return self.raw_type in POINTERS


@dataclass(frozen=True)
class Effect:
    """What a call does to things: `parameters` are indexes, first of the reference, then of what it refers to.

    `role` is what is told of it. `at`: for each of the parameters that of the directory its path begins at, or None.
    `size_index`: which parameter says how many bytes are moved. Of a new thing `entity_kind` is what it is, `parent`
    which parameter stands for what it belongs to; `is_each`: each reference of an array stands for one of its own.
    `close_on_exec`: whether a descriptor does not stay when a program is executed, or by which flags. Nothing happens
    without `conditional`, nor with `unless`. `shares`: what of a process its child has, not a copy of it.
    """

    kind: str
    parameters: tuple[int, ...]
    role: str | None = None
    at: tuple[int | None, ...] = ()
    size_index: int | None = None
    entity_kind: str | None = None
    parent: int | None = None
    is_each: bool = False
    close_on_exec: bool | Condition = False
    conditional: Condition | None = None
    unless: Condition | None = None
    shares: tuple[tuple[str, bool | Condition], ...] = ()


@dataclass(frozen=True)
class Case:
    """How a call looks where the choosing argument has one of `values`.

    `parameters` replace those of the same index. `n_arguments`: only so many are arguments then; None: all. `effects`
    stand in place of the function's; None: those hold.
    """

    values: tuple[int | str, ...]
    parameters: tuple[Parameter, ...] = ()
    n_arguments: int | None = None
    label: str | None = None
    effects: tuple[Effect, ...] | None = None


@dataclass(frozen=True)
class Variants:
    """Cases by the value of argument `by`, of which only the bits of `mask` count."""

    by: int
    cases: tuple[Case, ...]
    mask: int | None = None


@dataclass(frozen=True)
class Function:
    """A function, or a system call where `numbers`, by architecture, has any.

    `parameters` are in the order of their indexes, the result last; None: nobody knows them. `since` is the version
    of the kernel or library that has it first.
    """

    name: str
    filter: str
    parameters: tuple[Parameter, ...] | None
    numbers: dict[str, int] = field(default_factory=dict)
    error: str = "none"
    label: str | None = None
    since: str | None = None
    variants: Variants | None = None
    effects: tuple[Effect, ...] = ()

    def has_failed(self, result: int | None) -> bool:
        """Whether a result, with its sign, says by itself that the call failed: only those of system calls do."""
        return self.error == "negative_errno" and result is not None and -MAX_ERRNO <= result < 0

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters but the result; none where they are not known."""
        return tuple(parameter for parameter in self.parameters or () if parameter.index != RESULT)

    @property
    def result(self) -> Parameter | None:
        """The result, if it is described."""
        return next((parameter for parameter in self.parameters or () if parameter.index == RESULT), None)


@dataclass(frozen=True)
class Library:
    """Functions of the libraries whose file's name `name` matches: a pattern with *, ? and []."""

    name: str
    functions: tuple[Function, ...]


@dataclass(frozen=True)
class Description:
    """What a file says. `source` tells where its facts are from."""

    system_calls: tuple[Function, ...] = ()
    libraries: tuple[Library, ...] = ()
    flag_tables: tuple[FlagTable, ...] = ()
    source: str | None = None
