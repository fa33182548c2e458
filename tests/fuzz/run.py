"""Fuzzes the translator: `python -m tests.fuzz.run --seed N --count M`.

Runs on the machine that tests. Makes random programs, compares recorded with native runs, makes what fails smaller and
saves it, with the command that repeats it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.differential import MODES, BadProgramError, Executed, Failure, find_failure, machine_features
from tests.fuzz.frame import assembly
from tests.fuzz.program import Program, Variant, make_program, make_stepped_program
from tests.fuzz.shrink import shrink

DEFAULT_FAILURES = Path("build/fuzz")


def fuzz_one(program: Program, executed: Executed) -> Failure | None:
    """How a program fails. BadProgramError when the program itself is wrong."""
    with tempfile.TemporaryDirectory(prefix="clew-fuzz-") as folder:
        return find_failure(program, Path(folder), executed=executed)


def shrink_failure(program: Program, failure: Failure, limit_seconds: float) -> Program:
    """A smaller program that fails in the same mode and kind."""

    def fails(candidate: Program) -> bool:
        with tempfile.TemporaryDirectory(prefix="clew-fuzz-") as folder:
            try:
                found = find_failure(candidate, Path(folder), modes=(failure.mode,))
            except BadProgramError:
                return False
        return found is not None and found.kind == failure.kind

    return shrink(program, fails, limit_seconds)


def save(program: Program, failure: Failure, command: str, folder: Path) -> Path:
    """Write the program's source, its head saying how it fails and how to repeat it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{failure.kind}-{failure.mode}-{program.variant.value}-{program.seed}.S"
    link = "-static -no-pie" if program.is_fixed else "-pie"
    details = failure.details.replace("*/", "* /")
    head = f"/* {failure.kind} in mode {failure.mode}: {details}\n   {command}\n   gcc -nostdlib {link} FILE */\n"
    path.write_text(head + assembly(program))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first program's seed; the others follow")
    parser.add_argument("--count", type=int, default=20, help="how many programs")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--functions", type=int, default=40, help="functions in each program")
    parser.add_argument("--variant", choices=[variant.value for variant in Variant], help="only this variant")
    parser.add_argument("--stepped", action="store_true", help="compare counts with single-stepping, which takes long")
    parser.add_argument("--shrink-seconds", type=float, default=90, help="time to make one failure smaller; 0: none")
    parser.add_argument("--failures", type=Path, default=DEFAULT_FAILURES, help="folder for failing programs")
    arguments = parser.parse_args()
    variant = Variant(arguments.variant) if arguments.variant else None
    start = time.monotonic()
    n_failures = n_run = 0
    executed = Executed()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        if time.monotonic() - start > arguments.seconds:
            break
        command = f"python -m tests.fuzz.run --count 1 --seed {seed} --functions {arguments.functions}"
        command += f" --variant {arguments.variant}" if arguments.variant else ""
        command += " --stepped" if arguments.stepped else ""
        if arguments.stepped:
            program = make_stepped_program(seed, arguments.functions)
        else:
            program = make_program(seed, machine_features(), arguments.functions, variant)
        n_run += 1
        try:
            failure = fuzz_one(program, executed)
        except BadProgramError as error:
            n_failures += 1
            print(f"seed {seed}: bad program: {error}\n    {command}", flush=True)
            continue
        if failure is None:
            continue
        n_failures += 1
        print(f"seed {seed} ({program.variant.value}): {failure.kind} in {failure.mode}: {failure.details}", flush=True)
        if arguments.shrink_seconds:
            program = shrink_failure(program, failure, arguments.shrink_seconds)
        path = save(program, failure, command, arguments.failures)
        print(f"    {program.n_pieces} pieces left in {path}\n    {command}", flush=True)
    against = "counts against single-stepping" if arguments.stepped else f"in modes {', '.join(MODES)}"
    print(f"{n_run} programs of {arguments.functions} functions, {against}: {n_failures} failures")
    if not arguments.stepped:
        print(f"{executed.instructions:,} instructions of theirs ran recorded in mode counts")
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
