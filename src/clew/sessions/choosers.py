"""Functions that other code chooses when they are bound (IFUNCs): recorded where the choice of their resolvers leads.

Runs in the controller. Nothing is guessed and nothing of the program's is called: a resolver that runs is waited for,
before anybody has what it returns; what was chosen before is in the words that the dynamic linker has filled with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import FileOffset
from clew.binary.architectures.known import architecture_of_machine
from clew.binary.elf import ElfFile
from clew.binary.symbol_rows import SYMBOL, read_rows
from clew.errors import BinaryError, CaptureError, ControlError
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping, read_maps
from clew.sessions.memory import Images, bias_of, read_memory

if TYPE_CHECKING:
    from clew.address import Pid
    from clew.binary.architectures.architecture import Architecture
    from clew.recording.following.followed import FollowedProcess
    from clew.sessions.calls import Call
    from clew.sessions.chooser import Chooser
    from clew.sessions.places import Places

__all__ = ["Choosers", "find_chosen"]

Array = npt.NDArray[Any]

_SHT_RELA: Final = 4
_SHF_ALLOC: Final = 2
_MAX_BYTES: Final = 1 << 26
_MAX_NAMES: Final = 1 << 24
_WORD_BYTES: Final = 8
_RELOCATION: Final = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_VDSO: Final = "[vdso]"


class Choosers:
    """Has what is chosen recorded, in all `places`; `result` is the register in which resolvers return it."""

    def __init__(self, places: Places, images: Images, result: str) -> None:
        self._places, self._images, self._result = places, images, result

    def meet_call(self, chooser: Chooser, call: Call) -> None:
        """A resolver has returned, and its thread waits."""
        self._meet(chooser, call.followed, call.registers[self._result])

    def meet_chosen(self, followed: FollowedProcess, mappings: list[Mapping], choosers: Sequence[Chooser]) -> None:
        """Look for what was chosen before, while all threads of the process are stopped."""
        for chooser, address in find_chosen(self._images, followed.memory_pid, mappings, choosers):
            self._meet(chooser, followed, address)

    def _meet(self, chooser: Chooser, followed: FollowedProcess, address: int) -> None:
        there = self._places.logs_at(followed.pid, address)
        if there:
            chooser.note(chooser.log.number in there)
            return
        if _find_code(address, read_maps(followed.memory_pid)) is not None:
            try:
                self._places.extend(chooser.log.number, followed, address)
            except (ControlError, CaptureError) as error:
                followed.warnings.append(f"{chooser.where.text}: {error.message}")
            else:
                chooser.note(True)


def find_chosen(
    images: Images, pid: Pid, mappings: list[Mapping], choosers: Sequence[Chooser]
) -> Iterator[tuple[Chooser, int]]:
    """What resolvers have chosen by now, and where that is, out of the words that are filled with it in each image."""
    for image in {one.path: one for one in images.in_mappings(mappings)}.values():
        elf = images.elf(image)
        architecture = None if elf is None else architecture_of_machine(elf.machine)
        if elf is None or architecture is None:
            continue
        try:
            slots = list(_slots(elf, architecture, [one for one in choosers if one.image.path == image.path], choosers))
        except BinaryError:
            continue
        bias = bias_of(image, elf)
        for chooser, place in slots:
            word = read_memory(pid, bias + place, _WORD_BYTES)
            value, before = int.from_bytes(word, "little"), _in_file(elf, place)
            # As long as nothing is bound it is as the file has it, or that as far away as the file.
            is_bound = len(word) == _WORD_BYTES and value not in (before, before + bias)
            if is_bound and _is_choice(value, chooser, mappings):
                yield chooser, value


def _slots(
    elf: ElfFile, architecture: Architecture, own: Sequence[Chooser], choosers: Sequence[Chooser]
) -> Iterator[tuple[Chooser, int]]:
    """The words of a file that what a resolver chooses is put into, by their link addresses."""
    by_offset = {one.offset: one for one in own}
    by_name = {one.where.symbol: one for one in choosers}
    named = np.array([*architecture.function_relocations, architecture.word_relocation], np.uint64)
    for section in elf.sections:
        if section.kind != _SHT_RELA or not section.flags & _SHF_ALLOC:
            continue
        rows = read_rows(elf, section.file_offset, min(section.size_bytes, _MAX_BYTES), _RELOCATION)
        kinds = rows["info"] & np.uint64(0xFFFFFFFF)
        for row in rows[kinds == np.uint64(architecture.chosen_relocation)] if by_offset else ():
            chooser = by_offset.get(int(row["addend"]) - elf.lowest_address)
            if chooser is not None:
                yield chooser, int(row["offset"])
        rows = rows[np.isin(kinds, named) & (rows["addend"] == 0)]
        for name, place in _names(elf, section.link, rows):
            chooser = by_name.get(name)
            if chooser is not None:
                yield chooser, place


def _names(elf: ElfFile, link: int, rows: Array) -> Iterator[tuple[str, int]]:
    """The symbols that relocations name, by the symbol table number `link`, and the words that they are about."""
    if link >= len(elf.sections) or elf.sections[link].link >= len(elf.sections):
        return
    table, strings = elf.sections[link], elf.sections[elf.sections[link].link]
    symbols = read_rows(elf, table.file_offset, min(table.size_bytes, _MAX_BYTES), SYMBOL)
    text = elf.read(strings.file_offset, min(strings.size_bytes, _MAX_NAMES))
    for row in rows:
        number = int(row["info"]) >> 32
        start = int(symbols[number]["name"]) if 0 < number < len(symbols) else len(text)
        if start < len(text):
            yield text[start : text.find(b"\0", start)].decode(errors="replace"), int(row["offset"])


def _in_file(elf: ElfFile, address: int) -> int:
    """The word that a file has at a link address."""
    for one in elf.segments:
        if one.address <= address <= one.address + one.file_bytes - _WORD_BYTES:
            offset = FileOffset(one.file_offset + address - one.address)
            return int.from_bytes(elf.read(offset, _WORD_BYTES), "little")
    return 0


def _is_choice(address: int, chooser: Chooser, mappings: list[Mapping]) -> bool:
    """Whether a resolver may have chosen that: code of its own image, or of the kernel's."""
    here = _find_code(address, mappings)
    is_its = here is not None and here.path in (chooser.image.path, _VDSO)
    return is_its and address != chooser.image.base + chooser.offset


def _find_code(address: int, mappings: list[Mapping]) -> Mapping | None:
    """The mapping in which code at an address is."""
    return next((one for one in mappings if one.start <= address < one.end and one.protection & PROT_EXEC), None)
