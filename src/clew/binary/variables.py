"""The variables of a place in a file's code: which there are, of which types, and where each is.

Runs in the controller. Where a function begins nothing is saved yet of what its variables will be: parameters are in
the calling convention's registers then, whatever compilers say without optimisation. What can't be had raises
BinaryError, with why.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Final

from clew.binary.architectures.architecture import Architecture
from clew.binary.arguments import Signature, Signed
from clew.binary.debug_entries import DebugUnit, Entry, Value
from clew.binary.debug_file import SEARCH_STEPS, DebugFile
from clew.binary.debug_lists import find_location, read_ranges
from clew.binary.debug_names import Attribute, Tag
from clew.binary.debug_types import DebugType, TypeKind, find_named_type, type_of
from clew.binary.dwarf_reader import DwarfReader
from clew.binary.frame_rules import FrameRules
from clew.binary.line_headers import read_line_unit
from clew.binary.line_program import run_programs
from clew.binary.variable_places import Constant, Frame, Operation, Place, Register, Term, read_place
from clew.dataclass import dataclass, replace
from clew.errors import BinaryError

__all__ = ["CodePlace", "DebugVariable"]

MAX_DEPTH: Final = 64
_FBREG, _DEREF, _CALL_FRAME_CFA = b"\x91", b"\x06", b"\x9c"
_LIKE_C: Final = frozenset([0x01, 0x02, 0x04, 0x0C, 0x10, 0x11, 0x19, 0x1A, 0x1D, 0x21, 0x2B, 0x2C, 0x2E, 0x3A, 0x3E])
"""DW_LANG_* of C, C++ and Objective C, by their years."""
_RUST: Final = 0x1C
_NOT_SINGLE: Final = (TypeKind.RECORD, TypeKind.UNION, TypeKind.ARRAY, TypeKind.COMPLEX)
_RECORD_TAGS: Final = {
    "struct": (Tag.STRUCTURE_TYPE, Tag.CLASS_TYPE),
    "class": (Tag.CLASS_TYPE, Tag.STRUCTURE_TYPE),
    "union": (Tag.UNION_TYPE,),
    "enum": (Tag.ENUMERATION_TYPE,),
}


@dataclass(frozen=True)
class DebugVariable:
    """A variable: `kind` is `parameter`, `local` or `global`; `scope` the entry that it is right inside of."""

    name: str
    kind: str
    entry: Entry
    scope: Entry


class CodePlace:
    """The place at link address `address` of `file`.

    `bias` is what addresses in memory are more than link addresses; `thread_local` gives where something in the file's
    thread-local block is, `find_symbol` the address of a variable that the file's symbols have. `has_returned`: the
    function has, so nothing is left of it.
    """

    def __init__(
        self,
        file: DebugFile,
        address: int,
        architecture: Architecture,
        rules: FrameRules,
        bias: int,
        thread_local: Callable[[int], Term],
        find_symbol: Callable[[str], Term | None],
        *,
        has_returned: bool = False,
    ) -> None:
        self.file, self.address, self.architecture = file, address, architecture
        self._rules, self._bias, self._thread_local, self._find_symbol = rules, bias, thread_local, find_symbol
        self._has_returned = has_returned
        self._unit: DebugUnit | None = None
        self._scopes: list[Entry] | None = None
        self._signed: Signed | None = None

    @property
    def unit(self) -> DebugUnit:
        """The unit whose code is there. Raises BinaryError."""
        if self._unit is None:
            if not self.file.units:
                raise BinaryError(self.file.path, f"{self.file.path.name} has no debugging information (gcc -g)")
            self._unit = self.file.find_unit(self.address)
            if self._unit is None:
                raise BinaryError(self.file.path, "this code has no debugging information (gcc -g)")
        return self._unit

    @property
    def scopes(self) -> list[Entry]:
        """The function there, and what lies in it around the place; empty where none is known. Raises BinaryError."""
        if self._scopes is None:
            self._scopes = self.file.find_scopes(self.unit, self.address)
        return self._scopes

    @property
    def is_entry(self) -> bool:
        """Whether the function begins there. Raises BinaryError."""
        ranges = read_ranges(self.scopes[0]) if self.scopes else []
        return bool(ranges) and ranges[0][0] == self.address

    @property
    def parameters(self) -> list[Entry]:
        """Those of the function, in their order. Raises BinaryError."""
        return [one for one in self.scopes[0].children() if one.tag == Tag.FORMAL_PARAMETER] if self.scopes else []

    @property
    def result(self) -> DebugType | None:
        """The type of what the function returns; None where no function is known. Raises BinaryError."""
        return type_of(self.scopes[0]) if self.scopes else None

    @property
    def convention(self) -> Signed:
        """Where arguments are when the function begins, and the result when it returns. Raises BinaryError."""
        if self._signed is None:
            result = self.result
            if result is None:
                raise BinaryError(self.file.path, "no function is known here")
            types = [type_of(one) for one in self.parameters]
            self._ask_language([*types, result])
            by_reference = [
                kind.is_passed_by_reference or self._is_behind_pointer(one)
                for one, kind in zip(self.parameters, types, strict=True)
            ]
            signature = Signature(types, by_reference, result)
            self._signed = self.architecture.place_arguments(signature)
        return self._signed

    def _ask_language(self, types: list[DebugType]) -> None:
        """Raises BinaryError where the language of the unit does not pass values of some types as C does."""
        language = self.unit.root.number(Attribute.LANGUAGE)
        if language is None or language in _LIKE_C:
            return
        # It promises nothing, and passes single values as C does.
        if language != _RUST or any(one.kind in _NOT_SINGLE for one in types):
            raise BinaryError(self.file.path, "how this language passes arguments is not known: take them further on")

    def variables(self) -> Iterator[DebugVariable]:
        """All of them, from the innermost scope out; the globals of the unit last. Raises BinaryError."""
        for scope in reversed(self.scopes):
            for one in scope.children():
                if one.tag in (Tag.VARIABLE, Tag.FORMAL_PARAMETER) and one.name:
                    kind = "parameter" if one.tag == Tag.FORMAL_PARAMETER else "local"
                    yield DebugVariable(one.name, kind, one, scope)
        yield from self._globals(self.unit.root, 0)
        # A function may have been written in another unit than it was compiled in.
        written = list(self.scopes[0].origins())[-1].unit if self.scopes else self.unit
        if written is not self.unit:
            yield from self._globals(written.root, 0)

    def _globals(self, parent: Entry, depth: int) -> Iterator[DebugVariable]:
        for one in parent.children():
            if one.tag == Tag.VARIABLE and one.name:
                yield DebugVariable(one.name, "global", one, parent)
            elif one.tag == Tag.NAMESPACE and depth < MAX_DEPTH:
                yield from self._globals(one, depth + 1)

    def find_variable(self, name: str) -> DebugVariable:
        """The one that a name means there; of a qualified one (`a::b`) the last part counts. Raises BinaryError."""
        wanted = name.rpartition("::")[2]
        declared = None
        for one in self.variables():
            if one.name != wanted:
                continue
            if one.kind != "global" or one.entry.find(Attribute.LOCATION) or one.entry.find(Attribute.CONST_VALUE):
                return one
            declared = declared or one
        if declared is None:
            raise BinaryError(self.file.path, "no variable of that name is known here")
        return declared

    def find_type(self, name: str) -> DebugType | None:
        """`struct NAME`, `enum NAME`, or the name of another type: of this unit, else of any. Raises BinaryError."""
        word, _, rest = name.partition(" ")
        tags: tuple[int | None, ...] = _RECORD_TAGS.get(word, (None,)) if rest else (None,)
        last = (rest or word).rpartition("::")[2]
        self.file.budget.renew()
        found = _find_type(self.unit, tags, last)
        others = [] if found is not None else self.file.units
        self.file.budget.renew(SEARCH_STEPS)
        for unit in others:
            # What can't be read of one, or takes too long, says nothing of the others.
            with contextlib.suppress(BinaryError):
                found = None if unit.is_split else _find_type(unit, tags, last)
            if found is not None:
                break
        return found

    def place(self, variable: DebugVariable) -> Place:
        """Where a variable is. Raises BinaryError: it is nowhere here, or that is not read."""
        self.file.budget.renew()
        if self._has_returned and variable.kind != "global":
            raise BinaryError(self.file.path, "it is gone when the function has returned: capture it when it begins")
        found = variable.entry.find(Attribute.LOCATION)
        if found is None:
            return self._place_without_location(variable)
        entry, value = found
        expression = find_location(entry, value, self.address)
        if expression is None:
            raise BinaryError(self.file.path, "it was optimised away here")
        if variable.kind != "global" and not value.is_list and self._is_in_frame(expression) and self._is_unsaved():
            return self._place_unsaved(variable)
        return read_place(expression, self._frame(entry.unit))

    def _place_without_location(self, variable: DebugVariable) -> Place:
        constant = variable.entry.find(Attribute.CONST_VALUE)
        if constant is not None:
            return _place_constant(constant[1])
        # In programs that were optimised as a whole those that others may see have no other place than their symbol.
        names = {name for one in variable.entry.origins() for name in one.attributes}
        if names & {Attribute.DECLARATION, Attribute.EXTERNAL}:
            address = self._find_symbol(variable.name)
            if address is not None:
                return Place(address)
            raise BinaryError(
                self.file.path, "it is only declared here, or was optimised away: this file has no such symbol"
            )
        raise BinaryError(self.file.path, "it was optimised away: the compiler left nothing of it")

    def _is_in_frame(self, expression: bytes) -> bool:
        """Whether a location is a part of the frame that the function makes for itself."""
        distance, _ = _split_frame(expression)
        # What the caller left on the stack is there from the start on.
        return distance is not None and (self._frame_base() != _CALL_FRAME_CFA or distance < 0)

    def _is_behind_pointer(self, parameter: Entry) -> bool:
        """Whether a parameter is where the frame has its address: the function was given that."""
        value = parameter.attributes.get(Attribute.LOCATION)
        distance, rest = _split_frame(value.raw if value is not None and isinstance(value.raw, bytes) else b"")
        return distance is not None and rest == _DEREF

    def _is_unsaved(self) -> bool:
        """Whether the place is in front of where the function has saved its parameters."""
        if self.is_entry:
            return True
        start = read_ranges(self.scopes[0])[0][0]
        return start < self.address < self._find_body(start)

    def _find_body(self, start: int) -> int:
        """Where the body of the function at an address begins: at its second row of lines, as compilers have it."""
        stmt_list = self.unit.root.number(Attribute.STMT_LIST)
        content = self.unit.sections.read("line")
        unit = None if stmt_list is None else read_line_unit(content, stmt_list)
        if unit is None:
            return start
        rows = run_programs([content[unit.program_at : unit.end]], unit.shape)
        behind = rows.address[rows.address > start]
        return int(behind.min()) if len(behind) and (rows.address == start).any() else start

    def _place_unsaved(self, variable: DebugVariable) -> Place:
        if variable.kind != "parameter" or variable.scope is not self.scopes[0]:
            raise BinaryError(self.file.path, "it has no value yet where the function begins")
        if not self.is_entry:
            why = "the function is just saving its parameters: take it where the function begins, or behind that"
            raise BinaryError(self.file.path, why)
        by_entry = zip(self.parameters, self.convention.parameters, strict=True)
        found = next(where for one, where in by_entry if one is variable.entry)
        if isinstance(found, str):
            raise BinaryError(self.file.path, found)
        return found

    def _frame_base(self) -> bytes | None:
        found = self.scopes[0].find(Attribute.FRAME_BASE) if self.scopes else None
        return None if found is None else find_location(*found, self.address)

    def _frame(self, unit: DebugUnit) -> Frame:
        return Frame(
            path=self.file.path,
            base=self._frame_base(),
            find_cfa=self._find_cfa,
            n_registers=len(self.architecture.dwarf_registers),
            vectors=self.architecture.first_dwarf_vector,
            n_vectors=self.architecture.n_vector_registers,
            is_entry=self.is_entry,
            thread_local=self._thread_local,
            address=lambda address: Constant(address + self._bias & (1 << 64) - 1),
            indexed=unit.indexed_address,
            integer=lambda offset: _find_integer(unit, offset),
        )

    def _find_cfa(self) -> Term:
        rule = self._rules.find(self.address)
        if rule is None:
            raise BinaryError(
                self.file.path, "where the function's frame is is not known here (it is not in .eh_frame)"
            )
        if rule.code is None:
            return Operation("add", Register(rule.register), Constant(rule.offset & (1 << 64) - 1))

        def refuse() -> Term:
            raise BinaryError(self.file.path, "where the function's frame is makes no sense")

        frame = self._frame(self.unit)
        place = read_place(rule.code, replace(frame, base=None, find_cfa=refuse))
        return place.address if place.address is not None else refuse()


def _find_type(unit: DebugUnit, tags: tuple[int | None, ...], name: str) -> DebugType | None:
    entries = (find_named_type(unit.root, tag, name) for tag in tags)
    found = next((entry for entry in entries if entry is not None), None)
    return None if found is None else DebugType(found)


def _find_integer(unit: DebugUnit, offset: int) -> tuple[int, bool] | None:
    """The bytes of the integer type at an offset of a unit, and whether it has a sign."""
    kind = DebugType(unit.entry(unit.offset + offset))
    size = kind.size_bytes
    is_integer = kind.kind in (TypeKind.INTEGER, TypeKind.BOOL)
    return (size, kind.is_signed) if is_integer and size is not None else None


def _split_frame(expression: bytes) -> tuple[int | None, bytes]:
    """Of a location that begins with DW_OP_fbreg how far from the frame that is, and what follows; None of others."""
    reader = DwarfReader(expression, 1, len(expression))
    try:
        distance = reader.signed_number() if expression[:1] == _FBREG else None
    except IndexError:
        return None, b""
    return distance, expression[reader.at :]


def _place_constant(value: Value) -> Place:
    if isinstance(value.raw, int):
        return Place(None, (Constant(value.raw & (1 << 64) - 1),))
    data = value.raw if isinstance(value.raw, bytes) else b""
    words = tuple(Constant(int.from_bytes(data[at : at + 8], "little")) for at in range(0, min(len(data), 64), 8))
    return Place(None, words)
