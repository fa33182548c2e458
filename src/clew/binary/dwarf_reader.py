"""Numbers, strings and attribute values as DWARF encodes them; and which folder each unit was compiled in.

Runs in the controller. The bytes may be anything: reading raises IndexError where they end too early or make no sense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from clew.binary.debug_sections import DebugSections

__all__ = ["DwarfReader", "find_unit_folders"]

_AT_STMT_LIST, _AT_COMP_DIR = 0x10, 0x1B
_FORM_STRING, _FORM_STRP, _FORM_LINE_STRP, _FORM_INDIRECT = 0x08, 0x0E, 0x1F, 0x16
_FIXED: Final = {
    0x01: 8,
    0x05: 2,
    0x06: 4,
    0x07: 8,
    0x0B: 1,
    0x0C: 1,
    0x11: 1,
    0x12: 2,
    0x13: 4,
    0x14: 8,
    0x19: 0,
    0x1E: 16,
    0x20: 8,
}
"""Forms of a fixed size."""
_OFFSETS: Final = (_FORM_STRP, _FORM_LINE_STRP, 0x10, 0x17, 0x1F20, 0x1F21)
"""Forms that are offsets: of 4 bytes, or of 8 in units of 64 bits."""
_LEB: Final = (0x0D, 0x0F, 0x15, 0x1F01, 0x1F02)
_BLOCKS: Final = {0x03: 2, 0x04: 4, 0x0A: 1}
"""Forms of bytes with their number in front, by its size; others have it as a LEB128 number."""
_LEB_BLOCKS: Final = (0x09, 0x18)
_64_BIT: Final = 0xFFFFFFFF


class DwarfReader:
    """Reads `content` from `at` up to `end`. Every method raises IndexError where it ends too early."""

    def __init__(self, content: bytes, at: int, end: int, *, is_64_bit: bool = False) -> None:
        self._content, self.at, self._end = content, at, min(end, len(content))
        self._offset_bytes = 8 if is_64_bit else 4

    def word(self, n_bytes: int) -> int:
        """A number of a fixed size, without a sign."""
        return int.from_bytes(self._take(n_bytes), "little")

    def number(self) -> int:
        """A LEB128 number, as one without a sign."""
        return self._leb128()[0]

    def signed_number(self) -> int:
        """A LEB128 number with a sign."""
        value, bits = self._leb128()
        return value - (1 << bits) if value >> bits - 1 else value

    def _leb128(self) -> tuple[int, int]:
        """A LEB128 number without its sign, and how many bits it was stored in."""
        value = shift = 0
        while shift < 70:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, shift
        raise IndexError

    def block(self, n_bytes: int) -> bytes:
        """So many bytes."""
        return self._take(n_bytes)

    def text(self) -> str:
        """A string up to its zero byte."""
        zero = self._content.find(b"\0", self.at, self._end)
        if zero < 0:
            raise IndexError
        text = self._content[self.at : zero].decode("utf-8", "replace")
        self.at = zero + 1
        return text

    def form(self, form: int, sections: DebugSections) -> str | int | None:
        """A value of the form `form`; None for one that is neither a string nor a number."""
        if form == _FORM_INDIRECT:
            form = self.number()
        if form == _FORM_STRING:
            return self.text()
        if form in _OFFSETS:
            place = self.word(self._offset_bytes)
            if form in (_FORM_STRP, _FORM_LINE_STRP):
                return _find_text(sections.read("str" if form == _FORM_STRP else "line_str"), place)
            return place
        if form in _FIXED:
            return self.word(_FIXED[form])
        if form in _LEB:
            return self.number()
        if form in _BLOCKS:
            self._take(self.word(_BLOCKS[form]))
            return None
        if form in _LEB_BLOCKS:
            self._take(self.number())
            return None
        raise IndexError

    def _take(self, n_bytes: int) -> bytes:
        if not 0 <= self.at <= self._end - n_bytes or n_bytes < 0:
            raise IndexError
        taken = self._content[self.at : self.at + n_bytes]
        self.at += n_bytes
        return taken


def find_unit_folders(sections: DebugSections) -> dict[int, str]:
    """The folder in which the compiler was called, by the offset of the line program; of units of versions 2 to 4."""
    info, abbreviations = sections.read("info"), sections.read("abbrev")
    folders: dict[int, str] = {}
    at = 0
    while at + 4 <= len(info):
        reader = DwarfReader(info, at, len(info))
        try:
            n_bytes = reader.word(4)
            is_64_bit = n_bytes == _64_BIT
            if is_64_bit:
                n_bytes = reader.word(8)
            end = reader.at + n_bytes
            inside = DwarfReader(info, reader.at, end, is_64_bit=is_64_bit)
            at = end
            if 2 <= inside.word(2) <= 4:
                table_at = inside.word(8 if is_64_bit else 4)
                inside.word(1)  # size of addresses
                attributes = _find_attributes(abbreviations, table_at, inside.number())
                values = {name: inside.form(form, sections) for name, form in attributes}
                offset, folder = values.get(_AT_STMT_LIST), values.get(_AT_COMP_DIR)
                if isinstance(offset, int) and isinstance(folder, str):
                    folders[offset] = folder
        except IndexError:
            if reader.at > at:  # not even its length could be read
                break
    return folders


def _find_attributes(abbreviations: bytes, at: int, wanted: int) -> list[tuple[int, int]]:
    """Names and forms of the attributes of entries of the kind `wanted`, in the table at `at`."""
    reader = DwarfReader(abbreviations, at, len(abbreviations))
    while code := reader.number():
        reader.number()  # tag
        reader.word(1)  # whether it has children
        attributes = []
        while (pair := (reader.number(), reader.number())) != (0, 0):
            attributes.append(pair)
        if code == wanted:
            return attributes
    raise IndexError


def _find_text(strings: bytes, place: int) -> str | None:
    """The string at `place` of a section of strings."""
    if place >= len(strings):
        return None
    zero = strings.find(b"\0", place)
    return strings[place : zero if zero >= 0 else len(strings)].decode("utf-8", "replace")
