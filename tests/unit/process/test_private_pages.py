"""Which pages of mapped code are the process' own: of this very process, which writes to some of its own."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.address import Pid
from clew.process.private_pages import PrivatePages
from clew.process.shared_layout import PAGE_BYTES

N_PAGES = 6


@pytest.fixture
def code(tmp_path: Path) -> Iterator[int]:
    """The address of a file's pages, mapped as code is."""
    path = tmp_path / "code"
    path.write_bytes(bytes(N_PAGES * PAGE_BYTES))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    with path.open("rb") as file:
        size, protection = N_PAGES * PAGE_BYTES, mmap.PROT_READ | mmap.PROT_EXEC
        address = libc.mmap(None, size, protection, mmap.MAP_PRIVATE, file.fileno(), 0)
    yield address
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))


@pytest.mark.parametrize("can_scan", [True, False])
def test_what_was_written_to_is_private(code: int, can_scan: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivatePages, "_can_scan", can_scan)
    pages = PrivatePages(Pid(os.getpid()))
    try:
        end = code + N_PAGES * PAGE_BYTES
        assert any(one.start <= code < one.end for one in pages.read_code())
        ctypes.string_at(code, N_PAGES * PAGE_BYTES)
        assert list(pages.iter_in(code, end)) == []
        written = [code + PAGE_BYTES, code + 2 * PAGE_BYTES, code + 4 * PAGE_BYTES]
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            for page in written:
                memory.seek(page + 7)
                memory.write(b"\xcc")
        assert list(pages.iter_in(code, end)) == written
        assert list(pages.iter_in(code, written[1])) == written[:1]
        assert pages.read(written[0])[6:9] == b"\0\xcc\0" and len(pages.read(written[0])) == PAGE_BYTES
    finally:
        pages.close()


def test_who_is_gone_is_refused() -> None:
    with pytest.raises(OSError):
        PrivatePages(Pid(2**22 + 1))
