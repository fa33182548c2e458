"""Damages the headers of programs at random, executes them, and compares with native:
`python -m tests.fuzz.elf_headers --seed N --count M`.

Runs on the machine that tests. The kernel finds out of many such files only when the old program is gone, and kills; of
others the program itself faults before or in its first instruction. Nothing may differ, and nobody wait for ever.
"""

from __future__ import annotations

import argparse
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from clew.errors import ClewError, KilledAtStartError, NotExecutableError
from clew.process.launch import launch_stopped
from clew.process.program import Program
from tests.e2e import runs

BATCH: Final = 40
NATIVE_SECONDS: Final = 5
RECORDED_SECONDS: Final = 120

_HEADER_BYTES: Final = 64
_ENTRY_BYTES: Final = 56
_PT_LOAD, _PT_INTERP = 1, 3
_HEADER_FIELDS: Final = {"type": (16, 2), "entry": (24, 8), "phoff": (32, 8), "phentsize": (54, 2), "phnum": (56, 2)}
_ENTRY_FIELDS: Final = {
    "type": (0, 4),
    "flags": (4, 4),
    "offset": (8, 8),
    "vaddr": (16, 8),
    "filesz": (32, 8),
    "memsz": (40, 8),
    "align": (48, 8),
}
_EXTREMES: Final = (0, 1, 2, 3, 0xFFF, 0x1000, 0x1001, 1 << 31, (1 << 47) - 4096, 1 << 47, 1 << 63, (1 << 64) - 1)

_BASE: Final = """
.globl _start
_start: mov $42, %edi
 mov $60, %eax
 syscall
.data
 .long 1
.bss
 .skip 100000
"""


def make_bases(folder: Path) -> list[Path]:
    """A static and a dynamic program, to be damaged."""
    source = folder / "base.s"
    source.write_text(_BASE)
    static, dynamic = folder / "static", folder / "dynamic"
    for path, flags in (
        (static, ("-static",)),
        (dynamic, ("-pie", "-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2")),
    ):
        subprocess.run(["gcc", "-nostdlib", *flags, "-o", path, source], check=True)
    return [static, dynamic]


def damage(content: bytearray, random: Random) -> None:
    """Change one to three fields of an ELF file's header or of its table of segments; or cut the file off."""
    table, n_entries = struct.unpack_from("<Q", content, 32)[0], struct.unpack_from("<H", content, 56)[0]
    entries = [table + index * _ENTRY_BYTES for index in range(n_entries)]
    loaded = [at for at in entries if struct.unpack_from("<I", content, at)[0] in (_PT_LOAD, _PT_INTERP)]
    for _ in range(random.choice((1, 1, 2, 3))):
        match random.randrange(10):
            case 0:
                offset, size_bytes = random.choice(list(_HEADER_FIELDS.values()))
            case 1:
                del content[max(_HEADER_BYTES, random.randrange(len(content))) :]
                return
            case _:
                place, size_bytes = random.choice(list(_ENTRY_FIELDS.values()))
                offset = random.choice(loaded if random.random() < 0.8 else entries) + place
        limit = (1 << 8 * size_bytes) - 1
        before = int.from_bytes(content[offset : offset + size_bytes], "little")
        change = random.choice(
            (random.choice(_EXTREMES), before ^ 1 << random.randrange(8 * size_bytes), before + 4096)
        )
        content[offset : offset + size_bytes] = (change & limit).to_bytes(size_bytes, "little")


def build_driver(folder: Path) -> Path:
    """The program that executes others."""
    driver = folder / "spawn_each"
    subprocess.run(["gcc", "-O1", "-o", driver, Path(__file__).with_name("spawn_each.c")], check=True)
    return driver


def make_batch(folder: Path, bases: Sequence[Path], driver: Path, seeds: Sequence[int]) -> list[Path]:
    """A damaged program for each seed; left out are those that don't end by themselves."""
    batch = []
    for seed in seeds:
        random = Random(seed)
        content = bytearray(random.choice(bases).read_bytes())
        damage(content, random)
        path = folder / f"seed{seed}"
        path.write_bytes(content)
        path.chmod(0o755)
        if ends_by_itself(driver, path):
            batch.append(path)
    return batch


def ends_by_itself(driver: Path, path: Path) -> bool:
    """Whether a file can't be executed, or comes to an end. Not by a command that would take it for a script."""
    words = [*runs.FIXED_LAYOUT, os.fspath(driver), os.fspath(path)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            process.wait(NATIVE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False
    return True


def find_differences(driver: Path, batch: Sequence[Path], folder: Path) -> list[str]:
    """The lines that differ when a batch is executed under a recorder."""
    native = runs.run([*runs.FIXED_LAYOUT, driver, *batch])
    trace = folder / "elf.clew"
    recorded = runs.record([driver, *batch], trace, fixed_layout=True, timeout_seconds=RECORDED_SECONDS)
    if recorded.status != native.status:
        return [f"status {recorded.status}: {recorded.stderr.decode()}"]
    told = native.stdout.decode().splitlines()
    lines = zip(told, recorded.stdout.decode().splitlines(), strict=True)
    differences = [f"{first} recorded: {second}" for first, second in lines if first != second]
    # Of what starts the end is recorded above; addresses are randomised here.
    ends = zip(told, map(launch, batch), strict=True)
    return differences + [f"{first} launched: {end}" for first, end in ends if end is not None and end not in first]


def launch(path: Path) -> str | None:
    """How starting a file ended, as the driver says it; None: it starts, or is nothing that is followed."""
    try:
        with launch_stopped(Program(str(path), None), [os.fsencode(path)], []) as process:
            process.kill()
    except KilledAtStartError as error:
        return f"signal {error.signal}"
    except NotExecutableError:
        return "exit 127"
    except ClewError:
        pass
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first file's seed; the others follow")
    parser.add_argument("--count", type=int, default=200, help="how many files")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    arguments = parser.parse_args()
    start = time.monotonic()
    n_run = n_failures = 0
    with tempfile.TemporaryDirectory(prefix="clew-fuzz-") as programs:
        bases, driver = make_bases(Path(programs)), build_driver(Path(programs))
        for seed in range(arguments.seed, arguments.seed + arguments.count, BATCH):
            if time.monotonic() - start > arguments.seconds:
                break
            seeds = range(seed, min(seed + BATCH, arguments.seed + arguments.count))
            with tempfile.TemporaryDirectory(prefix="clew-fuzz-") as folder:
                batch = make_batch(Path(folder), bases, driver, seeds)
                n_run += len(batch)
                try:
                    differences = find_differences(driver, batch, Path(folder))
                except TimeoutError as error:
                    differences = [f"seeds {seeds.start} to {seeds.stop - 1}: {error}"]
                n_failures += len(differences)
                for line in differences:
                    print(line.replace(folder + os.sep, ""), flush=True)
    print(f"{n_run} programs with damaged headers: {n_failures} failures")
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
