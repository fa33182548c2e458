"""BTF: what a compiler writes as BTF and as DWARF says the same, and what was captured holds for the running kernel."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from clew.api.generate.btf import KERNEL_TYPES, Btf
from clew.api.generate.capture import capture_kernel_types
from clew.api.generate.layouts import capture_layout
from clew.api.generate.sources import KERNEL_LAYOUTS, LAYOUTS, SOURCES, lines_of, parse_layouts

SOURCE = """
typedef unsigned int word;
enum colour { RED = 2, GREEN, BLUE = 7 };
struct inner { short a; char text[5]; };
struct probe {
    word first; const char *name; volatile long steps[6]; struct inner one, many[2];
    union { int number; float share; struct { char low, high; }; };
    union { struct { int begin; } named; struct { long long end; }; } both;
    unsigned is_open : 1, rest : 5; enum colour colour; void (*call)(int); struct probe *next;
    _Bool is_last; char more[];
};
struct probe probe; enum colour colour;
"""


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Btf:
    made = tmp_path_factory.mktemp("btf") / "probe.o"
    command = ["gcc", "-gbtf", "-c", "-x", "c", "-", "-o", str(made)]
    if shutil.which("gcc") is None or subprocess.run(command, input=SOURCE, text=True, capture_output=True).returncode:
        pytest.skip("no compiler that writes BTF")
    section = ELFFile(io.BytesIO(made.read_bytes())).get_section_by_name(".BTF")
    assert section is not None
    return Btf(section.data())


def test_layouts_are_those_of_debugging_information(types: Btf, tmp_path: Path) -> None:
    header = tmp_path / "probe.h"
    header.write_text(SOURCE.replace("struct probe probe; enum colour colour;", ""))
    known = [
        (path, offset, size, c_type.replace("[]", "[0]").replace("_Bool", "bool"))
        for path, offset, size, c_type in capture_layout([f"{header}"], "struct probe")[1]
    ]
    size, members = types.layout("probe")
    assert size == capture_layout([str(header)], "struct probe")[0]
    plain = [(path, offset, own) for path, offset, own, _ in members]
    assert plain == [(path, offset, own) for path, offset, own, _ in known]
    told = {path: c_type for path, _, _, c_type in members}
    assert told["name"] == "const char *"
    assert told["steps"].replace("volatile ", "") == "long int[6]"
    assert (told["many"], told["colour"], told["next"]) == ("struct inner[2]", "enum colour", "struct probe *")


def test_parts_without_a_name_are_taken_alone(types: Btf) -> None:
    size, members = types.layout("probe", 5)
    assert size == types.layout("probe")[0]
    assert [(path, offset) for path, offset, _, _ in members] == [("number", 0), ("share", 0), ("low", 0), ("high", 1)]
    with pytest.raises(KeyError):
        types.layout("no_such")


def test_enumerations_have_values(types: Btf) -> None:
    assert types.values("colour") == [("RED", 2), ("GREEN", 3), ("BLUE", 7)]


def test_what_is_no_btf_is_refused() -> None:
    with pytest.raises(ValueError, match="no BTF"):
        Btf(bytes(64))


@pytest.mark.skipif(not KERNEL_TYPES.exists(), reason="this kernel has no BTF")
def test_headers_and_kernel_agree() -> None:
    """What both have is at the same place, as long as nothing newer is there instead of a reserve."""
    types = Btf(KERNEL_TYPES.read_bytes())
    held = 0
    for name, layout in parse_layouts(lines_of((SOURCES / LAYOUTS).read_text())).items():
        try:
            size, members = types.layout(name)
        except KeyError:
            continue
        if size != layout.size:
            # The kernel's own one of that name is another, as that of `msghdr` is.
            continue
        known = {path: (offset, size) for path, offset, size, _ in members}
        for path, member in layout.members.items():
            if path in known and not re.search("spare|pad|resv", path):
                assert known[path] == (member.offset, member.size), f"{name}.{path}"
                held += 1
    assert held > 200


@pytest.mark.skipif(not KERNEL_TYPES.exists(), reason="this kernel has no BTF")
def test_what_is_committed_is_captured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed = (SOURCES / KERNEL_LAYOUTS).read_text()
    if os.uname().release.split("-")[0] not in committed.splitlines()[0]:
        pytest.skip("captured from another kernel")
    for path in SOURCES.glob("*.toml"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr("clew.api.generate.capture.SOURCES", tmp_path)
    capture_kernel_types(Btf(KERNEL_TYPES.read_bytes()))
    for path in tmp_path.glob("kernel_*.txt"):
        assert path.read_text() == (SOURCES / path.name).read_text()
