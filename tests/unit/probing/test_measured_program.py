"""The program by which hits are measured is what its source says, and does what it is to do."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

from clew.binary.elf import open_elf
from clew.probing.native import MEASURED, Technique, plan_site
from clew.probing.x86_64.image_code import read_image_code
from clew.probing.x86_64.measured_program import MEASURED_SOURCE


def write(path: Path) -> Path:
    path.write_bytes(MEASURED.content)
    path.chmod(0o755)
    return path


def test_it_is_what_its_source_says(tmp_path: Path) -> None:
    made = tmp_path / "made.o"
    subprocess.run(["as", "-o", made, "-"], input=MEASURED_SOURCE.encode(), check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", made, tmp_path / "text"], check=True)
    with open_elf(write(tmp_path / "measured")) as elf:
        code = read_image_code(elf, elf.lowest_address)
    assert (tmp_path / "text").read_bytes() in MEASURED.content
    assert {one.start for one in code.functions} >= {MEASURED.jumped}


def test_a_jump_has_room_at_one_place_and_not_at_the_other(tmp_path: Path) -> None:
    with open_elf(write(tmp_path / "measured")) as elf:
        image = read_image_code(elf, elf.lowest_address)
    techniques = []
    for address in (MEASURED.jumped, MEASURED.trapped):
        code = next(one for one in image.functions if one.start <= address < one.end)
        techniques.append(plan_site(address, code, image.entries).technique)
    assert techniques[0] == Technique.JUMP and techniques[1] in (Technique.JUMP_PUNNED, Technique.TRAP)


def test_it_tells_its_time_until_its_input_ends(tmp_path: Path) -> None:
    with subprocess.Popen([write(tmp_path / "measured")], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        before = (0, 0)
        for request in (MEASURED.jump_request, MEASURED.trap_request) * 3:
            os.write(process.stdin.fileno(), request)
            times = struct.unpack("<4q", process.stdout.read(32))
            start, end = times[:2], times[2:]
            assert before < start < end
            before = end
        process.stdin.close()
        assert process.wait(10) == 0
