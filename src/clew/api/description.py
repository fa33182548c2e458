"""What a description says: functions, their parameters, and tables of flags, as frozen classes.

Runs in the controller. These are the words of the JSON files, `schema.json` beside this file has them for other
programs; how files are checked is in `checking.py`, how they become this in `reading.py`. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

from clew.api.vocabulary import MAX_ERRNO, POINTERS, RESULT
from clew.dataclass import dataclass, field

__all__ = [
    "Case",
    "Condition",
    "Description",
    "Effect",
    "Flag",
    "FlagTable",
    "Function",
    "Library",
    "Member",
    "MemberCondition",
    "Parameter",
    "Struct",
    "Variants",
]


@dataclass(frozen=True)
class Flag:
    """A name of a table. With a `mask` it is a value of the field that the mask cuts out, not a bit of its own."""

    name: str
    value: int
    mask: int | None = None


@dataclass(frozen=True)
class FlagTable:
    """Names of bits and fields (`kind` is flags), or of single values (enum), in the order in which they are told.

    Of a number that a `macro` of C makes of several it is told so; `masks` are the bits of each of its arguments.
    """

    name: str
    kind: str
    flags: tuple[Flag, ...]
    macro: str | None = None
    masks: tuple[int, ...] = ()

    def find(self, name: str) -> Flag | None:
        """The flag of that name."""
        return next((flag for flag in self.flags if flag.name == name), None)


@dataclass(frozen=True)
class Condition:
    """A parameter is there only if argument `index` has all bits of one of `flags`, names of that argument's table; or
    the `member` of what it leads to, where there is one."""

    index: int
    flags: tuple[str, ...]
    member: str | None = None


@dataclass(frozen=True)
class Parameter:
    """An argument, or the result where `index` is RESULT.

    `c_type` is the type as the kernel or a header has it, `raw_type` one of RAW_TYPES. `flags` names a table. `count`
    (elements) and `size_index` (bytes) are indexes of the parameter that says how much a pointer leads to, RESULT for
    the result; where that parameter is a pointer, the number it leads to counts. `room_index` is that of the parameter
    that says how many bytes there is room for, where `size_index` can say more than that.

    `struct` names what it leads to: one, or where `count`, `elements` (so many, always) or `is_ended` (until one that
    is 0) tell how many, an array. `total_index` is that of the parameter that says how many bytes were moved, of all
    that the structures lead to. `coded_index` is that of an argument that has how many bytes it leads to in its bits 16
    to 29. `behind`: what it leads to afterwards is told behind the result, under that name, which may be empty.
    `written`: it is written to only where the call fails (failed), or gives a number above 0 (positive). `hidden` is
    one of HIDDEN where it is not told, nor taken. `field`: of an operation of io_uring, which field of its entry it is.
    `is_named`: told as NAME=VALUE, where it is not 0. `called`: told as CALLED=VALUE, whatever it is. `is_answered`:
    what the call has written of a structure is told behind what it found there, as `{...} => {...}`.
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
    struct: str | None = None
    elements: int | None = None
    is_ended: bool = False
    total_index: int | None = None
    coded_index: int | None = None
    behind: str | None = None
    written: str | None = None
    hidden: str | None = None
    field: str | None = None
    is_named: bool = False
    called: str | None = None
    is_answered: bool = False

    @property
    def is_pointer(self) -> bool:
        """Whether the value is an address."""
        return self.raw_type in POINTERS

    @property
    def is_array(self) -> bool:
        """Whether it leads to several structures."""
        return self.count is not None or self.elements is not None or self.is_ended


@dataclass(frozen=True)
class MemberCondition:
    """A member is there only if the member `name`, of which the bits of `mask` count, has one of `values`: numbers, or
    names of its table. With `is_not` only if it has none of them."""

    name: str
    values: tuple[int | str, ...]
    mask: int | None = None
    is_not: bool = False


@dataclass(frozen=True)
class Member:
    """A member of a structure: `size` bytes from `offset` on. A size of 0: up to the structure's end.

    Where `leads` it is an address of what `raw_type` says, else that itself. `count` and `size_name` are names of the
    members that say how many elements or bytes there are; `elements` is how many of what it leads to, always; and of
    what `is_many` as many are in it as it has room for. It is there only if all `conditions` hold. `is_detail`: only
    told where all is wanted. `side` is where it is told of what is told twice: as an argument (in), or behind the
    result (out), and then only of what a call has left; change: before and behind, where it changes. `total_name`: the
    member that says how many bytes were moved, of all that it leads to. `hidden` is one of HIDDEN where it is not told,
    nor what it leads to taken. `bits`: it is only some of the number's, from the first of these on, so many.
    """

    name: str
    offset: int
    size: int
    c_type: str
    raw_type: str
    leads: bool = False
    flags: str | None = None
    struct: str | None = None
    count: str | None = None
    elements: int | None = None
    size_name: str | None = None
    conditions: tuple[MemberCondition, ...] = ()
    is_many: bool = False
    is_detail: bool = False
    side: str | None = None
    total_name: str | None = None
    hidden: str | None = None
    bits: tuple[int, int] | None = None

    @property
    def is_array(self) -> bool:
        """Whether it is, or leads to, several structures."""
        return self.is_many or self.count is not None or self.elements is not None


@dataclass(frozen=True)
class Struct:
    """A structure, or where `is_plain`, one nameless value. `size` bytes; where `length` names a member each is as long
    as that one says, and the next begins behind it, at a multiple of `align`. `has_more`: there is more than is
    described."""

    name: str
    size: int
    members: tuple[Member, ...]
    is_plain: bool = False
    has_more: bool = False
    length: str | None = None
    align: int = 1

    def find(self, name: str) -> Member | None:
        """The first member of that name."""
        return next((member for member in self.members if member.name == name), None)


@dataclass(frozen=True)
class Effect:
    """What a call does to things: `parameters` are indexes, first of the reference, then of what it refers to.

    `role` is what is told of it. `at`: for each of the parameters that of the directory its path begins at, or None.
    `size_index`: which parameter says how many bytes are moved. Of a new thing `entity_kind` is what it is, `parent`
    which parameter stands for what it belongs to; `is_each`: each reference of an array stands for one of its own;
    `is_within`: what a call within this one made last is it, if there is one.
    `close_on_exec`: whether a descriptor does not stay when a program is executed, or by which flags. Nothing happens
    without `conditional`, nor with `unless`. `shares`: what of a process its child has, not a copy of it. `lost`: with
    which flags some of what came was left out.
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
    lost: Condition | None = None
    is_within: bool = False


@dataclass(frozen=True)
class Case:
    """How a call looks where the choosing argument has one of `values`.

    `parameters` replace those of the same index. `n_arguments`: only so many are arguments then; None: all. `effects`
    and `told` stand in place of the function's; None: those hold. `variants` are cases within the case.
    """

    values: tuple[int | str, ...]
    parameters: tuple[Parameter, ...] = ()
    n_arguments: int | None = None
    label: str | None = None
    effects: tuple[Effect, ...] | None = None
    variants: Variants | None = None
    told: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Variants:
    """Cases by the value of argument `by`, of which only the bits of `mask` count."""

    by: int
    cases: tuple[Case, ...]
    mask: int | None = None


@dataclass(frozen=True)
class Function:
    """A function; a system call where `numbers`, by architecture, has any; or an operation of io_uring (`opcode`).

    `parameters` are in the order of their indexes, the result last; None: nobody knows them. `since` is the version
    of the kernel or library that has it first. `unreturned` is the result of a call that does not return since the
    process executes another program. `format_index`: the argument that is a format, of the kind `format_kind`, one of
    FORMAT_KINDS, which says what arguments are behind those that are named. `told`: the indexes of the arguments that
    are told, in that order; None: all, as they come. `call`: the system call that a function passes its arguments to,
    as which it is described but for `parameters`, which then are those that are its own.
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
    unreturned: int | None = None
    format_index: int | None = None
    opcode: int | None = None
    told: tuple[int, ...] | None = None
    format_kind: str = "printf"
    call: str | None = None

    def has_failed(self, result: int | None) -> bool:
        """Whether a result, with its sign, says by itself that the call failed: only those of system calls do."""
        return self.error == "negative_errno" and result is not None and -MAX_ERRNO <= result < 0

    @cached_property
    def is_always_same(self) -> bool:
        """Whether it looks the same whatever it is called with."""
        return self.variants is None and all(one.conditional is None for one in self.parameters or ())

    @cached_property
    def changes_world(self) -> bool:
        """Whether it changes what others stand for: who holds what, under which number or name."""
        return any(effect.kind not in _USES for effect in (*self.effects, *_effects_of(self.variants)))

    @cached_property
    def arguments(self) -> tuple[Parameter, ...]:
        """The parameters but the result; none where they are not known."""
        return tuple(parameter for parameter in self.parameters or () if parameter.index != RESULT)

    @cached_property
    def result(self) -> Parameter | None:
        """The result, if it is described."""
        return next((parameter for parameter in self.parameters or () if parameter.index == RESULT), None)

    @cached_property
    def arguments_behind(self) -> tuple[Parameter, ...]:
        """Those of the arguments that are told behind the result."""
        return tuple(parameter for parameter in self.arguments if parameter.behind is not None)


_USES: Final = frozenset(("UseReference", "UseEntity", "UseMemory"))
"""Effects after which everything is as before."""


def _effects_of(variants: Variants | None) -> Iterator[Effect]:
    for case in () if variants is None else variants.cases:
        yield from case.effects or ()
        yield from _effects_of(case.variants)


@dataclass(frozen=True)
class Library:
    """Functions of the libraries whose file's name `name` matches: a pattern with *, ? and [].

    `prefix`: what is called so, and behind that as a system call, stands for that call.
    """

    name: str
    functions: tuple[Function, ...]
    prefix: str | None = None


@dataclass(frozen=True)
class Description:
    """What a file says. `source` tells where its facts are from."""

    system_calls: tuple[Function, ...] = ()
    libraries: tuple[Library, ...] = ()
    flag_tables: tuple[FlagTable, ...] = ()
    source: str | None = None
    structs: tuple[Struct, ...] = ()
    ring_operations: tuple[Function, ...] = ()
