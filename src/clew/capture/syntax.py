"""The tree of an expression, as the grammar reads it and before anything is known of types.

Runs in the controller.
"""

from __future__ import annotations

from typing import NamedTuple

from clew.dataclass import dataclass

__all__ = [
    "Binary",
    "Call",
    "Index",
    "Load",
    "Member",
    "Name",
    "Node",
    "Number",
    "Text",
    "ThreadLocal",
    "TypeName",
    "Unary",
    "Variable",
]


class TypeName(NamedTuple):
    """A type by its name, behind `n_pointers` stars a pointer."""

    name: str
    n_pointers: int


class Number(NamedTuple):
    """An integer, or a floating-point number."""

    value: int | float
    at: int


class Text(NamedTuple):
    """A string between quotes, as bytes."""

    value: bytes
    at: int


class Name(NamedTuple):
    """A register, an argument, a symbol, or a word of the language's own; `is_register` where it began with `$`."""

    name: str
    is_register: bool
    at: int


class Unary(NamedTuple):
    """`-`, `+`, `~`, `!`, `*`, `&`, or a cast where `cast` says to what."""

    operator: str
    operand: Node
    at: int
    cast: TypeName | None = None


class Binary(NamedTuple):
    """An operator of C's between two operands."""

    operator: str
    left: Node
    right: Node
    at: int


class Load(NamedTuple):
    """`8(%REGISTER)`: a pointer's worth of memory at a register and a distance."""

    register: str
    distance: int
    at: int


class Call(NamedTuple):
    """`str(p, 64)`: a function of the language."""

    function: str
    arguments: tuple[Node, ...]
    at: int


class Variable(NamedTuple):
    """`var:NAME`: a variable of the program's, by its debugging information; `var:$retval` is a function's result."""

    name: str
    at: int


class ThreadLocal(NamedTuple):
    """`tls:NAME`, `tls:IMAGE!NAME` or `errno`: the thread's own instance of a variable; `image` may be empty."""

    image: str
    name: str
    at: int


class Member(NamedTuple):
    """`.NAME`, or `->NAME` where `is_arrow`: a member of a structure."""

    operand: Node
    name: str
    is_arrow: bool
    at: int


@dataclass(frozen=True)
class Index:
    """`[N]`: an element of an array, or of what a pointer points at."""

    operand: Node
    index: Node
    at: int


Node = Number | Text | Name | Unary | Binary | Load | Call | Variable | ThreadLocal | Member | Index
