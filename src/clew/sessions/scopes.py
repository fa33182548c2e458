"""What the names of a program's variables and types mean at a place in a process: what captures ask (`Scope`).

Runs in the controller, in any thread, under the lock of the images.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from clew.address import Pid
from clew.binary.architectures.architecture import Architecture
from clew.binary.debug_sections import find_debug_file
from clew.binary.debug_types import DebugType, type_of
from clew.binary.elf import ElfFile, open_elf
from clew.binary.thread_locals import DataSymbol, ThreadLocals, find_data_symbol
from clew.binary.variable_places import Constant, Place, Term
from clew.binary.variables import CodePlace
from clew.capture.scope import Known
from clew.capture.types import CType
from clew.errors import BinaryError, CaptureError
from clew.protocol._constants import CaptureType
from clew.sessions.memory import Image, Images, bias_of

__all__ = ["ProgramScope", "UnloadedScope"]

_INT: Final = CType(CaptureType.I32)
_BY_SIZE: Final = {1: CaptureType.U8, 2: CaptureType.U16, 4: CaptureType.U32, 8: CaptureType.U64}


class ProgramScope:
    """The names at `address` of process `pid`. `has_returned`: the function there has, and is asked about no more.

    `is_waiting`: what was asked for and is not known may come with what is loaded later. `is_sketch`: only types are
    asked for, and that of `errno` is known before it is loaded.
    """

    def __init__(
        self,
        images: Images,
        pid: Pid,
        address: int,
        architecture: Architecture,
        *,
        has_returned: bool = False,
        is_sketch: bool = False,
    ) -> None:
        self._images, self._pid, self._address, self._architecture = images, pid, address, architecture
        self._has_returned, self._is_sketch = has_returned, is_sketch
        self._loaded = images.of(pid)
        self._place: CodePlace | None = None
        self.is_waiting = False

    @property
    def place(self) -> CodePlace:
        """The place in the file whose code is there. Raises CaptureError, BinaryError."""
        if self._place is None:
            image = next((one for one in self._loaded if one.start <= self._address < one.end), None)
            if image is None:
                raise CaptureError("no image's code is here")
            self._place = self._open_place(image)
        return self._place

    @property
    def registers(self) -> tuple[str, ...]:
        """Names of general registers by DWARF's numbers."""
        return self._architecture.dwarf_registers

    def find_variable(self, name: str) -> Known:
        """A variable, parameter, or global of the unit; `$retval`: what the function has returned. Raises CaptureError,
        BinaryError."""
        place = self.place
        if name == "$retval":
            return self._find_result(place)
        variable = place.find_variable(name)
        return Known(type_of(variable.entry), place.place(variable), self.registers)

    def _find_result(self, place: CodePlace) -> Known:
        if not self._has_returned:
            raise CaptureError("it is known only when the function has returned")
        kind, where = place.result, place.convention.result
        if kind is None or isinstance(where, str):
            raise CaptureError(where if isinstance(where, str) else "no function is known here")
        return Known(kind, where, self.registers)

    def find_type(self, name: str) -> DebugType | None:
        """`struct NAME`, `enum NAME`, or the name of another type. Raises CaptureError, BinaryError."""
        return self.place.find_type(name)

    def find_thread_local(self, image: str, name: str) -> Known:
        """The thread's own instance of a variable: of the image of that name; or of the place's own, of the program, or
        of the one library that has it. Raises CaptureError, BinaryError."""
        candidates = self._candidates(image)
        found = []
        for one in candidates:
            symbol = self._find_symbol(one, name, is_thread_local=True)
            if symbol is not None:
                found.append((one, symbol))
        if not found and name == "errno" and self._is_sketch:
            return UnloadedScope().find_thread_local(image, name)
        if not found:
            self.is_waiting = not image or not candidates
            what = f"{image} has no" if image and candidates else "nothing that is loaded has a"
            raise CaptureError(f"{what} thread-local variable of that name")
        is_clear = len(found) == 1 or self._is_first(found[0][0]) or name == "errno"
        if not is_clear:
            raise CaptureError(f"several images have one: give tls:IMAGE!{name}, as {found[0][0].name}!{name}")
        chosen, symbol = found[0]
        address = self._thread_local(chosen, symbol.value)
        kind = _INT if name == "errno" else self._thread_local_type(chosen, name, symbol)
        return Known(kind, Place(address), self.registers)

    def _candidates(self, name: str) -> list[Image]:
        """Images of a name, one of each file; of all of them the place's own, then the program, come first."""
        by_path = {one.path: one for one in reversed(self._loaded)}
        chosen = [one for one in by_path.values() if name in ("", one.name, one.path)]
        return sorted(chosen, key=lambda one: (not self._is_own(one), not self._is_program(one), one.start))

    def _is_own(self, image: Image) -> bool:
        own = next((one for one in self._loaded if one.start <= self._address < one.end), None)
        return own is not None and own.path == image.path

    def _is_first(self, image: Image) -> bool:
        return self._is_own(image) or self._is_program(image)

    def _is_program(self, image: Image) -> bool:
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/{self._pid}/exe") == image.path
        return False

    def _thread_local_type(self, image: Image, name: str, symbol: DataSymbol) -> DebugType | CType:
        debug = self._images.debug(image)
        entry = None if debug is None else debug.find_global(name)
        if entry is not None:
            return type_of(entry)
        kind = _BY_SIZE.get(symbol.size_bytes)
        if kind is None:
            raise CaptureError(f"it has {symbol.size_bytes} bytes, and no debugging information tells its type")
        return CType(kind)

    def _find_symbol(self, image: Image, name: str, *, is_thread_local: bool) -> DataSymbol | None:
        for elf in self._files(image):
            with contextlib.suppress(BinaryError):
                found = find_data_symbol(elf, name, is_thread_local=is_thread_local)
                if found is not None:
                    return found
        return None

    def _files(self, image: Image) -> Iterator[ElfFile]:
        """An image's file, and the debug file that is installed for it."""
        elf = self._images.elf(image)
        if elf is not None:
            yield elf
            debug_path = find_debug_file(Path(image.path), "info")
            if debug_path is not None and str(debug_path) != image.path:
                with contextlib.suppress(BinaryError), open_elf(debug_path) as debug:
                    yield debug

    def _thread_local(self, image: Image, offset: int) -> Term:
        elf = self._images.elf(image)
        if elf is None:
            raise CaptureError(f"{image.name} can't be read")
        return ThreadLocals(elf, is_program=self._is_program(image)).address(offset, bias_of(image, elf))

    def _open_place(self, image: Image) -> CodePlace:
        debug, rules = self._images.debug(image), self._images.rules(image)
        if debug is None or rules is None:
            raise CaptureError(f"{image.name} can't be read")

        def find_symbol(name: str) -> Term | None:
            symbol = self._find_symbol(image, name, is_thread_local=False)
            if symbol is not None:
                return Constant(symbol.value + rules[1] & (1 << 64) - 1)
            local = self._find_symbol(image, name, is_thread_local=True)
            return None if local is None else self._thread_local(image, local.value)

        return CodePlace(
            debug,
            self._address - rules[1],
            self._architecture,
            rules[0],
            rules[1],
            lambda offset: self._thread_local(image, offset),
            find_symbol,
            has_returned=self._has_returned,
        )


class UnloadedScope:
    """What is known of names before anything is loaded that has them: `errno` is an int, whoever has it."""

    def find_variable(self, name: str) -> Known:
        """Raises CaptureError."""
        raise CaptureError("of which type it is is known at a place in code only, once that is loaded")

    def find_thread_local(self, image: str, name: str) -> Known:
        """Raises CaptureError, but for `errno`."""
        if name != "errno":
            raise CaptureError("of which type it is is known only once what has it is loaded")
        return Known(_INT, Place(Constant(0)), ())

    def find_type(self, name: str) -> DebugType | None:
        """Raises CaptureError."""
        raise CaptureError("types of the program's are known at a place in its code only, once that is loaded")
