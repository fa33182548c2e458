"""The variables of a file: mangled debugging information is refused, in little time, and with no other error."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.binary.architectures.x86_64 import X86_64
from clew.binary.debug_file import DebugFile
from clew.binary.debug_types import type_of
from clew.binary.elf import open_elf
from clew.binary.frame_rules import FrameRules
from clew.binary.symbols import load_symbols
from clew.binary.thread_locals import ThreadLocals, find_data_symbol
from clew.binary.variable_places import Constant, Operation, ThreadPointer
from clew.binary.variables import CodePlace, DebugVariable
from clew.errors import BinaryError
from tests.programs.build import SOURCES

FUNCTIONS = ("locals", "inside_locals", "by_value", "walk")
SECTIONS = ("info", "abbrev", "loclists", "rnglists", "loc", "ranges", "str", "line", "aranges")
N_MANGLED = 150
SECONDS = 20.0


@pytest.fixture(scope="module", params=[pytest.param("-gdwarf-4", marks=pytest.mark.long), "-gdwarf-5"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("variables") / "program"
    source = SOURCES / "sessions/variables.c"
    subprocess.run(["gcc", "-O1", request.param, "-o", path, source], check=True)
    return path


class Places:
    """The places of some functions in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        symbols = load_symbols(path)
        self.offsets = [int(symbols.find_by_name(name)[0][0]) for name in FUNCTIONS]

    def read(self, file: DebugFile) -> Iterator[str]:
        """All that is said of all of them."""
        with open_elf(self.path) as elf:
            local = ThreadLocals(elf, is_program=True)
            for offset in self.offsets:
                place = CodePlace(
                    file,
                    elf.lowest_address + offset,
                    X86_64,
                    FrameRules(elf),
                    0,
                    lambda offset: local.address(offset, 0),
                    lambda name: None,
                )
                try:
                    for one in place.variables():
                        yield f"{one.name} {self._describe(place, one)}"
                    yield f"{place.result}, {place.find_type('struct node')}"
                except BinaryError as error:
                    yield error.message

    def _describe(self, place: CodePlace, one: DebugVariable) -> str:
        try:
            kind = type_of(one.entry)
            text = f"{kind} {kind.kind} {kind.size_bytes} {kind.is_signed}"
            return f"{text} {place.place(one).address is None} {place.convention.result}"
        except BinaryError as error:
            return error.message


def test_variables_are_known(program: Path) -> None:
    lines = list(Places(program).read(DebugFile(program)))
    assert any(line.startswith("values int[4]") for line in lines)
    assert any(line.startswith("node struct node *") for line in lines)
    assert lines[-1] == "struct node *, struct node"


def mangle(content: bytes, dice: random.Random) -> bytes:
    """With some bytes changed, or cut off."""
    changed = bytearray(content)
    for _ in range(dice.choice([1, 2, 5, 40])):
        if changed:
            at = dice.randrange(len(changed))
            changed[at] = dice.choice(
                [0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256), changed[at] ^ 1 << dice.randrange(8)]
            )
    return bytes(changed[: dice.randrange(len(changed) + 1)] if dice.random() < 0.1 else changed)


def test_mangled_information_is_refused(program: Path) -> None:
    dice = random.Random(12)
    places = Places(program)
    whole = DebugFile(program)
    assert whole.sections is not None
    contents = {name: whole.sections.read(name) for name in SECTIONS}
    start = time.monotonic()
    n_lines = 0
    for _ in range(N_MANGLED):
        file = DebugFile(program)
        assert file.sections is not None
        for name in dice.sample(SECTIONS, dice.choice([1, 1, 2, 4])):
            file.sections._contents[name] = mangle(contents[name], dice)
        # Whatever it says: in the end it says something, and raises nothing else.
        n_lines += len(list(places.read(file)))
    assert n_lines > N_MANGLED
    assert time.monotonic() - start < SECONDS * 5


def test_a_type_that_is_another_name_of_itself_is_refused(program: Path) -> None:
    file = DebugFile(program)
    assert file.sections is not None
    info = bytearray(file.sections.read("info"))
    unit = file.units[0]
    typedef = next(one for one in unit.root.children() if one.name == "node_t")
    # Its type is the last attribute, a reference of four bytes.
    info[typedef.end - 4 : typedef.end] = (typedef.offset - unit.offset).to_bytes(4, "little")
    again = DebugFile(program)
    assert again.sections is not None
    again.sections._contents["info"] = bytes(info)
    entry = next(one for one in again.units[0].root.children() if one.name == "first")
    with pytest.raises(BinaryError, match="another name of itself"):
        _ = type_of(entry).kind


def test_thread_locals_of_a_program_end_at_the_thread_pointer(program: Path) -> None:
    with open_elf(program) as elf:
        symbol = find_data_symbol(elf, "own_number", is_thread_local=True)
        assert symbol is not None and symbol.size_bytes == 4
        assert find_data_symbol(elf, "own_number", is_thread_local=False) is None
        assert find_data_symbol(elf, "umber", is_thread_local=True) is None
        address = ThreadLocals(elf, is_program=False).address(symbol.value, 0)
    assert isinstance(address, Operation) and address.left == ThreadPointer()
    assert isinstance(address.right, Constant) and -64 <= address.right.value - (1 << 64) < 0


def test_split_information_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "split"
    source = SOURCES / "sessions/variables.c"
    command: list[str | Path] = ["gcc", "-O0", "-gdwarf-5", "-gsplit-dwarf", "-o", program, source]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert any("other files (-gsplit-dwarf)" in line for line in Places(program).read(DebugFile(program)))
