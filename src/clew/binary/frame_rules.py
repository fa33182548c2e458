"""How to come from a function's frame to its caller's, by what unwinders read: .eh_frame, found by .eh_frame_hdr.

Runs in the controller. As the Linux Standard Base has it (Core, 10.6, and DWARF 5, 6.4). A file may hold nonsense:
everything is bounded, and where a rule can't be read there is none. Programs that are linked statically may have no
search table: of these all records are looked at once.
"""

from __future__ import annotations

import contextlib
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final

from clew.address import FileOffset
from clew.binary.dwarf_reader import DwarfReader
from clew.binary.elf import PT_GNU_EH_FRAME, PT_LOAD, ElfFile
from clew.dataclass import dataclass

__all__ = ["FrameRule", "FrameRules", "RegisterRule"]

MAX_ENTRIES: Final = 1 << 20
MAX_SCANNED_BYTES: Final = 1 << 26
MAX_RECORD_BYTES: Final = 1 << 16
MAX_INSTRUCTIONS: Final = 1 << 12
_MASK: Final = (1 << 64) - 1
_HEADER_BYTES: Final = 12
_FORMATS: Final = {0x00: (8, False), 0x02: (2, False), 0x03: (4, False), 0x04: (8, False)} | {
    0x0A: (2, True),
    0x0B: (4, True),
    0x0C: (8, True),
}
"""DW_EH_PE_*: bytes of a stored address, and whether it has a sign."""
_PCREL: Final = 0x10
_OMIT: Final = 0xFF


@dataclass(frozen=True)
class RegisterRule:
    """Where the caller's value of a register is.

    `kind` is `offset`: in memory, so far from the frame's address; `val_offset`: that sum itself; `register`: in
    register `number`; `expression`: in memory, at what `code` gives; `val_expression`: what `code` gives; `undefined`:
    nowhere.
    """

    kind: str
    number: int = 0
    code: bytes = b""


@dataclass(frozen=True)
class FrameRule:
    """Of one place in code: the frame's address (CFA) is register `register` + `offset`, or what `code` gives.

    `registers` has the rules of those that are not the caller's still, by DWARF's numbers; `return_column` is the one
    that is the return address. `is_signal`: the caller's place is an instruction that was interrupted, not one behind a
    call.
    """

    register: int
    offset: int
    code: bytes | None
    registers: Mapping[int, RegisterRule]
    return_column: int
    is_signal: bool


@dataclass(frozen=True)
class _Common:
    """What the records of several functions share (a CIE)."""

    code_alignment: int
    data_alignment: int
    return_column: int
    encoding: int
    has_augmentation_data: bool
    is_signal: bool
    instructions: bytes


class FrameRules:
    """Those of one file, read as they are asked for."""

    def __init__(self, elf: ElfFile) -> None:
        self._elf = elf
        self._commons: dict[int, _Common | None] = {}
        self._scanned: list[tuple[int, int]] | None = None
        header = next((segment for segment in elf.segments if segment.kind == PT_GNU_EH_FRAME), None)
        self._table_address, self._n_entries, self._table_offset = 0, 0, 0
        self._has_table = header is not None
        if header is None:
            return
        data = elf.read(FileOffset(header.file_offset), _HEADER_BYTES)
        # Version 1; a pointer, 4 signed bytes from here; a count, 4 bytes; pairs of 4 signed bytes from the header.
        if len(data) == _HEADER_BYTES and data[:4] == b"\x01\x1b\x03\x3b":
            self._table_address = header.address
            self._table_offset = header.file_offset + _HEADER_BYTES
            self._n_entries = min(struct.unpack_from("<I", data, 8)[0], MAX_ENTRIES)

    def find(self, address: int) -> FrameRule | None:
        """The rule of the instruction at a link address; None if the file has none for it."""
        try:
            record = self._find_record(address)
            return None if record is None else self._read_rule(record, address)
        except (IndexError, ValueError, struct.error):
            return None

    def _find_record(self, address: int) -> int | None:
        """Link address of the record of the function that begins at or before an address."""
        if not self._has_table:
            return self._find_scanned(address)
        low, high = 0, self._n_entries
        found = None
        while low < high:
            middle = (low + high) // 2
            data = self._elf.read(FileOffset(self._table_offset + 8 * middle), 8)
            start, record = struct.unpack("<ii", data)
            if self._table_address + start <= address:
                low, found = middle + 1, self._table_address + record
            else:
                high = middle
        return found

    def _find_scanned(self, address: int) -> int | None:
        if self._scanned is None:
            self._scanned = sorted(self._scan())
        index = bisect_right(self._scanned, (address, _MASK)) - 1
        return None if index < 0 else self._scanned[index][1]

    def _scan(self) -> Iterator[tuple[int, int]]:
        """Of each function its start, and the link address of its record."""
        section = self._elf.find_section(".eh_frame")
        if section is None:
            return
        data = self._elf.read(section.file_offset, min(section.size_bytes, MAX_SCANNED_BYTES))
        at = 0
        for _ in range(MAX_ENTRIES):
            if at + 8 > len(data):
                return
            length, distance = struct.unpack_from("<II", data, at)
            if not 4 < length <= len(data) - at - 4:
                return
            if distance:
                with contextlib.suppress(IndexError, ValueError, struct.error):
                    reader = DwarfReader(data, at + 8, at + 4 + length)
                    common = self._read_common(section.address + at + 4 - distance)
                    if common is not None:
                        # Counted from where the section is.
                        yield _read_address(reader, common.encoding, section.address), section.address + at
            at += 4 + length

    def _read_at(self, address: int) -> tuple[bytes, int]:
        """The content of the record at a link address, from behind its length on, and where that is."""
        for segment in self._elf.segments:
            offset = address - segment.address
            if segment.kind == PT_LOAD and 0 <= offset < segment.file_bytes:
                data = self._elf.read(FileOffset(segment.file_offset + offset), MAX_RECORD_BYTES)
                (length,) = struct.unpack_from("<I", data)
                # One of 64 bits would be longer than any that is read here.
                if not 4 < length <= len(data) - 4:
                    raise ValueError
                return data[4 : 4 + length], address + 4
        raise ValueError

    def _read_common(self, address: int) -> _Common | None:
        if address not in self._commons:
            self._commons[address] = None
            data, _ = self._read_at(address)
            self._commons[address] = _parse_common(data)
        return self._commons[address]

    def _read_rule(self, record: int, address: int) -> FrameRule | None:
        data, start = self._read_at(record)
        reader = DwarfReader(data, 0, len(data))
        distance = reader.word(4)
        common = self._read_common(start - distance) if distance else None
        if common is None:
            return None
        first = _read_address(reader, common.encoding, start)
        n_bytes = _read_address(reader, common.encoding & 0x0F, 0)
        if not first <= address < first + n_bytes:
            return None
        if common.has_augmentation_data:
            reader.block(reader.number())
        program = _Program(common)
        program.run(common.instructions, 0, _MASK)
        program.keep_initial()
        program.run(data[reader.at :], first, address)
        return program.rule()


def _parse_common(data: bytes) -> _Common | None:
    reader = DwarfReader(data, 0, len(data))
    if reader.word(4) or reader.word(1) not in (1, 3):
        return None
    version = data[4]
    augmentation = reader.text()
    code_alignment, data_alignment = reader.number(), reader.signed_number()
    return_column = reader.word(1) if version == 1 else reader.number()
    encoding, is_signal = 0x00, False
    if augmentation.startswith("z"):
        size_bytes = reader.number()
        end = reader.at + size_bytes
        for letter in augmentation[1:]:
            match letter:
                case "R":
                    encoding = reader.word(1)
                case "L":
                    reader.word(1)
                case "P":
                    form = _FORMATS.get(reader.word(1) & 0x0F)
                    if form is None:
                        return None
                    reader.block(form[0])
                case "S":
                    is_signal = True
                case "B":
                    pass
                case _:
                    return None
        reader.at = end
    elif augmentation:
        return None
    return _Common(
        code_alignment, data_alignment, return_column, encoding, augmentation[:1] == "z", is_signal, data[reader.at :]
    )


def _read_address(reader: DwarfReader, encoding: int, start: int) -> int:
    form = _FORMATS.get(encoding & 0x0F)
    if form is None or encoding & 0x70 not in (0, _PCREL) or encoding == _OMIT:
        raise ValueError
    at = start + reader.at
    size_bytes, is_signed = form
    value = reader.word(size_bytes)
    if is_signed and value >> 8 * size_bytes - 1:
        value -= 1 << 8 * size_bytes
    return (value + (at if encoding & 0x70 == _PCREL else 0)) & _MASK


class _Program:
    """Goes through the instructions of a record (DW_CFA_*) up to an address."""

    def __init__(self, common: _Common) -> None:
        self._common = common
        self._cfa: tuple[int, int, bytes | None] = (0, 0, None)
        self._rules: dict[int, RegisterRule] = {}
        self._initial: dict[int, RegisterRule] = {}
        self._kept: list[tuple[tuple[int, int, bytes | None], dict[int, RegisterRule]]] = []

    def keep_initial(self) -> None:
        self._initial = dict(self._rules)

    def rule(self) -> FrameRule:
        register, offset, code = self._cfa
        return FrameRule(register, offset, code, self._rules, self._common.return_column, self._common.is_signal)

    def run(self, instructions: bytes, first: int, address: int) -> None:
        reader = DwarfReader(instructions, 0, len(instructions))
        place, steps = first, 0
        while reader.at < len(instructions):
            steps += 1
            if steps > MAX_INSTRUCTIONS:
                raise ValueError
            opcode = reader.word(1)
            place = self._advance(reader, opcode, place)
            if place > address:
                return

    def _advance(self, reader: DwarfReader, opcode: int, place: int) -> int:
        """Do one instruction; the place for which the next ones hold."""
        common, operand = self._common, opcode & 0x3F
        match opcode >> 6:
            case 1:  # advance_loc
                return place + operand * common.code_alignment
            case 2:  # offset
                self._rules[operand] = RegisterRule("offset", reader.number() * common.data_alignment)
                return place
            case 3:  # restore
                self._restore(operand)
                return place
        match opcode:
            case 0x02 | 0x03 | 0x04:  # advance_loc1, 2, 4
                return place + reader.word(1 << opcode - 2) * common.code_alignment
            case 0x0A:  # remember_state
                if len(self._kept) > 64:
                    raise ValueError
                self._kept.append((self._cfa, dict(self._rules)))
            case 0x0B:  # restore_state
                self._cfa, self._rules = self._kept.pop()
            case 0x0C:  # def_cfa
                self._cfa = (reader.number(), reader.number(), None)
            case 0x0D:  # def_cfa_register
                self._cfa = (reader.number(), self._cfa[1], None)
            case 0x0E:  # def_cfa_offset
                self._cfa = (self._cfa[0], reader.number(), None)
            case 0x0F:  # def_cfa_expression
                self._cfa = (0, 0, reader.block(reader.number()))
            case 0x12:  # def_cfa_sf
                self._cfa = (reader.number(), reader.signed_number() * common.data_alignment, None)
            case 0x13:  # def_cfa_offset_sf
                self._cfa = (self._cfa[0], reader.signed_number() * common.data_alignment, None)
            case _:
                self._change_register(reader, opcode)
        return place

    def _change_register(self, reader: DwarfReader, opcode: int) -> None:
        alignment = self._common.data_alignment
        match opcode:
            case 0x00:  # nop
                return
            case 0x2E:  # GNU_args_size
                reader.number()
                return
        register = reader.number()
        match opcode:
            case 0x05:  # offset_extended
                self._rules[register] = RegisterRule("offset", reader.number() * alignment)
            case 0x06:  # restore_extended
                self._restore(register)
            case 0x07:  # undefined
                self._rules[register] = RegisterRule("undefined")
            case 0x08:  # same_value
                self._rules.pop(register, None)
            case 0x09:  # register
                self._rules[register] = RegisterRule("register", reader.number())
            case 0x10:  # expression
                self._rules[register] = RegisterRule("expression", 0, reader.block(reader.number()))
            case 0x11:  # offset_extended_sf
                self._rules[register] = RegisterRule("offset", reader.signed_number() * alignment)
            case 0x14:  # val_offset
                self._rules[register] = RegisterRule("val_offset", reader.number() * alignment)
            case 0x15:  # val_offset_sf
                self._rules[register] = RegisterRule("val_offset", reader.signed_number() * alignment)
            case 0x16:  # val_expression
                self._rules[register] = RegisterRule("val_expression", 0, reader.block(reader.number()))
            case _:
                raise ValueError

    def _restore(self, register: int) -> None:
        if register in self._initial:
            self._rules[register] = self._initial[register]
        else:
            self._rules.pop(register, None)
