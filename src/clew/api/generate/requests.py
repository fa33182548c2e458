"""Captures the requests of ioctl out of headers: their names, numbers, and the types of what their argument leads to.

Runs on a developer's machine, with gcc and the kernel's headers. What requests mean is not known here.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["Request", "capture_requests"]

Request = tuple[str, int, str]
"""Name, number, C type; the type is empty where the macro says none."""

_MADE: Final = re.compile(r"\b_IO(?:R|W|WR|C)?\s*\(")
_TYPED: Final = re.compile(r"_IO(?:R|W|WR)\s*\((?P<arguments>.*)\)\s*$")
_PRELUDE: Final = "#include <sys/types.h>\n#include <time.h>\n#include <sys/ioctl.h>\n#include <asm/termbits.h>\n"


def capture_requests(headers: dict[str, str]) -> list[Request]:
    """The requests in `headers`, which have patterns of names of those that are plain numbers. Of several with a number
    the first counts."""
    found: dict[int, Request] = {}
    for header, names in headers.items():
        for request in sorted(_of_header(header, re.compile(names)), key=lambda one: (one[1], one[0])):
            found.setdefault(request[1], request)
    return sorted(found.values(), key=lambda one: (one[1], one[0]))


def _of_header(header: str, names: re.Pattern[str]) -> list[Request]:
    source = f"{_PRELUDE}#include <{header}>\n"
    command = ["gcc", "-D_GNU_SOURCE", "-E", "-dM", "-x", "c", "-"]
    told = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    macros = dict(re.findall(r"^#define (\w+) (.+)$", told, re.MULTILINE))
    wanted = {name: body for name, body in macros.items() if _MADE.search(body) or names.fullmatch(name)}
    # A header's own names, not those of what it includes: those of its header come first.
    values = _evaluate(source, sorted(wanted))
    # What is a number below 256 is something else that has a name like those.
    return [
        (name, value & 0xFFFFFFFF, _type_of(wanted[name]))
        for name, value in values.items()
        if value >> 8 or _MADE.search(wanted[name])
    ]


def _type_of(body: str) -> str:
    match = _TYPED.search(body)
    parts = match["arguments"].split(",") if match else []
    return " ".join(parts[2].split()) if len(parts) == 3 else ""


def _evaluate(source: str, names: list[str]) -> dict[str, int]:
    """The values of macros that a compiler can work out; others, which need types that no header has, are left out."""
    while names:
        head = f"{source}#include <stdio.h>\nint main(void) {{\n"
        lines = "".join(f'printf("{name} %lld\\n", (long long)({name}));\n' for name in names)
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "values"
            command = ["gcc", "-D_GNU_SOURCE", "-w", "-x", "c", "-", "-o", str(program)]
            made = subprocess.run(
                command, input=f"{head}{lines}return 0;\n}}\n", capture_output=True, text=True, check=False
            )
            if made.returncode == 0:
                told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
                return {name: int(value) for name, value in (line.split() for line in told.splitlines())}
        first = head.count("\n") + 1
        wrong = {int(number) - first for number in re.findall(r"<stdin>:(\d+):\d+: error", made.stderr)}
        kept = [name for index, name in enumerate(names) if index not in wrong]
        if len(kept) == len(names):
            raise ValueError(made.stderr)
        names = kept
    return {}
