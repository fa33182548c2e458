"""Plans for all kinds of code of the machine's own libraries, held against another decoder."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import capstone
import pytest

from clew.binary.elf import open_elf
from clew.errors import UsageError
from clew.probing.x86_64.exits import find_exits, iter_exit_plans
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.image_code import ImageCode, read_image_code
from clew.probing.x86_64.jump_bytes import JUMP_SIZE
from clew.probing.x86_64.plans import SitePlan, Technique
from clew.probing.x86_64.relocation import relocate
from clew.probing.x86_64.sites import iter_plans
from clew.probing.x86_64.trampolines import find_place

FOLDER = Path("/usr/lib/x86_64-linux-gnu")
FILES = [
    path
    for path in (
        *(FOLDER / name for name in ("libc.so.6", "libz.so.1", "libcrypto.so.3", "libstdc++.so.6")),
        Path("/usr/bin/python3.11"),
    )
    if path.exists()
]
BASE = 0x7F12_0000_0000
ROOM = 256
N_FUNCTIONS = 120
_DECODER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_BRANCHES = ("j", "loop", "call")


@cache
def image_of(path: Path) -> tuple[ImageCode, list[tuple[int, int]]]:
    with open_elf(path) as elf:
        base = BASE if elf.lowest_address == 0 else elf.lowest_address
        return read_image_code(elf, base), [(0x10000, base), (base + elf.loaded_bytes, 1 << 47)]


def chosen_functions(image: ImageCode) -> list[FunctionCode]:
    return random.Random(7).sample(image.functions, min(N_FUNCTIONS, len(image.functions)))


class Other:
    """The same code by another decoder: sizes and names of instructions, and where branches lead."""

    def __init__(self, code: FunctionCode) -> None:
        self.sizes: dict[int, int] = {}
        self.names: dict[int, str] = {}
        self.targets: set[int] = set()
        length = code.starts[-1] - code.start
        # It ends at instructions that it does not know; the other decoder's starts lead on.
        for at in code.starts[:-1]:
            if at in self.sizes:
                continue
            for address, size, name, operands in _DECODER.disasm_lite(code.code[at - code.start : length], at):
                if address in self.sizes:
                    break
                self.sizes[address], self.names[address] = size, name
                if name.split()[-1].startswith(_BRANCHES) and operands.startswith("0x"):
                    self.targets.add(int(operands, 16))


def check_plan(code: FunctionCode, other: Other, plan: SitePlan, trampoline: int) -> None:
    at = plan.displaced[0].address
    assert at == plan.patch_address or plan.technique == Technique.BRANCHES
    for one in plan.displaced:
        assert one.address == at and other.sizes.get(at, len(one.code)) == len(one.code)
        at = one.end
    patch = plan.patch(trampoline)
    assert plan.original == code.code[plan.patch_address - code.start :][: len(plan.original)]
    changed = [plan.patch_address + index for index, byte in enumerate(patch) if byte != plan.original[index]]
    assert changed and (changed[0] == plan.patch_address or plan.original[0] == patch[0] == 0xE9)
    probed = plan.displaced[plan.probe_index].address
    assert probed == plan.address or other.names[plan.address] == "endbr64"
    # Nothing that is known comes to bytes that are changed, but to the first.
    assert not other.targets.intersection(range(plan.patch_address + 1, max(changed) + 1)) or plan.jump is None
    for address in changed:
        if address >= at and address < plan.patch_address + JUMP_SIZE:
            # Behind what is displaced: padding, and what is in front of it does not go on.
            starts = [start for start in other.sizes if at <= start <= address]
            assert starts and {other.names[start] for start in starts} <= {"nop", "int3"}
            assert plan.displaced[-1].code[0] in (0xC3, 0xC2, 0xE9, 0xEB, 0xFF, 0xF3, 0xF2, 0x0F, 0xF4, 0x3E, 0x48)
    if plan.jump is not None:
        ((_, size, name, operands),) = _DECODER.disasm_lite(patch[:JUMP_SIZE], plan.patch_address)
        assert (size, name, int(operands, 16)) == (JUMP_SIZE, "jmp", trampoline)
        for one in plan.displaced[1:]:
            # Each start within the bytes that are changed traps; those behind keep their bytes.
            if one.address in changed or one.address < plan.patch_address + JUMP_SIZE:
                assert one.address in plan.guards
                rest = list(_DECODER.disasm_lite(patch[one.address - plan.patch_address :] + bytes(15), 0))
                assert not rest or rest[0][2] in ("int3", "salc"), rest
        for one in plan.displaced[:-1]:
            assert not other.names.get(one.address, "").endswith(" call") and other.names.get(one.address) != "call"
    else:
        assert patch == b"\xcc"
    copy = relocate(plan.displaced, trampoline)
    assert len(copy.code) <= ROOM
    for one in plan.displaced:
        check_copy(one.code, one.address, copy.code[copy.starts[one.address] - trampoline :], copy.starts[one.address])


def check_copy(code: bytes, address: int, copied: bytes, copy_address: int) -> None:
    """What is no branch is the same, but for distances, and these lead to the same place."""
    first = next(_DECODER.disasm_lite(code, address), None)
    if first is None or first[2].split()[-1].startswith(_BRANCHES):
        return
    second = next(_DECODER.disasm_lite(copied, copy_address))
    if "rip" not in first[3]:
        assert copied.startswith(code)
        return
    assert second[1:3] == first[1:3]
    assert resolved(*first) == resolved(*second)


def resolved(address: int, size: int, name: str, operands: str) -> str:
    before, _, rest = operands.partition("rip")
    distance, _, behind = rest.partition("]")
    return f"{name} {before}{address + size + int(distance.replace(' ', '') or '0', 0):#x}{behind}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_plans_hold_by_another_decoder(path: Path) -> None:
    image, free = image_of(path)
    n_plans = n_placed = 0
    for code in chosen_functions(image):
        other = Other(code)
        sites = [(address, iter_plans) for address in code.starts[: code.n_instructions]]
        sites += [(site.address, iter_exit_plans) for site in find_exits(code)]
        for address, make in sites:
            try:
                plans = list(make(address, code, image.entries))
            except UsageError:
                assert code.index_of[address] + (other.names.get(address) == "endbr64") in {
                    code.index_of[at] for at in code.fixed
                }
                continue
            assert plans[-1].technique == Technique.TRAP
            for plan in plans:
                trampoline = find_place(plan, free, ROOM)
                n_plans += 1
                if trampoline is not None:
                    n_placed += 1
                    check_plan(code, other, plan, trampoline)
    assert n_placed > n_plans / 2 > 1000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_instructions_and_targets_are_those_of_another_decoder(path: Path) -> None:
    image, _ = image_of(path)
    for code in chosen_functions(image):
        other = Other(code)
        for at, end in zip(code.starts, code.starts[1:], strict=False):
            # What the other one does not know begins nowhere for it.
            assert other.sizes.get(at, end - at) == end - at or at in code.fixed
        inside = {target for target in other.targets if code.start <= target < code.end}
        assert inside <= code.targets
        assert code.targets - inside <= {target for found in code.tables.values() for target in found}


@pytest.mark.parametrize("path", FILES[:1], ids=lambda path: path.name)
def test_few_probes_trap(path: Path) -> None:
    """Of the C library's returns and entries, as many as this page's machine needs (bench/probe_sites.py)."""
    image, free = image_of(path)
    trapped = n_returns = n_entries = trapped_entries = 0
    for code in image.functions:
        exits = find_exits(code)
        for site in exits:
            plans = iter_exit_plans(site.address, code, image.entries, branches=image.branches)
            n_returns += 1
            trapped += next(p for p in plans if find_place(p, free, ROOM) is not None).technique == Technique.TRAP
        if code.start not in code.fixed:
            n_entries += 1
            plans = iter_plans(code.start, code, image.entries, branches=image.branches)
            found = next((plan for plan in plans if find_place(plan, free, ROOM) is not None), None)
            trapped_entries += found is None or found.technique == Technique.TRAP
    assert trapped <= n_returns / 100
    assert trapped_entries <= n_entries * 3 / 1000
