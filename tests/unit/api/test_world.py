"""What calls do to things: who holds what, under whatever name and number, whenever a call returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.api.description import Function
from clew.api.descriptions import Descriptions
from clew.api.entities.holders import Memory, Place
from clew.api.entities.scene import Told
from clew.api.entities.slots import Slot, Slots
from clew.api.entities.world import World
from clew.api.reading import load_built_in
from clew.api.text import Pointed

ENOENT = -2
AT_FDCWD = -100
O_CLOEXEC = 0o2000000
F_DUPFD, F_SETFD = 0, 2


@pytest.fixture(scope="module")
def descriptions() -> Descriptions:
    return load_built_in()


class Run:
    """Calls one behind the other, each of which takes one nanosecond if nothing else is said."""

    def __init__(self, descriptions: Descriptions) -> None:
        self.world = World(descriptions)
        self._descriptions = descriptions
        self.now = 100
        self.world.add_process(1, "one", 50)
        self.world.set_directory(1, "/home", 50)

    def __call__(self, name: str, *values: Any, result: int = 0, pid: int = 1, **times: int) -> list[tuple[str, str]]:
        """Roles and names of what a call touches."""
        function = self._descriptions.find_system_call(name)
        assert isinstance(function, Function)
        self.now += 2
        begin, end = times.get("begin", self.now), times.get("end", self.now + 1)
        given = [Pointed(0x1000, one) if isinstance(one, bytes) else one for one in values]
        touches = self.world.see(Told(pid, pid, begin, end, function, given, result))
        return [(touch.role, self.name(touch.entity_id)) for touch in touches]

    def name(self, entity_id: int) -> str:
        entity = self.world.things[entity_id]
        return str(entity.details.get("path", entity.name))

    def open(self, path: str, result: int, flags: int = 0, **more: int) -> list[tuple[str, str]]:
        return self("openat", AT_FDCWD, path.encode() + b"\0", flags, 0, result=result, **more)

    def held(self, pid: int = 1) -> dict[int, tuple[str, bool]]:
        """Descriptors: what they stand for, and whether exec closes them."""
        slots = self.world.holder(pid, self.now).files.items(self.now + 1)
        return {
            key[1]: (self.name(slot.entity_id), slot.closes_on_exec) for key, slot in slots if isinstance(key, tuple)
        }


@pytest.fixture
def run(descriptions: Descriptions) -> Iterator[Run]:
    yield Run(descriptions)


def test_a_file_is_one_by_whatever_number(run: Run) -> None:
    assert run.open("a", 3) == [("opened", "/home/a")]
    assert run("dup", 3, result=5) == [("duplicated", "/home/a")]
    run("close", 3)
    assert run("read", 5, b"text", 10, result=4) == [("read", "/home/a")]
    assert run.open("../b/./c", 3) == [("opened", "/b/c")]
    assert run.held() == {3: ("/b/c", False), 5: ("/home/a", False)}


def test_what_fails_changes_nothing(run: Run) -> None:
    assert run.open("none", ENOENT) == [("opened", "/home/none")]
    assert run("dup2", 7, 8, result=-9) == []
    assert run.held() == {}


def test_what_closes_on_exec_is_gone_behind_it(run: Run) -> None:
    run.open("kept", 3)
    run.open("closed", 4, O_CLOEXEC)
    run("fcntl", 3, F_DUPFD, 10, result=10)
    run("fcntl", 10, F_SETFD, 1)
    run("dup3", 4, 11, O_CLOEXEC, result=11)
    run("fcntl", 11, F_SETFD, 0)
    run("dup2", 4, 12, result=12)
    run.world.execute(1, "other", run.now + 1)
    assert run.held() == {3: ("/home/kept", False), 11: ("/home/closed", False), 12: ("/home/closed", False)}


def test_a_child_has_what_its_parent_had_when_it_began(run: Run) -> None:
    run.open("a", 3)
    begun = run.now + 2
    run.open("later", 4, begin=begun + 10, end=begun + 11)
    run.now = begun + 20
    run.world.add_process(2, "two", begun, 1)
    run("close", 3)
    assert (run.held(2), run.held(1)) == ({3: ("/home/a", False)}, {4: ("/home/later", False)})
    run.world.add_process(3, "three", run.now, 1, frozenset({"Files"}))
    run.open("shared", 5, pid=3)
    assert run.held(1) == run.held(3)


def test_a_close_that_returns_late_closes_what_was_there_when_it_began(run: Run) -> None:
    run.open("a", 3)
    began = run.now + 2
    # Another thread gets the number meanwhile.
    run.open("b", 3, begin=began + 2, end=began + 3)
    assert run("close", 3, begin=began, end=began + 10) == [("closed", "/home/a")]
    run.now = began + 20
    assert run.held() == {3: ("/home/b", False)}
    # And who reads still reads what it began with.
    assert run("read", 3, b"x", 1, result=1, begin=began - 1, end=began + 25) == [("read", "/home/a")]


def test_what_is_closed_is_nobodys_once_the_close_is_over(run: Run) -> None:
    run.open("/a", 3)
    run("close", 3, begin=500, end=600)
    assert run("read", 3, 0x1000, 1, result=1, begin=550, end=700) == [("read", "/a")]
    assert run("read", 3, 0x1000, 1, result=1, begin=610, end=710) == [("read", "descriptor 3")]


def test_names_move_and_end(run: Run) -> None:
    run.open("a", 3)
    assert run("rename", b"a\0", b"b\0") == [("renamed", "/home/b")]
    assert run("write", 3, b"x", 1, result=1) == [("written", "/home/b")]
    run.open("dir/inner", 4)
    run("rename", b"dir\0", b"/else\0")
    assert run("read", 4, b"x", 1, result=1) == [("read", "/else/inner")]
    assert run("unlink", b"b\0") == [("removed", "/home/b")]
    run.open("b", 5)
    assert run.world.holder(1, run.now).files.get(("fd", 3), run.now + 1) != run.world.holder(1, run.now).files.get(
        ("fd", 5), run.now + 1
    )
    run("link", b"b\0", b"second\0")
    assert run.open("second", 6) == [("opened", "/home/b")]


def test_paths_begin_where_a_descriptor_says(run: Run) -> None:
    run.open("/var/lib", 9)
    assert run("openat", 9, b"inner\0", 0, 0, result=10) == [("opened", "/var/lib/inner")]
    assert set(run("newfstatat", 9, b"\0", 0x2000, 0x1000)) == {("subject", "/var/lib")}
    run("fchdir", 9)
    assert run.open("x", 11) == [("opened", "/var/lib/x")]
    run("chdir", b"/tmp\0")
    assert run.open("x", 12) == [("opened", "/tmp/x")]


def test_ranges_are_closed_or_kept(run: Run) -> None:
    for number in range(3, 9):
        run.open(f"f{number}", number)
    run("close_range", 4, 5, 0)
    run("close_range", 7, 0xFFFFFFFF, 4)
    assert {number: closes for number, (_, closes) in run.held().items()} == {3: False, 6: False, 7: True, 8: True}


def test_a_number_that_nobody_told_of_is_a_thing_from_then_on(run: Run) -> None:
    assert run("read", 77, b"x", 1, result=1) == [("read", "descriptor 77")]
    assert run("dup", 77, result=78) == [("duplicated", "descriptor 77")]
    assert run("write", 78, b"x", 1, result=1) == [("written", "descriptor 77")]


def test_a_descriptor_that_is_changed_stays_what_it_is(run: Run) -> None:
    run("signalfd4", -1, b"\0" * 8, 8, 0, result=3)
    before = run.held()
    run("signalfd4", 3, b"\0" * 8, 8, 0, result=3)
    assert run.held() == before


def test_a_socket_is_called_by_the_address_that_it_came_to(run: Run) -> None:
    def address(port: int) -> bytes:
        return b"\2\0" + port.to_bytes(2, "big") + b"\x7f\0\0\1" + bytes(8)

    run("socket", 2, 1, 0, result=3)
    run("bind", 3, address(0), 16)
    assert run("getsockname", 3, address(80), b"\x10\0\0\0") == [("subject", "127.0.0.1:80")]
    n_things = len(run.world.things.entities)
    # The one that is new is there only when the call has returned.
    told = run("accept4", 3, address(5000), b"\x10\0\0\0", 0, result=4)
    assert told == [("accepted", "127.0.0.1:5000"), ("subject", "127.0.0.1:80")]
    run("getsockname", 4, address(80), b"\x10\0\0\0")
    assert run.held() == {3: ("127.0.0.1:80", False), 4: ("127.0.0.1:5000", False)}
    assert len(run.world.things.entities) == n_things + 1


def test_memory_is_of_its_file(run: Run) -> None:
    run.open("lib", 3)
    assert run("mmap", 0, 0x3000, 1, 2, 3, 0, result=0x10000) == [("mapped", "/home/lib"), ("mapped", "/home/lib")]
    assert run("munmap", 0x11000, 0x1000)[0][0] == "removed"
    assert [(start, end) for start, end, _ in run.world.holder(1, 0).memory] == [(0x10000, 0x11000), (0x12000, 0x13000)]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers(1, 12)), max_size=40))
def test_ranges_of_memory_are_what_a_table_of_pages_says(steps: list[tuple[bool, int, int]]) -> None:
    memory, pages = Memory(), {}
    for number, (is_mapped, start, size) in enumerate(steps):
        if is_mapped:
            memory.map(start, size, number)
        else:
            memory.unmap(start, size)
        for page in range(start, start + size):
            pages[page] = number if is_mapped else None
        found = {page: entity for first, end, entity in memory for page in range(first, end)}
        assert found == {page: entity for page, entity in pages.items() if entity is not None}
        assert memory.find(start, size) == list(dict.fromkeys(pages[page] for page in range(start, start + size))) or (
            not is_mapped and memory.find(start, size) == []
        )


@given(
    st.lists(st.tuples(st.integers(0, 20), st.one_of(st.none(), st.integers(0, 5))), max_size=20), st.integers(0, 21)
)
def test_histories_do_not_ask_for_an_order(changes: list[tuple[int, int | None]], time_ns: int) -> None:
    slots = Slots()
    for at, entity_id in changes:
        slots.set("key", at, None if entity_id is None else Slot(entity_id))
    # The last of those at or before the time; of one time the last that came.
    before = [(at, index) for index, (at, _) in enumerate(changes) if at <= time_ns]
    expected = changes[max(before)[1]][1] if before else None
    found = slots.get("key", time_ns)
    assert (None if found is None else found.entity_id) == expected


def test_paths_are_told_from_the_root() -> None:
    assert Place("/a/b").resolve("../c/./d", None) == "/a/c/d"
    assert Place("/a").resolve("x", "/b") == "/b/x"
    assert Place(None).resolve("x/y", None) == "x/y"
    assert Place("/a").resolve("/x//y/", None) == "/x/y"
