"""Captures what a kernel and its headers say: `python -m clew.api.generate.capture --tracefs FOLDER`.

Runs on a developer's machine, with a kernel that has CONFIG_FTRACE_SYSCALLS and CONFIG_DEBUG_INFO_BTF (what needs those
is left as it is where they are missing), gcc, and the headers of kernel and C library. Writes the files in `sources/`,
out of which `python -m clew.api.generate` makes the descriptions anywhere.
What the names and numbers mean is not known here.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from clew.api.generate.btf import KERNEL_TYPES, Btf
from clew.api.generate.layouts import capture_layout
from clew.api.generate.requests import capture_requests
from clew.api.generate.sources import (
    FLAG_HEADERS,
    FLAG_VALUES,
    KERNEL_LAYOUTS,
    KERNEL_VALUES,
    LAYOUTS,
    NUMBERS,
    PROTOTYPES,
    REQUEST_HEADERS,
    REQUESTS,
    SOURCES,
    STRUCT_HEADERS,
)

__all__ = ["capture_values", "format_prototype", "main"]

UNISTD: Final = {"x86_64": "asm/unistd_64.h"}
"""The header with the numbers of system calls, by architecture."""

DECLARED: Final = Path(__file__).resolve().parents[4] / "checks/system_calls.toml"
"""Has the numbers of calls that the headers of an older kernel lack."""

_FIELD: Final = re.compile(r"^\tfield:(?P<declaration>[^;]+);\toffset:(?P<offset>\d+);", re.MULTILINE)
_FIRST_ARGUMENT_OFFSET: Final = 16
"""Where arguments begin in an event of `syscalls`; in front of them are the common fields and the call's number."""


def format_prototype(name: str, text: str) -> str:
    """A system call in a line, `name(type argument, ...)`, by the `format` file of its event."""
    fields = (match for match in _FIELD.finditer(text) if int(match["offset"]) >= _FIRST_ARGUMENT_OFFSET)
    return f"{name}({', '.join(' '.join(match['declaration'].split()) for match in fields)})"


def capture_prototypes(tracefs: Path) -> list[str]:
    """The lines of all system calls that have an event, by name."""
    prefix = "sys_enter_"
    events = sorted((tracefs / "events/syscalls").glob(f"{prefix}*"))
    return [
        format_prototype(event.name.removeprefix(prefix), (event / "format").read_text(encoding="ascii"))
        for event in events
    ]


def _preprocess(source: str, *options: str) -> str:
    command = ["gcc", "-D_GNU_SOURCE", "-E", *options, "-x", "c", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def capture_numbers(architecture: str) -> list[tuple[int, str]]:
    """Numbers and names of the system calls by number: those in a header, and those declared newer."""
    macros = _preprocess(f"#include <{UNISTD[architecture]}>\n", "-dM")
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", macros)}
    if architecture == "x86_64":
        numbers |= tomllib.loads(DECLARED.read_text(encoding="utf-8"))["newer"]
    return sorted((number, name) for name, number in numbers.items())


def capture_values(table: dict[str, Any]) -> list[tuple[str, int]]:
    """Names and values of a table of `flag_headers.toml`, by value and name.

    A compiler works them out, since many are made of others and some are members of an enum beside their macro. Raises
    subprocess.CalledProcessError where a header is missing or a name is no number.
    """
    includes = "".join(f"#include <{header}>\n" for header in table["headers"])
    macros = set(re.findall(r"^#define (\w+) .", _preprocess(includes, "-dM"), re.MULTILINE))
    wanted, left_out = re.compile(table["names"]), re.compile(table.get("but", r"(?!)"))
    names = {name for name in macros if wanted.fullmatch(name) and not left_out.fullmatch(name)}
    names |= set(table.get("members", ()))
    lines = "".join(f'printf("{name} %lld\\n", (long long)({name}));\n' for name in sorted(names))
    source = f"{includes}#include <stdio.h>\nint main(void) {{\n{lines}return 0;\n}}\n"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "values"
        command = ["gcc", "-D_GNU_SOURCE", "-w", "-x", "c", "-", "-o", str(program)]
        subprocess.run(command, input=source, text=True, check=True)
        told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    values = [(name, int(value)) for name, value in (line.split() for line in told.splitlines())]
    return sorted(values, key=lambda pair: (pair[1], pair[0]))


def _layout_lines(name: str, size: int, members: list[tuple[str, int, int, str]]) -> list[str]:
    return ["", f"[{name}] {size}", *(" ".join(map(str, member)) for member in members)]


def capture_kernel_types(types: Btf) -> None:
    """Write what the running kernel says of structures and enumerations. Raises KeyError where it lacks one."""
    release = os.uname().release.split("-")[0]
    lines = [f"# Structures of Linux {release}, x86_64: its BTF. Members with offset, size and type."]
    for name, struct in tomllib.loads((SOURCES / STRUCT_HEADERS).read_text(encoding="utf-8")).items():
        if "kernel" in struct:
            lines += _layout_lines(name, *types.layout(struct["kernel"], struct.get("part")))
    (SOURCES / KERNEL_LAYOUTS).write_text("\n".join(lines) + "\n", encoding="ascii")
    lines = [f"# Values of enumerations of Linux {release}: its BTF."]
    for name, table in tomllib.loads((SOURCES / FLAG_HEADERS).read_text(encoding="utf-8")).items():
        if "kernel" in table:
            wanted = re.compile(table["names"])
            values = [one for one in types.values(table["kernel"]) if wanted.fullmatch(one[0])]
            lines += [
                "",
                f"[{name}]",
                *(f"{member} {value:#x}" for member, value in sorted(values, key=lambda one: one[1])),
            ]
    (SOURCES / KERNEL_VALUES).write_text("\n".join(lines) + "\n", encoding="ascii")


def main() -> int:
    """Write the files in `sources/`; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tracefs", type=Path, default=None, help="where tracefs is mounted; else its part is left")
    parser.add_argument(
        "--btf", type=Path, default=KERNEL_TYPES, help="the kernel's types; where there are none they are left"
    )
    arguments = parser.parse_args()
    tracefs = arguments.tracefs
    if arguments.btf.exists():
        capture_kernel_types(Btf(arguments.btf.read_bytes()))
    if tracefs is not None:
        head = f"# System calls of Linux {os.uname().release.split('-')[0]}: tracefs, events/syscalls/*/format."
        lines = [head, *capture_prototypes(tracefs)]
        (SOURCES / PROTOTYPES).write_text("\n".join(lines) + "\n", encoding="ascii")
    version = re.findall(r"#define LINUX_VERSION_\w+L?\w* (\d+)", _preprocess("#include <linux/version.h>\n", "-dM"))
    code = max(int(number) for number in version)
    headers = f"headers of Linux {code >> 16}.{code >> 8 & 0xFF}"
    lines = [f"# Numbers of system calls: {headers}, and checks/system_calls.toml."]
    for architecture in UNISTD:
        lines += [f"{architecture} {number} {name}" for number, name in capture_numbers(architecture)]
    (SOURCES / NUMBERS).write_text("\n".join(lines) + "\n", encoding="ascii")
    lines = [f"# Values of flags and enumerations: {headers}, and the C library's where those have none."]
    for name, table in tomllib.loads((SOURCES / FLAG_HEADERS).read_text(encoding="utf-8")).items():
        if "headers" not in table:
            continue
        lines += ["", f"[{name}]", *(f"{member} {value:#x}" for member, value in capture_values(table))]
    (SOURCES / FLAG_VALUES).write_text("\n".join(lines) + "\n", encoding="ascii")
    lines = [f"# Structures of x86_64: {headers}, and the C library's. Members with offset, size and type."]
    for name, struct in tomllib.loads((SOURCES / STRUCT_HEADERS).read_text(encoding="utf-8")).items():
        if "headers" in struct:
            lines += _layout_lines(name, *capture_layout(struct["headers"], struct["type"]))
    (SOURCES / LAYOUTS).write_text("\n".join(lines) + "\n", encoding="ascii")
    where = tomllib.loads((SOURCES / REQUEST_HEADERS).read_text(encoding="utf-8"))["headers"]
    lines = [
        f"# Requests of ioctl: {headers}. Numbers, and types of what the argument leads to, where macros say them."
    ]
    lines += [f"{name} {value:#x} {c_type}".rstrip() for name, value, c_type in capture_requests(where)]
    (SOURCES / REQUESTS).write_text("\n".join(lines) + "\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
