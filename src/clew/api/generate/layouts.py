"""Captures where the members of structures are, out of headers: a compiler's debugging information has it.

Runs on a developer's machine, with gcc and pyelftools. What members mean is not known here.
"""

from __future__ import annotations

import io
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

__all__ = ["capture_layout"]

_AGGREGATES = ("DW_TAG_structure_type", "DW_TAG_union_type")
_QUALIFIERS = ("DW_TAG_const_type", "DW_TAG_volatile_type")
_ADDRESS_BYTES = 8


def capture_layout(headers: list[str], c_type: str) -> tuple[int, list[tuple[str, int, int, str]]]:
    """The size of a type, and its members: path with dots, offset, size, C type. What is nameless is left out of paths.

    Raises subprocess.CalledProcessError where a header or the type is missing.
    """
    includes = "".join(f"#include <{header}>\n" for header in headers)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "probe.o"
        command = ["gcc", "-D_GNU_SOURCE", "-w", "-g", "-gdwarf-4", "-c", "-x", "c", "-", "-o", str(made)]
        subprocess.run(command, input=f"{includes}{c_type} probe;\n", text=True, check=True)
        content = made.read_bytes()
    for unit in ELFFile(io.BytesIO(content)).get_dwarf_info().iter_CUs():
        for die in unit.get_top_DIE().iter_children():
            if die.tag == "DW_TAG_variable" and _name(die) == "probe":
                found = _plain(_type(die))
                return _size(found), list(_members(found, "", 0))
    raise ValueError(f"{c_type}: the compiler tells nothing of it")


def _members(aggregate: DIE | None, path: str, start: int) -> Iterator[tuple[str, int, int, str]]:
    for die in aggregate.iter_children() if aggregate is not None else ():
        if die.tag != "DW_TAG_member" or "DW_AT_bit_size" in die.attributes:
            # A bit field says in bits where it is; no call is told by one.
            continue
        # All of a union is at its beginning.
        place = die.attributes.get("DW_AT_data_member_location")
        kind, offset = _type(die), start + (int(place.value) if place else 0)
        name = f"{path}.{_name(die)}".strip(".")
        if _name(die):
            yield name, offset, _size(kind), _spelling(kind)
        inner = _plain(kind)
        if inner is not None and inner.tag in _AGGREGATES:
            yield from _members(inner, name if _name(die) else path, offset)


def _name(die: DIE) -> str:
    attribute = die.attributes.get("DW_AT_name")
    return "" if attribute is None else str(attribute.value.decode("ascii"))


def _type(die: DIE) -> DIE | None:
    return die.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in die.attributes else None


def _plain(die: DIE | None) -> DIE | None:
    """A type without its other names and qualifiers."""
    while die is not None and die.tag in ("DW_TAG_typedef", *_QUALIFIERS):
        die = _type(die)
    return die


def _lengths(array: DIE) -> list[int]:
    """How many elements an array has, in each direction; 0 where nothing is said."""
    ranges = [die.attributes for die in array.iter_children() if die.tag == "DW_TAG_subrange_type"]
    return [int(one["DW_AT_upper_bound"].value) + 1 if "DW_AT_upper_bound" in one else _count(one) for one in ranges]


def _count(attributes: Any) -> int:
    return int(attributes["DW_AT_count"].value) if "DW_AT_count" in attributes else 0


def _size(die: DIE | None) -> int:
    die = _plain(die)
    if die is None:
        return 0
    if die.tag == "DW_TAG_array_type":
        size = _size(_type(die))
        for length in _lengths(die):
            size *= length
        return size
    if die.tag == "DW_TAG_pointer_type":
        return _ADDRESS_BYTES
    return int(die.attributes["DW_AT_byte_size"].value) if "DW_AT_byte_size" in die.attributes else 0


def _spelling(die: DIE | None) -> str:
    """A type as C has it, as far as a line has room."""
    if die is None:
        return "void"
    match die.tag:
        case "DW_TAG_pointer_type":
            return f"{_spelling(_type(die))} *"
        case "DW_TAG_array_type":
            return _spelling(_type(die)) + "".join(f"[{length or ''}]" for length in _lengths(die))
        case "DW_TAG_subroutine_type":
            return "function"
        case "DW_TAG_const_type":
            return f"const {_spelling(_type(die))}"
        case "DW_TAG_volatile_type":
            return f"volatile {_spelling(_type(die))}"
    word = {"DW_TAG_structure_type": "struct ", "DW_TAG_union_type": "union ", "DW_TAG_enumeration_type": "enum "}
    return word.get(str(die.tag), "") + (_name(die) or "nameless")
