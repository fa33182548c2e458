"""Leaving a process: the number of an attempt."""

from __future__ import annotations

import os

from clew.process.detach import draw_ticket


def draw_in_fork() -> int:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, str(draw_ticket()).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, "rb") as told:
        return int(told.read())


def test_forks_draw_numbers_of_their_own() -> None:
    tickets = {draw_ticket(), *(draw_in_fork() for _ in range(3))}
    assert len(tickets) == 4
    assert all(0 < ticket < 1 << 32 for ticket in tickets)
