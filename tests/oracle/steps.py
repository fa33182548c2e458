"""Single-steps a command and reads what the stepper wrote.

Runs on the machine that tests. Knows nothing of basic blocks, and nothing of clew.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pickle
import shutil
import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.e2e import runs
from tests.e2e.runs import FIXED_LAYOUT, Command, Run, run
from tests.programs.build import build_plain, processor_features

SOURCE = Path(__file__).with_name("stepper.c")
CODE_BYTES = 16

CODE_DTYPE = np.dtype([("pc", "<u8"), ("bytes", f"V{CODE_BYTES}")])


class StepKind(IntEnum):
    """What a word of the step file is."""

    STEP = 1
    SIGNAL = 2
    WHICH = 3
    EXIT = 4
    EXECVE = 5
    HANDLE = 6


@dataclass(frozen=True)
class Steps:
    """What a command executed. `codes` has CODE_DTYPE; `kinds` and `values` are of the same length, in order."""

    codes: npt.NDArray[np.void]
    kinds: npt.NDArray[np.uint8]
    values: npt.NDArray[np.uint64]


def build_stepper() -> Path:
    """Compile the stepper when its source is newer."""
    return build_plain(SOURCE, "-O2", "-Wall", "-Wextra", "-Werror")


def single_step(command: Command, folder: Path, *, timeout_seconds: float = 900.0) -> tuple[Run, Steps]:
    """Run a command one instruction at a time, without address randomisation; its run, and its steps."""
    output = folder / "oracle"
    ran = run([*FIXED_LAYOUT, build_stepper(), output, *command], timeout_seconds=timeout_seconds)
    return ran, read_steps(output)


def is_static(program: Path) -> bool:
    """Whether a program is ELF and all that will run: no dynamic linker, no libraries that may be others tomorrow."""
    content = program.read_bytes()
    if content[:4] != b"\x7fELF":
        return False
    (first,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    interpreter = 3
    return all(struct.unpack_from("<I", content, first + n * size)[0] != interpreter for n in range(count))


def find_fingerprint(program: Path) -> str:
    """A hash of all that what a static program does depends on."""
    digest = hashlib.sha256()
    for path in (program, SOURCE, Path(__file__), Path(runs.__file__)):
        digest.update(path.read_bytes())
    machine = (os.uname().release, os.uname().version, sorted(processor_features()), sorted(runs.environment().items()))
    digest.update(repr(machine).encode())
    return digest.hexdigest()


class SteppedOnce:
    """Steps each command once, for all processes that have the same `folder`; static programs once for ever.

    What those do is kept in `kept`, until they or what they run on is another.
    """

    def __init__(self, folder: Path, kept: Path) -> None:
        self._folder = folder
        self._kept = kept

    def __call__(self, command: Command) -> tuple[Run, Steps]:
        """As `single_step`. What a command does has to be the same each time, or there is nothing to compare."""
        words = "\0".join(os.fspath(word) for word in command)
        folder = self._folder_of(hashlib.sha256(os.fsencode(words)).hexdigest(), Path(command[0]))
        folder.mkdir(exist_ok=True)
        known = folder / "run"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if known.exists():
                run, output = pickle.loads(known.read_bytes()), folder / "oracle"
                return run, read_steps(output)
            run, steps = single_step(command, folder)
            made = known.with_suffix(".new")
            made.write_bytes(pickle.dumps(run))
            os.replace(made, known)
        return run, steps

    def _folder_of(self, name: str, program: Path) -> Path:
        if not is_static(program):
            return self._folder / name
        folder = self._kept / f"{name[:24]}-{find_fingerprint(program)[:24]}"
        for old in self._kept.glob(f"{name[:24]}-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        return folder


def read_steps(output: Path) -> Steps:
    """Read the two files of the stepper."""
    words = np.fromfile(f"{output}.steps", dtype="<u8")
    codes = np.fromfile(f"{output}.code", dtype=CODE_DTYPE)
    return Steps(codes, (words & np.uint64(0xFF)).astype(np.uint8), words >> np.uint64(8))
