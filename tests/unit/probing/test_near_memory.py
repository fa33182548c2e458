"""Memory near code, of a process that is made up: what is taken lies where it may, and over nothing else."""

from __future__ import annotations

import os
import random
from itertools import pairwise
from typing import Any, cast

import pytest

from clew.address import FileOffset, Pid, RemoteAddress
from clew.errors import RemoteCallError
from clew.probing.near_memory import NearMemory, NoRoomError
from clew.probing.x86_64.jump_bytes import ANY, TRAPS, JumpBytes
from clew.process.maps import Mapping
from clew.process.stopped_process import StoppedProcess

CODE = 0x5555_5000_0000
REACH = 1 << 31


class Worker:
    """Maps what is asked for, as the kernel does, but over nothing that is there."""

    def __init__(self, mapped: list[tuple[int, int]]) -> None:
        self.mapped = mapped
        self.made: list[tuple[int, int]] = []

    def call(self, name: str, address: int, n_bytes: int, *_: Any) -> int:
        assert name == "mmap" and address % 4096 == 0 < n_bytes
        if any(start < address + n_bytes and address < end for start, end in [*self.mapped, *self.made]):
            raise RemoteCallError(Pid(1), "mmap", 17)
        self.made.append((address, address + n_bytes))
        return address


def mapping(start: int, end: int) -> Mapping:
    return Mapping(RemoteAddress(start), RemoteAddress(end), 5, False, FileOffset(0), 0, 0, "/a/file")


def memory_with(mapped: list[tuple[int, int]]) -> tuple[NearMemory, Worker, StoppedProcess]:
    worker = Worker(mapped)
    memory = NearMemory(Pid(os.getpid()), [mapping(*one) for one in mapped])
    return memory, worker, cast(StoppedProcess, worker)


def test_what_is_taken_lies_over_nothing_else() -> None:
    memory, worker, process = memory_with([(CODE, CODE + (4 << 20)), (CODE + (1 << 28), CODE + (1 << 28) + 4096)])
    chosen = random.Random(7)
    taken: list[tuple[int, int]] = []
    for _ in range(3000):
        code = CODE + chosen.randrange(4 << 20)
        n_bytes = chosen.choice((30, 100, 1300))
        allowed = chosen.choice([(ANY,) * 4, (ANY, ANY, TRAPS, ANY), (ANY, TRAPS, ANY, ANY), (TRAPS, ANY, ANY, TRAPS)])
        jump = JumpBytes(code, allowed)
        shape = allowed, code >> 16
        address = memory.take(process, code, n_bytes, jump.next_fit, shape=shape)
        assert jump.fits(address)
        kept = n_bytes - chosen.randrange(n_bytes // 2)
        memory.give_back(address + kept, address + n_bytes, shape)
        taken.append((address, address + kept))
    taken.sort()
    assert all(end <= start for (_, end), (start, _) in pairwise(taken))
    assert all(any(low <= start and end <= high for low, high in worker.made) for start, end in taken)
    assert sorted(memory.spans()) == sorted(worker.made)


def test_what_is_given_back_is_taken_next() -> None:
    memory, _, process = memory_with([(CODE, CODE + 4096)])
    first = memory.take(process, CODE, 200, lambda address: address)
    memory.give_back(first + 50, first + 200)
    assert memory.take(process, CODE, 200, lambda address: address) == first + 50
    # Of what is not the last nothing is given back.
    memory.give_back(first + 10, first + 50)
    assert memory.take(process, CODE, 10, lambda address: address) == first + 250


def test_room_is_found_where_something_else_has_been_taken() -> None:
    around = [(1 << 16, CODE - REACH), (CODE, CODE + REACH + (1 << 20))]
    low, high = CODE - (1 << 20), CODE
    memory, _, process = memory_with([*around, (CODE - REACH, low)])
    wanted = low + 0x8123

    def only(address: int) -> int | None:
        return wanted if address <= wanted else None

    # All that there is is a chunk of another kind.
    while True:
        try:
            memory.take(process, CODE, 1 << 14, shape="others", within=range(low, low + 0x8000))
        except NoRoomError:
            break
    assert memory.take(process, CODE, 16, only, shape="one") == wanted
    with pytest.raises(NoRoomError):
        memory.take(process, CODE, 16, only, shape="one")
    assert memory.take(process, CODE, 16, shape="others") not in range(wanted, wanted + 16)
    assert all(start >= low and end <= high for start, end in memory.spans())
