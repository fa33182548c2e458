"""How probes could be planted in the machine's own libraries: by technique, for all instructions, entries and returns.

Run as `python -m bench.probe_sites [FILE...] [--sample N]`. Files are planned where they would be loaded, with nothing
else but themselves within reach; a plan counts if a trampoline fits there. N: only every Nth instruction is planned.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from clew.binary.elf import open_elf
from clew.errors import UsageError
from clew.probing.x86_64.exits import ExitKind, find_exits, iter_exit_plans
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.image_code import ImageCode, read_image_code
from clew.probing.x86_64.plans import SitePlan, Technique
from clew.probing.x86_64.sites import iter_plans
from clew.probing.x86_64.trampolines import find_place

LIBRARIES = ("libc.so.6", "libz.so.1", "libsqlite3.so.0", "libssl.so.3", "libcrypto.so.3", "libstdc++.so.6")
DIRECTORY = Path("/usr/lib/x86_64-linux-gnu")
TRAMPOLINE_BYTES = 256
LOAD_ADDRESS = 0x7F12_0000_0000
USER_END = 0x7FFF_FFFF_F000
FIRST_MAPPED = 0x10000
"""Below this nothing can be mapped (/proc/sys/vm/mmap_min_addr)."""


def find_files() -> list[Path]:
    """The libraries that are there, and Python."""
    python = next((path for path in (Path("/usr/bin/python3.11"), Path(sys.executable)) if path.exists()), None)
    files = [DIRECTORY / name for name in LIBRARIES] + ([python] if python else [])
    return [path for path in files if path.exists()]


def choose(plans: Iterable[SitePlan], free: list[tuple[int, int]]) -> SitePlan | None:
    """The first plan for which there is room."""
    for plan in plans:
        if find_place(plan, free, TRAMPOLINE_BYTES) is not None:
            return plan
    return None


class Table:
    """How many sites of a kind came out as what."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()

    def add(self, plans: Iterator[SitePlan], free: list[tuple[int, int]]) -> None:
        """Plan one site."""
        try:
            plan = choose(plans, free)
        except UsageError as error:
            self.counts["none"] += 1
            self.reasons[error.message.partition("the instruction at ")[2].partition(" ")[2] or error.message] += 1
            return
        self.counts[plan.technique.name.lower() if plan is not None else "none"] += 1

    def row(self) -> str:
        """As text: how many, and per cent of each technique."""
        n = sum(self.counts.values())
        names = [technique.name.lower() for technique in Technique] + ["none"]
        parts = [f"{100 * self.counts[name] / max(n, 1):12.3f}" for name in names]
        return f"  {self.name:12} {n:8}" + "".join(parts)


def measure(path: Path, sample: int) -> None:
    """Plan all sites of a file and print what came out."""
    with open_elf(path) as elf:
        base = LOAD_ADDRESS if elf.lowest_address == 0 else elf.lowest_address
        begun = time.perf_counter()
        image: ImageCode = read_image_code(elf, base)
        decoded = time.perf_counter()
        free = [(FIRST_MAPPED, base), (base + elf.loaded_bytes, USER_END)]
    instructions, entries, returns, tails = (Table(n) for n in ("instructions", "entries", "returns", "tails"))
    # The best technique of each site alone: whether several fit beside each other is not asked.
    planned = 0
    for code in image.functions:
        planned += plan_function(code, image, free, instructions, entries, returns, tails, sample)
    done = time.perf_counter()
    n = sum(code.n_instructions for code in image.functions)
    print(f"{path.name}: {len(image.functions)} functions, {n} instructions", end="")
    print(f"; decoded in {decoded - begun:.1f} s, {planned} sites planned in {done - decoded:.1f} s")
    print(f"  {'':12} {'':8}" + "".join(f"{t.name.lower():>12}" for t in Technique) + f"{'none':>12}")
    for table in (instructions, entries, returns, tails):
        print(table.row())
    for table in (instructions, returns):
        for reason, count in table.reasons.most_common(4):
            print(f"    no probe in {table.name}: {count} times: {reason}")


def plan_function(
    code: FunctionCode,
    image: ImageCode,
    free: list[tuple[int, int]],
    instructions: Table,
    entries: Table,
    returns: Table,
    tails: Table,
    sample: int,
) -> int:
    """Plan the sites of a function; how many."""
    n = 1
    entries.add(iter_plans(code.start, code, image.entries, branches=image.branches), free)
    for index in range(0, code.n_instructions, sample):
        address = code.starts[index]
        instructions.add(iter_plans(address, code, image.entries, branches=image.branches), free)
        n += 1
    for site in find_exits(code):
        table = returns if site.kind == ExitKind.RETURN else tails
        table.add(iter_exit_plans(site.address, code, image.entries, branches=image.branches), free)
        n += 1
    return n


def main(arguments: list[str]) -> int:
    """Print tables of all files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sample", type=int, default=1, metavar="N")
    asked = parser.parse_args(arguments)
    for path in asked.files or find_files():
        measure(path, max(asked.sample, 1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
