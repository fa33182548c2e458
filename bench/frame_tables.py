"""How long it takes to make the tables by which threads unwind their stacks at probes, and how large they are.

Run as `python -m bench.frame_tables [FILE...]`: by default the C library that this Python has loaded. Processor time is
the least of a few runs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bench.machine import describe_machine
from clew.binary.elf import PF_X, PT_LOAD, open_elf
from clew.binary.frame_tables import frame_rows, pack_rows

N_RUNS = 5


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(prog="bench.frame_tables")
    parser.add_argument("files", nargs="*", type=Path)
    files = parser.parse_args(arguments).files or [find_c_library()]
    machine = describe_machine([])
    print(f"{machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}")
    print(f"{'':40} {'code':>10} {'rows':>10} {'table':>10} {'processor time':>15}")
    for path in files:
        with open_elf(path) as elf:
            code_bytes = sum(one.file_bytes for one in elf.segments if one.kind == PT_LOAD and one.flags & PF_X)
            times = []
            for _ in range(N_RUNS):
                began = time.process_time()
                rows = frame_rows(elf)
                table = b"" if rows is None else pack_rows(rows)
                times.append(time.process_time() - began)
        n_rows = 0 if rows is None else len(rows)
        sizes = f"{code_bytes / 2**20:6.1f} MiB {n_rows:10,} {len(table) / 2**10:6,.0f} KiB"
        print(f"{path.name:40} {sizes} {1000 * min(times):12.1f} ms")
    return 0


def find_c_library() -> Path:
    """Of this process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return Path(next(line.split()[-1] for line in lines if "/libc.so" in line or "/libc-" in line))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
