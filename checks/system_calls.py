"""Each system call of the kernel is handled by the runtime or declared to be none of its business, with the reason.

Run as `python -m checks.system_calls`. Reads the list of the installed headers, `system_calls.toml` beside this file,
and the runtime's own list; a call that is new in any of them has to be thought about.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from checks.violation import Violation, report

__all__ = ["Lists", "iter_undeclared", "parse_header", "read_lists"]

ROOT = Path(__file__).resolve().parent.parent
DECLARED = Path("checks/system_calls.toml")
HANDLED = {
    "HANDLED": Path("runtime/src/dispatch/calls/call_table.rs"),
    "WATCHED_CALLS": Path("runtime/src/dispatch/proc/watched.rs"),
}
NUMBERS = Path("runtime/src/arch/x86_64/sys/number.rs")
HEADERS = (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h"))


@dataclass(frozen=True)
class Lists:
    """The calls' names.

    `kernel` has their numbers; `handled` those that the runtime has a part in, `numbers` what it takes for their
    numbers, and `harmless` why it has no part in the others.
    """

    kernel: Mapping[str, int]
    handled: tuple[str, ...]
    numbers: Mapping[str, int]
    harmless: Mapping[str, str]


def parse_header(text: str) -> dict[str, int]:
    """Numbers by name, out of asm/unistd_64.h."""
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", text)}


def read_handled(path: Path, constant: str) -> list[str]:
    """The names in one of the runtime's lists."""
    handled = re.search(rf"const {constant}: &\[u64\] = &\[(.*?)\];", path.read_text(), re.DOTALL)
    assert handled is not None, path
    return re.findall(r"number::(\w+)", handled[1])


def read_lists(root: Path = ROOT) -> Lists:
    """The lists as they are; without headers the kernel's are those that are declared newer."""
    declared = tomllib.loads((root / DECLARED).read_text())
    kernel: dict[str, int] = dict(declared.pop("newer"))
    header = next((path for path in HEADERS if path.is_file()), None)
    if header is not None:
        kernel |= parse_header(header.read_text())
    names = [name for constant, path in HANDLED.items() for name in read_handled(root / path, constant)]
    numbers = re.findall(r"pub const (\w+): u64 = (\d+);", (root / NUMBERS).read_text())
    return Lists(
        kernel=kernel,
        handled=tuple(name.lower() for name in names),
        numbers={name.lower(): int(number) for name, number in numbers},
        harmless={name: group["why"] for group in declared.values() for name in group["calls"].split()},
    )


def iter_undeclared(lists: Lists) -> Iterator[Violation]:
    """Yield what is in the kernel's list and in none of the others or in both, and numbers that differ."""
    for name, number in lists.kernel.items():
        if name in lists.handled and name in lists.harmless:
            yield Violation(str(DECLARED), f"{name} ({number}) is handled, and declared harmless as well")
        if name not in lists.handled and name not in lists.harmless:
            yield Violation(str(DECLARED), f"{name} ({number}) is neither handled nor declared harmless")
    for name, number in lists.numbers.items():
        if lists.kernel.get(name, number) != number:
            yield Violation(str(NUMBERS), f"{name} is {lists.kernel[name]}, not {number}")
    for name in lists.handled:
        if name not in lists.numbers:
            yield Violation(str(NUMBERS), f"{name} has no number")


if __name__ == "__main__":
    sys.exit(report(iter_undeclared(read_lists()), "system calls"))
