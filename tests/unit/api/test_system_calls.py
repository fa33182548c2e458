"""What clew's own files say of the system calls: all of them, once, and the right thing of the common ones."""

from __future__ import annotations

from collections import Counter

import pytest

from clew.api.description import Function
from clew.api.descriptions import Descriptions
from clew.api.generate.sources import read_sources
from clew.api.reading import BUILT_IN, check, load_built_in
from clew.api.vocabulary import FILTERS, POINTERS, RAW_TYPES

UNKNOWN = 18
"""Calls of which no kernel that could be asked says what their arguments are."""


@pytest.fixture(scope="module")
def descriptions() -> Descriptions:
    return load_built_in()


def find(descriptions: Descriptions, name: str) -> Function:
    call = descriptions.find_system_call(name)
    assert call is not None, name
    return call


def test_the_files_keep_to_the_rules() -> None:
    assert [str(problem) for path in BUILT_IN for problem in check(path)] == []


def test_all_calls_are_there_once(descriptions: Descriptions) -> None:
    sources = read_sources()
    names = {call.name: number for number, call in descriptions.system_calls.items()}
    assert names == {name: numbers["x86_64"] for name, numbers in sources.numbers.items()}
    assert len(names) == len(descriptions.system_calls) >= 361
    renamed = sources.hints["Renamed"]
    for name, arguments in sources.prototypes.items():
        described = find(descriptions, renamed.get(name, name)).arguments
        assert [parameter.name for parameter in described] == [argument.name for argument in arguments], name


def test_few_have_arguments_that_are_not_known(descriptions: Descriptions) -> None:
    unknown = [call.name for call in descriptions.system_calls.values() if call.parameters is None]
    assert len(unknown) == UNKNOWN
    assert not set(unknown) & {*read_sources().prototypes}


def test_raw_types_filters_and_tables_are_known(descriptions: Descriptions) -> None:
    for call in descriptions.system_calls.values():
        assert call.filter in FILTERS
        assert call.error == "negative_errno"
        for parameter in call.parameters or ():
            assert parameter.raw_type in RAW_TYPES, f"{call.name}.{parameter.name}"
            assert parameter.flags is None or descriptions.flag_table(parameter.flags), f"{call.name}.{parameter.name}"
        if call.parameters is not None:
            returns = bool(call.parameters) and call.parameters[-1].index == -1
            assert returns or call.name in ("exit", "exit_group", "rt_sigreturn"), call.name


def test_filters_hold_what_users_look_for(descriptions: Descriptions) -> None:
    chosen = {name: find(descriptions, name).filter for name in FILTERED}
    assert chosen == FILTERED
    assert Counter(call.filter for call in descriptions.system_calls.values())["Other"] < 25


FILTERED = {
    "connect": "Network",
    "recvfrom": "Network",
    "openat": "File",
    "mkdir": "Directory",
    "mmap": "Memory",
    "futex": "Synchronisation",
    "kill": "Signal",
}


@pytest.mark.parametrize(
    ("place", "raw_type", "size", "room"),
    [
        ("read.buf", "buffer", -1, 2),
        ("recvfrom.ubuf", "buffer", -1, 2),
        ("getxattr.value", "buffer", -1, 3),
        ("getcwd.buf", "path", -1, 1),
        ("readlink.buf", "buffer", -1, 2),
        ("newfstatat.statbuf", "struct", None, None),
        ("accept.upeer_sockaddr", "sockaddr", 2, None),
        ("clock_gettime.tp", "timespec", None, None),
        ("pipe2.fildes", "struct", None, None),
    ],
)
def test_what_the_kernel_writes_is_read_at_exit(
    descriptions: Descriptions, place: str, raw_type: str, size: int | None, room: int | None
) -> None:
    name, argument = place.split(".")
    (parameter,) = (one for one in find(descriptions, name).arguments if one.name == argument)
    assert (parameter.raw_type, parameter.direction, parameter.when) == (raw_type, "out", "exit")
    assert (parameter.size_index, parameter.room_index) == (size, room)


@pytest.mark.parametrize(
    "place", ["write.buf", "sendto.buff", "connect.uservaddr", "openat.filename", "nanosleep.rqtp"]
)
def test_what_the_kernel_reads_is_read_at_entry(descriptions: Descriptions, place: str) -> None:
    name, argument = place.split(".")
    (parameter,) = (one for one in find(descriptions, name).arguments if one.name == argument)
    assert (parameter.direction, parameter.when) == ("in", "entry")


def test_only_pointers_lead_somewhere(descriptions: Descriptions) -> None:
    for call in descriptions.system_calls.values():
        for parameter in call.arguments:
            is_written = parameter.direction != "in"
            has_size = parameter.size_index is not None or parameter.count is not None
            assert parameter.raw_type in POINTERS or not (is_written or has_size), f"{call.name}.{parameter.name}"


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        ("open_flags", "O_CLOEXEC", 0o2000000),
        ("directory_fd", "AT_FDCWD", -100),
        ("signals", "SIGKILL", 9),
        ("errors", "ENOENT", 2),
        ("map_flags", "MAP_ANONYMOUS", 0x20),
        ("clone_flags", "SIGCHLD", 17),
        ("socket_families", "AF_INET6", 10),
        ("requests", "TCGETS", 0x5401),
    ],
)
def test_tables_have_the_values_of_the_kernel(descriptions: Descriptions, table: str, name: str, value: int) -> None:
    found = descriptions.flag_table(table)
    assert found is not None
    flag = found.find(name)
    assert flag is not None
    assert flag.value == value


def test_there_are_as_many_requests_and_options_as_users_meet(descriptions: Descriptions) -> None:
    def count(*names: str) -> int:
        return sum(len(table.flags) for name in names if (table := descriptions.flag_table(name)))

    options = [name for name in descriptions.flag_tables if name.endswith("_options")]
    assert count("requests") >= 1300
    assert count(*(name for name in options if name not in ("process_options", "architecture_options"))) >= 350
    assert count("process_options") >= 60
    assert len(descriptions.structs) >= 85


def cases_of(function: Function, value: str) -> list[str | None]:
    """Which structure an argument leads to in the cases of a value."""
    assert function.variants is not None
    found = [case for case in function.variants.cases if value in case.values]
    return [parameter.struct for case in found for parameter in case.parameters]


def test_requests_lead_to_the_structures_that_macros_say(descriptions: Descriptions) -> None:
    ioctl = find(descriptions, "ioctl")
    assert cases_of(ioctl, "TIOCGWINSZ") == ["winsize"]
    assert cases_of(ioctl, "TCGETS2") == ["termios2"]
    assert cases_of(ioctl, "RTC_RD_TIME") == ["rtc_time"]
    assert cases_of(ioctl, "EVIOCGVERSION") == ["int"]


def test_structures_that_are_named_are_there(descriptions: Descriptions) -> None:
    named = {parameter.struct for call in descriptions.system_calls.values() for parameter in call.parameters or ()}
    named |= {member.struct for struct in descriptions.structs.values() for member in struct.members}
    assert named - {None} <= descriptions.structs.keys()
    assert {"iovec", "msghdr", "epoll_event", "stat", "sigaction", "siginfo", "clone_args", "fd", "text"} <= named
