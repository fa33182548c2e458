"""Machine code of text, by the assembler that the machine's C compiler comes with.

Runs in the controller. It is the one that people have, reads what disassemblers show, and knows the processor's newest
instructions. It is started once for each text: some milliseconds; what names an address is linked for it each time.
"""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path

from clew.binary.elf import open_elf
from clew.errors import BinaryError, TransformError
from clew.process.processors.chosen import native_processor
from clew.sessions.transforms.tools import run_tool

__all__ = ["assemble"]


def assemble(text: str, address: int) -> bytes:
    """The bytes of some instructions at an address, in the syntax in which they are shown; `;` or new lines between
    them.

    Raises TransformError: there is no assembler, or it does not understand them.
    """
    code, is_placed = _assemble(text, None)
    return _assemble(text, address)[0] if is_placed else code


@lru_cache(maxsize=4096)
def _assemble(text: str, address: int | None) -> tuple[bytes, bool]:
    """The bytes, linked for an `address` if one is given; whether they depend on that."""
    source = f"{native_processor().architecture.assembler_directives}.text\n{text}\n"
    with tempfile.TemporaryDirectory(prefix="clew-assembler-") as folder:
        place = Path(folder, "code.o")
        run_tool(["as", "--noexecstack", "-o", str(place), "-"], source, what=repr(text), explain=_last_reason)
        if address is not None:
            linked = Path(folder, "code")
            command = ["ld", f"-Ttext={address:#x}", "-e", f"{address:#x}", "-o", str(linked), str(place)]
            run_tool(command, "", what=repr(text), explain=_last_reason)
            place = linked
        try:
            with open_elf(place) as elf:
                section = elf.find_section(".text")
                is_placed = elf.find_section(".rela.text") is not None
                return (elf.read(section.file_offset, section.size_bytes) if section else b""), is_placed
        except (BinaryError, OSError) as error:
            raise TransformError(f"{text!r}: {error}") from error


def _last_reason(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].rpartition("rror: ")[2] if lines else "not understood"
