"""What sessions of probes in one process tell each other, and what a flight recorder keeps that has guests."""

from __future__ import annotations

import json
import os
import socket

import numpy as np
import pytest

from clew.address import Pid
from clew.errors import CaptureError, UsageError
from clew.protocol._constants import Change
from clew.protocol._generated import CAPTURE_RECORD, RECORD_BYTES
from clew.sessions.aggregate_table import AggregateWish
from clew.sessions.capture_sink import Captured
from clew.sessions.probes.backends import Backend, BackendChoice
from clew.sessions.probes.sharing.channel import Channel, Message
from clew.sessions.probes.sharing.left_rings import LeftRings
from clew.sessions.probes.sharing.newest import NewestCaptures
from clew.sessions.probes.sharing.numbers import renumber
from clew.sessions.probes.sharing.told_specs import choice_from_json, choice_to_json, spec_from_json, spec_to_json
from clew.sessions.probes.specs import PlaceChange, ProbeSpec, Trigger, TriggerAction, parse_context

SPECS = [
    ProbeSpec("a", "main"),
    ProbeSpec("b", "libc.so.6!malloc", True, tuple(parse_context("backtrace:4")), tuple(parse_context("retval"))),
    ProbeSpec("c", "main+4", fields=tuple(parse_context("string:name:rdi")), condition="rsi > 3", pid=Pid(7)),
    ProbeSpec("d", "open", True, wish=AggregateWish(["arg1", "comm"], "duration", None, 64, True), path="/usr/bin/ls"),
    ProbeSpec("e", "main", consequence=Trigger(TriggerAction.SIGNAL, 10), condition="arg1 == 3"),
    ProbeSpec("f", "main", True, consequence=PlaceChange(Change.REGISTER, "rax", "arg1 + 1"), at_return=True),
    ProbeSpec("g", "*", True, tuple(parse_context("regs")), with_inlined=True),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_probes_are_what_was_told(spec: ProbeSpec) -> None:
    assert spec_from_json(json.loads(json.dumps(spec_to_json(spec)))) == spec


@pytest.mark.parametrize("key", list(spec_to_json(SPECS[3])))
@pytest.mark.parametrize("value", [7, [], {}, ["x"], [[[]]], -1])
def test_what_is_no_probe_is_refused(key: str, value: object) -> None:
    told = spec_to_json(SPECS[3]) | {key: value}
    if (key, value) in (("pid", 7), ("fields", []), ("return_fields", [])):
        spec_from_json(told)
        return
    with pytest.raises((UsageError, CaptureError)):
        spec_from_json(told)


def test_techniques_are_what_was_told() -> None:
    for choice in (BackendChoice(), BackendChoice(Backend.TRAP), BackendChoice(Backend.JUMP, requires_jump=True)):
        assert choice_from_json(choice_to_json(choice)) == choice
    with pytest.raises(UsageError):
        choice_from_json(choice_to_json(BackendChoice(Backend.ENGINE)))


def captured(pid: int, tids: list[int], times: list[int], width: int) -> Captured:
    heads = np.zeros((len(tids), RECORD_BYTES), np.uint8)
    rows = heads.view(CAPTURE_RECORD)[:, 0]
    rows["tid"], rows["tsc"], rows["number"] = tids, times, 5 | 1 << 31
    return Captured(pid, heads, np.zeros((len(tids), width), np.uint8))


def test_numbers_are_exchanged_and_what_is_beside_them_stays() -> None:
    for number, other in ((5, 9), (5, 1)):
        before = captured(1, [1, 2], [3, 4], 8)
        rows = renumber(before, number, other).heads.view(CAPTURE_RECORD)[:, 0]
        assert rows["number"].tolist() == [other | 1 << 31] * 2
        assert before.heads.view(CAPTURE_RECORD)[:, 0]["number"].tolist() == [5 | 1 << 31] * 2


@pytest.mark.parametrize("seed", range(8))
def test_the_newest_of_each_thread_are_kept(seed: int) -> None:
    """As if each thread had a ring of its own."""
    chosen = np.random.default_rng(seed)
    most = int(chosen.integers(4, 40)) * RECORD_BYTES
    newest = NewestCaptures(most)
    wanted: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    now = 0
    for _ in range(60):
        pid, width, number = (int(chosen.integers(1, 3)) for _ in range(3))
        width *= 24
        tids = chosen.integers(1, 4, int(chosen.integers(1, 20))).tolist()
        times = list(range(now, now + len(tids)))
        now += len(tids)
        newest.add([(number, captured(pid, tids, times, width))])
        for tid, one in zip(tids, times, strict=True):
            wanted.setdefault((pid, tid), []).append((one, number, RECORD_BYTES + width))
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for number, some in newest.take():
        for row in some.heads.view(CAPTURE_RECORD)[:, 0]:
            found.setdefault((some.pid, int(row["tid"])), []).append((int(row["tsc"]), number))
    for thread, own in wanted.items():
        kept: list[tuple[int, int]] = []
        n_bytes = 0
        for one, number, size in reversed(own):
            n_bytes += size
            if n_bytes > most:
                break
            kept.append((one, number))
        assert sorted(found.get(thread, [])) == sorted(kept)
    assert not newest.take()


def test_messages_and_descriptors_come_in_order_whatever_the_pieces() -> None:
    one, other = (Channel(end) for end in socket.socketpair())
    data = os.urandom(3 << 20)
    with open("/dev/null") as null, open("/dev/zero") as zero:
        one.send({"do": "first"}, fds=[null.fileno()])
        one.send({"do": "large"}, data, fds=[zero.fileno(), null.fileno()])
        one.send({"do": "last"})
    found: list[Message] = []
    while len(found) < 3:
        found += other.receive()
        one.advance()
    assert [(message.do, len(message.fds)) for message in found] == [("first", 1), ("large", 2), ("last", 0)]
    assert found[1].data == data
    assert os.read(found[1].fds[0], 2) == bytes(2)
    for fd in (fd for message in found for fd in message.fds):
        os.close(fd)
    one.send({"do": "bye"})
    one.close()
    other.send({"do": "what nobody hears"})
    # What was said before is heard all the same.
    assert [message.do for message in other.receive()] == ["bye"]
    assert other.is_closed


@pytest.mark.parametrize("name", ["offset", "status", "slots", "rings", "ring_bytes", "max_threads"])
@pytest.mark.parametrize("value", [-1, 1 << 40, "1", None])
def test_rings_outside_of_the_memory_are_refused(name: str, value: object) -> None:
    fd = os.memfd_create("rings")
    try:
        os.ftruncate(fd, 1 << 22)
        told = {"offset": 0, "status": 4096, "slots": 8192, "rings": 1 << 20, "ring_bytes": 4096, "max_threads": 4}
        told["is_read"] = True
        assert list(LeftRings(fd, told).read()) == []
        with pytest.raises(UsageError):
            LeftRings(fd, told | {name: value})
    finally:
        os.close(fd)
