"""Tables for unwinding, beside the rules that are read of one place at a time, and what they are packed to."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from clew.binary import frame_tables
from clew.binary.elf import open_elf
from clew.binary.frame_rules import FrameRule, FrameRules
from clew.binary.frame_tables import frame_rows, pack_rows
from clew.binary.vdso import open_vdso

LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
NOTHING, STACK, FRAME, STORED, STUB, SIGNAL, OUTERMOST, ASK = range(8)
SAME, LOST, THERE = 0, 1, 255
N_PLACES = 3000

Said = tuple[int, ...]


def said_by(rule: int) -> Said:
    """What a packed rule says: its kind; of ordinary ones the offset, in bytes, and where the frame pointer is."""
    kind, saved, offset = rule & 15, rule >> 4 & 255, rule >> 12
    offset -= offset >> 19 << 20
    return (kind, 8 * offset, saved) if kind in (STACK, FRAME, STORED) else (kind,)


def wanted(rule: FrameRule | None) -> Said | None:
    """The same of a rule that was read; None: what it says is an expression."""
    if rule is None:
        return (NOTHING,)
    address = rule.registers.get(16)
    if rule.is_signal or rule.code is not None:
        return None
    if address is None or address.kind == "undefined":
        return (OUTERMOST,)
    if (address.kind, address.number) != ("offset", -8) or rule.register not in (6, 7) or rule.offset % 8:
        return (ASK,)
    pointer = rule.registers.get(6)
    saved = LOST
    if pointer is None:
        saved = SAME
    elif pointer.kind == "offset" and pointer.number % 8 == 0 and -255 * 8 < pointer.number <= -16:
        saved = -pointer.number // 8
    elif pointer.kind == "expression" and pointer.code == b"\x76\0":
        saved = THERE
    return (STACK if rule.register == 7 else FRAME, rule.offset, saved)


@pytest.mark.parametrize("path", [LIBC, LOADER, Path(shutil.which("bash") or "/none")], ids=lambda one: one.name)
def test_rules_are_those_of_each_place(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"{path} is not here")
    chosen = random.Random(5)
    with open_elf(path.resolve()) as elf:
        rows = frame_rows(elf)
        assert rows is not None and len(rows) > 1000
        offsets = (rows >> np.uint64(32)).astype(np.int64)
        assert (np.diff(offsets) > 0).all()
        rules, n_of_kind = FrameRules(elf), dict.fromkeys(range(8), 0)
        for _ in range(N_PLACES):
            place = int(chosen.choice(offsets)) + chosen.choice([0, 0, 1, -1, 7])
            index = int(np.searchsorted(offsets, place, side="right")) - 1
            said = said_by(int(rows[index]) & 0xFFFFFFFF) if index >= 0 else (NOTHING,)
            asked = wanted(rules.find(place + elf.lowest_address))
            assert asked in (said, None), hex(place)
            n_of_kind[said[0]] += 1
        assert n_of_kind[STACK] > N_PLACES // 2 and n_of_kind[NOTHING]


@pytest.mark.skipif(not LIBC.exists(), reason="no libc")
def test_what_handlers_return_to_and_stubs_are_known() -> None:
    with open_elf(LIBC.resolve()) as elf:
        rows = frame_rows(elf)
        assert rows is not None
        kinds = {said_by(int(row) & 0xFFFFFFFF)[0] for row in rows}
        assert kinds >= {SIGNAL, STUB, OUTERMOST}
        section = elf.find_section(".plt")
        assert section is not None
        place = section.address - elf.lowest_address + 16
        index = int(np.searchsorted(rows >> np.uint64(32), np.uint64(place), side="right")) - 1
        assert said_by(int(rows[index]) & 0xFFFFFFFF) == (STUB,)


def test_a_file_without_rules_has_what_handlers_return_to(tmp_path: Path) -> None:
    source, program = tmp_path / "bare.S", tmp_path / "bare"
    source.write_text(
        ".globl _start\n_start: nop\nreturns: mov $15, %rax\nsyscall\nother: mov $15, %eax\nsyscall\nnop\n"
    )
    subprocess.run(["gcc", "-nostdlib", "-static", "-o", program, source], check=True)
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    places = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines()}
    with open_elf(program) as elf:
        rows = frame_rows(elf)
        assert rows is not None
        found = [(int(row) >> 32, said_by(int(row) & 0xFFFFFFFF)) for row in rows]
        start = places["returns"] - elf.lowest_address
        assert found == [(start, (SIGNAL,)), (start + 9 + 7, (NOTHING,))]


def test_the_vdso_has_rules() -> None:
    with open_vdso() as elf:
        rows = frame_rows(elf)
        assert rows is not None and len(rows) > 10


@pytest.mark.skipif(not LIBC.exists(), reason="no libc")
def test_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_tables, "MAX_SECTION_BYTES", 1 << 10)
    with open_elf(LIBC) as elf:
        assert frame_rows(elf) is None


def test_rows_are_packed_with_where_to_look_first() -> None:
    places = [0x1005, 0x1010, 0x10FF, 0x1105, 0x1900, 0x1905]
    rows = np.array([place << 32 | index for index, place in enumerate(places)], np.uint64)
    packed = pack_rows(rows)
    first, log2, n_rows, n_buckets = struct.unpack_from("<IIII", packed)
    assert (first, log2, n_rows, n_buckets) == (0x1005, 8, 6, 10)
    buckets = struct.unpack_from(f"<{n_buckets + 1}I", packed, 16)
    for index in range(n_buckets):
        start = first + (index << 8)
        assert buckets[index] == sum(place < start for place in places)
    at = 16 + 4 * (n_buckets + 1) + 4
    assert at % 8 == 0 and struct.unpack_from("<6Q", packed, at) == tuple(rows.tolist())
    assert pack_rows(np.zeros(0, np.uint64)) == b""
