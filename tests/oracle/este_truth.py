"""What Este's files are to say of a program, from single-stepping it and from what binutils say of its files.

Runs on the machine that tests. Shares no code with clew: blocks are cut by the definition, decoded by capstone.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.e2e.runs import FIXED_LAYOUT, Run, run
from tests.oracle.truth import Decoder, Instruction

HERE = Path(__file__).with_name("este")
PAGE = 4096
MADE = 0x10000000
MADE_CODE = bytes.fromhex("488d4707eb00c3")
MAIN, OUTSIDE = "program", "libeste-outside.so"
_STEP, _SIGNAL = 1, 2
_RECORD = np.dtype([("tid", "<u4"), ("kind", "<u4"), ("pc", "<u8")])
_CALLS = ("call", "indirect_call", "jump", "indirect_jump")

Link = tuple[int, int, bool, str | None]


def build(folder: Path) -> None:
    """Compile the stepper, the program and its library; a copy of the library keeps its symbols."""
    flags = ["-Wall", "-Wextra", "-Werror", "-fcf-protection=none", "-fno-stack-protector"]
    library: list[str | Path] = ["-O1", *flags, "-shared", "-fPIC", "-nostdlib", "-Wl,-z,lazy", HERE / "outside.c"]
    commands: tuple[list[str | Path], ...] = (
        ["-O2", *flags, "-o", folder / "stepper", HERE / "stepper.c"],
        [*library, "-o", folder / "named.so"],
        [*library, "-s", "-o", folder / OUTSIDE],
        # The program's own calls of its library go by stubs, which look for their routines at their first call.
        ["-O2", *flags, "-nostdlib", "-no-pie", "-Wl,-z,lazy", "-Wl,-rpath,$ORIGIN", "-o", folder / MAIN,
         HERE / "program.c", folder / OUTSIDE],
    )  # fmt: skip
    for command in commands:
        subprocess.run(["gcc", *command], check=True)


@dataclass(frozen=True)
class Section:
    """Addresses, as a file has them, of a section with code, and what is in it."""

    start: int
    content: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.content)


def read_sections(path: Path) -> list[Section]:
    """Sections with code, as readelf tells of them."""
    text = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout
    content = path.read_bytes()
    found = []
    for line in text.splitlines():
        fields = re.sub(r"^ *\[ *\d+\] ", "", line).split()
        if len(fields) >= 10 and fields[1] in ("PROGBITS", "NOBITS") and "X" in fields[6]:
            address, offset, size = (int(field, 16) for field in fields[2:5])
            found.append(Section(address, content[offset : offset + size]))
    return found


def read_end(path: Path) -> int:
    """The address, as a file has it, of the page behind all that is loaded, as readelf tells."""
    text = subprocess.run(["readelf", "-lW", path], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    end = max(int(row[2], 16) + int(row[5], 16) for row in rows if row[:1] == ["LOAD"])
    return -(-end // PAGE) * PAGE


def read_functions(path: Path, *, is_dynamic: bool) -> dict[int, str]:
    """Names of functions by address, as readelf tells of them."""
    table = "--dyn-syms" if is_dynamic else "--syms"
    text = subprocess.run(["readelf", "-W", table, path], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return {
        int(row[1], 16): row[7].partition("@")[0]
        for row in rows
        if len(row) >= 8 and row[3] in ("FUNC", "IFUNC") and row[6] != "UND"
    }


@dataclass(frozen=True)
class Block:
    """A block that is told of: its address and its bytes."""

    pc: int
    code: bytes


@dataclass(frozen=True)
class Row:
    """A row of a thread: the address of a block, None for leaving; and the address of the routine that it called."""

    pc: int | None
    called: int | None


class Stepped:
    """A single-stepped run of the program in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        output = folder / "stepped"
        self.run: Run = run([*FIXED_LAYOUT, folder / "stepper", output, folder / MAIN])
        self._decoder = Decoder()
        self._sections = read_sections(folder / MAIN)
        self._decoded: dict[int, Instruction] = {}
        self.maps = Path(f"{output}.maps").read_text()
        self.threads: list[list[int | None]] = []
        """Addresses of what each thread executed, in the order of their first steps; None where a signal arrived."""
        numbers: dict[int, int] = {}
        for tid, kind, pc in np.fromfile(f"{output}.steps", _RECORD).tolist():
            number = numbers.setdefault(tid, len(numbers))
            if number == len(self.threads):
                self.threads.append([])
            path = self.threads[number]
            if kind == _SIGNAL:
                if path and path[-1] == pc:
                    path.pop()
                path.append(None)
            else:
                path.append(pc)

    def _decode(self, pc: int) -> Instruction:
        if pc not in self._decoded:
            sections = [*self._sections, Section(MADE, MADE_CODE)]
            section = next(section for section in sections if section.start <= pc < section.end)
            self._decoded[pc] = self._decoder.decode(pc, section.content[pc - section.start :][:16])
        return self._decoded[pc]

    def _is_told(self, pc: int, *, has_made: bool) -> bool:
        is_own = any(section.start <= pc < section.end for section in self._sections)
        return is_own or (has_made and MADE <= pc < MADE + len(MADE_CODE))

    def leaders(self, *, has_made: bool) -> set[int]:
        """Where blocks begin: what did not come from the instruction in front of it, in any thread."""
        found = set()
        for path in self.threads:
            before: Instruction | None = None
            for pc in path:
                if pc is None or not self._is_told(pc, has_made=has_made):
                    before = None
                    continue
                if before is None or before.flow != "none" or before.end != pc:
                    found.add(pc)
                before = self._decode(pc)
        return found

    def tell(self, *, has_made: bool) -> tuple[dict[int, Block], list[list[Row]]]:
        """The blocks by address, and the rows of each thread."""
        leaders = self.leaders(has_made=has_made)
        blocks: dict[int, Block] = {}
        threads = []
        for path in self.threads:
            rows: list[Row] = []
            is_inside = False
            for start, instructions, following in self._cut(path, leaders, has_made=has_made):
                if start is None:
                    if is_inside:
                        rows.append(Row(None, None))
                    is_inside = False
                    continue
                block = Block(start, b"".join(instruction.code for instruction in instructions))
                assert blocks.setdefault(start, block) == block
                goes_out = following is not None and not self._is_told(following, has_made=has_made)
                called = following if goes_out and instructions[-1].flow in _CALLS else None
                rows.append(Row(start, called))
                is_inside = True
            threads.append(rows)
        return blocks, threads

    def _cut(
        self, path: list[int | None], leaders: set[int], *, has_made: bool
    ) -> Iterator[tuple[int | None, list[Instruction], int | None]]:
        """Blocks, each with what came behind it (None for a signal), and None for each instruction outside."""
        at = 0
        while at < len(path):
            pc = path[at]
            if pc is None:
                at += 1
                continue
            if not self._is_told(pc, has_made=has_made):
                yield None, [], None
                at += 1
                continue
            assert pc in leaders
            instructions = [self._decode(pc)]
            at += 1
            while at < len(path) and path[at] == instructions[-1].end and path[at] not in leaders:
                instructions.append(self._decode(instructions[-1].end))
                at += 1
            yield pc, instructions, path[at] if at < len(path) else None


def count_links(rows: list[tuple[int, int]], name_of: dict[int, str]) -> Counter[Link]:
    """The links of a thread's graph, from its rows: numbers of blocks (-1: it left), and of the routines called."""
    links: Counter[Link] = Counter()
    last: tuple[int, int] | None = None
    is_across = False
    for block, called in rows:
        if block < 0:
            is_across = True
            continue
        if last is not None:
            name = name_of.get(last[1]) if is_across else None
            links[last[0], block, is_across, name] += 1
        last, is_across = (block, called), False
    return links
