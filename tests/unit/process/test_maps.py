"""Parsing of /proc/PID/maps and auxv, hostile text included."""

from __future__ import annotations

import os
import struct

from hypothesis import given
from hypothesis import strategies as st

from clew.address import Pid
from clew.process.linux import PROT_EXEC, PROT_READ
from clew.process.maps import parse_auxiliary_vector, parse_maps, read_auxiliary_vector, read_maps


def test_a_line_of_each_kind() -> None:
    text = (
        b"55eddd96b000-55eddd970000 r-xp 00002000 fe:01 247026                     /usr/bin/a b (deleted)\n"
        b"7ff8821f0000-7ff882215000 rw-s 00000000 00:00 0 \n"
        b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
        b"1000-2000 r--p 00000000 00:1b 7                          /tmp/new\\012line\xff\n"
    )
    code, anonymous, vsyscall, odd = parse_maps(text)
    assert (code.start, code.end, code.protection, code.is_shared) == (
        0x55EDDD96B000,
        0x55EDDD970000,
        PROT_READ | PROT_EXEC,
        False,
    )
    assert (code.file_offset, code.device, code.inode) == (0x2000, os.makedev(0xFE, 1), 247026)
    assert code.path == "/usr/bin/a b (deleted)"
    assert (anonymous.path, anonymous.is_shared) == ("", True)
    assert (vsyscall.path, vsyscall.end) == ("[vsyscall]", 0xFFFFFFFFFF601000)
    assert os.fsencode(odd.path) == b"/tmp/new\nline\xff"


@given(st.binary(max_size=300))
def test_any_text_is_survived(text: bytes) -> None:
    parse_maps(text)
    parse_auxiliary_vector(text)


def test_own_maps_hold_own_code() -> None:
    pid = Pid(os.getpid())
    assert any(mapping.protection & PROT_EXEC and mapping.path.startswith("/") for mapping in read_maps(pid))
    assert read_auxiliary_vector(pid)[6] == os.sysconf("SC_PAGE_SIZE")


def test_auxiliary_vector_ends_at_null() -> None:
    data = struct.pack("<QQQQQQ", 26, 2, 0, 0, 5, 5)
    assert parse_auxiliary_vector(data + b"\1\2\3") == {26: 2}
