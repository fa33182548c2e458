"""What can be taken at a place: variables, arguments and results, with their types, and where each is.

Runs in the controller. Which variables there are debugging information says; without it a function's arguments are
known by the platform's convention alone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from clew.binary.architectures.architecture import Architecture
from clew.binary.debug_names import Tag
from clew.binary.debug_types import type_of
from clew.binary.thread_locals import ThreadLocals, find_data_symbol
from clew.binary.variable_places import Constant, Operation, Place, Register, Stored, Term, ThreadPointer, Vector
from clew.binary.variables import CodePlace, DebugVariable
from clew.dataclass import dataclass
from clew.errors import BinaryError
from clew.probing.locations.image_file import ImageFile
from clew.probing.locations.place import ImagePlace, PlaceKind

__all__ = ["VariableRow", "describe_place", "format_variables", "list_variables"]

MAX_ROWS: Final = 4096
MAX_TEXT: Final = 160
MAX_DEPTH: Final = 12
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*", re.ASCII)
_MASK: Final = (1 << 64) - 1
_SIGNS: Final = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "divide_signed": "/",
    "remainder": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
    "shift_right_signed": ">>",
    "not_greater": "<=",
}
_ET_EXEC, _ENTRIES = 2, (PlaceKind.ENTRY, PlaceKind.CHOOSER)


@dataclass(frozen=True)
class VariableRow:
    """Something that can be taken, or not: `kind` is `parameter`, `local`, `global`, `argument`, `probe` (what a static
    probe gives) or `result`.

    `inside` is the inlined function that it is one of, empty: the function itself. `expression` is what captures call
    it; empty where they can't have it, and `reason` says why then. `where` is where its value is, for people.
    """

    name: str
    kind: str
    type: str
    where: str
    expression: str
    reason: str = ""
    inside: str = ""


def list_variables(
    image: ImageFile, place: ImagePlace, global_names: Sequence[str] = (), bias: int = 0
) -> list[VariableRow]:
    """What can be taken at a place of a file; of globals those of its unit whose names are as one of `global_names`.

    `bias` is what addresses that are told are more than link addresses.
    """
    rows = _list_probe(place)
    is_entry = place.kind in _ENTRIES and not place.distance
    known: list[VariableRow] = []
    try:
        code = _open_code(image, place, bias)
        known = _list_known(code, image.architecture, global_names)
        has_function = bool(code.scopes)
    except BinaryError:
        has_function = False
    rows += known
    if is_entry and not has_function:
        rows += _list_arguments(image.architecture)
    if is_entry:
        rows.append(_result(code if has_function else None, image.architecture))
    return rows[:MAX_ROWS]


def _list_probe(place: ImagePlace) -> list[VariableRow]:
    arguments = () if place.usdt is None else place.usdt.arguments
    return [
        VariableRow(f"argument {number}", "probe", one.type, one.operand, one.expression or "", one.reason)
        for number, one in enumerate(arguments, 1)
    ]


def _open_code(image: ImageFile, place: ImagePlace, bias: int) -> CodePlace:
    local = ThreadLocals(image.elf, is_program=image.elf.kind == _ET_EXEC)

    def find_symbol(name: str) -> Term | None:
        symbol = find_data_symbol(image.elf, name, is_thread_local=False)
        if symbol is not None:
            return Constant(symbol.value + bias & _MASK)
        own = find_data_symbol(image.elf, name, is_thread_local=True)
        return None if own is None else local.address(own.value, bias)

    return CodePlace(
        image.debug,
        place.address,
        image.architecture,
        image.rules,
        bias,
        lambda offset: local.address(offset, bias),
        find_symbol,
    )


def _list_known(code: CodePlace, architecture: Architecture, global_names: Sequence[str]) -> list[VariableRow]:
    """The variables that debugging information has. Raises BinaryError."""
    rows: list[VariableRow] = []
    seen: set[str] = set()
    for one in code.variables():
        is_global = one.kind == "global"
        if is_global and not any(fnmatchcase(one.name, pattern) for pattern in global_names):
            continue
        # Declared and defined, it would be there twice.
        if is_global and one.name in seen:
            continue
        rows.append(_row(code, one, architecture, is_hidden=one.name in seen))
        seen.add(one.name)
        if len(rows) >= MAX_ROWS:
            break
    order = {"parameter": 0, "local": 1, "global": 3}
    # What is of inlined functions comes behind what is of the function that is there.
    return sorted(rows, key=lambda row: order[row.kind] if not row.inside else 2)


def _row(code: CodePlace, one: DebugVariable, architecture: Architecture, *, is_hidden: bool) -> VariableRow:
    inside = one.scope.name if one.scope.tag == Tag.INLINED_SUBROUTINE else ""
    kind = "?"
    try:
        kind = str(type_of(one.entry))
        found = code.find_variable(one.name) if one.kind == "global" else one
        where = describe_place(code.place(found), architecture)
    except BinaryError as error:
        return VariableRow(one.name, one.kind, kind, "", "", error.reason, inside)
    if is_hidden:
        return VariableRow(one.name, one.kind, kind, where, "", "one of an inner block has its name", inside)
    if not _NAME.fullmatch(one.name):
        return VariableRow(one.name, one.kind, kind, where, "", "captures have no such names", inside)
    return VariableRow(one.name, one.kind, kind, where, f"var:{one.name}", "", inside)


def _list_arguments(architecture: Architecture) -> list[VariableRow]:
    registers = architecture.argument_registers
    return [VariableRow(f"arg{n}", "argument", "u64", f"in {one}", f"arg{n}") for n, one in enumerate(registers, 1)]


def _result(code: CodePlace | None, architecture: Architecture) -> VariableRow:
    """What the function returns; of which type, where that is known."""
    where = f"in {architecture.result_register}" if architecture.result_register else ""
    kind = "i64"
    if code is not None:
        with contextlib.suppress(BinaryError):
            result = code.result
            kind = str(result)
            if kind == "void":
                return VariableRow("retval", "result", kind, "", "", "the function returns nothing")
            found = code.convention.result
            if isinstance(found, str):
                return VariableRow("retval", "result", kind, "", "", found)
            where = describe_place(found, architecture)
            if len(found.words) != 1:
                return VariableRow("retval", "result", kind, where, "", "captures take no results of several words")
            if isinstance(found.words[0], Vector) and result is not None:
                # Captures have the low half of such a register, as a double.
                name = f"{architecture.vector_registers}{found.words[0].number}"
                is_double = result.size_bytes == 8
                why = "" if is_double else "captures take no results of this size from there"
                return VariableRow("retval", "result", kind, where, name if is_double else "", why)
    return VariableRow("retval", "result", kind, where, "retval")


def describe_place(place: Place, architecture: Architecture) -> str:
    """Where a variable is, for people: in a register, in memory, or always one number."""
    if place.address is not None:
        return _cut(f"at {_describe(place.address, architecture, 0, is_address=True)}")
    if len(place.words) == 1 and isinstance(place.words[0], Constant):
        value = place.words[0].value
        return f"always {value - (1 << 64) if value >> 63 else value}"
    is_kept = all(isinstance(one, Register | Vector) for one in place.words if one is not None)
    words = ["nowhere" if one is None else _describe(one, architecture, 0) for one in place.words]
    return _cut(f"{'in' if is_kept else 'worked out as'} {', '.join(words)}")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def _describe(term: Term, architecture: Architecture, depth: int, *, is_address: bool = False) -> str:
    if depth > MAX_DEPTH:
        return "..."
    match term:
        case Constant():
            signed = term.value - (1 << 64) if term.value >> 63 else term.value
            return f"{term.value:#x}" if is_address else f"{signed}"
        case Register():
            names = architecture.dwarf_registers
            return names[term.number] if term.number < len(names) else f"register {term.number}"
        case Vector():
            return f"{architecture.vector_registers}{term.number}"
        case ThreadPointer():
            return "the thread pointer"
        case Stored():
            inner = _describe(term.address, architecture, depth + 1, is_address=True)
            return f"*(u{8 * term.size_bytes}*)({inner})"
        case Operation():
            left = _describe(term.left, architecture, depth + 1)
            right = _describe(term.right, architecture, depth + 1)
            if term.name == "add" and right.startswith("-"):
                return f"{left}{right}"
            left = f"({left})" if isinstance(term.left, Operation) and term.name != "add" else left
            right = f"({right})" if isinstance(term.right, Operation) else right
            return f"{left}{_SIGNS[term.name]}{right}"


def format_variables(rows: Sequence[VariableRow]) -> str:
    """The rows as text for a terminal, a line each: what captures call it, its type, where it is or why it is not."""
    if not rows:
        return "nothing is known of this place but registers"
    cells = []
    for row in rows:
        told = row.where if row.expression else row.reason + (f" ({row.where})" if row.where else "")
        of = f"{row.kind} of {row.inside}" if row.inside else row.kind
        cells.append([_safe(cell) for cell in (row.expression or "-", row.name, row.type, of, told)])
    widths = [min(max(len(line[column]) for line in cells), 40) for column in range(4)]
    lines = ("  ".join(f"{cell:{width}}" for cell, width in zip(line, [*widths, 0], strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in lines)


def _safe(text: str) -> str:
    """Names come from files that may be hostile: nothing in them reaches a terminal as a command."""
    return "".join(char if char.isprintable() else "?" for char in text)
