"""The routines outside of the whitelist: those that symbols tell of, and those that were called.

Runs in the controller. Names come from the program: they are escaped so that a row stays a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from clew.export.este.code import NO_ROUTINE
from clew.export.este.images import EsteImage, find_section

if TYPE_CHECKING:
    from clew.export.este.code import EsteCode

__all__ = ["ROUTINE_HEADER", "Routines", "escape_field", "escape_line"]

ROUTINE_HEADER: Final = "idx,addr,rtn_name,image_idx,section_idx\n"
MAX_NAME: Final = 4096


class Routines:
    """The routines of a process, numbered in the order of their rows, which go to `file` at once.

    First come those of the images that are not whitelisted, by image and address; then those which were called
    and have no symbol, in the order of their first calls.
    """

    def __init__(self, code: EsteCode, file: TextIO) -> None:
        self._code = code
        self._file = file
        self._known: dict[int, int] = {}
        self._names: list[str] = []
        self._of_block: dict[int, int] = {}
        file.write(ROUTINE_HEADER)
        executed = code.list_functions()
        for image in code.images:
            if not image.is_whitelisted:
                self._add_image(image, executed.get(image.idx, {}))

    def __len__(self) -> int:
        return len(self._names)

    def name(self, idx: int) -> str:
        """The name of routine `idx`."""
        return self._names[idx]

    def find(self, block: int) -> int:
        """The routine that a call of a block calls, which is made known if it is not: NO_ROUTINE for blocks that are
        told of themselves."""
        known = self._of_block.get(block)
        if known is None:
            known = NO_ROUTINE
            if block >= 0 and not self._code.is_white[block]:
                address = int(self._code.pc[block])
                known = self._known.get(address, NO_ROUTINE)
                if known == NO_ROUTINE:
                    image = int(self._code.image[block])
                    known = self._add(address, "", self._code.images[image] if image >= 0 else None)
            self._of_block[block] = known
        return known

    def _add_image(self, image: EsteImage, executed: dict[int, str]) -> None:
        symbols = image.file.symbols
        names: dict[int, int | str] = dict(executed)
        for number, offset in enumerate(symbols.offsets.tolist()):
            if offset < image.end - image.base:
                names[image.base + offset] = number
        for address in sorted(names):
            if address not in self._known:
                name = names[address]
                self._add(address, symbols.name(name) if isinstance(name, int) else name, image)

    def _add(self, address: int, name: str, image: EsteImage | None) -> int:
        idx = len(self._names)
        name = name[:MAX_NAME] or f"sub_{address:x}"
        self._known[address] = idx
        self._names.append(name)
        number = -1 if image is None else image.idx
        self._file.write(f"{idx},{address},{escape_field(name)},{number},{find_section(image, address)}\n")
        return idx


def escape_line(text: str) -> str:
    """`text` on one line: what could not be printed is written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode("ascii")
        for character in text
    )


def escape_field(text: str) -> str:
    """A field of a CSV file: on one line, and quoted if it has a comma or a quote; all else as it is."""
    text = escape_line(text)
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text
