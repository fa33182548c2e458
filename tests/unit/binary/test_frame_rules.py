"""Rules by which unwinders come from a frame to its caller's, beside what readelf says of the same files."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.binary.dwarf_expression import evaluate
from clew.binary.elf import open_elf
from clew.binary.frame_rules import FrameRules

LIBRARY = Path("/lib/x86_64-linux-gnu/libc.so.6")
N_PLACES = 300
NUMBERS = {"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7} | {
    f"r{number}": number for number in range(8, 16)
}


def read_rows() -> list[tuple[int, str, dict[str, str]]]:
    """Of each row of the interpreted tables: from where it holds, the frame's address, and rules by register."""
    text = subprocess.run(["readelf", "--debug-dump=frames-interp", LIBRARY], capture_output=True, text=True).stdout
    rows, names = [], []
    for line in text.splitlines():
        if line.strip().startswith("LOC"):
            names = line.split()[2:]
        match = re.match(r"^([0-9a-f]{16}) (\S+)\s+(.*)$", line)
        if match and names and " FDE " not in line and " CIE" not in line:
            rows.append((int(match[1], 16), match[2], dict(zip(names, match[3].split(), strict=False))))
    return rows


@pytest.mark.skipif(not LIBRARY.exists() or shutil.which("readelf") is None, reason="no libc, or no readelf")
def test_rules_are_those_that_readelf_finds() -> None:
    rows = [row for row in read_rows() if row[0]]
    chosen = random.Random(3).sample(rows, N_PLACES)
    n_compared = 0
    with open_elf(LIBRARY) as elf:
        rules = FrameRules(elf)
        for place, frame, registers in chosen:
            rule = rules.find(place)
            if rule is None:
                # Of an entry in common, whose rows begin at 0.
                continue
            match = re.fullmatch(r"(r\w+)([+-]\d+)", frame)
            if match is None:
                assert frame == "exp" and rule.code is not None
                continue
            n_compared += 1
            assert (rule.register, rule.offset) == (NUMBERS[match[1]], int(match[2])), hex(place)
            for name, said in registers.items():
                number = rule.return_column if name == "ra" else NUMBERS[name]
                if said.startswith("c"):
                    found = rule.registers[number]
                    assert (found.kind, found.number) == ("offset", int(said[1:])), hex(place)
                elif said == "u":
                    assert number not in rule.registers or rule.registers[number].kind == "undefined"
    assert n_compared > N_PLACES // 2


def test_where_there_is_no_function_there_is_no_rule() -> None:
    if not LIBRARY.exists():
        pytest.skip("no libc")
    with open_elf(LIBRARY) as elf:
        rules = FrameRules(elf)
        assert rules.find(0) is None
        assert rules.find(1 << 40) is None


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (b"\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", 0x1008),  # as in procedure linkage tables
        (b"\x30\x1f", 0),
        (b"\x31\x1f", (1 << 64) - 1),
        (b"\x09\xfb\x19", 5),
        (b"\x77\x08\x06", 0x99),
        (b"\x77\x00\x94\x01", 0x42),
        (b"\x35\x32\x12\x16\x1c", 0),
        (b"\x31\x30\x28\x01\x00\x35", 5),
        (b"\x2f\xfd\xff", None),  # for ever
        (b"\x22", None),
        (b"\x30\x30\x1b", None),
        (b"\xff", None),
        (b"\x0e\x01", None),
    ],
)
def test_expressions(expression: bytes, value: int | None) -> None:
    def read(address: int, size_bytes: int) -> int | None:
        return {(0x1008, 8): 0x99, (0x1000, 1): 0x42}.get((address, size_bytes))

    assert evaluate(expression, {7: 0x1000, 16: 0}, read) == value
