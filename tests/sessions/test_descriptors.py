"""What calls say of descriptors is what the system says: random operations in three processes, held against /proc."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import clew
from clew.api.reading import load_built_in
from clew.sessions.api_calls import ApiCall, ApiLog
from clew.sessions.call_tables import CallTables, Filling
from tests.programs.build import SOURCES, build_plain

MARK = 1000
MOST = 64
KINDS = {"anon_inode:[eventfd]": "eventfd", "anon_inode:[eventpoll]": "epoll", "anon_inode:[timerfd]": "timer"}
Checks = dict[tuple[int, int], dict[int, tuple[str, bool]]]


def read_checks(folder: Path) -> Checks:
    """By process and number what /proc said: links, and whether exec closes them, by descriptor."""
    checks: Checks = {}
    for path in folder.glob("log.*"):
        for line in path.read_text().splitlines():
            word, *rest = line.split(maxsplit=3)
            if word == "CHECK":
                current = checks[int(rest[0]), int(rest[1])] = {}
            else:
                current[int(rest[0])] = (rest[2], rest[1] == "1")
    return checks


def mark_of(call: ApiCall) -> int | None:
    """The number of the checkpoint that a call marks."""
    value = call.values[0] if call.function.name == "fchdir" else None
    number = None if not isinstance(value, int) else (value & 0xFFFFFFFF) - (1 << 32)
    return -number - MARK if number is not None and number <= -MARK else None


class Comparison:
    """Holds what is known of descriptors against what /proc said; the same thing is the same entity all the time."""

    def __init__(self, checks: Checks) -> None:
        self.checks = checks
        self.seen: dict[str, set[int]] = defaultdict(set)
        self.n_compared = 0

    def at(self, filling: Filling, call: ApiCall, number: int) -> None:
        expected = self.checks.pop((call.pid, number))
        held = dict(filling.world.holder(call.pid, call.time_ns).files.items(call.time_ns))
        # Whoever starts tests may have others, high above.
        found = {key[1]: slot for key, slot in held.items() if isinstance(key, tuple) and key[1] < MOST}
        assert sorted(found) == sorted(expected), (call.pid, number, sorted(set(found) ^ set(expected)))
        for descriptor, (link, closes) in expected.items():
            entity = filling.world.things[found[descriptor].entity_id]
            place = (call.pid, number, descriptor, link, entity)
            assert found[descriptor].closes_on_exec == closes, place
            if link.startswith("/memfd:"):
                assert entity.kind == "memfd", place
            elif link.startswith("/"):
                assert entity.details["path"] == link.removesuffix(" (deleted)"), place
            elif link in KINDS:
                assert entity.kind == KINDS[link], place
            else:
                assert entity.kind == link.split(":")[0], place
                self.seen[link].add(entity.entity_id)
            self.n_compared += 1


@pytest.mark.parametrize(
    ("seed", "n_steps"), [(1, 2000), (2, 2000), *(pytest.param(seed, 33_000, marks=pytest.mark.long) for seed in (3,))]
)
def test_descriptors_are_what_the_system_says(seed: int, n_steps: int, tmp_path: Path) -> None:
    program = build_plain(SOURCES / "sessions" / "descriptors.c", "-O1")
    folder = tmp_path / "files"
    folder.mkdir()
    descriptions = load_built_in()
    with clew.spawn([program, str(seed), str(n_steps), str(folder)], output=tmp_path / "it.clew") as session:
        tables = CallTables(descriptions, session.pid)
        log = ApiLog(session, descriptions, keeps=True)
        session.resume()
        while session.state == "running":
            log.read()
            try:
                session.wait(0.1)
            except TimeoutError:
                continue
        session.detach()
        log.read()
        assert session.exit_code == 0
        trace = session.trace
    filling = tables.fill(trace)
    comparison = Comparison(read_checks(folder))
    n_checks = len(comparison.checks)
    n_calls = 0
    for batch in log.batches():
        filling.prepare(batch)
    for batch in log.batches():
        for call in batch:
            number = mark_of(call)
            filling.add([call])
            n_calls += 1
            if number is not None:
                comparison.at(filling, call, number)
    assert not comparison.checks
    assert n_checks == 3 * (n_steps // 250)
    assert all(len(entities) == 1 for entities in comparison.seen.values())
    one_each = [entity for entities in comparison.seen.values() for entity in entities]
    assert len(one_each) == len(set(one_each))
    assert comparison.n_compared > n_checks * 20
    assert n_calls > 3 * n_steps
