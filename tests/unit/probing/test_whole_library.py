"""All functions of a library of the machine's own, probed at once where they begin and where they are left.

What it computes stays the same, and each function is left as often as it is entered.
"""

from __future__ import annotations

import ctypes
import random
import shutil
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from clew.binary.elf import PT_LOAD, open_elf
from clew.errors import UsageError
from clew.probing.x86_64.exits import ExitKind, find_exits, iter_exit_plans
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.image_code import ImageCode, read_image_code
from clew.probing.x86_64.plans import SitePlan, Technique
from clew.probing.x86_64.relocation import Inserted, relocate
from clew.probing.x86_64.sites import find_instruction, iter_plans
from clew.probing.x86_64.trampolines import find_place
from clew.probing.x86_64.windows import Forbidden
from tests.unit.probing.native import Native, apart, counting_code, free_ranges, make_writable, map_at

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/libz.so.1")
ROOM = 1024
DATA = b"".join(random.Random(3).choice((b"the clew ", b"of thread ", b"led out ")) for _ in range(20000))


class Site(NamedTuple):
    """A place that is to be probed, in front of `instruction`, or where that branches, if `taken`; `plans` makes plans
    beside what is forbidden."""

    address: int
    instruction: int
    plans: Callable[[list[Forbidden]], Iterable[SitePlan]]
    taken: bool = False


def _count(counter: int, scratch: int, _: int) -> bytes:
    return counting_code(counter, scratch)


def sites_of(image: ImageCode, code: FunctionCode) -> list[Site]:
    """Where a function begins, and where it is left."""

    def entry(forbidden: list[Forbidden]) -> Iterable[SitePlan]:
        return iter_plans(code.start, code, image.entries, forbidden=forbidden, branches=image.branches)

    def left(address: int, forbidden: list[Forbidden]) -> Iterable[SitePlan]:
        return iter_exit_plans(address, code, image.entries, forbidden=forbidden, branches=image.branches)

    exits = [
        Site(site.address, site.address, partial(left, site.address), site.kind == ExitKind.CONDITIONAL_TAIL)
        for site in find_exits(code)
    ]
    return [Site(code.start, find_instruction(code.start, code, image.entries), entry), *exits]


class Probes:
    """Plans for many sites of an image, none of which disturbs another one, and what each of them runs."""

    def __init__(self, image: ImageCode, cells: int) -> None:
        self.image = image
        self.plans: list[SitePlan] = []
        self.inserted: list[dict[int, Inserted]] = []
        self.taken: list[dict[int, Inserted]] = []
        self.places: list[int] = []
        self.claimed: list[Forbidden] = []
        self.free = free_ranges()
        self.cells, self.n_cells = cells, 0

    def add(self, site: Site, wanted: set[int]) -> int:
        """Plan one more, by the first plan for which there is room and that leaves room for what else is wanted; the
        number of its counter."""
        number, self.n_cells = self.n_cells, self.n_cells + 1
        inserted: Inserted = partial(_count, self.cells + 8 * number, self.cells - 32)
        at = site.instruction
        for index, plan in enumerate(self.plans):
            shared = plan.find_index(at)
            if shared is not None:
                (self.taken if site.taken else self.inserted)[index][shared] = inserted
                return number
        for plan in site.plans(self.claimed):
            place = find_place(plan, self.free, ROOM)
            if place is not None and not any(plan.disturbs(other) for other in wanted):
                break
        else:
            raise UsageError(f"{site.address:#x}: no room")
        self.plans.append(plan)
        self.inserted.append({} if site.taken else {plan.probe_index: inserted})
        self.taken.append({plan.probe_index: inserted} if site.taken else {})
        self.places.append(place)
        self.claimed += [Forbidden(*claim, "is patched already") for claim in plan.claimed]
        map_at(place, ROOM)
        self.free = free_ranges()
        return number

    def write(self) -> dict[int, int]:
        """Patch all of them; the guards, and where they lead."""
        guards: dict[int, int] = {}
        for plan, inserted, taken, place in zip(self.plans, self.inserted, self.taken, self.places, strict=True):
            copy = relocate(plan.displaced, place, inserted, taken)
            assert len(copy.code) <= ROOM
            ctypes.memmove(place, copy.code, len(copy.code))
            guards |= {at: copy.starts[plan.displaced[index].address] for at, index in plan.guards.items()}
        for plan, place in zip(self.plans, self.places, strict=True):
            assert ctypes.string_at(plan.patch_address, len(plan.original)) == plan.original
            ctypes.memmove(plan.patch_address, plan.patch(place), len(plan.original))
            for branch in plan.branches:
                ctypes.memmove(branch.end - 4, (place - branch.end).to_bytes(4, "little", signed=True), 4)
        return guards


def load(folder: Path) -> tuple[ctypes.CDLL, ImageCode]:
    """The library, as nobody else in this process uses it, and its code."""
    path = folder / "libz-probed.so"
    shutil.copy(LIBRARY, path)
    library = ctypes.CDLL(str(path))
    with open_elf(path) as elf:
        base = min(
            int(line.split("-")[0], 16)
            for line in Path("/proc/self/maps").read_text().splitlines()
            if str(path) in line
        )
        for segment in elf.segments:
            if segment.kind == PT_LOAD and segment.flags & 1:
                make_writable(base + segment.address, segment.memory_bytes)
        return library, read_image_code(elf, base)


def compute(library: ctypes.CDLL) -> list[bytes]:
    """What it makes of the data: compressed in several ways, and that back again, and sums."""
    results = []
    for level in (1, 6, 9):
        packed = ctypes.create_string_buffer(len(DATA) + 1000)
        size = ctypes.c_ulong(len(packed))
        assert library.compress2(packed, ctypes.byref(size), DATA, ctypes.c_ulong(len(DATA)), level) == 0
        results.append(packed.raw[: size.value])
        back = ctypes.create_string_buffer(len(DATA))
        length = ctypes.c_ulong(len(back))
        assert library.uncompress(back, ctypes.byref(length), packed, size) == 0
        results.append(back.raw[: length.value])
        # A damaged one.
        bad = bytearray(results[-2])
        bad[len(bad) // 2] ^= 0x10
        length = ctypes.c_ulong(len(back))
        results.append(b"%d" % library.uncompress(back, ctypes.byref(length), bytes(bad), size))
    results.append(b"%d" % library.crc32(0, DATA, len(DATA)))
    return results


@pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not installed")
@apart
def test_all_functions_at_once(native: Native, tmp_path: Path) -> None:
    library, image = load(tmp_path)
    if hasattr(ctypes.CDLL(None), "deflate"):
        pytest.skip("this Python is linked against the library: what is loaded now calls functions of that one")
    wanted = compute(library)
    assert zlib.decompress(wanted[0]) == wanted[1] == DATA
    probes = Probes(image, native.cells)
    sites = {code.start: sites_of(image, code) for code in image.functions}
    addresses = {site.address for found in sites.values() for site in found}
    functions = {start: [probes.add(site, addresses) for site in found] for start, found in sites.items()}
    native.set_places(probes.write())
    assert compute(library) == wanted
    counts = native.read_cells(probes.n_cells)
    n_run = 0
    for start, (entry, *exits) in functions.items():
        n_run += counts[entry] > 0
        assert counts[entry] == sum(counts[number] for number in exits), hex(start)
    assert n_run > 20
    techniques = [plan.technique for plan in probes.plans]
    assert techniques.count(Technique.TRAP) < len(techniques) / 20
