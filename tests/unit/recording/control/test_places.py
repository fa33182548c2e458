"""What addresses of a process are called by people who control it."""

from __future__ import annotations

import ctypes
import os
from unittest.mock import Mock

import pytest

from clew.address import Pid
from clew.binary import symbols
from clew.process import maps
from clew.recording.control import places as targets
from clew.recording.control.places import describe_addresses, find_address

PID = Pid(os.getpid())
ADDRESSES = [ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0 for name in ("qsort", "atoi")]


def test_addresses_are_described_by_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    read_maps, load_symbols = (Mock(wraps=read) for read in (maps.read_maps, symbols.load_symbols))
    monkeypatch.setattr(targets, "read_maps", read_maps)
    monkeypatch.setattr(symbols, "load_symbols", load_symbols)
    described = describe_addresses(PID, [*ADDRESSES, ADDRESSES[0] + 1, 1])
    assert [described[address].partition("!")[2] for address in ADDRESSES] == ["qsort", "atoi"]
    assert described[ADDRESSES[0] + 1].endswith("!qsort+0x1")
    assert described[1] == ""
    assert (read_maps.call_count, load_symbols.call_count) == (1, 1), "both symbols are the C library's"
    for address in ADDRESSES:
        assert find_address(PID, "", described[address]) == address


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    assert describe_addresses(Pid(1 << 23), [1, ADDRESSES[0]]) == {1: "", ADDRESSES[0]: ""}
