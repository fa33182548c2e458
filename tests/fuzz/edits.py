"""A random program, the same program with some of its instructions edited, and what a transformer does to make one of
the other.

Instructions that are edited have as much room in both, so that everything else lies at the same addresses, and both
leave the same behind if the transformer does what it says.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random

from clew.binary.elf import open_elf
from clew.sessions.transforms.blocks import CodeBlock
from tests.fuzz.differential import build, machine_features
from tests.fuzz.pieces import Piece
from tests.fuzz.program import Block, Function, Program, Variant, make_program

ROOM_BYTES = 48
"""Of three instructions."""
_NOT_EDITED = (
    "j",
    "call",
    "ret",
    "loop",
    "syscall",
    "int",
    "ud",
    "hlt",
    "x",
    "push",
    "pop",
    "std",
    "cld",
    "rep",
    "lock x",
)


@dataclass(frozen=True)
class Edit:
    """What becomes of the instruction at symbol `edit_N`: what stands in front of it, and behind it."""

    number: int
    before: str
    is_dropped: bool
    after: str

    def lines(self, line: str) -> Piece:
        label = f"edit_{self.number}"
        kept = () if self.is_dropped else (line,)
        before = (self.before,) if self.before else ()
        after = (self.after,) if self.after else ()
        return (f"{label}:", *before, f"{label}_1:", *kept, f"{label}_2:", *after, f"{label}_3:", _room(label))


def _room(label: str) -> str:
    return f".org {label}+{ROOM_BYTES}, 0x90"


def make_edits(program: Program, seed: int) -> tuple[Program, Program, list[Edit]]:
    """The program with room for edits, the edited one, and the edits."""
    random, edits = Random(seed), list[Edit]()
    both: list[list[Function]] = [[], []]
    for function in program.functions:
        blocks: list[list[Block]] = [[], []]
        for block in function.blocks:
            bodies = _edit_body(block.body, random, edits)
            for body, into in zip(bodies, blocks, strict=True):
                into.append(replace(block, body=body))
        for into, functions in zip(blocks, both, strict=True):
            functions.append(replace(function, blocks=tuple(into)))
    plain, edited = (program.with_functions(tuple(functions)) for functions in both)
    return plain, edited, edits


def _edit_body(
    body: tuple[Piece, ...], random: Random, edits: list[Edit]
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    plain, edited = list[Piece](), list[Piece]()
    lines = [piece[0] for piece in body if _is_editable(piece)]
    for piece in body:
        if not _is_editable(piece) or random.random() < 0.3:
            plain.append(piece)
            edited.append(piece)
            continue
        before, after = (random.choice(lines) if random.random() < share else "" for share in (0.5, 0.3))
        if "ip+" in after:
            # It is somewhere else in the edited program than right behind what is there now.
            after = ""
        edit = Edit(len(edits), before, random.random() < 0.5, after)
        edits.append(edit)
        label = f"edit_{edit.number}"
        plain.append((f"{label}:", piece[0], _room(label)))
        edited.append(edit.lines(piece[0]))
    return tuple(plain), tuple(edited)


def _is_editable(piece: Piece) -> bool:
    """Whether it is one instruction that goes on behind itself, and says nothing of where it is."""
    if len(piece) != 1 or ":" in piece[0] or "gs:" in piece[0]:
        return False
    return not piece[0].startswith(_NOT_EDITED)


@dataclass(frozen=True)
class Edited:
    """Both programs, built; `transform` makes the first one do what the second one does."""

    plain: Path
    edited: Path
    n_edits: int
    transform: Callable[[CodeBlock], None]


def fixed_program(seed: int, n_functions: int, variant: Variant = Variant.PLAIN) -> Program:
    """The first random program from that seed on that is linked at a fixed address."""
    programs = (make_program(each, machine_features(), n_functions, variant) for each in count(seed))
    return next(program for program in programs if program.is_fixed)


def build_edited(program: Program, seed: int, folder: Path) -> Edited:
    """Build both; the program is linked at a fixed address. Raises BadProgramError."""
    plain, edited, edits = make_edits(program, seed)
    folders = folder / "plain", folder / "edited"
    for one in folders:
        one.mkdir()
    binaries = [build(one, place) for one, place in zip((plain, edited), folders, strict=True)]
    addresses = _addresses(binaries[1])
    with open_elf(binaries[1]) as elf:
        text = elf.find_section(".text")
        assert text is not None
        code = elf.read(text.file_offset, text.size_bytes)
    places = {addresses[f"edit_{one.number}"]: one for one in edits}

    def piece(edit: Edit, first: str, last: str) -> bytes:
        start, end = (addresses[f"edit_{edit.number}{name}"] - text.address for name in (first, last))
        return code[start:end]

    def transform(block: CodeBlock) -> None:
        for instruction in block:
            edit = places.get(instruction.address)
            if edit is None:
                continue
            if edit.before:
                instruction.insert_before(piece(edit, "", "_1"))
            if edit.after:
                instruction.insert_after(piece(edit, "_2", "_3"))
            if edit.is_dropped:
                instruction.drop()

    return Edited(binaries[0], binaries[1], len(edits), transform)


def _addresses(binary: Path) -> dict[str, int]:
    words = [line.split() for line in subprocess.check_output(["nm", binary], text=True).splitlines()]
    return {word[2]: int(word[0], 16) for word in words if len(word) == 3}
