"""What --include and --exclude mean."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.address import FileOffset, RemoteAddress
from clew.errors import FilterError
from clew.recording.options.filters import CodeMapping, FilterSet, image_base, parse_filter, parse_filters


def mapping(path: str, start: int = 0x10000, end: int = 0x20000, offset: int = 0x1000) -> CodeMapping:
    return CodeMapping(path, RemoteAddress(start), RemoteAddress(end), FileOffset(offset))


def test_the_three_forms() -> None:
    assert parse_filter("libc.so*").image == "libc.so*"
    symbol = parse_filter("libc.so.6!malloc")
    assert (symbol.image, symbol.symbol) == ("libc.so.6", "malloc")
    assert parse_filter("0x10-0x20").addresses == (16, 32)
    assert parse_filter("16-32").addresses == (16, 32)
    assert parse_filter("lib-2.so").image == "lib-2.so"


@pytest.mark.parametrize("text", ["", "!malloc", "libc.so!", "0x20-0x10", "5-5", "0-0x1ffffffffffffffff", "a\0b"])
def test_what_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match=re.escape(repr(text))) as caught:
        parse_filter(text)
    assert caught.value.exit_status == 2


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        filters = FilterSet(parse_filters([text]), [])
    except FilterError:
        return
    filters.rows_for(mapping("/lib/x.so"))


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("libc.so*", "/lib/x86_64/libc.so.6", True),
        ("/lib/*", "/lib/x86_64/libc.so.6", True),
        ("libc", "/lib/libc.so.6", False),
        ("[vdso]", "[vdso]", True),
        ("[vdso]", "/lib/v", True),
        ("*", "", False),
    ],
)
def test_images_match_by_name_or_path(glob: str, path: str, matches: bool) -> None:
    assert parse_filter(glob).matches_image(path) is matches


def test_a_path_may_be_relative(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_filter("./tool").matches_image(f"{tmp_path}/tool")
    assert parse_filter("lib/*.so!run").matches_image(f"{tmp_path}/lib/x.so")
    assert not parse_filter("./tool").matches_image("/usr/bin/tool")


def test_excludes_come_last_so_that_they_win() -> None:
    filters = FilterSet(parse_filters(["libc*", "0x11000-0x12000"]), parse_filters(["libc*", "0x11800-0x99999"]))
    rows = filters.rows_for(mapping("/lib/libc.so.6"))
    assert rows == [
        (0x10000, 0x20000, True),
        (0x11000, 0x12000, True),
        (0x10000, 0x20000, False),
        (0x11800, 0x20000, False),
    ]
    assert filters.is_active
    assert not filters.is_included_by_default
    assert FilterSet([], parse_filters(["x"])).is_included_by_default
    assert not FilterSet([], []).is_active


def test_unused_filters_are_known() -> None:
    filters = FilterSet(parse_filters(["libc*"]), parse_filters(["libm*", "0x1-0x2"]))
    filters.address_rows()
    filters.rows_for(mapping("/lib/libc.so.6"))
    assert filters.unused() == ["libm*"]


def build(path: Path, *options: str) -> Path:
    source = path.with_suffix(".c")
    source.write_text("int wanted(int a) { return a * 3; } int other(void) { return 1; }")
    subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", *options, "-o", path, source], check=True)
    return path


@pytest.mark.parametrize("option", ["-Wl,-z,separate-code", "-Wl,-z,noseparate-code", "-Wl,-Ttext-segment=0x400000"])
def test_a_symbol_is_found_where_it_is_loaded(tmp_path: Path, option: str) -> None:
    path = build(tmp_path / "libthing.so", option)
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    loads = [line.split() for line in text.splitlines() if line.split()[:1] == ["LOAD"]]
    lowest = min(int(fields[2], 16) for fields in loads) // 4096 * 4096
    offset, address, size = next(
        (int(fields[1], 16), int(fields[2], 16), int(fields[4], 16)) for fields in loads if "E" in fields[6:8]
    )
    start = 0x7F0000000000 + (address - lowest) // 4096 * 4096
    loaded = mapping(str(path), start, start + 0x1000 + size // 4096 * 4096, offset // 4096 * 4096)
    assert image_base(loaded) == 0x7F0000000000
    filters = FilterSet(parse_filters(["libthing*!wanted"]), [], lambda image, symbol: [(address - lowest + 5, 9)])
    at = 0x7F0000000000 + address - lowest + 5
    assert filters.rows_for(loaded) == [(at, at + 9, True)]
    assert filters.unused() == []


def test_a_symbol_of_no_elf_file_is_a_warning(tmp_path: Path) -> None:
    text = tmp_path / "libtext.so"
    text.write_text("text")
    filters = FilterSet([], parse_filters(["libtext.so!f", "gone.so!f"]))
    assert filters.rows_for(mapping(str(text))) == []
    assert filters.rows_for(mapping("/none/gone.so")) == []
    assert len(filters.warnings) == 2
    assert len(filters.unused()) == 2


@pytest.mark.timeout(20)
def test_a_fifo_in_the_place_of_an_image_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "library.so")
    with pytest.raises(FilterError, match="not a 64-bit ELF file"):
        image_base(mapping(str(tmp_path / "library.so")))


def test_segments_may_share_a_page_of_the_file(tmp_path: Path) -> None:
    """As lld lays programs out: what is read only ends in the middle of a page, and code follows there."""
    loads = [(4, 0, 0, 0x1460), (5, 0x1460, 0x2460, 0x800)]
    headers = b"".join(struct.pack("<IIQQQQQQ", 1, flags, at, to, to, n, n, 0x1000) for flags, at, to, n in loads)
    head = b"\x7fELF\x02\x01" + bytes(26) + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, 2)
    path = tmp_path / "program"
    path.write_bytes(head.ljust(64, b"\0") + headers)
    assert image_base(mapping(str(path), 0x7002000, 0x7003000, 0x1000)) == 0x7000000
